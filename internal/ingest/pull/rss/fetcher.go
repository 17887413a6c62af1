// Package rss reads feeds: RSS 0.9x to 2.0, RSS 1.0, Atom and JSON Feed, as they
// are found on the web and within limits that a hostile one cannot pass.
package rss

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"autopost/internal/ingest/pull"
	"autopost/internal/outbound"
)

const (
	// maxBody bounds a feed as it is read, that is decompressed, in bytes.
	maxBody = 8 << 20
	// maxValidator is the longest ETag or Last-Modified worth keeping, in bytes.
	maxValidator = 1024
	accept       = "application/rss+xml, application/atom+xml, application/feed+json, " +
		"application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.1"
	userAgent = "autopost"
)

// Doer makes a request to an address that a source names; outbound.Guarded
// provides it, with its checks of where the request goes.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Fetcher is the pull.Fetcher of kind "rss".
type Fetcher struct{ doer Doer }

// New makes a Fetcher that asks by doer.
func New(doer Doer) *Fetcher { return &Fetcher{doer: doer} }

// cursor is the cursor_json of a feed.
type cursor struct {
	// URLHash tells whether ETag and LastModified were given by this URL. It is a
	// hash because the URL may hold a key.
	URLHash      string     `json:"url_hash,omitempty"`
	ETag         string     `json:"etag,omitempty"`
	LastModified string     `json:"last_modified,omitempty"`
	LastSeenTS   *time.Time `json:"last_seen_ts,omitempty"`
	LastSeenID   string     `json:"last_seen_id,omitempty"`
	// FirstSeenDone: a poll has gone through, so what is new now is news.
	FirstSeenDone bool `json:"first_seen_done,omitempty"`
}

// firstSight reports whether no poll of the source has gone through yet.
func (c cursor) firstSight() bool {
	return !c.FirstSeenDone && c.ETag == "" && c.LastModified == "" && c.LastSeenID == "" && c.LastSeenTS == nil
}

// Fetch asks the feed, by a conditional request where it can. A feed that did not
// change gives an empty batch and the cursor as it was.
func (f *Fetcher) Fetch(ctx context.Context, source pull.Source) (pull.Batch, error) {
	cfg, err := parseConfig(source.Config)
	if err != nil {
		return pull.Batch{}, err
	}
	var seen cursor
	if len(source.Cursor) > 0 {
		if err := json.Unmarshal(source.Cursor, &seen); err != nil {
			return pull.Batch{}, &pull.Failure{Code: "pull_cursor", Message: "cursor_json cannot be read; set it to {} to start over"}
		}
	}
	response, err := f.ask(ctx, cfg.url, seen)
	if err != nil {
		return pull.Batch{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotModified {
		return unchanged(seen)
	}
	if response.StatusCode != http.StatusOK {
		return pull.Batch{}, refusal(cfg.url, response)
	}
	body, err := outbound.ReadAll(response.Body, maxBody)
	if err != nil {
		return pull.Batch{}, unreachable(ctx, cfg.url, err)
	}
	address := cfg.url
	if response.Request != nil && response.Request.URL != nil {
		address = response.Request.URL // behind redirects
	}
	entries, err := parse(body, response.Header.Get("Content-Type"), address)
	if err != nil {
		return pull.Batch{}, err
	}
	after := cursor{
		URLHash:       hash(cfg.url.String()),
		ETag:          validator(response, "ETag"),
		LastModified:  validator(response, "Last-Modified"),
		LastSeenTS:    seen.LastSeenTS,
		LastSeenID:    seen.LastSeenID,
		FirstSeenDone: true,
	}
	return makeBatch(cfg, entries, seen, after)
}

func (f *Fetcher) ask(ctx context.Context, address *url.URL, seen cursor) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, badConfig("url", "must be the feed's whole http or https URL")
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", accept)
	if seen.URLHash == "" || seen.URLHash == hash(address.String()) {
		if seen.ETag != "" {
			request.Header.Set("If-None-Match", seen.ETag)
		}
		if seen.LastModified != "" {
			request.Header.Set("If-Modified-Since", seen.LastModified)
		}
	}
	response, err := f.doer.Do(request)
	if err != nil {
		return nil, unreachable(ctx, address, err)
	}
	return response, nil
}

func unchanged(seen cursor) (pull.Batch, error) {
	seen.FirstSeenDone = true
	raw, err := json.Marshal(seen)
	if err != nil {
		return pull.Batch{}, fmt.Errorf("encode cursor: %w", err)
	}
	return pull.Batch{Cursor: raw}, nil
}

func validator(response *http.Response, name string) string {
	value := response.Header.Get(name)
	if len(value) > maxValidator {
		return ""
	}
	return clean(value)
}

func refusal(address *url.URL, response *http.Response) error {
	status := response.StatusCode
	message := fmt.Sprintf("%s answered %d", address.Hostname(), status)
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		message += "; it does not let us read the feed"
	case http.StatusNotFound, http.StatusGone:
		message += "; correct url or disable the source"
	case http.StatusTooManyRequests:
		message += "; raise interval_seconds"
	}
	return &pull.Failure{Code: fmt.Sprintf("pull_http_%d", status), Message: message}
}

// unreachable says why no body came. It never shows the URL, which may hold a key.
func unreachable(ctx context.Context, address *url.URL, err error) error {
	host := address.Hostname()
	var network net.Error
	switch {
	case errors.Is(err, outbound.ErrBlockedAddress), errors.Is(err, outbound.ErrBlockedPort), errors.Is(err, outbound.ErrBlockedScheme):
		return &pull.Failure{Code: "pull_blocked_address", Message: fmt.Sprintf("%s may not be fetched from: "+
			"its address or port is not public; AUTOPOST_OUTBOUND_ALLOW lists exceptions", host)}
	case errors.Is(err, outbound.ErrTooLarge):
		return &pull.Failure{Code: "pull_too_large", Message: fmt.Sprintf("the feed of %s is larger than %d bytes", host, maxBody)}
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return &pull.Failure{Code: "pull_timeout", Message: host + " did not deliver the feed in time"}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &pull.Failure{Code: "pull_fetch_failed", Message: host + " broke off in the middle of the feed"}
	}
	return &pull.Failure{Code: "pull_fetch_failed", Message: fmt.Sprintf("fetch from %s: %v", host, err)}
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

var _ pull.Fetcher = (*Fetcher)(nil)
