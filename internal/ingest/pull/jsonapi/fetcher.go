// Package jsonapi reads JSON over HTTP: the items of an answer by JSON pointer, page by page, with a credential in a
// header if configured.
package jsonapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"autopost"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/httpfetch"
	"autopost/internal/ingest/pull/item"
)

const (
	// maxDepth limits the nesting of an answer.
	maxDepth = 100
)

// Fetcher is the pull.Fetcher of kind "api".
type Fetcher struct {
	doer httpfetch.Doer
	// private makes the requests with a credential.
	private     httpfetch.Doer
	credentials Credentials
	memory      *httpfetch.MemoryLimit
}

// Credentials opens the credential that auth_ref names.
type Credentials interface {
	// ForAddress fails if the name is not bound, is bound for another platform, or may not be sent to the host of address.
	ForAddress(ctx context.Context, workspace, authRef string, address *url.URL) (autopost.Secret, error)
}

// New makes a Fetcher with the credential that auth_ref names. private makes the requests with it, and must require TLS.
func New(doer, private httpfetch.Doer, credentials Credentials) *Fetcher {
	return &Fetcher{doer: doer, private: private, credentials: credentials, memory: httpfetch.NewMemoryLimit()}
}

// Fetch reads pages until one contains known items, or to the last page. If the order is oldest first, it continues
// from the last position.
func (f *Fetcher) Fetch(ctx context.Context, source pull.Source) (pull.Batch, error) {
	cfg, err := parseConfig(source.Config)
	if err != nil {
		return pull.Batch{}, err
	}
	seen, err := item.ParseCursor(source.Cursor)
	if err != nil {
		return pull.Batch{}, err
	}
	if hash := item.Hash(cfg.url.String()); seen.URLHash != hash {
		seen.FirstSeenDone = !seen.FirstSight()
		seen.URLHash, seen.Next = hash, ""
	}
	p := poll{fetcher: f, cfg: cfg, seen: seen, first: seen.FirstSight()}
	if cfg.authRef != "" {
		if p.secret, err = f.credentials.ForAddress(ctx, source.WorkspaceID, cfg.authRef, cfg.url); err != nil {
			return pull.Batch{}, &pull.Failure{Code: "pull_credential", Message: fmt.Sprintf("auth_ref %s: %v", cfg.authRef, err)}
		}
	}
	if err := p.run(ctx); err != nil {
		return pull.Batch{}, err
	}
	return p.batch()
}

// poll is a running poll.
type poll struct {
	fetcher *Fetcher
	cfg     config
	seen    item.Cursor
	first   bool
	secret  autopost.Secret

	entries []item.Entry
	// position is that of the last page, or of the next one if the poll stopped before it.
	position string
	// ended means that the last page was read; met that a known item was found.
	ended, met bool
	wait       time.Duration
}

func (p *poll) run(ctx context.Context) error {
	position := ""
	if p.cfg.oldestFirst {
		position = p.seen.Next
	}
	visited := map[string]bool{}
	for range p.cfg.paging.MaxPages {
		if visited[position] {
			return mapping("the pages must not repeat; correct paging")
		}
		visited[position] = true
		next, err := p.page(ctx, position)
		if err != nil {
			return err
		}
		p.position = position
		if p.ended = next == ""; p.ended || p.met {
			return nil
		}
		position = next
		if len(p.entries) >= item.MaxItems {
			break
		}
	}
	p.position = position
	return nil
}

// page reads one page and returns the position of the next.
func (p *poll) page(ctx context.Context, position string) (string, error) {
	address, err := p.cfg.paging.address(p.cfg.url, position)
	if err != nil {
		return "", err
	}
	got, err := p.get(ctx, address)
	if err != nil {
		return "", err
	}
	entries, err := p.cfg.entries(got.document, got.at)
	if err != nil {
		return "", err
	}
	p.entries = append(p.entries, entries...)
	p.wait = max(p.wait, httpfetch.MaxAge(got.header))
	if !p.cfg.oldestFirst && !p.first {
		p.met = p.met || p.known(entries)
	}
	return p.cfg.paging.after(position, got, len(entries))
}

