package rest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/problem"
)

// Every cursor is refused, or it is exactly the cursor that this list would write.
func FuzzCursor(f *testing.F) {
	lists := map[string]List{
		"id": {Function: "list_deliveries", Key: ByID("delivery_id")}, "time": {Function: "list_events", Key: ByTime()},
		"name":     {Function: "list_configuration", Kind: "channel", Key: ByName("channel_id")},
		"template": {Function: "list_templates", Key: []Column{{"template_id", "template_id", ValidText}, {"version", "version", ValidNumber}}},
	}
	for name, rows := range map[string][]string{
		"id":       {`{"delivery_id": "0199c6a0-0000-7000-8000-000000000000"}`},
		"time":     {`{"ts": "2026-11-22T02:42:38.450815+00:00", "id": "0199c6a0-0000-7000-8000-000000000000"}`},
		"name":     {`{"channel_id": "новости"}`, `{"channel_id": "a\"b"}`},
		"template": {`{"template_id": "t", "version": 3}`},
	} {
		for _, row := range rows {
			cursor, err := lists[name].encode(json.RawMessage(row))
			require.NoError(f, err)
			f.Add(name, cursor)
			require.NoError(f, lists[name].decode(cursor, map[string]any{}), row)
		}
	}
	for _, cursor := range []string{"", "!", "WyJhIl0", "bnVsbA", "W10", "WyJhXHUwMDAwYiJd", "Wy0xXQ"} {
		f.Add("id", cursor)
		f.Add("name", cursor)
		f.Add("template", cursor)
	}
	f.Fuzz(func(t *testing.T, name, cursor string) {
		list, known := lists[name]
		if !known {
			return
		}
		filter := map[string]any{}
		if err := list.decode(cursor, filter); err != nil {
			refusal := (*problem.Problem)(nil)
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, 422, refusal.Status)
			require.Equal(t, "query.cursor", refusal.Errors[0].Field)
			return
		}
		row := map[string]any{}
		for _, column := range list.Key {
			require.Contains(t, filter, column.Filter)
			row[column.Name] = filter[column.Filter]
		}
		raw, err := json.Marshal(filter)
		require.NoError(t, err)
		require.NotContains(t, string(raw), `\u0000`)
		again, err := json.Marshal(row)
		require.NoError(t, err)
		next, err := list.encode(again)
		require.NoError(t, err)
		require.NoError(t, list.decode(next, map[string]any{}))
	})
}

// A cursor is valid only for its list, also if another list has the same order.
func TestCursorBelongsToItsList(t *testing.T) {
	t.Parallel()
	deliveries, messages := List{Function: "list_deliveries", Key: ByID("delivery_id")}, List{Function: "list_messages", Key: ByID("message_id")}
	cursor, err := deliveries.encode(json.RawMessage(`{"delivery_id": "0199c6a0-0000-7000-8000-000000000000"}`))
	require.NoError(t, err)
	require.NoError(t, deliveries.decode(cursor, map[string]any{}))
	require.ErrorContains(t, messages.decode(cursor, map[string]any{}), "must be a cursor of this list")
}

func TestPagesEndWithTheList(t *testing.T) {
	t.Parallel()
	d := &Server{Store: names{list: []string{"a", "b", "c", "d", "e"}}}
	list := List{Function: "f", Key: ByName("name")}
	var seen []string
	page := Page{Limit: 2}
	for pages := 1; ; pages++ {
		reply, err := d.Read(t.Context(), list, page, map[string]any{"kind": ""})
		require.NoError(t, err)
		var answer Listed[struct{ Name string }]
		require.NoError(t, json.Unmarshal(reply.Body, &answer))
		for _, item := range answer.Items {
			seen = append(seen, item.Name)
		}
		if answer.NextCursor == nil {
			require.Equal(t, 3, pages)
			break
		}
		page.Cursor = *answer.NextCursor
	}
	require.Equal(t, "a b c d e", strings.Join(seen, " "))
}

// names is a Store with one list of these names.
type names struct {
	Store

	list []string
}

func (n names) List(_ context.Context, q Query) ([]json.RawMessage, error) {
	after := ""
	if raw, given := q.Filter.(map[string]any)["after"]; given {
		if err := json.Unmarshal(raw.(json.RawMessage), &after); err != nil {
			return nil, err
		}
	}
	var rows []json.RawMessage
	for _, name := range n.list {
		if name > after && len(rows) < q.Limit {
			rows = append(rows, json.RawMessage(`{"name": "`+name+`"}`))
		}
	}
	return rows, nil
}

func TestScopesHaveTheSyntaxOfKeys(t *testing.T) {
	t.Parallel()
	for _, scope := range Scopes() {
		require.Regexp(t, `^[a-z]+:(read|write)$`, scope)
	}
	for operation, need := range access {
		if operation != "create-session" {
			require.Contains(t, roles, need.Role, operation)
		}
	}
}
