package e2e

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// typedPages are run from the top in one installation, command by command.
var typedPages = []string{"operate/configure.md", "posts.md", "sources.md", "webhook.md", "result-webhooks.md", "operate/alerts.md"}

func TestThePagesAboutConfiguring(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	ran := 0
	for _, name := range typedPages {
		page, err := os.ReadFile("../../docs/" + name)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?s)```(\\w+)(?: file=(\\S+))?\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
			if block[2] != "" {
				h.File(block[2], block[3])
				continue
			}
			if block[1] != "sh" {
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(block[3], "\\\n", " ")) {
				line, _, _ = strings.Cut(line, "  # ")
				words := shellWords(line)
				require.Equal(t, "autopost", words[0], line)
				if strings.HasPrefix(line, "autopost webhook test ") {
					continue // it waits for a daemon and its receiver
				}
				result := h.Run(nil, words[1:]...)
				if strings.HasPrefix(line, "autopost webhook replay ") {
					require.Contains(t, result.Stderr, "no event matches", line) // nothing was posted here
				} else {
					require.Zero(t, result.Code, "%s: %s\n%s\n%s", name, line, result.Stdout, result.Stderr)
				}
				ran++
			}
		}
	}
	require.Greater(t, ran, 40)
	require.Equal(t, []string{"crm", "news-ru", "sport"}, pgtest.Column[string](h.DB, `select channel_id from autopost.channels order by 1`))
	h.Verified()
}

// shellWords takes a command line apart as a shell does with quotes.
func shellWords(line string) []string {
	var words []string
	for _, m := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(line, -1) {
		words = append(words, regexp.MustCompile(`'([^']*)'|"([^"]*)"`).ReplaceAllString(m, "$1$2"))
	}
	return words
}

// A channel that was made by commands alone gets its post, and its workspace's status rules it.
func TestAChannelMadeByCommandsIsPostedTo(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	h.World.Telegram.AddChat(telegram.Chat{ID: -1001, Title: "made"})
	ok(t, h, "workspace", "add", "news", because, "--operator", "olga")
	ok(t, h, "credential", "bind", "bot", "--platform", "telegram", "--secret-ref", "env:TEST_TELEGRAM_TOKEN", because)
	ok(t, h, "channel", "add", "made", "--platform", "telegram", "--target-id", "-1001", "--auth-ref", "bot", "--rate-rps", "0", because)
	h.Endpoint("news", "cms", "secret-cms")
	d := h.Serve(rarely)
	ok(t, h, "workspace", "pause", "news", because)
	require.Contains(t, ok(t, h, "workspace", "list"), "paused")
	require.Equal(t, 1, h.Push(d, "secret-cms", harness.Post("text", "Made")).Number("enqueued"))
	require.JSONEq(t, `{"queued": 1}`, string(decode[map[string]json.RawMessage](t, ok(t, h, "workspace", "show", "news", "--json"))["queue"]))
	ok(t, h, "workspace", "resume", "news", because)
	h.Until("it is sent", func() bool { return len(h.Accepted(sim.Filter{Chat: "-1001"})) == 1 })
	require.Equal(t, "olga", pgtest.Value[string](h.DB, `select operator from autopost.admin_audit_log where action = 'put_workspace' order by seq limit 1`))
	h.Drained("news")
	h.Verified()
}

