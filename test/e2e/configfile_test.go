package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// furnished is an installation with an object of every kind in two workspaces.
func furnished(t *testing.T) *harness.Harness {
	t.Helper()
	h, _, _ := newsroom(t)
	h.GroupRate("news", harness.Telegram, "telegram", 12.5)
	h.Exec(`update autopost.channels set title = 'On "Telegram": #1', tags = '{ru,"two words"}', route_filter = '{"include_any": ["ru"], "exclude": ["ads"]}',
		settings = '{"long_text": "split", "utm": {"utm_source": "tg"}, "reach": 1.50, "yes": "no"}', timezone = 'Europe/Moscow', window_mode = 'windowed',
		posting_window = '{"mon": [["09:00", "24:00"]], "sun": []}', dedup_ttl_hours = 24, on_unknown = 'hold', max_parallel = 3, rate_rps = null
		where channel_id = 'on-telegram'`)
	h.Exec(`insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ('news', 'on-max', 3600, 8)`)
	h.Exec(`insert into autopost.quotas (workspace_id, platform, rate_group, window_seconds, max_sends, counts) values ('news', 'telegram', 'telegram', 86400, 300, 'calls')`)
	h.Exec(`insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ('news', 'x', 25500000)`)
	ok(t, h, "retry-policy", "set", "x/*", "--ladder-ms", "[1000, 2000]", "--workspace", "news", because)
	ok(t, h, "template", "put", "digest", "--body", "{title}\n\n  {text}\n", "--defaults", `{"title": "News"}`, "--sanitize", "title", because)
	ok(t, h, "template", "put", "digest", "--platform", "max", "--body", "<b>{title}</b>", "--parse-mode", "HTML", "--max-length", "200", because)
	ok(t, h, "channel", "set", "on-max", "--template-ref", "digest", because)
	ok(t, h, "workspace", "add", "rest", "--name", "На отдыхе", "--status", "paused", because)
	ok(t, h, "setting", "set", "max_attempts", "7")
	ok(t, h, "source", "add", "feed", "--workspace", "news", "--url", "https://example.org/feed", "--tag", "ru", "--interval", "1m", because)
	ok(t, h, "source", "add", "wire", "--workspace", "news", "--url", "https://example.org/wire", "--endpoint", "wire-in", because)
	ok(t, h, "source", "disable", "wire", "--workspace", "news", because)
	ok(t, h, "endpoint", "set", "wire-in", "--workspace", "news", "--hash-drop-window", "1m", because)
	ok(t, h, "endpoint", "set", "cms", "--workspace", "news", "--rps", "2.5", "--meta", `{"owner": "cms"}`, because)
	ok(t, h, "credential", "bind", "shop-key", "--workspace", "news", "--platform", "webhook", "--secret-ref", "env:SHOP_KEY", because)
	ok(t, h, "endpoint", "add", "shop", "--workspace", "news", "--signing-ref", "shop-key", because)
	return h
}

// wiped takes all configuration away, as if it had never been.
func wiped(h *harness.Harness) {
	h.Exec(`set session_replication_role = replica; delete from autopost.quotas; delete from autopost.budgets; delete from autopost.own_retry_policies; delete from autopost.channel_gates; delete from autopost.channels; delete from autopost.templates;
		delete from autopost.platform_limits; delete from autopost.credential_health; delete from autopost.credential_bindings; delete from autopost.workspace_endpoints; delete from autopost.pull_cursors; delete from autopost.pull_sources; delete from autopost.secret_lookup;
		delete from autopost.admin_audit_log; delete from autopost.audit_heads; delete from autopost.workspaces; update autopost.settings set value = default_value`)
}

