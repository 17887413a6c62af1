package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/recurrence"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// listing is a command that prints rows. Its JSON is {"items": […]}, unless it prints one object.
type listing struct {
	args   []string
	object bool
	code   int
}

const recurrenceID = "01989f3a-7c1e-7a2b-8d3e-0123456789ab"

// listings are all commands with the flag --wide. TestEachListIsTested in internal/cli compares.
var listings = map[string]listing{
	"workspace list": {}, "channel list": {}, "channel discover": {}, "chat list": {}, "credential list": {}, "endpoint list": {}, "source list": {},
	"template list": {}, "bot rules list": {}, "bot chats": {}, "webhook list": {}, "webhook deliveries": {args: []string{"crm"}}, "group list": {}, "quota list": {}, "budget list": {}, "retry-policy list": {}, "avatar list": {}, "apikey list": {},
	"setting list": {}, "alert list": {}, "alert target list": {}, "events list": {}, "audit list": {},
	"posts list": {}, "drafts list": {}, "recurring list": {}, "recurring show": {args: []string{recurrenceID}}, "submissions list": {}, "moderation list": {}, "moderation chat list": {}, "filebus status": {}, "user list": {}, "x-posts list": {}, "deliveries list": {}, "deliveries acts": {}, "media list": {}, "media orphans": {}, "media sweep": {args: []string{"--dry-run"}},
	"migrate status": {}, "verify": {}, "doctor": {code: 1}, "credential check": {args: []string{"telegram"}, code: 1}, "channel check": {args: []string{"on-max"}},
	"plan": {args: []string{"--text", "A new post", "--tag", "none"}, object: true}, "calendar": {object: true}, "slots": {args: []string{"on-max"}, object: true}, "forecast": {object: true}, "health": {object: true},
	"source test": {args: []string{"wire"}, object: true}, "endpoint test": {args: []string{"cms", "post.json"}, object: true},
}

var (
	// otherTimes are times that are not in the form for people.
	otherTimes = regexp.MustCompile(`\d{4}-\d\d-\d\dT|\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?(?:$|[^ \d:]| [^\dA-Z+-])`)
	rawJSON    = regexp.MustCompile(`\{"|\["|":`)
)

// Each command that prints rows fits the terminal, prints no JSON in a cell and one form of time. Its --json has one
// form, with times in RFC 3339.
func TestListsFitTheTerminal(t *testing.T) {
	t.Parallel()
	h := crowded(t)
	for name, list := range listings {
		args := append(strings.Fields(name), list.args...)
		for _, width := range []int{80, 200} {
			result := h.Run([]string{fmt.Sprintf("COLUMNS=%d", width)}, args...)
			require.Equal(t, list.code, result.Code, "%s: %s", name, result.Stderr)
			requireReadable(t, fmt.Sprintf("%s at %d", name, width), result.Stdout)
			for line := range strings.Lines(result.Stdout + result.Stderr) {
				require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), width, "%s at %d:\n%s", name, width, result.Stdout)
			}
		}
		wide := h.Run([]string{"COLUMNS=80"}, append(args, "--wide")...)
		requireReadable(t, name+" --wide", wide.Stdout)
		require.NotContains(t, wide.Stdout+wide.Stderr, "not shown", name)
		printed := h.Run(nil, append(args, "--json")...)
		require.Equal(t, list.code, printed.Code, name)
		requireJSON(t, name, printed.Stdout, list.object)
	}
}

func requireReadable(t *testing.T, name, text string) {
	t.Helper()
	require.NotEmpty(t, text, name)
	require.NotRegexp(t, otherTimes, text, name)
	require.NotRegexp(t, rawJSON, text, name)
	require.NotRegexp(t, `\b1 (deliveries|channels|failures|posts|items|times|days)\b`, text, name)
}

// requireJSON checks the form of --json, and that each text with a date is a time in RFC 3339.
func requireJSON(t *testing.T, name, text string, object bool) {
	t.Helper()
	var value map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &value), "%s: %s", name, text)
	if !object {
		require.Len(t, value, 1, name)
		require.NotEmpty(t, value["items"], "%s: the test has no row of it", name)
	}
	for _, at := range regexp.MustCompile(`"(\d{4}-\d\d-\d\d[^"]*)"`).FindAllStringSubmatch(text, -1) {
		if _, err := time.Parse(recurrence.LocalLayout, at[1]); err == nil && strings.HasPrefix(name, "recurring") {
			continue // starts_at is a local time
		}
		_, err := time.Parse(time.RFC3339Nano, at[1])
		require.NoError(t, err, name)
	}
}

