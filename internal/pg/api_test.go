package pg_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/api"
	"autopost/internal/api/rest"
	"autopost/internal/media"
	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// The calls of the API work through a direct connection and through a pooler.
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
	act := pg.OperatorAction{Workspace: "w", Operator: "olga", Reason: "drill"}
	made, err := pg.Decode[pg.PeopleAnswer](store.CreateAPIKey(ctx, act, pg.NewAPIKey{Name: "n", Role: "owner", Scopes: []string{"posts:write"}}, strings.Repeat("a", 64)))
	require.NoError(t, err)
	key := made.ID
	require.NoError(t, store.TouchAPIKey(ctx, "w", key))
	keys, err := store.ListAPIKeys(ctx, "w", key, 1)
	require.NoError(t, err)
	require.NotNil(t, keys[0].LastUsedAt)

	_, err = store.PutTemplate(ctx, act, api.TemplateKey{ID: "digest", Platform: "*"}, pg.Template{Body: "{title}"})
	require.NoError(t, err)
	for _, list := range []string{"list_deliveries", "list_events", "list_messages", "list_runs", "list_audit", "list_templates", "list_api_keys", "queue_snapshot"} {
		rows, err := store.List(ctx, pg.Query{Function: list, Workspace: "w", Limit: 10})
		require.NoError(t, err, list)
		require.NotEmpty(t, rows, list)
		require.NotContains(t, string(rows[0]), "workspace_id", list)
	}
	rows, err := store.List(ctx, pg.Query{Function: "list_deliveries", Workspace: "w", Filter: map[string]any{"delivery_id": delivery}, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, `"dead"`, field(t, rows[0], "status"))
	rows, err = store.List(ctx, pg.Query{Function: "list_configuration", Workspace: "w", Kind: "channel", Limit: 10})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	_, err = store.List(ctx, pg.Query{Function: "purge_messages", Workspace: "w", Limit: 10})
	require.ErrorContains(t, err, `unknown list "purge_messages"`)

	found, err := store.GetDelivery(ctx, "w", delivery)
	require.NoError(t, err)
	require.NotNil(t, found)
	none, err := store.GetRun(ctx, "w", delivery)
	require.NoError(t, err)
	require.Nil(t, none)
	none, err = store.GetMessage(ctx, "w", delivery)
	require.NoError(t, err)
	require.Nil(t, none)
	_, err = store.Plan(ctx, "w", json.RawMessage(`{"text": "x"}`), "2026-12-01T10:00:00Z")
	require.NoError(t, err)
	_, err = store.PreviewTemplate(ctx, "w", api.TemplateKey{ID: "image", Platform: "telegram"}, map[string]any{"body": "{title}"}, json.RawMessage(`{}`))
	require.NoError(t, err)

	once := act
	once.Once = rest.OnceKey{KeyID: key, Key: "k", RequestHash: strings.Repeat("b", 64)}
	fresh, err := store.BeginRequest(ctx, "w", once.Once)
	require.NoError(t, err)
	require.Equal(t, "fresh", fresh.Status)
	statuses := []string{}
	for _, a := range []pg.OperatorAction{act, once, once} {
		written, err := store.PauseChannel(ctx, a, "c", time.Minute)
		require.NoError(t, err)
		require.Equal(t, "true", field(t, written.Answer, "applied"))
		statuses = append(statuses, written.Status)
	}
	require.Equal(t, []string{"done", "done", "replayed"}, statuses)
	once.Once.RequestHash = strings.Repeat("c", 64)
	written, err := store.PauseChannel(ctx, once, "c", time.Minute)
	require.NoError(t, err)
	require.Equal(t, pg.Written{Status: "other_request"}, written)

	_, err = store.PauseChannel(ctx, act, "c", 0)
	require.ErrorIs(t, err, pg.ErrArgument)
	wrong := (*autopost.ArgumentError)(nil)
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "seconds", wrong.Argument)
	require.NotEmpty(t, wrong.Reason)
	require.NotEmpty(t, wrong.Remedy)

	eachOnce(t, store, act, key, delivery)
}

// eachOnce makes different manual changes, each with an Idempotency-Key.
func eachOnce(t *testing.T, store *pg.Store, act pg.OperatorAction, key, delivery string) {
	t.Helper()
	origin := media.Origin{BlobRef: "sha256:" + strings.Repeat("1", 64), OriginURL: "f", ContentType: "i", SizeBytes: 1, Kind: "image", Width: 1, Height: 1}
	for name, change := range map[string]func(context.Context, pg.OperatorAction) (pg.Written, error){
		"submit_post": func(ctx context.Context, a pg.OperatorAction) (pg.Written, error) {
			return store.SubmitPost(ctx, a, "", "api", json.RawMessage(`{"text": "y"}`))
		},
		"manual_requeue": func(ctx context.Context, a pg.OperatorAction) (pg.Written, error) {
			return store.ManualRequeue(ctx, a, []string{delivery})
		},
		"put_template": func(ctx context.Context, a pg.OperatorAction) (pg.Written, error) {
			return store.PutTemplate(ctx, a, api.TemplateKey{ID: "t"}, map[string]any{"body": "{title}"})
		},
		"put_media_origin": func(ctx context.Context, a pg.OperatorAction) (pg.Written, error) {
			return store.PutUpload(ctx, a, origin, map[string]any{})
		},
		"request_acts": func(ctx context.Context, a pg.OperatorAction) (pg.Written, error) {
			return store.RequestActs(ctx, a, api.ActRequest{Kind: autopost.ChangePin, DeliveryIDs: []string{delivery}, At: "2026-12-01T10:00:00Z"})
		},
		"pause_group": func(ctx context.Context, a pg.OperatorAction) (pg.Written, error) {
			return store.PauseGroup(ctx, a, "telegram", "bot", time.Minute)
		},
		"disable_group": func(ctx context.Context, a pg.OperatorAction) (pg.Written, error) {
			return store.DisableGroup(ctx, a, "telegram", "bot")
		},
		"disable_api_key": func(ctx context.Context, a pg.OperatorAction) (pg.Written, error) {
			return store.DisableAPIKey(ctx, a, key)
		},
		"requeue_auth_lost": func(ctx context.Context, a pg.OperatorAction) (pg.Written, error) {
			return store.RequeueAuthLost(ctx, a, "bot")
		},
	} {
		a := act
		a.Once = rest.OnceKey{KeyID: key, Key: name, RequestHash: strings.Repeat("b", 64)}
		written, err := change(t.Context(), a)
		require.NoError(t, err, name)
		require.Equal(t, "done", written.Status, name)
	}
}
