// Package sqlquery reads rows of a database as items. It runs one query with a cursor, each time from the end of the last
// result.
package sqlquery

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
	"autopost/internal/ingest/pull/item"
)

const (
	// credentialPlatform is the platform of a credential that is a DSN.
	credentialPlatform = "postgres"
	defaultTemplate    = "{title}\n\n{text}\n\n{link}"
	defaultTimeout     = 15
	maxTimeout         = 60
	// rowsPerPoll is how many rows one poll reads; the next poll continues after them.
	rowsPerPoll = 1000
)

var (
	placeholders = []string{"{title}", "{text}", "{link}", "{author}", "{categories}"}
	// fields are the keys of map. The default of each is the column with the same name.
	fields = []string{"id", "title", "text", "link", "author", "tags", "published", "media_url", "media_type"}
)

// Question is a query of a database.
type Question struct {
	DSN autopost.Secret
	// SQL is one select whose parameter $1 is After.
	SQL          string
	CursorColumn string
	// After is nil at the first poll.
	After *string
	// Newest, if positive, selects that many rows with the greatest values of the cursor column, greatest first.
	Newest int
	// Limit limits other queries, which return the least value first. All rows with the last value are returned.
	Limit   int
	Timeout time.Duration
}

// Answer is the rows as text, in the notation of PostgreSQL with times in UTC.
type Answer struct {
	Columns []string
	Values  [][]*string
}

// Read runs a query in a read-only transaction of another database. Its errors are *pull.Failure.
type Read func(ctx context.Context, q Question) (Answer, error)

// Fetcher is the pull.Fetcher of kind "db".
type Fetcher struct {
	read        Read
	credentials pull.Credentials
}

// New makes a Fetcher that queries databases by read, with the DSN from credentials.
func New(read Read, credentials pull.Credentials) *Fetcher {
	return &Fetcher{read: read, credentials: credentials}
}

// config is the config_json of a source.
type config struct {
	item.Options

	question Question
	authRef  string
	columns  map[string]string
}

func parseConfig(raw json.RawMessage) (config, error) {
	c := config{columns: map[string]string{}}
	timeout := defaultTimeout
	options, err := item.Decode(raw, defaultTemplate, placeholders, map[string]item.Field{
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
		return c, item.BadConfig("auth_ref", "must be set; name the credential of platform postgres that holds the DSN")
	case c.question.CursorColumn == "":
		return c, item.BadConfig("cursor_column", "must be set; name a column of the query whose values only grow")
	case !strings.Contains(c.question.SQL, "$1") || strings.Contains(c.question.SQL, ";"):
		return c, item.BadConfig("query", "must be one select without a semicolon, with the cursor as $1, as in: select id, text from posts where $1::bigint is null or id > $1")
	case timeout < 1 || timeout > maxTimeout:
		return c, item.BadConfig("timeout_seconds", fmt.Sprintf("must be 1 to %d", maxTimeout))
	}
	for _, name := range slices.Sorted(maps.Keys(c.columns)) {
		if !slices.Contains(fields, name) {
			return c, item.BadConfig("map", "must have known keys, got "+name+"; use "+strings.Join(fields, ", "))
		}
	}
	return c, nil
}

// Fetch reads the rows after the cursor; at the first poll, the newest rows.
func (f *Fetcher) Fetch(ctx context.Context, source pull.Source) (pull.Batch, error) {
	cfg, err := parseConfig(source.Config)
	if err != nil {
		return pull.Batch{}, err
	}
	seen, err := item.ParseCursor(source.Cursor)
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
	answer, err := f.read(ctx, q)
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
	return item.Batch(cfg.Options, entries, seen, after)
}

// entries maps rows.
func (c config) entries(answer Answer) ([]item.Entry, error) {
	at := map[string]int{}
	for i, column := range answer.Columns {
		at[column] = i
	}
	for _, name := range slices.Sorted(maps.Keys(c.columns)) {
		if _, ok := at[c.columns[name]]; !ok {
			return nil, &pull.Failure{Code: "pull_mapping", Message: fmt.Sprintf("map.%s must name a column of the query, got %s; the query returns %s",
				name, c.columns[name], strings.Join(answer.Columns, ", "))}
		}
	}
	entries := make([]item.Entry, 0, len(answer.Values))
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

func entry(field func(string) string, after string, now time.Time) item.Entry {
	e := item.Entry{
		ID:         item.Clean(field("id")),
		Title:      item.Clean(item.Readable(field("title"))),
		Text:       item.Readable(field("text")),
		Link:       item.Absolute(&url.URL{}, field("link")),
		Author:     item.Clean(field("author")),
		Categories: list(field("tags")),
		Published:  item.Plausible(item.ParseTime(field("published")), now),
		After:      after,
	}
	address := item.Absolute(&url.URL{}, field("media_url"))
	if kind := item.KindOf(field("media_type"), address); address != "" && kind != "" {
		e.Media = []pull.Media{{Type: kind, URL: address}}
	}
	return e
}

// list reads tags from a JSON array, an array of PostgreSQL, or words between commas.
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
