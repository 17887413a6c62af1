package pg_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/api"
	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
)

// sendOne claims the one due delivery and commits an outcome.
func sendOne(t *testing.T, store *pg.Store, outcome autopost.Outcome) string {
	t.Helper()
	d := claimOne(t, store)
	startOne(t, store, d)
	commitOne(t, store, d, outcome)
	return d.DeliveryID
}

func TestReadModels(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(setUp + `
		insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'bot', 20);
		insert into autopost.workspaces (workspace_id) values ('other');
		insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group) values ('other', 'c', 'telegram', '-1', 'bot', 'bot');
		insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, paused_until, route_filter)
		values ('w', 'p', 'telegram', '-1002', 'bot', 'bot', 'infinity', '{"include_any": ["x"]}');`)
	store := open(t, db.URL("engine"))
	ctx := t.Context()
	began := time.Now()
	push(t, store, "first")
	sent := sendOne(t, store, autopost.Sent("77", time.Now(), nil))
	push(t, store, "second")
	failed := sendOne(t, store, autopost.Failed(autopost.Error{
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "too_odd", Known: true, Message: "too odd",
	}))
	push(t, store, "third")

	all, err := store.ListDeliveries(ctx, "w", pg.DeliveryFilter{}, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"queued", "failed_permanent", "sent"}, []string{all[0].Status, all[1].Status, all[2].Status}, "newest first")
	require.Equal(t, "77", *all[2].ProviderMessageID)
	require.Equal(t, "first", all[2].RenderedText)
	require.Equal(t, "-1001", all[2].TargetID)
	for name, filter := range map[string]pg.DeliveryFilter{
		"id": {DeliveryID: failed}, "message": {MessageID: all[1].MessageID}, "status": {Status: "failed_permanent"}, "all keys": {DeliveryID: failed, ChannelID: "c"},
	} {
		rows, err := store.ListDeliveries(ctx, "w", filter, 10)
		require.NoError(t, err, name)
		require.Len(t, rows, 1, name)
		require.Equal(t, failed, rows[0].DeliveryID, name)
		require.JSONEq(t, `"too_odd"`, field(t, rows[0].LastError, "code"), name)
	}
	newest, err := store.ListDeliveries(ctx, "w", pg.DeliveryFilter{ChannelID: "c"}, 1)
	require.NoError(t, err)
	require.Equal(t, all[:1], newest)

	events, err := store.ListEvents(ctx, "w", pg.EventFilter{DeliveryID: sent, Since: began.Add(-time.Minute)}, 10)
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.Equal(t, []string{"sent", "send_attempt"}, []string{events[0].Action, events[1].Action}, "newest first")
	later, err := store.ListEvents(ctx, "w", pg.EventFilter{Since: time.Now().Add(time.Hour)}, 10)
	require.NoError(t, err)
	require.Empty(t, later)
	enqueued, err := store.ListEvents(ctx, "w", pg.EventFilter{Action: "enqueue"}, 10)
	require.NoError(t, err)
	require.Len(t, enqueued, 3)

	channels, err := store.ListChannels(ctx, "w", 10)
	require.NoError(t, err)
	require.Len(t, channels, 2)
	require.Equal(t, []any{"c", 0.0, 20.0, false}, []any{channels[0].ChannelID, channels[0].RateRPS, channels[0].GroupRateRPS, channels[0].Paused})
	require.Equal(t, []any{"p", 1.0, true}, []any{channels[1].ChannelID, channels[1].RateRPS, channels[1].Paused})
	require.JSONEq(t, `{"include_any": ["x"]}`, string(channels[1].RouteFilter))

	queue, err := store.QueueSnapshot(ctx, "w")
	require.NoError(t, err)
	require.Len(t, queue, 2, "what is sent is not counted")
	require.Equal(t, pg.QueueRow{Status: "failed_permanent", Deliveries: 1, OldestDueAt: queue[0].OldestDueAt}, queue[0])
	require.Equal(t, pg.QueueRow{Status: "queued", Deliveries: 1, OldestDueAt: queue[1].OldestDueAt}, queue[1])

	elsewhere, err := store.ListDeliveries(ctx, "other", pg.DeliveryFilter{}, 10)
	require.NoError(t, err)
	require.Empty(t, elsewhere)
}

func TestReadModelsRefuse(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(setUp)
	store := open(t, db.URL("engine"))
	for _, limit := range []int{0, 10_001} {
		_, err := store.ListDeliveries(t.Context(), "w", pg.DeliveryFilter{}, limit)
		require.ErrorIs(t, err, pg.ErrArgument)
		_, err = store.ListEvents(t.Context(), "w", pg.EventFilter{}, limit)
		require.ErrorIs(t, err, pg.ErrArgument)
		_, err = store.ListChannels(t.Context(), "w", limit)
		require.ErrorIs(t, err, pg.ErrArgument)
	}
	_, err := store.QueueSnapshot(t.Context(), "nobody's")
	require.ErrorIs(t, err, pg.ErrNoWorkspace)
	require.ErrorContains(t, db.Err(`select autopost.list_deliveries('w', '{"colour": 1}', 1)`), "colour")
	require.ErrorContains(t, db.Err(`select autopost.list_events('w', '[]', 1)`), "must be a JSON object")
	require.ErrorContains(t, db.Err(`select autopost.list_events('w', '{"since": "yesterday"}', 1)`), "since")
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(setUp)
	store := open(t, db.URL("engine"))
	ctx := t.Context()
	act := pg.OperatorAction{Workspace: "w", Operator: "ann", Reason: "test"}
	written := pg.Template{Body: "<b>{title}</b> by {author}", Defaults: map[string]string{"author": "us"}, ParseMode: "HTML"}
	digest := api.TemplateKey{ID: "digest", Platform: "telegram"}
	answer, err := pg.Decode[pg.TemplateAnswer](store.PutTemplate(ctx, act, digest, written))
	require.NoError(t, err)
	require.Equal(t, pg.TemplateAnswer{Applied: true, Version: 1}, answer)
	answer, err = pg.Decode[pg.TemplateAnswer](store.PutTemplate(ctx, act, digest, pg.Template{Body: "{title"}))
	require.NoError(t, err)
	require.Equal(t, "invalid", answer.Reason)
	require.Equal(t, "body", answer.Errors[0].Field)

	rows, err := store.ListTemplates(ctx, "w", 10)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, []any{"digest", 1, "HTML", true}, []any{rows[0].TemplateID, rows[0].Version, rows[0].ParseMode, rows[0].Enabled})

	preview := func(key api.TemplateKey, template *pg.Template) (shown pg.Preview) {
		t.Helper()
		raw, err := store.PreviewTemplate(ctx, "w", key, template, json.RawMessage(`{"template": {"vars": {"title": "1 & 2"}}}`))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &shown))
		return shown
	}
	shown := preview(digest, nil)
	require.Equal(t, pg.Preview{Status: "ok", Text: "<b>1 &amp; 2</b> by us", Length: 11, Limit: 4096, Version: "digest@1"}, shown)
	shown = preview(api.TemplateKey{ID: "draft", Platform: "telegram"}, &pg.Template{Body: "{titel}"})
	require.Equal(t, []string{"template.vars.title", "template.vars.titel"}, []string{shown.Errors[0].Field, shown.Errors[1].Field})

	answer, err = pg.Decode[pg.TemplateAnswer](store.EnableTemplate(ctx, act, digest, 1, false))
	require.NoError(t, err)
	require.True(t, answer.Applied)
	shown = preview(digest, nil)
	require.Equal(t, "invalid", shown.Status)
}
