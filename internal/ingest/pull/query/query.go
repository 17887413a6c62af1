// Package query reads rows of a database as items: one query with a cursor, asked
// again and again from where the last answer ended.
package query

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"autopost"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/shape"
)

const (
	// credentialPlatform is that of a credential that is a DSN.
	credentialPlatform = "postgres"
	defaultTemplate    = "{title}\n\n{text}\n\n{link}"
	defaultTimeout     = 15
	maxTimeout         = 60
	// rowsPerPoll is how many rows a poll takes; the next one goes on behind them.
	rowsPerPoll = 1000
)

var (
	placeholders = []string{"{title}", "{text}", "{link}", "{author}", "{categories}"}
	// fields are what map may name; each is the column of the same name where it does not.
	fields = []string{"id", "title", "text", "link", "author", "tags", "published", "media_url", "media_type"}
)

// Question is what to ask a database.
type Question struct {
	DSN autopost.Secret
	// SQL is one select whose parameter $1 is After.
	SQL          string
	CursorColumn string
	// After is nil at first.
	After *string
	// Newest, if positive, asks for that many rows with the greatest values of the
	// cursor column, greatest first.
	Newest int
	// Limit bounds the others, which come with the least value first; rows that share
	// the last value come all.
	Limit   int
	Timeout time.Duration
}

// Answer holds rows as text.
type Answer struct {
	Columns []string
	Values  [][]*string
}

// Reader asks a database, in a transaction that may not write. Its errors are *pull.Failure.
type Reader interface {
	Read(ctx context.Context, q Question) (Answer, error)
}

// Fetcher is the pull.Fetcher of kind "db".
type Fetcher struct {
	reader      Reader
	credentials pull.Credentials
}

// New makes a Fetcher that asks by reader, where credentials says.
func New(reader Reader, credentials pull.Credentials) *Fetcher {
	return &Fetcher{reader: reader, credentials: credentials}
}

// config is the config_json of a source.
type config struct {
	shape.Options

	question Question
	authRef  string
	columns  map[string]string
}

func parseConfig(raw json.RawMessage) (config, error) {
	c := config{columns: map[string]string{}}
	timeout := defaultTimeout
	options, err := shape.Decode(raw, defaultTemplate, placeholders, map[string]shape.Field{
		"auth_ref":        {Into: &c.authRef, Must: "a string"},
		"query":           {Into: &c.question.SQL, Must: "a string"},
		"cursor_column":   {Into: &c.question.CursorColumn, Must: "a string"},
		"map":             {Into: &c.columns, Must: `an object of column names; write {"id": "post_id", "text": "body"}`},
		"timeout_seconds": {Into: &timeout, Must: "a whole number of seconds"},
	})
	if err != nil {
		return c, err
	}
	c.Options = options
	c.question.Timeout = time.Duration(timeout) * time.Second
	switch {
	case c.authRef == "":
		return c, shape.BadConfig("auth_ref", "is missing; name the row of credential_bindings, of platform postgres, that holds the DSN")
	case c.question.CursorColumn == "":
		return c, shape.BadConfig("cursor_column", "is missing; name the column of the query that only grows")
	case !strings.Contains(c.question.SQL, "$1") || strings.Contains(c.question.SQL, ";"):
		return c, shape.BadConfig("query", "must be one select without a semicolon, with the cursor as $1, as in: select id, text from posts where $1::bigint is null or id > $1")
	case timeout < 1 || timeout > maxTimeout:
		return c, shape.BadConfig("timeout_seconds", fmt.Sprintf("must be 1 to %d", maxTimeout))
	}
	for _, name := range slices.Sorted(maps.Keys(c.columns)) {
		if !slices.Contains(fields, name) {
			return c, shape.BadConfig("map", "names "+name+"; use "+strings.Join(fields, ", "))
		}
	}
	return c, nil
}

// Fetch asks for the rows behind the cursor; at first sight, for the newest.
func (f *Fetcher) Fetch(ctx context.Context, source pull.Source) (pull.Batch, error) {
	cfg, err := parseConfig(source.Config)
	if err != nil {
		return pull.Batch{}, err
	}
	seen, err := shape.ParseCursor(source.Cursor)
	if err != nil {
		return pull.Batch{}, err
	}
	q := cfg.question
	q.After, q.Limit = seen.After, rowsPerPoll
	if seen.FirstSight() {
		q.Newest = max(1, cfg.Backfill)
	}
	if q.DSN, err = f.credentials.Credential(ctx, source.WorkspaceID, cfg.authRef, credentialPlatform); err != nil {
		return pull.Batch{}, &pull.Failure{Code: "pull_credential", Message: fmt.Sprintf("auth_ref %s: %v", cfg.authRef, err)}
	}
	answer, err := f.reader.Read(ctx, q)
	if err != nil {
		return pull.Batch{}, err
	}
	entries, err := cfg.entries(answer)
	if err != nil {
		return pull.Batch{}, err
	}
	if q.Newest > 0 {
		slices.Reverse(entries)
	}
	after := seen
	after.FirstSeenDone = true
	return shape.Batch(cfg.Options, entries, seen, after)
}

// entries maps rows.
func (c config) entries(answer Answer) ([]shape.Entry, error) {
	at := map[string]int{}
	for i, column := range answer.Columns {
		at[column] = i
	}
	for _, name := range slices.Sorted(maps.Keys(c.columns)) {
		if _, ok := at[c.columns[name]]; !ok {
			return nil, &pull.Failure{Code: "pull_mapping", Message: fmt.Sprintf("map.%s names the column %s; the query gives %s",
				name, c.columns[name], strings.Join(answer.Columns, ", "))}
		}
	}
	entries := make([]shape.Entry, 0, len(answer.Values))
	now := time.Now()
	for _, row := range answer.Values {
		get := func(column string) string {
			if i, ok := at[column]; ok && row[i] != nil {
				return *row[i]
			}
			return ""
		}
		field := func(name string) string {
			if column, ok := c.columns[name]; ok {
				return get(column)
			}
			return get(name)
		}
		entries = append(entries, entry(field, get(c.question.CursorColumn), now))
	}
	return entries, nil
}

func entry(field func(string) string, after string, now time.Time) shape.Entry {
	e := shape.Entry{
		ID:         shape.Clean(field("id")),
		Title:      shape.Clean(shape.Readable(field("title"))),
		Text:       shape.Readable(field("text")),
		Link:       shape.Absolute(&url.URL{}, field("link")),
		Author:     shape.Clean(field("author")),
		Categories: list(field("tags")),
		Published:  shape.Plausible(shape.ParseTime(field("published")), now),
		After:      after,
	}
	address := shape.Absolute(&url.URL{}, field("media_url"))
	if kind := shape.KindOf(field("media_type"), address); address != "" && kind != "" {
		e.Media = []pull.Media{{Type: kind, URL: address}}
	}
	return e
}

// list reads tags: a JSON array, an array of PostgreSQL, or words parted by commas.
func list(text string) []string {
	var words []string
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &words) == nil {
		return words
	}
	for word := range strings.SplitSeq(strings.Trim(text, "{}"), ",") {
		words = append(words, strings.Trim(word, `" `))
	}
	return words
}

var _ pull.Fetcher = (*Fetcher)(nil)