func TestConfigureCommands(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	for _, step := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"workspace", "add", "news", because}, 1, "workspace news already exists"},
		{[]string{"workspace", "set", "none", "--name", "x", because}, 1, "unknown workspace none"},
		{[]string{"workspace", "set", "news", "--name", "News", because, "--dry-run"}, 0, "dry run"},
		{[]string{"workspace", "set", "news", "--name", "News", because}, 0, "changed workspace news"},
		{[]string{"workspace", "set", "news", "--name", "News", because}, 0, "nothing to change"},
		{[]string{"workspace", "set", "news", "--status", "asleep", because}, 1, `status "asleep" is unknown: use active, paused, disabled`},
		{[]string{"workspace", "pause", "none", because}, 1, "none"},
		{[]string{"workspace", "show", "news"}, 0, "enabled_channels"},
		{[]string{"workspace", "show", "none"}, 1, "none"},
		{[]string{"channel", "add", "third", "--platform", "max", because}, 1, "auth_ref is missing: write the name of a credential"},
		{[]string{"channel", "add", "on-max", "--platform", "max", because}, 1, "autopost channel set"},
		{[]string{"channel", "set", "third", "--title", "x", because}, 1, "autopost channel add"},
		{[]string{"channel", "remove", "on-max"}, 2, "--reason"},
		{[]string{"channel", "set", "on-max", "--title", "On MAX", "--dry-run"}, 0, "dry run"},
		{[]string{"channel", "set", "on-max", "--max-parallel", "many", because}, 2, "--max-parallel"},
		{[]string{"channel", "set", "on-max", "--enabled=yes", because}, 2, "must be true or false"},
		{[]string{"channel", "set", "on-max", "--enabled", "false", because}, 2, "write --enabled or --enabled=false"},
		{[]string{"channel", "set", "on-max", "--rps", "2"}, 0, "rate_rps"},
		{[]string{"channel", "set", "on-max", "--settings", "{", because}, 2, "must be JSON"},
		{[]string{"channel", "set", "on-max", "--settings", `{"bogus": true}`, because}, 0, "platform max reads no settings.bogus"},
		{[]string{"channel", "set", "on-max", "--settings", `{"moderated": true}`, because}, 1, "settings.moderated must be absent"},
		{[]string{"channel", "set", "on-max", "--unset", "colour", because}, 2, "target_id"},
		{[]string{"channel", "set", "on-max", "--title", "x", "--unset", "title", because}, 2, "that is also set"},
		{[]string{"channel", "set", "on-max", "--title", "x", "--from", "f.json", because}, 2, "must not be used with field flags"},
		{[]string{"channel", "set", "on-max", "--from", "nowhere.json", because}, 2, "nowhere.json"},
		{[]string{"channel", "set", "on-max", "--from", "f.json", because}, 0, "On MAX"},
		{[]string{"channel", "set", "on-max", "--from", "odd.json", because}, 2, "colour"},
		{[]string{"channel", "set", "on-max", "--from", "list.json", because}, 2, "must contain a JSON object"},
		{[]string{"channel", "list"}, 0, "On MAX"},
		{[]string{"channel", "show", "on-max"}, 0, "send_mode"},
		{[]string{"channel", "show", "nobody"}, 1, "unknown channel nobody in workspace news"},
		{[]string{"channel", "remove", "on-max", because}, 1, "run autopost channel disable on-max first"},
		{[]string{"channel", "remove", "nobody", because}, 1, "unknown channel"},
		{[]string{"quota", "set", "--channel", "on-max", "--per", "1h", "--max-sends", "8", because}, 0, "added quota of channel:on-max per 1h\n"},
		{[]string{"quota", "set", "--channel", "on-max", "--per", "1h", "--max-sends", "8", because}, 0, "nothing to change"},
		{[]string{"quota", "set", "--channel", "on-max", "--per", "1h", "--counts", "calls", because}, 0, "counts  posts   calls"},
		{[]string{"quota", "set", "--channel", "on-max", "--per", "1h", "--counts", "words", because}, 1, "use posts, calls"},
		{[]string{"quota", "set", "--channel", "nobody", "--per", "1h", "--max-sends", "8", because}, 1, "must be an existing channel, got nobody"},
		{[]string{"quota", "set", "--channel", "on-max", "--max-sends", "8", because}, 2, "--per"},
		{[]string{"quota", "set", "--per", "1h", "--max-sends", "8", because}, 2, "--channel and --group"},
		{[]string{"quota", "set", "--group", "max", "--per", "1h", "--max-sends", "8", because}, 2, "group:PLATFORM/GROUP"},
		{[]string{"quota", "list"}, 0, "channel:on-max"},
		{[]string{"channel", "disable", "on-max"}, 0, "enabled  yes     no"},
		{[]string{"channel", "enable", "on-max"}, 0, "enabled  no      yes"},
		{[]string{"channel", "enable", "nobody"}, 1, "autopost channel add"},
		{[]string{"channel", "set", "on-max", "--enabled=false", because}, 0, "no"},
		{[]string{"channel", "remove", "on-max", because}, 1, "used by 1 quota\n"},
		{[]string{"quota", "remove", "--channel", "on-max", "--per", "2h", because}, 1, "unknown quota"},
		{[]string{"quota", "remove", "--channel", "on-max", "--per", "1h", because}, 0, "removed quota"},
		{[]string{"channel", "remove", "on-max", because}, 0, "removed channel on-max"},
		{[]string{"budget", "show", "x"}, 1, "has no budget"},
		{[]string{"budget", "set", "x", "--month-usd", "0.1", because}, 0, "added budget of x"},
		{[]string{"budget", "set", "x", "--month-usd", "0.10", because}, 0, "nothing to change"},
		{[]string{"budget", "set", "nobody", "--month-usd", "1", because}, 1, "must be an existing credential, got nobody"},
		{[]string{"budget", "set", "x", "--month-usd", "much", because}, 2, "--month-usd"},
		{[]string{"budget", "show", "x"}, 0, "month_usd"},
		{[]string{"retry-policy", "set", "x/*", "--ladder-ms", "[1000, 2000]", "--max-attempts", "2", because}, 0, "added retry policy x/*"},
		{[]string{"retry-policy", "set", "x/*", "--ladder-ms", "[1000,2000]", because}, 0, "nothing to change"},
		{[]string{"retry-policy", "set", "x/*", "--ladder-ms", "[0]", because}, 1, "write a list of milliseconds"},
		{[]string{"retry-policy", "set", "nowhere/*", "--jitter", "0.1", because}, 2, "nowhere is unknown"},
		{[]string{"retry-policy", "set", "x", "--jitter", "0.1", because}, 2, "code"},
		{[]string{"retry-policy", "set", "x/*", "--jitter", "much", because}, 2, "--jitter"},
		{[]string{"retry-policy", "list", "--wide"}, 0, "1000, 2000"},
		{[]string{"budget", "list"}, 0, "0.1"},
		{[]string{"budget", "set", "x", "--unset", "month_usd", because}, 0, "changed budget of x"},
		{[]string{"group", "set", "telegram", "--rate-rps", "20", because}, 2, "--platform"},
		{[]string{"group", "set", "telegram", "--platform", "pigeon", "--rate-rps", "20", because}, 2, "pigeon is unknown"},
		{[]string{"group", "set", "telegram", "--platform", "telegram", "--rate-rps", "20", because}, 0, "20"},
		{[]string{"group", "list"}, 0, "telegram"},
		{[]string{"credential", "bind", "x", "--platform", "x", "--secret-ref", "the-secret-itself", because}, 1, "never the secret itself"},
		{[]string{"credential", "list"}, 0, "not checked"},
		{[]string{"template", "put", "digest", "--body", "{title", because}, 1, "brace"},
		{[]string{"template", "put", "digest", "--body", "a", "--body-file", "body.txt", because}, 2, "must not be used with --body"},
		{[]string{"template", "put", "digest", "--body-file", "nowhere.txt", because}, 2, "nowhere.txt"},
		{[]string{"template", "put", "digest", "--body-file", "body.txt", because, "--dry-run"}, 0, "dry run"},
		{[]string{"template", "show", "digest"}, 1, "unknown version"},
		{[]string{"template", "put", "digest", "--body-file", "body.txt", because}, 0, "added template digest"},
		{[]string{"template", "put", "digest", "--body-file", "body.txt", because}, 0, "nothing to change"},
		{[]string{"template", "put", "digest", "--platform", "telegram", "--body", "<b>{title}</b>", "--parse-mode", "HTML", because}, 0, "added template digest/telegram"},
		{[]string{"template", "show", "digest", "--platform", "telegram"}, 0, "<b>{title}</b>"},
		{[]string{"template", "preview", "digest", "--var", "title=News"}, 0, "<b>News</b>"},
		{[]string{"template", "preview", "digest", "--body", "{title}!", "--var", "title=News"}, 0, "News!"},
		{[]string{"template", "preview", "digest", "post.json"}, 0, "<b>Posted</b>"},
		{[]string{"template", "preview", "digest", "post.json", "--var", "title=x"}, 2, "must not be used with FILE"},
		{[]string{"template", "preview", "digest"}, 1, "title is missing"},
		{[]string{"template", "preview"}, 2, "template name"},
		{[]string{"template", "enable", "digest", because}, 2, "--version"},
		{[]string{"template", "disable", "digest", "--version", "1", because}, 0, "enabled  yes     no"},
		{[]string{"template", "enable", "digest", "--version", "9", because}, 1, "unknown version"},
		{[]string{"template", "list"}, 0, "digest"},
		{[]string{"setting", "set", "max_attempts"}, 2, "--default"},
		{[]string{"setting", "set", "max_attempts", "seven"}, 2, "must be JSON"},
		{[]string{"setting", "set", "max_attempts", "-1"}, 2, "-1"},
		{[]string{"setting", "set", "no_such", "1"}, 2, "no_such"},
		{[]string{"setting", "set", "webhook_poll_ms", "9999999999"}, 2, "webhook_poll_ms must be a whole number of milliseconds from 0 to 1000000000"},
		{[]string{"setting", "set", "max_attempts", "7", "--dry-run"}, 0, "dry run"},
		{[]string{"setting", "set", "max_attempts", "7", "--operator", "olga"}, 0, "5 -> 7"},
		{[]string{"setting", "set", "max_attempts", "7"}, 0, "nothing to change"},
		{[]string{"setting", "set", "max_attempts", "--default"}, 0, "7 -> 5"},
		{[]string{"setting", "list"}, 0, "calls of a delivery before it is dead"},
	} {
		if step.args[0] == "workspace" && step.args[1] == "add" {
			h.File("f.json", `{"title": "On MAX", "tags": ["ru"]}`)
			h.File("odd.json", `{"colour": 1}`)
			h.File("list.json", `[1]`)
			h.File("body.txt", "{title}\n")
			h.File("post.json", `{"template": {"vars": {"title": "Posted"}}}`)
		}
		result := h.Run(nil, step.args...)
		require.Equal(t, step.code, result.Code, "%v\n%s\n%s", step.args, result.Stdout, result.Stderr)
		require.Contains(t, result.Stdout+result.Stderr, step.says, "%v", step.args)
		require.NotContains(t, result.Stdout+result.Stderr, "the-secret-itself")
		if step.code == 2 {
			require.Empty(t, result.Stdout, "%v", step.args)
		}
	}
	const log = `from autopost.admin_audit_log where subject = 'setting:max_attempts' order by seq`
	require.Equal(t, []string{"setting set max_attempts 7", "setting set max_attempts --default"}, pgtest.Column[string](h.DB, `select reason `+log))
	require.Equal(t, "olga", pgtest.Column[string](h.DB, `select operator `+log)[0])
	for _, list := range []string{"workspace", "channel", "group", "quota", "budget", "credential", "template", "setting"} {
		require.NotNil(t, items[map[string]any](t, ok(t, h, list, "list", "--json")), list)
	}
	require.JSONEq(t, `{"applied": true, "dry_run": true, "created": false, "before": {"title": null}, "after": {"title": "T"}}`,
		ok(t, h, "channel", "set", "on-telegram", "--title", "T", because, "--dry-run", "--json"))
	require.JSONEq(t, `"on-telegram"`, string(decode[map[string]json.RawMessage](t, ok(t, h, "channel", "show", "on-telegram", "--json"))["channel_id"]))
	h.Verified()
}

