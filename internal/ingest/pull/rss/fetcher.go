// Package rss reads feeds: RSS 0.9x to 2.0, RSS 1.0, Atom and JSON Feed. It tolerates common mistakes
// of real feeds and bounds hostile ones.
package rss

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/httpfetch"
	"autopost/internal/ingest/pull/item"
)

const (
	// maxValidator is the maximum length of a stored ETag or Last-Modified, in bytes.
	maxValidator = 1024
	// rereadAfter is the maximum time without reading the whole feed, so that the database knows which
	// items the feed still contains.
	rereadAfter = 7 * 24 * time.Hour
	accept      = "application/rss+xml, application/atom+xml, application/feed+json, " +
		"application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.1"
)

// Fetcher is the pull.Fetcher of kind "rss".
type Fetcher struct {
	doer httpfetch.Doer
	room *httpfetch.MemoryLimit
}

// New returns a Fetcher that makes its requests by doer.
func New(doer httpfetch.Doer) *Fetcher { return &Fetcher{doer: doer, room: httpfetch.NewMemoryLimit()} }

// Fetch requests the feed, conditionally if possible. An unchanged feed gives an empty batch and the
// old cursor.
func (f *Fetcher) Fetch(ctx context.Context, source pull.Source) (pull.Batch, error) {
	cfg, err := parseConfig(source.Config)
	if err != nil {
		return pull.Batch{}, err
	}
	seen, err := item.ParseCursor(source.Cursor)
	if err != nil {
		return pull.Batch{}, err
	}
	if seen.URLHash != "" && seen.URLHash != item.Hash(cfg.url.String()) {
		// The stored state belongs to another address.
		seen.ETag, seen.LastModified, seen.MovedTo, seen.WaitSeconds, seen.FirstSeenDone = "", "", "", 0, !seen.FirstSight()
	}
	seen.URLHash = item.Hash(cfg.url.String())
	response, err := f.ask(ctx, cfg.url, &seen)
	if err != nil {
		return pull.Batch{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if moved := httpfetch.Moved(response); moved != "" {
		seen.MovedTo = moved
	}
	if response.StatusCode == http.StatusNotModified {
		return unchanged(seen, response)
	}
	if response.StatusCode != http.StatusOK {
		return pull.Batch{}, httpfetch.Refusal(cfg.url, response)
	}
	body, release, err := f.room.Read(ctx, response.Body)
	defer release()
	if err != nil {
		return pull.Batch{}, httpfetch.Unreachable(ctx, cfg.url, err)
	}
	parsed, err := parse(body, response.Header.Get("Content-Type"), httpfetch.Address(response, cfg.url))
	if err != nil {
		return pull.Batch{}, err
	}
	now := time.Now().UTC()
	after := seen
	after.ETag, after.LastModified = validator(response, "ETag"), validator(response, "Last-Modified")
	after.WaitSeconds = int(max(parsed.pace, httpfetch.MaxAge(response.Header)) / time.Second)
	after.ReadAt, after.FirstSeenDone = &now, true
	return item.Batch(cfg.Options, parsed.entries, seen, after)
}

// ask requests the feed at its current address. If that fails, it forgets the address and asks the
// configured one.
func (f *Fetcher) ask(ctx context.Context, configured *url.URL, seen *item.Cursor) (*http.Response, error) {
	if seen.MovedTo == "" {
		return f.get(ctx, configured, *seen)
	}
	if address, err := url.Parse(seen.MovedTo); err == nil && item.Web(address) {
		response, err := f.get(ctx, address, *seen)
		if err == nil && (response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotModified) {
			return response, nil
		}
		if err == nil {
			_ = response.Body.Close()
		}
		if ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
	}
	seen.MovedTo, seen.ETag, seen.LastModified = "", "", ""
	return f.get(ctx, configured, *seen)
}

func (f *Fetcher) get(ctx context.Context, address *url.URL, seen item.Cursor) (*http.Response, error) {
	header := http.Header{"Accept": {accept}}
	if seen.ReadAt == nil || time.Since(*seen.ReadAt) < rereadAfter {
		if seen.ETag != "" {
			header.Set("If-None-Match", seen.ETag)
		}
		if seen.LastModified != "" {
			header.Set("If-Modified-Since", seen.LastModified)
		}
	}
	return httpfetch.Get(ctx, f.doer, address, header)
}

func unchanged(seen item.Cursor, response *http.Response) (pull.Batch, error) {
	seen.FirstSeenDone = true
	if age := httpfetch.MaxAge(response.Header); age > 0 {
		seen.WaitSeconds = int(age / time.Second)
	}
	raw, err := seen.Encode()
	return pull.Batch{Cursor: raw}, err
}

func validator(response *http.Response, name string) string {
	value := response.Header.Get(name)
	if len(value) > maxValidator {
		return ""
	}
	return item.Clean(value)
}

var _ pull.Fetcher = (*Fetcher)(nil)