// known reports whether a page contains the newest known item, or only older ones.
func (p *poll) known(entries []item.Entry) bool {
	older := p.seen.LastSeenTS != nil && len(entries) > 0
	for _, e := range entries {
		if e.Ref() == p.seen.LastSeenID {
			return true
		}
		older = older && e.Published != nil && e.Published.Before(*p.seen.LastSeenTS)
	}
	return older
}

// answer is a document with its address after redirects.
type answer struct {
	document any
	at       *url.URL
	header   http.Header
}

func (p *poll) get(ctx context.Context, address *url.URL) (answer, error) {
	header := http.Header{"Accept": {"application/json"}}
	doer := p.fetcher.doer
	// The next page may be on another host, which must not get the credential.
	if !p.secret.IsZero() && address.Scheme == p.cfg.url.Scheme && address.Host == p.cfg.url.Host {
		header.Set(p.cfg.authHeader, p.cfg.authPrefix+p.secret.Reveal())
		doer = p.fetcher.private
	}
	response, err := httpfetch.Get(ctx, doer, address, header)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return answer{}, httpfetch.Refusal(address, response)
	}
	body, release, err := p.fetcher.memory.Read(ctx, response.Body)
	defer release()
	if err != nil {
		return answer{}, httpfetch.Unreachable(ctx, address, err)
	}
	document, err := decode(body)
	return answer{document, httpfetch.Address(response, address), response.Header}, err
}

// decode reads one JSON document of limited depth.
func decode(body []byte) (any, error) {
	body = bytes.TrimPrefix(body, []byte("\uFEFF"))
	if start := bytes.TrimLeft(body, " \t\r\n"); len(start) > 0 && start[0] == '<' {
		return nil, &pull.Failure{Code: "pull_not_json", Message: "the answer must be JSON, got HTML or XML; correct url, or use kind rss for a feed"}
	}
	if err := item.CheckJSON(body); err != nil {
		return nil, err
	}
	depth := 0
	scanner := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := scanner.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, &pull.Failure{Code: "pull_malformed", Message: fmt.Sprintf("the answer must be complete JSON: %v", err)}
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > maxDepth {
			return nil, &pull.Failure{Code: "pull_malformed", Message: fmt.Sprintf("the JSON must have at most %d levels", maxDepth)}
		}
	}
	var document any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, &pull.Failure{Code: "pull_malformed", Message: fmt.Sprintf("the answer must be complete JSON: %v", err)}
	}
	return document, nil
}

// batch sorts the entries and adds the cursors.
func (p *poll) batch() (pull.Batch, error) {
	entries := unique(p.entries)
	if !p.cfg.oldestFirst {
		slices.Reverse(entries)
		if !slices.ContainsFunc(entries, func(e item.Entry) bool { return e.Published == nil }) {
			slices.SortStableFunc(entries, func(a, b item.Entry) int { return a.Published.Compare(*b.Published) })
		}
	}
	options, after := p.cfg.Options, p.seen
	now := time.Now().UTC()
	after.ReadAt, after.FirstSeenDone, after.WaitSeconds = &now, true, int(p.wait/time.Second)
	if p.cfg.oldestFirst {
		after.Next = p.position
		if p.first && !p.ended {
			// The newest items follow on later pages, so these are old.
			options.Backfill, after.FirstSeenDone = 0, false
		}
	}
	gap := !p.cfg.oldestFirst && !p.first && !p.ended && !p.met
	if gap {
		// The cursor must not move past unread items.
		after = p.seen
	}
	batch, err := item.Batch(options, entries, p.seen, after)
	if err != nil || !gap {
		return batch, err
	}
	for i := range batch.Items {
		if batch.Items[i].Cursor, err = p.seen.Encode(); err != nil {
			return pull.Batch{}, err
		}
	}
	batch.Cursor, err = p.seen.Encode()
	batch.Incomplete = &pull.Failure{Code: "pull_gap", Message: fmt.Sprintf(
		"%d pages did not contain the last known item; raise paging.max_pages, shorten interval_seconds, or set cursor_json to {} to skip the items between", p.cfg.paging.MaxPages)}
	return batch, err
}

// unique drops entries that moved to a later page during the poll.
func unique(entries []item.Entry) []item.Entry {
	seen := map[string]bool{}
	return slices.DeleteFunc(entries, func(e item.Entry) bool {
		ref := e.Ref()
		known := seen[ref]
		seen[ref] = true
		return known
	})
}

var _ pull.Fetcher = (*Fetcher)(nil)