func TestImportOfChannels(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	count := func() int { return pgtest.Value[int](h.DB, `select count(*)::int from autopost.channels`) }
	h.File("c.csv", "channel_id,platform,target_id,auth_ref,rate_rps\na,telegram,@a,telegram,\nb,telegram,@b,telegram,0.5\non-max,,,,3\n")
	require.Contains(t, ok(t, h, "channel", "import", "c.csv", "--dry-run", because), "+ channel b")
	require.Equal(t, 2, count())
	no := h.RunWithInput("no\n", "channel", "import", "c.csv", because)
	require.Equal(t, 1, no.Code)
	require.Equal(t, 2, count(), "nobody said yes")
	yes := h.RunWithInput("yes\n", "channel", "import", "c.csv", because)
	require.Zero(t, yes.Code, yes.Stderr)
	require.Equal(t, 4, count())
	require.InDelta(t, 3, pgtest.Value[float64](h.DB, `select rate_rps::float8 from autopost.channels where channel_id = 'on-max'`), 0)
	require.Contains(t, ok(t, h, "channel", "import", "c.csv", because), "nothing to change", "the same table again")

	h.File("wrong.csv", "channel_id,platform,target_id,auth_ref\nc,telegram,@c,telegram\nd,telegram,nowhere,telegram\n")
	wrong := h.Run(nil, "channel", "import", "wrong.csv", "--yes", because)
	require.Equal(t, 1, wrong.Code)
	require.Contains(t, wrong.Stderr, `wrong.csv:3: column 3: channel d: target_id must be a target of telegram, got "nowhere"`)
	require.Equal(t, 4, count(), "all or nothing")
	h.File("odd.csv", "channel_id,colour\n")
	odd := h.Run(nil, "channel", "import", "odd.csv", because)
	require.Equal(t, 2, odd.Code)
	require.Contains(t, odd.Stderr, "odd.csv:1: column 2")
	require.Equal(t, 2, h.Run(nil, "channel", "import", "nowhere.csv", because).Code)
}

