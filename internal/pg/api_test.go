package pg_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/pg"
	"autopost/internal/pgtest"
	"autopost/internal/posttest"
)

// What the API asks for goes through a direct connection and through a pooler alike.
func TestAPIThroughTheStore(t *testing.T) {
	t.Parallel()
	for name, pooled := range map[string]bool{"direct": false, "pooled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			posttest.Workspace(db, "w")
			posttest.Channel(db, "w", "c")
			id := posttest.Delivery(db, "w", "c", autopost.StatusDead)
			store, err := pg.Open(t.Context(), pg.Options{URL: db.URL("engine"), Pooled: pooled})
			require.NoError(t, err)
			t.Cleanup(store.Close)
			asTheAPI(t, store, id)
		})
	}
}

func asTheAPI(t *testing.T, store *pg.Store, delivery string) {
	ctx := t.Context()
	act := pg.Act{Workspace: "w", Operator: "olga", Reason: "drill"}
	key, err := store.CreateAPIKey(ctx, act, pg.NewAPIKey{Name: "n", Role: "owner", Scopes: []string{"posts:write"}}, strings.Repeat("a", 64))
	require.NoError(t, err)
	require.NoError(t, store.TouchAPIKey(ctx, "w", key))
	keys, err := store.ListAPIKeys(ctx, "w", key, 1)
	require.NoError(t, err)
	require.NotNil(t, keys[0].LastUsedAt)

	for _, list := range []string{"list_deliveries", "list_events", "list_messages", "list_runs", "list_audit", "list_templates", "list_api_keys", "queue_snapshot"} {
		rows, err := store.List(ctx, list, "w", "", nil, 10)
		require.NoError(t, err, list)
		require.NotEmpty(t, rows, list)
		require.NotContains(t, string(rows[0]), "workspace_id", list)
	}
	rows, err := store.List(ctx, "list_deliveries", "w", "", map[string]any{"delivery_id": delivery}, 10)
	require.NoError(t, err)
	require.Equal(t, `"dead"`, field(t, rows[0], "status"))
	rows, err = store.List(ctx, "list_configuration", "w", "channel", nil, 10)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	_, err = store.List(ctx, "purge_messages", "w", "", nil, 10)
	require.ErrorContains(t, err, "is no list")

	found, err := store.Look(ctx, "get_delivery", "w", map[string]any{"delivery_id": delivery})
	require.NoError(t, err)
	require.NotNil(t, found)
	none, err := store.Look(ctx, "get_run", "w", map[string]any{"run_id": delivery})
	require.NoError(t, err)
	require.Nil(t, none)
	_, err = store.Look(ctx, "plan", "w", map[string]any{"post": json.RawMessage(`{"text": "x"}`), "at": "2026-12-01T10:00:00Z"})
	require.NoError(t, err)
	_, err = store.Look(ctx, "preview_template", "w", map[string]any{"template_id": "image", "platform": "telegram", "template": map[string]any{"body": "{title}"}, "post": map[string]any{}})
	require.NoError(t, err)
	_, err = store.Look(ctx, "resolve_api_key", "w", nil)
	require.ErrorContains(t, err, "answers nothing")

	write := pg.Write{Workspace: "w", Function: "pause_channel", Operator: "olga", Reason: "drill", KeyID: key, Args: map[string]any{"channel_id": "c", "seconds": 60}}
	once := write
	once.OnceKey, once.RequestHash = "k", strings.Repeat("b", 64)
	statuses := []string{}
	for _, w := range []pg.Write{write, once, once} {
		written, err := store.Write(ctx, w)
		require.NoError(t, err)
		require.Equal(t, "true", field(t, written.Answer, "applied"))
		statuses = append(statuses, written.Status)
	}
	require.Equal(t, []string{"done", "done", "replayed"}, statuses)
	once.RequestHash = strings.Repeat("c", 64)
	written, err := store.Write(ctx, once)
	require.NoError(t, err)
	require.Equal(t, pg.Written{Status: "other_request"}, written)

	write.Args["seconds"] = 0
	_, err = store.Write(ctx, write)
	require.ErrorIs(t, err, pg.ErrArgument)
	wrong := (*autopost.ArgumentError)(nil)
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "seconds", wrong.Argument)
	require.NotEmpty(t, wrong.Reason)
	require.NotEmpty(t, wrong.Remedy)
	_, err = store.Write(ctx, pg.Write{Workspace: "w", Function: "put_setting"})
	require.ErrorContains(t, err, "is no write")

	for function, args := range map[string]map[string]any{
		"submit_post":       {"endpoint_id": "", "post": json.RawMessage(`{"text": "y"}`)},
		"manual_requeue":    {"delivery_ids": []string{delivery}},
		"put_template":      {"template_id": "t", "platform": nil, "template": map[string]any{"body": "{title}"}},
		"put_media_origin":  {"blob_ref": "sha256:" + strings.Repeat("1", 64), "origin_url": "f", "content_type": "i", "size_bytes": int64(1), "kind": "image", "width": 1, "height": 1, "shown": map[string]any{}},
		"disable_group":     {"platform": "telegram", "rate_group": "bot"},
		"disable_api_key":   {"key_id": key},
		"requeue_auth_lost": {"auth_ref": "bot"},
	} {
		written, err := store.Write(ctx, pg.Write{Workspace: "w", Function: function, Operator: "olga", Reason: "drill", KeyID: key, OnceKey: function, RequestHash: strings.Repeat("b", 64), Args: args})
		require.NoError(t, err, function)
		require.Equal(t, "done", written.Status, function)
	}
}
