package sqlquery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/item"
)

type keys struct{}

func (keys) Credential(_ context.Context, _, authRef string, platform autopost.Platform) (autopost.Secret, error) {
	if authRef != "crm" || platform != "postgres" {
		return autopost.Secret{}, errors.New("it is not bound")
	}
	return autopost.NewSecret("postgres://canary"), nil
}

// posts is a table of posts; each value of the cursor column occurs twice.
type posts struct {
	n     int
	asked []Question
}

func value(s string) *string { return &s }

func (p *posts) Read(_ context.Context, q Question) (Answer, error) {
	p.asked = append(p.asked, q)
	a := Answer{Columns: []string{"post_id", "text", "at", "tags", "published", "link"}}
	after := -1
	if q.After != nil {
		after, _ = strconv.Atoi(*q.After)
	}
	row := func(id int) []*string {
		return []*string{value(strconv.Itoa(id)), value(fmt.Sprint("post ", id)), value(strconv.Itoa(id / 2)), value(`{news,"two words"}`), nil, value("https://h.example/1")}
	}
	if q.Newest > 0 {
		for id := p.n; id > max(0, p.n-q.Newest); id-- {
			a.Values = append(a.Values, row(id))
		}
		return a, nil
	}
	for id := 1; id <= p.n; id++ {
		if id/2 > after {
			a.Values = append(a.Values, row(id))
		}
	}
	return a, nil
}

func source(config string, cursor json.RawMessage) pull.Source {
	return pull.Source{WorkspaceID: "w", Config: json.RawMessage(config), Cursor: cursor}
}

const working = `{"auth_ref": "crm", "query": "select * from posts where at > $1", "cursor_column": "at", "map": {"id": "post_id"}, "template": "{text}", "backfill_items": 2}`

func refs(batch pull.Batch) []string {
	list := []string{}
	for _, item := range batch.Items {
		if !item.Skip {
			list = append(list, item.SourceRef)
		}
	}
	return list
}

func TestRowsAfterTheCursor(t *testing.T) {
	p := &posts{n: 9}
	f := New(p.Read, keys{})
	first, err := f.Fetch(t.Context(), source(working, nil))
	require.NoError(t, err)
	require.Equal(t, []string{"8", "9"}, refs(first), "the newest at first sight, oldest of them first")
	require.Equal(t, pull.Payload{SourceRef: "9", Text: "post 9", ParseMode: "None"}, first.Items[1].Payload)
	require.Equal(t, []string{"news", "two words"}, first.Items[1].Tags)

	p.n = 14
	second, err := f.Fetch(t.Context(), source(working, first.Cursor))
	require.NoError(t, err)
	require.Equal(t, "4", *p.asked[1].After)
	require.Equal(t, []string{"10", "11", "12", "13", "14"}, refs(second))
	behind := []string{}
	for _, row := range second.Items {
		c, err := item.ParseCursor(row.Cursor)
		require.NoError(t, err)
		behind = append(behind, *c.After)
	}
	require.Equal(t, []string{"4", "5", "5", "6", "7"}, behind, "of rows that share a value, none is passed over")
}

func TestEmptyTableCompletesTheFirstSight(t *testing.T) {
	p := &posts{}
	f := New(p.Read, keys{})
	empty, err := f.Fetch(t.Context(), source(working, nil))
	require.NoError(t, err)
	require.Empty(t, empty.Items)
	p.n = 5
	next, err := f.Fetch(t.Context(), source(working, empty.Cursor))
	require.NoError(t, err)
	require.Len(t, refs(next), 5, "what came after it is news")
	require.Zero(t, p.asked[1].Newest)
}

func TestConfigErrorsContainTheRemedy(t *testing.T) {
	for config, words := range map[string]string{
		`{"query": "select $1", "cursor_column": "at"}`:                                              "auth_ref must be set",
		`{"auth_ref": "crm", "query": "select $1"}`:                                                  "cursor_column must be set",
		`{"auth_ref": "crm", "query": "select 1", "cursor_column": "at"}`:                            "with the cursor as $1",
		`{"auth_ref": "crm", "query": "select $1; drop", "cursor_column": "at"}`:                     "without a semicolon",
		`{"auth_ref": "crm", "query": "select $1", "cursor_column": "at", "timeout_seconds": 61}`:    "timeout_seconds must be 1 to 60",
		`{"auth_ref": "crm", "query": "select $1", "cursor_column": "at", "map": {"body": "x"}}`:     "map must have known keys, got body; use id",
		`{"auth_ref": "crm", "query": "select $1", "cursor_column": "at", "map": {"id": "uid"}}`:     "map.id must name a column of the query, got uid; the query returns post_id, text",
		`{"auth_ref": "nobody", "query": "select $1", "cursor_column": "at"}`:                        "auth_ref nobody: it is not bound",
		`{"auth_ref": "crm", "query": "select $1", "cursor_column": "at", "dsn": "postgres://h/db"}`: "dsn is unknown",
	} {
		_, err := New((&posts{n: 1}).Read, keys{}).Fetch(t.Context(), source(config, json.RawMessage(`{"first_seen_done": true}`)))
		failure, ok := errors.AsType[*pull.Failure](err)
		require.True(t, ok, config)
		require.Contains(t, failure.Message, words)
	}
}

func TestTagsInEveryNotation(t *testing.T) {
	require.Equal(t, []string{"a", "b c"}, list(`["a", "b c"]`))
	require.Equal(t, []string{"a", "b c"}, list(`{a,"b c"}`))
	require.Equal(t, []string{"a", "b c"}, list(`a, b c`))
}