// The shell completes what the database knows, and starts none for it.
func TestCompletion(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	require.Contains(t, ok(t, h, "completion", "bash"), "autopost")
	require.Contains(t, ok(t, h, "--help"), "completion")
	require.Contains(t, ok(t, h, "__complete", "channel", "pause", ""), "on-telegram\n")
	require.Contains(t, ok(t, h, "__complete", "channel", "set", "on-telegram", "--workspace", ""), "news\n")
	require.Contains(t, ok(t, h, "__complete", "quota", "set", "--channel", ""), "on-max\n")
	require.Contains(t, ok(t, h, "__complete", "workspace", "show", ""), "news\n")
	ok(t, h, "template", "put", "digest", "--body", "{title}")
	require.Contains(t, ok(t, h, "__complete", "template", "show", ""), "digest\n")
	require.Contains(t, ok(t, h, "__complete", "endpoint", "set", ""), "cms\n")
	require.Contains(t, ok(t, h, "__complete", "channel", "add", "--platform", ""), "youtube\n")
	h.Workspace("sport")
	require.Contains(t, ok(t, h, "__complete", "channel", "show", "--workspace", "news", ""), "on-max\n")
	none := h.Run([]string{"DATABASE_URL=", "AUTOPOST_MIGRATE="}, "__complete", "channel", "pause", "")
	require.Zero(t, none.Code, none.Stderr)
	require.NotContains(t, none.Stdout, "on-telegram")
	_, err := os.Stat(h.Folder("data/pg"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
