// Package rss reads feeds: RSS 0.9x to 2.0, RSS 1.0, Atom and JSON Feed, as they
// are found on the web and within limits that a hostile one cannot pass.
package rss

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/shape"
	"autopost/internal/ingest/pull/web"
)

const (
	// maxValidator is the longest ETag or Last-Modified worth keeping, in bytes.
	maxValidator = 1024
	// rereadAfter is how long "not modified" is enough: now and then the whole feed
	// is read, so that the database knows which items it still shows.
	rereadAfter = 7 * 24 * time.Hour
	accept      = "application/rss+xml, application/atom+xml, application/feed+json, " +
		"application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.1"
)

// Fetcher is the pull.Fetcher of kind "rss".
type Fetcher struct {
	doer web.Doer
	room *web.Room
}

// New makes a Fetcher that asks by doer.
func New(doer web.Doer) *Fetcher { return &Fetcher{doer: doer, room: web.NewRoom()} }

// Fetch asks the feed, by a conditional request where it can. A feed that did not
// change gives an empty batch and the cursor as it was.
func (f *Fetcher) Fetch(ctx context.Context, source pull.Source) (pull.Batch, error) {
	cfg, err := parseConfig(source.Config)
	if err != nil {
		return pull.Batch{}, err
	}
	seen, err := shape.ParseCursor(source.Cursor)
	if err != nil {
		return pull.Batch{}, err
	}
	if seen.URLHash != "" && seen.URLHash != shape.Hash(cfg.url.String()) {
		// What another address said is not true of this one.
		seen.ETag, seen.LastModified, seen.MovedTo, seen.WaitSeconds, seen.FirstSeenDone = "", "", "", 0, !seen.FirstSight()
	}
	seen.URLHash = shape.Hash(cfg.url.String())
	response, err := f.ask(ctx, cfg.url, &seen)
	if err != nil {
		return pull.Batch{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if moved := web.Moved(response); moved != "" {
		seen.MovedTo = moved
	}
	if response.StatusCode == http.StatusNotModified {
		return unchanged(seen, response)
	}
	if response.StatusCode != http.StatusOK {
		return pull.Batch{}, web.Refusal(cfg.url, response)
	}
	body, release, err := f.room.Read(ctx, response.Body)
	defer release()
	if err != nil {
		return pull.Batch{}, web.Unreachable(ctx, cfg.url, err)
	}
	parsed, err := parse(body, response.Header.Get("Content-Type"), web.Address(response, cfg.url))
	if err != nil {
		return pull.Batch{}, err
	}
	now := time.Now().UTC()
	after := seen
	after.ETag, after.LastModified = validator(response, "ETag"), validator(response, "Last-Modified")
	after.WaitSeconds = int(max(parsed.pace, web.MaxAge(response.Header)) / time.Second)
	after.ReadAt, after.FirstSeenDone = &now, true
	return shape.Batch(cfg.Options, parsed.entries, seen, after)
}

// ask asks the feed where it lives now. Where that fails it is looked for at the
// configured address, and what was remembered is forgotten.
func (f *Fetcher) ask(ctx context.Context, configured *url.URL, seen *shape.Cursor) (*http.Response, error) {
	if seen.MovedTo == "" {
		return f.get(ctx, configured, *seen)
	}
	if address, err := url.Parse(seen.MovedTo); err == nil && shape.Web(address) {
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

func (f *Fetcher) get(ctx context.Context, address *url.URL, seen shape.Cursor) (*http.Response, error) {
	header := http.Header{"Accept": {accept}}
	if seen.ReadAt == nil || time.Since(*seen.ReadAt) < rereadAfter {
		if seen.ETag != "" {
			header.Set("If-None-Match", seen.ETag)
		}
		if seen.LastModified != "" {
			header.Set("If-Modified-Since", seen.LastModified)
		}
	}
	return web.Get(ctx, f.doer, address, header)
}

func unchanged(seen shape.Cursor, response *http.Response) (pull.Batch, error) {
	seen.FirstSeenDone = true
	if age := web.MaxAge(response.Header); age > 0 {
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
	return shape.Clean(value)
}

var _ pull.Fetcher = (*Fetcher)(nil)
