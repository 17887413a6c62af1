package media

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"autopost"
	"autopost/internal/outbound"
)

// Doer makes a request to an address in a payload. outbound.Guarded implements it and checks the address.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Fetcher downloads media into the media store.
type Fetcher struct {
	Store *Store
	Doer  Doer
	// Limits are the largest accepted sizes.
	Limits Limits
	// Timeout limits one download (DOWNLOAD_TIMEOUT_MS); 0 means 30 s.
	Timeout time.Duration
}

const defaultTimeout = 30 * time.Second

// maxFilename is the longest name of a file, in characters. The database has the same limit.
const maxFilename = 255

// Fetch downloads rawURL, checks that the content matches kind, and stores it. It resumes after a broken connection if
// the source supports it. The category of the failure shows whether a retry may help. Its message contains the host but
// never the URL, which may contain a token.
func (f *Fetcher) Fetch(ctx context.Context, rawURL string, kind autopost.MediaKind) (Origin, *autopost.Error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return Origin{}, failure(autopost.Permanent, CodeBadURL, "the media URL must be an absolute http or https URL")
	}
	timeout := f.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	asked, err := request(ctx, u, 0, "")
	if err != nil {
		return Origin{}, failure(autopost.Permanent, CodeBadURL, "the media URL must be an absolute http or https URL")
	}
	response, err := f.Doer.Do(asked) //nolint:bodyclose // the download closes it
	if err != nil {
		return Origin{}, classify(ctx, u.Hostname(), err)
	}
	source := newDownload(ctx, f.Doer, u, response)
	defer func() { _ = source.Close() }()
	if response.StatusCode != http.StatusOK {
		return Origin{}, refusal(u.Hostname(), response)
	}
	if limit := f.Limits.Of(kind); response.ContentLength > limit {
		return Origin{}, failure(autopost.Permanent, autopost.CodeMediaTooLarge, tooLarge(kind, limit).Message)
	}

	origin, err := f.Store.Put(ctx, source, kind, f.Limits)
	var rejection *Rejection
	switch {
	case err == nil:
		origin.Filename = filenameOf(u, response.Header)
		return origin, nil
	case errors.As(err, &rejection):
		return Origin{}, failure(autopost.Permanent, rejection.Code, rejection.Message)
	case source.err != nil:
		return Origin{}, classify(ctx, u.Hostname(), source.err)
	case ctx.Err() != nil:
		return Origin{}, classify(ctx, u.Hostname(), ctx.Err())
	}
	return Origin{}, failure(autopost.Transient, storeCode(err), err.Error())
}

// filenameOf returns the name of a download: that of its Content-Disposition, else the end of its path if that has an
// extension; "" if neither is a valid name.
func filenameOf(u *url.URL, header http.Header) string {
	name := path.Base(u.Path)
	if path.Ext(name) == "" {
		name = ""
	}
	if _, params, err := mime.ParseMediaType(header.Get("Content-Disposition")); err == nil && params["filename"] != "" {
		name = path.Base(strings.ReplaceAll(params["filename"], `\`, "/"))
	}
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxFilename || strings.ContainsFunc(name, unicode.IsControl) ||
		slices.Contains([]string{".", "..", "/"}, name) || strings.Contains(name, `\`) {
		return ""
	}
	return name
}

func storeCode(err error) string {
	if errors.Is(err, autopost.ErrNoSpace) {
		return CodeNoSpace
	}
	return CodeStoreFailed
}

// classify classifies a failed connection or a broken download.
func classify(ctx context.Context, host string, err error) *autopost.Error {
	var network net.Error
	switch {
	case errors.Is(err, outbound.ErrBlockedAddress), errors.Is(err, outbound.ErrBlockedPort),
		errors.Is(err, outbound.ErrBlockedScheme):
		return failure(autopost.Permanent, CodeBlockedAddress, fmt.Sprintf("%s must exist, and have a public address and port; "+
			"correct it, or add an exception to AUTOPOST_OUTBOUND_ALLOW", host))
	case errors.Is(err, outbound.ErrTooLarge):
		return failure(autopost.Permanent, autopost.CodeMediaTooLarge, fmt.Sprintf("the medium from %s is larger than the limit; "+
			"make it smaller, or raise MAX_MEDIA_BYTES_IMAGE or MAX_MEDIA_BYTES_VIDEO", host))
	case errors.Is(err, outbound.ErrRedirect):
		return failure(autopost.Permanent, CodeBadURL, fmt.Sprintf("%s redirects too often, or from https to http", host))
	case errors.Is(err, outbound.ErrEncoding):
		return failure(autopost.Permanent, CodeBadURL, fmt.Sprintf("%s sends an unknown Content-Encoding; send the file without encoding", host))
	case errors.Is(err, outbound.ErrUntrusted):
		return failure(autopost.Permanent, autopost.CodeTLSUntrusted, fmt.Sprintf("the certificate of %s is not trusted", host))
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return failure(autopost.Transient, CodeFetchTimeout, fmt.Sprintf("%s did not answer in time", host))
	}
	return failure(autopost.Transient, CodeFetchFailed, fmt.Sprintf("fetch from %s: %s", host, outbound.Cause(err)))
}

// refusal classifies an answer other than 200.
func refusal(host string, response *http.Response) *autopost.Error {
	status := response.StatusCode
	category := autopost.Permanent
	switch {
	case status >= 500, status == http.StatusNotFound, status == http.StatusRequestTimeout,
		status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		// After a 404 the source may publish the file later. The number of attempts is limited.
		category = autopost.Transient
	}
	e := failure(category, "media_fetch_"+strconv.Itoa(status), fmt.Sprintf("%s answered %d", host, status))
	if seconds, err := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 && category == autopost.Transient {
		e.RetryAfterMS = seconds * 1000
	}
	return e
}

// Verdict classifies a refusal by WorkspaceStore.Register. It returns nil for other errors and for nil.
func Verdict(err error) *autopost.Error {
	if rejection, ok := errors.AsType[*Rejection](err); ok {
		return failure(autopost.Permanent, rejection.Code, rejection.Message)
	}
	if errors.Is(err, ErrBusy) {
		return failure(autopost.Transient, CodeStoreFailed, ErrBusy.Error())
	}
	return nil
}

func failure(category autopost.Category, code, message string) *autopost.Error {
	return &autopost.Error{Category: category, Scope: autopost.ScopeDelivery, Code: code, Known: true, Message: message}
}