// Exported, wiped, applied and exported again it is the same, byte by byte; and in another database too.
func TestConfigurationMoves(t *testing.T) {
	t.Parallel()
	h := furnished(t)
	first := ok(t, h, "config", "export")
	require.NotContains(t, first, "send_mode", "what is at its default is left out")
	require.NotContains(t, first, "secret_hash")
	require.NotContains(t, first, "      feed:\n        kind: pull_source", "what a source made itself is left out")
	require.Contains(t, first, "      wire-in:\n        kind: pull_source\n        source_id: wire\n        hash_drop_window_sec: 60\n")
	require.Contains(t, first, "      x/*:\n        ladder_ms: [1000, 2000]\n")
	require.Contains(t, first, "secret_ref: env:TEST_TELEGRAM_TOKEN")
	require.Equal(t, first, ok(t, h, "config", "export"))
	h.File("workspaces.yaml", first)
	require.Equal(t, "nothing to change\n", ok(t, h, "config", "diff", "workspaces.yaml", "--exit-code"))
	require.Equal(t, "nothing to change\n", ok(t, h, "config", "apply", "workspaces.yaml"), "nobody is asked")

	wiped(h)
	require.Equal(t, "workspaces: {}\n", ok(t, h, "config", "export"))
	differs := h.Run(nil, "config", "diff", "workspaces.yaml", "--exit-code")
	require.Equal(t, 1, differs.Code)
	require.Contains(t, differs.Stdout, "+ channel on-telegram", differs.Stderr)
	require.Contains(t, differs.Stdout, "~ max_attempts: 5 -> 7")
	unsecret := "      ! it has no secret, and is disabled until it has: autopost endpoint rotate cms makes one\n"
	require.Contains(t, differs.Stdout, unsecret)
	require.Contains(t, ok(t, h, "config", "apply", "workspaces.yaml", "--yes", "--operator", "olga"), unsecret)
	require.Equal(t, first, ok(t, h, "config", "export"))
	require.Equal(t, []string{"cms false", "feed true", "shop true", "wire-in true"}, pgtest.Column[string](h.DB,
		`select endpoint_id || ' ' || enabled from autopost.workspace_endpoints order by 1`), "no secret moves")
	require.Equal(t, []string{"olga: config apply workspaces.yaml"}, pgtest.Column[string](h.DB, `select distinct operator || ': ' || reason from autopost.admin_audit_log`))
	h.Verified()

	other := harness.New(t)
	other.File("workspaces.yaml", first)
	ok(t, other, "config", "apply", "workspaces.yaml", "--yes")
	require.Equal(t, first, ok(t, other, "config", "export"))
	rotated := other.Run(nil, "endpoint", "rotate", "cms", "--workspace", "news", because)
	require.Zero(t, rotated.Code, rotated.Stderr)
	require.Contains(t, rotated.Stdout, "secret, not shown again: ")
	require.NotContains(t, rotated.Stderr, "is good until", "there was none before")
	require.True(t, pgtest.Value[bool](other.DB, `select enabled from autopost.workspace_endpoints where endpoint_id = 'cms'`))
	require.Equal(t, first, ok(t, other, "config", "export"))
	require.Equal(t, ok(t, h, "config", "export", "--workspace", "news"), ok(t, other, "config", "export", "--workspace", "news"))
	other.Verified()
}

const small = `settings:
  max_attempts: 6
workspaces:
  news:
    channels:
      on-telegram:
        platform: telegram
        target_id: "@elsewhere"
        auth_ref: telegram
        title: Elsewhere
      new:
        platform: telegram
        target_id: "@new"
        auth_ref: telegram
        template_ref: digest
    templates:
      digest:
        body: "{title}!"
`

const taps = `workspaces:
  news:
    sources:
      feed:
        kind: rss
        config_json:
          url: https://example.org/feed
          interval_seconds: 60
          tags: [ru]
    endpoints:
      shop:
        kind: webhook_push
        signing_ref: shop-key
`

func TestAWrongSourceOrEndpointIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	h := furnished(t)
	h.File("f.yaml", taps)
	require.NotContains(t, ok(t, h, "config", "diff", "f.yaml"), "~", "it is so already")
	for _, c := range []struct{ from, to, says string }{
		{"interval_seconds: 60", "interval_seconds: 0", "f.yaml:8: source feed: config_json.interval_seconds is not of its form: write seconds"},
		{"          url: https://example.org/feed\n", "", "f.yaml:6: source feed: config_json.url is missing"},
		{"tags: [ru]", "colour: red", "f.yaml:9: source feed: config_json.colour is unknown to kind rss"},
		{"kind: rss", "kind: gopher", "f.yaml:5: source feed: kind \"gopher\" is unknown: use rss, api, db"},
		{"kind: rss", "kind: rss\n        endpoint_id: shop", "f.yaml:6: source feed: endpoint_id shop is not its endpoint, which stays: write feed"},
		{"signing_ref: shop-key", "enabled: true", "f.yaml:11: endpoint shop: signing_ref must stay: it is the only secret"},
		{"signing_ref: shop-key", "signing_ref: other", "f.yaml:13: endpoint shop: signing_ref must be its present key: use rotate_endpoint"},
		{"signing_ref: shop-key", "signing_ref: shop-key\n        ingress_rps: 0", "f.yaml:14: endpoint shop: ingress_rps 0 is out of range"},
		{"signing_ref: shop-key", "secret_hash: x", "f.yaml:13: unknown field \"secret_hash\""},
	} {
		require.Contains(t, taps, c.from)
		h.File("f.yaml", strings.Replace(taps, c.from, c.to, 1))
		result := h.Run(nil, "config", "apply", "f.yaml", "--yes")
		require.NotZero(t, result.Code, c.to)
		require.Contains(t, result.Stderr, c.says)
		require.Empty(t, result.Stdout)
	}
}

func TestConfigurationIsComparedAndPruned(t *testing.T) {
	t.Parallel()
	h := furnished(t)
	h.File("small.yaml", small)
	plan := ok(t, h, "config", "diff", "small.yaml")
	for _, line := range []string{
		"  ~ max_attempts: 7 -> 6", "  + channel new", `      template_ref: "digest"`, "  ~ channel on-telegram", `      title: "On \"Telegram\": #1" -> "Elsewhere"`,
		"      dedup_ttl_hours: 24 -> 168", "  ~ template digest", "  not in the file: channel on-max", "  not in the file: template digest/max",
		"  not in the file: quota channel:on-max/3600", "  not in the file: budget x", "  not in the file: credential telegram", "  not in the file: group telegram/telegram", "  not in the file: source feed", "  not in the file: endpoint wire-in", "not in the file: workspace rest",
	} {
		require.Contains(t, plan, line+"\n")
	}
	require.NotContains(t, plan, "not in the file: channel on-telegram")
	var machine struct {
		Settings   []struct{ Key string }
		Workspaces []struct {
			Workspace string
			Changes   []struct {
				Kind, ID string
				Created  bool
			}
			NotInFile []string `json:"not_in_file"`
		}
		NotInFile []string `json:"not_in_file"`
	}
	require.NoError(t, json.Unmarshal([]byte(ok(t, h, "config", "diff", "small.yaml", "--json")), &machine))
	require.Equal(t, []string{"workspace rest"}, machine.NotInFile)
	require.Len(t, machine.Workspaces[0].Changes, 3)
	require.True(t, machine.Workspaces[0].Changes[2].Created)
	require.Contains(t, machine.Workspaces[0].NotInFile, "channel on-max")

	before := ok(t, h, "config", "export")
	ok(t, h, "config", "apply", "small.yaml", "--dry-run")
	silent := h.RunWithInput("", "config", "apply", "small.yaml")
	require.Equal(t, 1, silent.Code)
	require.Contains(t, silent.Stderr, "--yes")
	require.Equal(t, before, ok(t, h, "config", "export"), "nothing before somebody says yes")

	ok(t, h, "config", "apply", "small.yaml", "--workspace", "news", "--yes")
	require.Equal(t, "7", pgtest.Value[string](h.DB, `select value::text from autopost.settings where key = 'max_attempts'`), "a workspace alone")
	said := h.RunWithInput("yes\n", "config", "apply", "small.yaml")
	require.Zero(t, said.Code, said.Stderr)
	require.Equal(t, "6", pgtest.Value[string](h.DB, `select value::text from autopost.settings where key = 'max_attempts'`))
	require.Equal(t, "config apply small.yaml", pgtest.Value[string](h.DB, `select reason from autopost.admin_audit_log where subject = 'setting:max_attempts' order by id desc limit 1`))
	require.Equal(t, []string{"new", "on-max", "on-telegram"}, pgtest.Column[string](h.DB, `select channel_id from autopost.channels where enabled order by 1`), "what is not named is left")

	require.Contains(t, ok(t, h, "config", "apply", "small.yaml", "--prune", "--yes"), `status: "paused" -> "disabled"`)
	require.Equal(t, []string{"new", "on-telegram"}, pgtest.Column[string](h.DB, `select channel_id from autopost.channels where enabled order by 1`))
	require.Equal(t, []string{"news active", "rest disabled"}, pgtest.Column[string](h.DB, `select workspace_id || ' ' || status from autopost.workspaces order by 1`))
	require.Empty(t, pgtest.Column[string](h.DB, `select source_id from autopost.pull_sources where enabled`))
	require.Empty(t, pgtest.Column[string](h.DB, `select endpoint_id from autopost.workspace_endpoints where enabled and (kind <> 'pull_source' or hash_drop_window_sec <> 10)`))
	require.Equal(t, []int{2, 4, 2}, pgtest.Value[[]int](h.DB, `select array[(select count(*) from autopost.quotas), (select count(*) from autopost.credential_bindings),
		(select count(*) from autopost.templates where enabled)]::int[]`), "what bounds, and what is bound, stays")
	again := ok(t, h, "config", "apply", "small.yaml", "--prune", "--yes")
	require.Contains(t, again, "nothing to change", "a second time there is nothing to put out of use")
	h.Verified()
}

func TestAWrongConfigurationIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	h := furnished(t)
	before := ok(t, h, "config", "export")
	for _, c := range []struct {
		from, to string
		code     int
		says     string
	}{
		{"target_id: \"@new\"", "target_id: new", 1, `f.yaml:13: channel new: target_id must be a target of telegram, got "new": write @name`},
		{"auth_ref: telegram\n        title", "title", 1, "f.yaml:6: channel on-telegram: auth_ref is missing"},
		{"{title}!", "{title", 1, "f.yaml:18: template digest: body has a brace"},
		{"template_ref: digest", "template_ref: digset", 1, "f.yaml:15: channel new: template_ref must be a template"},
		{"title: Elsewhere", "tittle: Elsewhere", 2, "f.yaml:10: unknown field \"tittle\": did you mean title?"},
		{"max_attempts", "max_atempts", 2, "f.yaml:2: unknown setting \"max_atempts\": did you mean max_attempts?"},
		{"max_attempts: 6", "max_attempts: six", 1, "f.yaml:2: "},
		{"max_attempts: 6", "event_retention_days: 1000", 1, "event_retention_days must not exceed"},
		{"    templates", "  templates", 2, "f.yaml:17: unknown key \"digest\""},
	} {
		require.Contains(t, small, c.from)
		h.File("f.yaml", strings.Replace(small, c.from, c.to, 1))
		for _, args := range [][]string{{"diff", "f.yaml"}, {"apply", "f.yaml", "--yes"}} {
			result := h.Run(nil, append([]string{"config"}, args...)...)
			require.Equal(t, c.code, result.Code, "%s: %s", c.to, result.Stderr)
			require.Contains(t, result.Stderr, c.says, c.to)
			require.Empty(t, result.Stdout)
		}
	}
	h.File("f.yaml", small)
	for says, args := range map[string][]string{
		"nowhere.yaml":                {"diff", "nowhere.yaml"},
		"must contain workspace none": {"diff", "f.yaml", "--workspace", "none"},
		"exactly one file":            {"apply"},
	} {
		result := h.Run(nil, append([]string{"config"}, args...)...)
		require.Equal(t, 2, result.Code, result.Stderr)
		require.Contains(t, result.Stderr, says)
	}
	require.Equal(t, 1, h.Run(nil, "config", "export", "--workspace", "none").Code)
	require.Equal(t, before, ok(t, h, "config", "export"))
}