// crowded returns an installation with at least one row of each kind, with long names, texts and errors.
func crowded(t *testing.T) *harness.Harness {
	t.Helper()
	h := withResults(t, "crm")
	chat := h.Channel("news", harness.Channel{ID: "on-telegram", Platform: harness.Telegram})
	h.Channel("news", harness.Channel{ID: "on-max", Platform: harness.MAX})
	h.Channel("news", harness.Channel{ID: "a-channel-with-a-rather-long-name-for-a-narrow-terminal", Platform: harness.MAX})
	h.World.Feeds.Set("wire", "application/rss+xml", []byte(`<rss><channel><item><title>`+strings.Repeat("A long title ", 20)+`</title><guid>1</guid></item></channel></rss>`))
	h.File("post.json", `{"text": "From a file", "tags": ["none"]}`)
	for _, args := range [][]string{
		{"source", "add", "wire", "--url", h.WorldURL + "/feeds/wire"},
		{"source", "add", "gone", "--url", "http://127.0.0.1:1/" + strings.Repeat("long/", 30)},
		{"channel", "set", "on-max", "--title", strings.Repeat("Заголовок ", 12), "--route-filter", `{"exclude": ["none"]}`, "--tags", "a,b"},
		{"channel", "disable", "a-channel-with-a-rather-long-name-for-a-narrow-terminal"},
		{"template", "put", "digest", "--body", strings.Repeat("{title} and more text ", 20)}, {"quota", "set", "--channel", "on-max", "--per", "1d", "--max-sends", "100"},
		{"budget", "set", "telegram", "--month-usd", "5"}, {"avatar", "set", "avatar-1", "--name", "An avatar with a long name"}, {"apikey", "add", "--workspace", "news", "--name", "a key for all scopes", "--role", "owner", "--scope", "posts:read"},
		{"moderation", "chat", "add", "mods", "--auth-ref", "telegram", "--target-id", "-1008", "--users", "5001,5002"},
		{"drafts", "save", "--text", strings.Repeat("Not finished. ", 20)},
		{"alert", "target", "add", "ops", "--kind", "telegram", "--address", "-1009", "--auth-ref", "telegram", "--quiet-hours", "22:00-07:30"},
	} {
		ok(t, h, args...)
	}
	require.Zero(t, h.RunWithInput("correct horse battery", "user", "add", strings.Repeat("long", 12)+"@example.org", "--role", "owner", "--workspace", "news").Code)
	h.Exec(`select autopost.install_bot_examples('news', 'ann', 'test')`)
	h.Exec(`insert into autopost.bot_state (workspace_id, provider, auth_ref, chat_id, updated_at) values ('news', 'max', 'a-bot-with-a-long-name', '4711', now())`)
	h.Exec(`insert into autopost.discovered_chats (workspace_id, platform, auth_ref, target_id, title, may_post, reason, first_seen, last_seen)
		values ('news', 'telegram', 'telegram', '-1001', $1, false, 'the bot is not an admin of the channel: make it one, with the right to post messages', now(), now())`, strings.Repeat("Shop ", 30))
	h.Exec(`insert into autopost.recurrences (workspace_id, recurrence_id, endpoint_id, rule, zone, starts_at, payloads, expanded_to, expand_at, next_at, author, created_at, updated_at)
		values ('news', $1::uuid, 'cms', 'FREQ=DAILY', 'UTC', '2999-01-01T10:00', '[{"text": "x"}]', 'infinity', 'infinity', 'infinity', 'o', now(), now())`, recurrenceID)
	h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, enabled, config_json) values ('news', 'files', 'filebus', false, '{"root": "/nowhere", "channels": {"max": "on-max"}}')`)
	h.Exec(`select autopost.put_publish_job('news', 'files', jsonb_build_object('job_id', 'a-job-with-a-long-name', 'platform', 'max', 'publish_config', jsonb_build_object('title', repeat('Long ', 30)),
		'file', jsonb_build_object('error', jsonb_build_object('code', 'artifact_missing', 'message', repeat('a long reason ', 20)))))`)
	h.Exec(`insert into autopost.occurrences (workspace_id, occurrence_id, recurrence_id, local_at, at, updated_at) values ('news', $1::uuid, $1::uuid, '2999-01-01T10:00', '2999-01-01T10:00Z', now())`, recurrenceID)
	d := h.Serve(each, "TEST_FIRST_KEY="+firstKey)
	h.Push(d, "secret-cms", harness.Post("text", strings.Repeat("A text with many words. ", 30), "media", picture(h, "photo-1.png")))
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where status = 'sent'`)
	h.Push(d, "secret-cms", harness.Post("text", "Look", "media", picture(h, "not-there.png")))
	h.UntilTrue(`select exists (select 1 from autopost.submissions where status = 'failed')`)
	h.Exec(`select autopost.receive_event('news', 'cms', '{"event": "COMBAT.SUMMARY.GENERATED", "payload": {"type": "combat", "encounterId": "e1",
		"winner": {"id": "a", "name": "Nyx"}, "loser": {"id": "b", "name": "Helion"}, "summaryText": "Nyx won", "rounds": 7, "createdAt": "2025-09-20T14:00:00Z"}}')`)
	h.Exec(`update autopost.workspace_endpoints set moderated = true where endpoint_id = 'cms'`)
	h.Push(d, "secret-cms", harness.Post("text", strings.Repeat("A person decides about this. ", 20)))
	h.Exec(`update autopost.workspace_endpoints set moderated = false where endpoint_id = 'cms'`)
	sent := pgtest.Value[string](h.DB, `select delivery_id::text from autopost.deliveries where channel_id = 'on-telegram'`)
	ok(t, h, "deliveries", "edit", sent, "--text", "Edited")
	h.UntilTrue(`select exists (select 1 from autopost.post_acts where status = 'done')`)
	h.World.Telegram.SetAccess(numeric(t, chat), telegram.AccessKicked)
	h.Push(d, "secret-cms", harness.Post("text", "Nobody gets this"))
	h.UntilTrue(`select exists (select 1 from autopost.deliveries where status = 'failed_permanent')`)
	ok(t, h, "channel", "pause", "on-max", "--for", "2d")
	h.Push(d, "secret-cms", harness.Post("text", "It waits"))
	h.UntilTrue(`select exists (select 1 from autopost.alerts) and exists (select 1 from autopost.webhook_sends where status = 'delivered')`)
	return h
}
