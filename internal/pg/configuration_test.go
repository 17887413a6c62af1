package pg_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/configfile"
	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
)

// The calls for configuration work through a direct connection and through a pooler.
func TestConfigurationThroughTheStore(t *testing.T) {
	t.Parallel()
	for name, pooled := range map[string]bool{"direct": false, "pooled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := pg.Open(t.Context(), pg.Options{URL: pgtest.New(t).URL("engine"), Pooled: pooled})
			require.NoError(t, err)
			t.Cleanup(store.Close)
			configure(t, store)
		})
	}
}

func configure(t *testing.T, store *pg.Store) {
	ctx := t.Context()
	act := pg.OperatorAction{Workspace: "w", Operator: "olga", Reason: "drill"}
	applied := func(a pg.PutAnswer, err error) {
		t.Helper()
		require.NoError(t, err)
		require.True(t, a.Applied, "%s", a.Raw)
	}
	written := func(w pg.Written, err error) {
		t.Helper()
		applied(pg.Decode[pg.PutAnswer](w, err))
	}
	text := func(s string) json.RawMessage { return json.RawMessage(`"` + s + `"`) }
	written(store.PutWorkspace(ctx, act, pg.Fields{"name": text("W")}))
	applied(store.SetWorkspaceStatus(ctx, act, "paused"))
	applied(store.PutCredentialBinding(ctx, act, "bot", pg.Fields{"platform": text("telegram"), "secret_ref": text("env:BOT")}))
	written(store.PutRateGroup(ctx, act, "telegram", "bot", pg.Fields{"rate_rps": json.RawMessage("20")}))
	written(store.PutChannel(ctx, act, "c", pg.Fields{"platform": text("telegram"), "target_id": text("@c"), "auth_ref": text("bot"), "tags": json.RawMessage(`["a"]`)}))
	written(store.PutQuota(ctx, act, pg.QuotaID("channel:c", time.Hour), pg.Fields{"max_sends": json.RawMessage("8")}))

	refused, err := pg.Decode[pg.PutAnswer](store.PutChannel(ctx, act, "c", pg.Fields{"timezone": text("MSK")}))
	require.NoError(t, err)
	require.Equal(t, "invalid", refused.Reason)
	require.Equal(t, "timezone", refused.Errors[0].Field)
	_, err = store.PutChannel(ctx, act, "c", pg.Fields{"colour": text("red")})
	require.ErrorIs(t, err, pg.ErrArgument)

	items, err := store.ExportConfig(ctx, "w")
	require.NoError(t, err)
	copied := act
	copied.Workspace, copied.DryRun = "copy", true
	answer, err := pg.Decode[pg.ConfigAnswer](store.ApplyConfig(ctx, copied, items))
	require.NoError(t, err)
	require.Len(t, answer.Items, len(items))
	workspaces, err := store.DescribeWorkspaces(ctx, 10)
	require.NoError(t, err)
	require.Len(t, workspaces, 1, "it was a dry run")
	require.Equal(t, "paused", workspaces[0].Status)

	groups, err := store.ListRateGroups(ctx, "w", 10)
	require.NoError(t, err)
	require.Equal(t, []pg.RateGroupRow{{Platform: "telegram", RateGroup: "bot", RateRPS: 20, Channels: 1, EnabledChannels: 1, PlatformRPS: 25}}, groups)
	quotas, err := store.ListQuotas(ctx, "w", 10)
	require.NoError(t, err)
	require.Equal(t, []pg.QuotaRow{{Subject: "channel:c", WindowSeconds: 3600, MaxSends: 8, Counts: "posts"}}, quotas)

	settings, err := pg.Decode[pg.SettingsAnswer](store.ApplySettings(ctx, pg.OperatorAction{Operator: "ann", Reason: "drill", DryRun: true}, pg.Fields{"max_attempts": json.RawMessage("7")}))
	require.NoError(t, err)
	require.Len(t, settings.Changes, 1)
	lease, err := store.SendingLease(ctx)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, lease)
	_, err = store.ListDeliveries(ctx, "w", pg.DeliveryFilter{ChannelID: "c"}, 10)
	require.NoError(t, err)
	none, err := store.GetChannel(ctx, "w", "nobody")
	require.NoError(t, err)
	require.Nil(t, none)
	written(store.DeleteQuota(ctx, act, pg.QuotaID("channel:c", time.Hour)))
	written(store.PutChannel(ctx, act, "c", pg.Fields{"enabled": json.RawMessage("false")}))
	gone, err := pg.Decode[pg.PutAnswer](store.RemoveChannel(ctx, act, "c"))
	require.NoError(t, err)
	require.True(t, gone.Applied)
}

