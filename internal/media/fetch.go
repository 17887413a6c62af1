package media

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"autopost"
	"autopost/internal/outbound"
)

// Doer makes a request to an address that a payload named; outbound.Guarded
// provides it, with its checks of where the request goes.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Fetcher brings media from the web into the origin.
type Fetcher struct {
	Store *Store
	Doer  Doer
	// Limits are the largest sizes taken.
	Limits Limits
	// Timeout covers one download whole (DOWNLOAD_TIMEOUT_MS); 30 s when zero.
	Timeout time.Duration
}

const (
	defaultTimeout = 30 * time.Second
	userAgent      = "autopost"
)

// Fetch downloads rawURL, going on where the connection broke if its source can,
// checks that it is what kind says, and stores it. The failure is data: its category
// tells whether another attempt can help, its message names the host but never the
// URL, which may hold a token.
func (f *Fetcher) Fetch(ctx context.Context, rawURL string, kind autopost.MediaKind) (Origin, *autopost.Error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return Origin{}, failure(autopost.Permanent, CodeBadURL, "the media URL is not a whole http or https URL")
	}
	timeout := f.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	asked, err := request(ctx, u, 0, "")
	if err != nil {
		return Origin{}, failure(autopost.Permanent, CodeBadURL, "the media URL is not a whole http or https URL")
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

func storeCode(err error) string {
	if errors.Is(err, autopost.ErrNoRoom) {
		return CodeNoRoom
	}
	return CodeStoreFailed
}

// classify says what a failed connection or a broken download came to.
func classify(ctx context.Context, host string, err error) *autopost.Error {
	var (
		dns     *net.DNSError
		network net.Error
	)
	switch {
	case errors.Is(err, outbound.ErrBlockedAddress), errors.Is(err, outbound.ErrBlockedPort),
		errors.Is(err, outbound.ErrBlockedScheme):
		return failure(autopost.Permanent, CodeBlockedAddress, fmt.Sprintf("%s may not be fetched from: "+
			"its address or port is not public; AUTOPOST_OUTBOUND_ALLOW lists exceptions", host))
	case errors.Is(err, outbound.ErrTooLarge):
		return failure(autopost.Permanent, autopost.CodeMediaTooLarge, fmt.Sprintf("%s sends more than is read of any body; "+
			"make it smaller, or raise MAX_MEDIA_BYTES_IMAGE or MAX_MEDIA_BYTES_VIDEO", host))
	case errors.Is(err, outbound.ErrRedirect):
		return failure(autopost.Permanent, CodeBadURL, fmt.Sprintf("%s redirects too often, or out of TLS", host))
	case errors.Is(err, outbound.ErrEncoding):
		return failure(autopost.Permanent, CodeBadURL, fmt.Sprintf("%s packs what it sends in a way that is not taken; serve the file as it is", host))
	case errors.Is(err, outbound.ErrUntrusted):
		return failure(autopost.Permanent, autopost.CodeTLSUntrusted, fmt.Sprintf("the certificate of %s is not trusted", host))
	case errors.As(err, &dns) && dns.IsNotFound:
		return failure(autopost.Permanent, CodeDeadHost, fmt.Sprintf("the host %s does not exist", host))
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return failure(autopost.Transient, CodeFetchTimeout, fmt.Sprintf("%s did not deliver in time", host))
	}
	// Only the innermost cause is shown: net/http puts the URL around it.
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return failure(autopost.Transient, CodeFetchFailed, fmt.Sprintf("fetch from %s: %v", host, err))
}

// refusal says what an answer other than 200 came to.
func refusal(host string, response *http.Response) *autopost.Error {
	status := response.StatusCode
	category := autopost.Permanent
	switch {
	case status >= 500, status == http.StatusNotFound, status == http.StatusRequestTimeout,
		status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		// A 404 may be a file that its source has not published yet; the
		// number of attempts bounds the hope.
		category = autopost.Transient
	}
	e := failure(category, "media_fetch_"+strconv.Itoa(status), fmt.Sprintf("%s answered %d", host, status))
	if seconds, err := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 && category == autopost.Transient {
		e.RetryAfterMS = seconds * 1000
	}
	return e
}

// Verdict is what an error of Depository.Register says of the content as data: it
// cannot be taken, or not now. It is nil for any other error and for none.
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
