package e2e

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	broken := filepath.Join(t.TempDir(), "broken.sql")
	require.NoError(t, os.WriteFile(broken, []byte("insert into autopost.workspaces (workspace_id) values ('half'); select 1/0"), 0o600))
	h.Exec(`update autopost.settings set value = '40' where key = 'sending_lease_seconds'`)
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
		says string
	}{
		{"unknown flag", nil, []string{"serve", "--colour"}, 2, "--colour"},
		{"unknown command", nil, []string{"dance"}, 2, "dance"},
		{"unknown subcommand", nil, []string{"migrate", "backwards"}, 2, "backwards"},
		{"mistyped command", nil, []string{"chanel", "list"}, 2, `unknown command "chanel": run autopost channel`},
		{"unknown stage", nil, []string{"serve", "--only", "dance"}, 2, "dance"},
		{"argument too many", nil, []string{"doctor", "now"}, 2, "now"},
		{"argument missing", nil, []string{"seed"}, 2, "seed"},
		{"file missing", nil, []string{"seed", "/nowhere/seed.sql"}, 2, "/nowhere/seed.sql"},
		{"required flags missing", nil, []string{"apikey", "add"}, 2, "--workspace"},
		{"wrong number", []string{"MONITOR_INTERVAL_SECONDS=soon"}, []string{"serve"}, 2, "MONITOR_INTERVAL_SECONDS"},
		{"timeout beyond the lease", []string{"SENDING_LEASE_SECONDS=10", "ADAPTER_TIMEOUT_MS=20000"}, []string{"serve"}, 2, "ADAPTER_TIMEOUT_MS"},
		{"timeout beyond the lease of the database", []string{"ADAPTER_TIMEOUT_MS=20001"}, []string{"serve"}, 2, "ADAPTER_TIMEOUT_MS"},
		{"wrong address", []string{"AUTOPOST_LISTEN=everywhere"}, []string{"serve"}, 2, "AUTOPOST_LISTEN"},
		{"unknown topic", nil, []string{"help", "nosuch"}, 2, `unknown command "nosuch"`},
		{"unknown topic of a family", nil, []string{"help", "channel", "nosuch"}, 2, `unknown command "nosuch": run autopost channel --help`},
		{"unknown goal", nil, []string{"bench", "--only", "ZZ"}, 2, "--only must name goals of P"},
		{"unknown status", nil, []string{"webhook", "deliveries", "wh", "--status", "bogus"}, 2, "pending, sending, delivered or dead"},
		{"no id of an alert", nil, []string{"alert", "ack", "zz", "--reason", "r"}, 2, `alert id must be a UUID, got "zz": run autopost alert list`},
		{"no id of a key", nil, []string{"apikey", "disable", "zz", "--reason", "r"}, 2, "autopost apikey list"},
		{"SQL that fails", nil, []string{"seed", broken}, 1, "broken.sql"},
		{"no such workspace", nil, []string{"apikey", "add", "--workspace", "none", "--name", "n"}, 1, "none"},
	} {
		result := h.Run(c.env, c.args...)
		require.Equal(t, c.code, result.Code, "%s: %s", c.name, result.Stderr)
		require.Contains(t, result.Stderr, c.says, c.name)
		require.Empty(t, result.Stdout, "%s: data is all that belongs on stdout", c.name)
	}
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.workspaces`), "a seed that fails leaves nothing")
}

// A correct command that names a missing object fails and says where to look. It is not a misuse.
func TestMissingObjects(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	for args, says := range map[string]string{
		"channel show none": "channel none", "channel check none": "autopost channel list", "channel set none --rate-rps 2 --reason r": "autopost channel add",
		"source show none": "none", "source test none": "autopost source list", "source set none --interval 5s": "autopost source add",
		"credential show none": "autopost credential list", "credential check none": "autopost credential list",
		"endpoint show none": "autopost endpoint list", "webhook deliveries none": "autopost webhook list", "template show none": "none", "budget show none": "none",
		"channel pause none --for 1h --reason r": "nothing was changed: unknown channel none: run autopost channel list", "group disable none --reason r": "autopost group list",
		"source fetch none --reason r": "unknown source none: run autopost source list", "credential requeue --credential none --reason r": "unknown credential none",
		"alert ack 00000000-0000-7000-8000-000000000000 --reason r":     "autopost alert list",
		"apikey revoke 00000000-0000-7000-8000-000000000000 --reason r": "autopost apikey list",
		"why 00000000-0000-7000-8000-000000000000":                      "delivery", "apikey show 00000000-0000-7000-8000-000000000000": "key",
	} {
		result := h.Run(nil, strings.Fields(args)...)
		require.Equal(t, 1, result.Code, "%s: %s", args, result.Stderr)
		require.Contains(t, result.Stderr, says, args)
		require.Empty(t, result.Stdout, args)
	}
	require.Contains(t, ok(t, h, "help", "channel", "show"), "Show the configuration and state of a channel")
}

// Each command that cannot connect to the database says what to do and where the address is set.
func TestADatabaseThatLetsNobodyIn(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	away, reader := "postgres://nobody:x@127.0.0.1:1/none?connect_timeout=2", h.URL("autopost_reader")
	elsewhere, err := url.Parse(reader)
	require.NoError(t, err)
	elsewhere.Path = "/none"
	for _, c := range []struct {
		name string
		url  string
		args [][]string
		says string
	}{
		{"away", away, [][]string{{"serve"}, {"doctor"}, {"verify"}, {"migrate"}, {"migrate", "status"}, {"seed", os.DevNull}, {"channel", "list"}}, "check that the database runs, and check DATABASE_URL"},
		{"no member", reader, [][]string{{"serve"}, {"doctor"}, {"verify"}}, "grant autopost_engine to the login of DATABASE_URL"},
		{"no such database", elsewhere.String(), [][]string{{"serve"}, {"migrate", "status"}}, "create the database, or correct DATABASE_URL"},
		{"private and fresh", "", [][]string{{"serve"}, {"doctor"}}, "run autopost migrate"},
	} {
		for _, args := range c.args {
			result := h.Run([]string{"DATABASE_URL=" + c.url}, args...)
			require.Equal(t, 1, result.Code, "%s %v", c.name, args)
			require.Contains(t, result.Stderr, c.says, "%s %v", c.name, args)
			require.Empty(t, result.Stdout, "%s %v", c.name, args)
		}
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	for _, command := range [][]string{
		nil, {"demo"}, {"serve"}, {"migrate"}, {"migrate", "status"}, {"seed"}, {"doctor"}, {"forecast"}, {"health"}, {"alert"}, {"alert", "list"}, {"alert", "ack"}, {"alert", "target"}, {"alert", "target", "list"}, {"alert", "target", "add"},
		{"alert", "target", "set"}, {"alert", "target", "remove"}, {"alert", "target", "test"}, {"verify"}, {"apikey"}, {"apikey", "add"},
		{"plan"}, {"post"}, {"why"}, {"deliveries"}, {"deliveries", "list"}, {"deliveries", "requeue"}, {"deliveries", "skip"}, {"channel"}, {"channel", "pause"}, {"channel", "resume"},
		{"source"}, {"source", "add"}, {"source", "list"}, {"source", "show"}, {"source", "set"}, {"source", "enable"}, {"source", "disable"}, {"source", "fetch"}, {"source", "test"}, {"source", "import"},
		{"media"}, {"media", "list"}, {"media", "upload"}, {"media", "sweep"}, {"media", "orphans"},
		{"channel", "add"}, {"channel", "set"}, {"channel", "list"}, {"channel", "show"}, {"channel", "remove"}, {"channel", "import"},
		{"group"}, {"group", "disable"}, {"group", "enable"}, {"group", "list"}, {"group", "pause"}, {"group", "resume"}, {"group", "set"}, {"quota"}, {"quota", "list"}, {"quota", "set"}, {"quota", "remove"}, {"budget"}, {"budget", "list"}, {"budget", "show"}, {"budget", "set"},
		{"retry-policy"}, {"retry-policy", "list"}, {"retry-policy", "set"},
		{"workspace"}, {"workspace", "add"}, {"workspace", "set"}, {"workspace", "list"}, {"workspace", "show"}, {"workspace", "pause"}, {"workspace", "resume"}, {"workspace", "disable"},
		{"template"}, {"template", "list"}, {"template", "show"}, {"template", "put"}, {"template", "enable"}, {"template", "disable"}, {"template", "preview"}, {"setting"}, {"setting", "list"}, {"setting", "set"},
		{"config"}, {"config", "export"}, {"config", "diff"}, {"config", "apply"}, {"completion", "bash"},
		{"credential"}, {"credential", "list"}, {"credential", "bind"}, {"credential", "rotate"}, {"credential", "show"}, {"credential", "set"}, {"credential", "check"}, {"credential", "link"},
		{"credential", "relink"}, {"credential", "rewrap"}, {"channel", "check"}, {"release-stale"},
	} {
		result := h.Run(nil, append(command, "--help")...)
		require.Zero(t, result.Code, command)
		require.Contains(t, result.Stdout, "Usage:", command)
	}
	export := strings.Join(strings.Fields(h.Run(nil, "config", "export", "--help").Stdout), " ")
	for _, what := range []string{"credentials", "rate groups", "templates", "channels", "quotas", "budgets", "retry policies", "sources", "endpoints", "result webhooks", "alert targets"} {
		require.Contains(t, export, what)
	}
}

// --json is a switch as everywhere, and may name a file.
func TestBenchTakesJSONAlone(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	for _, c := range []struct {
		json []string
		says string
	}{
		{[]string{"--json"}, "must not be used with --full"}, {[]string{"--json", "a.json"}, "must not be used with --full"}, {[]string{"--json=a.json"}, "must not be used with --full"},
		{[]string{"--json", "a.json", "b.json"}, `unexpected argument "b.json"`}, {[]string{"b.json"}, `unexpected argument "b.json"`},
	} {
		refused := h.Run(nil, append([]string{"bench", "--quick", "--full"}, c.json...)...)
		require.Equal(t, 2, refused.Code)
		require.Contains(t, refused.Stderr, c.says, "%v", c.json)
	}
}

func TestMigrateSeedDoctor(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	h.Exec(`drop schema autopost cascade`)
	h.Exec(`drop schema if exists public cascade; create schema public`)
	empty := h.Run(nil, "doctor")
	require.Equal(t, 1, empty.Code)
	require.Contains(t, empty.Stderr+empty.Stdout, "migrate", "it says what to do")
	refused := h.Run(nil, "serve")
	require.Equal(t, 1, refused.Code, "serve must not run on no schema: %s", refused.Stderr)
	require.Contains(t, refused.Stderr, "autopost migrate")
	for range 2 {
		result := h.Run(nil, "migrate")
		require.Zero(t, result.Code, result.Stderr)
	}
	status := h.Run(nil, "migrate", "status", "--json")
	require.Zero(t, status.Code, status.Stderr)
	migrations := items[struct {
		Version int
		Name    string
		Applied bool
	}](t, status.Stdout)
	require.NotEmpty(t, migrations)
	last := 0
	for _, m := range migrations {
		require.Greater(t, m.Version, last)
		last = m.Version
		require.NotEmpty(t, m.Name)
		require.True(t, m.Applied, m.Name)
	}

	file := filepath.Join(t.TempDir(), "seed.sql")
	require.NoError(t, os.WriteFile(file, []byte(`insert into autopost.workspaces (workspace_id, name) values ('shop', 'The shop');`), 0o600))
	require.Zero(t, h.Run(nil, "seed", file).Code)
	example, err := filepath.Abs("../../db/seed.sql")
	require.NoError(t, err)
	require.Zero(t, h.Run(nil, "seed", example).Code, "the example that is shipped")
	require.Equal(t, "The shop", pgtest.Value[string](h.DB, `select name from autopost.workspaces where workspace_id = 'shop'`))

	doctor := h.Run(nil, "doctor", "--json")
	checks := items[diagnosed](t, doctor.Stdout)
	require.NotEmpty(t, checks)
	ill := 0
	for _, c := range checks {
		require.NotEmpty(t, c.Check)
		if !c.OK {
			ill++
			require.NotEmpty(t, c.Remedy, c.Check)
		}
	}
	require.Equal(t, ill > 0, doctor.Code == 1, "the exit code says whether anything is wrong")
	h.Verified()
}

// The daemon runs with the rights of its own role, and as the superuser.
func TestDaemonAsEngine(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t, harness.AsEngine)
	d := h.Serve("AUTOPOST_LOG=debug")
	h.Push(d, "secret-cms", harness.Post("text", "With little rights", "media", picture(h, "photo-4.png")))
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where status = 'sent'`)
	require.Zero(t, d.Stop())
	require.NotContains(t, d.Log(), `"level":"ERROR"`)
	require.Contains(t, d.Log(), "daemon.stopped")
}

// verify says which rows break an invariant, and its exit code that some do.
func TestVerifyFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "Sound"))
	h.Drained("news")
	h.Verified()
	h.Exec(`delete from autopost.events where action = 'sent' and channel_id = 'on-max'`)
	result := h.Run(nil, "verify", "--workspace", "news", "--json")
	require.Equal(t, 1, result.Code)
	findings := items[struct {
		Invariant  string
		Violations int
		Sample     json.RawMessage
	}](t, result.Stdout)
	broken := pgtest.Value[string](h.DB, `select delivery_id::text from autopost.deliveries where channel_id = 'on-max'`)
	found := false
	for _, f := range findings {
		found = found || f.Violations > 0 && strings.Contains(string(f.Sample), broken)
	}
	require.True(t, found, "the delivery is named: %s", result.Stdout)
}