// Files, tables and flags have exactly the fields that the functions accept.
func TestFieldsMatchTheFunctions(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	channel := configfile.KindOf("channel").Names()
	slices.Sort(channel)
	require.Equal(t, pgtest.Column[string](db, `select jsonb_object_keys(autopost.channel_rules('x')) order by 1`), channel)
	template := append(configfile.KindOf("template").Names(), "enabled")
	slices.Sort(template)
	require.Equal(t, pgtest.Column[string](db, `select jsonb_object_keys(autopost.template_fields(t)) from autopost.template_of('x', 't', '*', '{"body": "{a}"}') t order by 1`), template)
	ids := map[string]string{"group": "telegram/g", "quota": "group:telegram/g/60", "retry_policy": "x/*", "recurrence": "01989f3a-7c1e-7a2b-8d3e-0123456789ab"}
	for _, kind := range configfile.Kinds {
		act := `select autopost.apply_config('w', jsonb_build_array('{"kind": "workspace", "id": "w", "fields": {}}'::jsonb, $1::jsonb), 'o', 'r', true) #>> '{errors,0,reason}'`
		item, err := json.Marshal(map[string]any{"kind": kind.Name, "id": cmp.Or(ids[kind.Name], "x"), "fields": map[string]any{"colour": 1}})
		require.NoError(t, err)
		refusal := pgtest.Value[string](db, act, string(item))
		require.Contains(t, refusal, "colour", kind.Name)
	}
}

// Forms have the rules of the functions that check the values.
func TestRulesMatchTheFunctions(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	type rule struct {
		Required, Fixed bool
		Default         any
		In              []string
		Min, Max        *float64
	}
	for kind, function := range map[string]string{
		"channel": `channel_rules(null)`, "moderation_chat": `moderation_chat_rules()`, "quota": `quota_rules()`, "endpoint": `endpoint_rules()`,
		"retry_policy": `retry_policy_rules(null)`, "source": `source_rules(null)`, "alert_target": `alert_target_rules()`, "webhook": `webhook_rules()`, "bot_rule": `bot_rule_fields()`,
	} {
		var known map[string]rule
		require.NoError(t, json.Unmarshal([]byte(pgtest.Value[string](db, `select autopost.`+function+`::text`)), &known))
		for _, f := range configfile.KindOf(kind).Fields {
			at, want, got := kind+"."+f.Name, known[f.Name], configfile.KindOf(kind).Rule(f.Name)
			if kind != "channel" || f.Name != "platform" { // the platforms are rows
				require.Equal(t, want.In, got.In, at)
			}
			if got.Required {
				require.True(t, want.Required && want.Default == nil, at)
			}
			if f.Name != "endpoint_id" { // its own function keeps it
				require.Equal(t, want.Fixed, got.Fixed, at)
			}
			if f.Type == configfile.Number {
				require.NotNil(t, want.Min, at)
				require.True(t, got.Bounded, at)
				require.InDelta(t, *want.Min, got.Least, 0, at)
				require.InDelta(t, *want.Max, got.Most, 0, at)
			}
		}
	}
}
