package e2e

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
)

type plan struct {
	Status string
	Counts map[string]int
	Errors []map[string]string

	Channels []struct {
		ChannelID string `json:"channel_id"`
		SendAt    string `json:"send_at"`
		Verdict   string
		Reason    string
		Text      string
	}
}

// decode reads what a command printed with --json.
func decode[T any](t *testing.T, stdout string) T {
	t.Helper()
	var value T
	require.NoError(t, json.Unmarshal([]byte(stdout), &value), stdout)
	return value
}

// items reads the rows that a list command printed with --json.
func items[T any](t *testing.T, stdout string) []T {
	t.Helper()
	return decode[struct{ Items []T }](t, stdout).Items
}

// A post is planned, posted, and explained from the command line; the plan leaves nothing.
func TestPostIsPlannedPostedAndExplained(t *testing.T) {
	t.Parallel()
	h, chat, _ := newsroom(t)
	h.Exec(`update autopost.channels set route_filter = '{"include_any": ["sale"]}' where channel_id = 'on-max'`)
	file := filepath.Join(t.TempDir(), "post.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"text": "From a file", "tags": ["rent"]}`), 0o600))

	p := decode[plan](t, ok(t, h, "plan", file, "--json"))
	require.Equal(t, "planned", p.Status)
	require.Equal(t, 1, p.Counts["queued"])
	require.Equal(t, 1, p.Counts["not_routed"])
	require.Contains(t, p.Channels[0].Reason, "sale", "on-max comes first")
	require.Equal(t, "From a file", p.Channels[1].Text)
	later := decode[plan](t, ok(t, h, "plan", file, "--at", "2031-01-02T03:04:05Z", "--json"))
	require.Contains(t, later.Channels[1].SendAt, "2031-01-02T03:04:05")
	table := ok(t, h, "plan", file)
	require.Contains(t, table, "1 of 2 channels would get it")
	require.Contains(t, table, "route_filter.include_any wants one of sale; the post has rent")
	require.Zero(t, pgtest.Value[int](h.DB, `select (select count(*) from autopost.deliveries)::int + (select count(*) from autopost.messages)::int + (select count(*) from autopost.events)::int`))

	posted := ok(t, h, "post", file)
	require.Contains(t, posted, "1 enqueued")
	require.Equal(t, "command cms", pgtest.Value[string](h.DB, `select kind || ' ' || endpoint_id from autopost.ingest_runs`))
	id := pgtest.Value[string](h.DB, `select delivery_id::text from autopost.deliveries`)
	waiting := ok(t, h, "why", id)
	require.Contains(t, waiting, "due: it goes with the next claim")
	require.Contains(t, waiting, "last daemon activity: never")
	ok(t, h, "channel", "pause", "on-telegram", "--for", "1h", because)
	require.Contains(t, ok(t, h, "why", id), "channel paused until")
	ok(t, h, "channel", "resume", "on-telegram", because)

	d := h.Serve()
	h.Drained("news")
	require.Len(t, h.Accepted(sim.Filter{Chat: chat}), 1)
	require.Contains(t, ok(t, h, "plan", file), "sent there at")
	explained := ok(t, h, "why", id)
	require.Contains(t, explained, "call 1 began")
	require.Contains(t, explained, "now: sent at")
	chain := decode[struct{ Chain []struct{ Action string } }](t, ok(t, h, "why", id, "--json"))
	require.Len(t, chain.Chain, 3)
	require.Contains(t, ok(t, h, "why", pgtest.Value[string](h.DB, `select message_id::text from autopost.deliveries`)), "its fan-out is over: 1 channel got a delivery")
	h.DB.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, enabled) values ('news', 'blog', 'rss', false)`)
	off := ok(t, h, "source", "why", "blog")
	require.Contains(t, off, "source blog: is disabled by an operator")
	require.Contains(t, off, "autopost source enable blog")
	h.DB.Exec(`insert into autopost.result_webhooks (workspace_id, webhook_id, url, signing_ref, enabled, enabled_at, next_send_at) values ('news', 'crm', 'https://crm.example', 'key', false, now(), now())`)
	require.Contains(t, ok(t, h, "webhook", "why", "crm"), "result webhook crm: is disabled by an operator, no call waits")
	require.Contains(t, h.Run(nil, "webhook", "why", "crm", "--event", "00000000-0000-7000-8000-000000000000").Stderr, "unknown event 00000000-0000-7000-8000-000000000000 of the result webhook crm")
	require.Equal(t, "enqueue", chain.Chain[0].Action)
	require.Contains(t, ok(t, h, "post", file), "1 duplicate,")
	rejected := h.RunWithInput(`{"text": "", "source_ref": "empty"}`, "post")
	require.Contains(t, rejected.Stderr, "text the post is empty")
	require.Contains(t, ok(t, h, "why", pgtest.Value[string](h.DB, `select meta ->> 'run_id' from autopost.events where action = 'ingress_payload_rejected'`)),
		"rejected 1; empty: text the post")
	require.Zero(t, h.RunWithInput(`{"text": "Once", "source_ref": "s", "tags": ["none"], "routing": {"include_channels": []}}`, "post").Code)
	require.Contains(t, h.RunWithInput(`{"text": "Twice", "source_ref": "s"}`, "post").Stdout, "duplicate: the endpoint has this source_ref already")

	// From standard input, and from flags with a picture that is fetched first.
	require.Zero(t, h.RunWithInput(`{"text": "From standard input"}`, "post").Code)
	require.Zero(t, h.RunWithInput(`{"text": "The same way"}`, "post", "-").Code)
	lost := h.Run(nil, "post", "--text", "To nobody", "--channel", "nope")
	require.Contains(t, lost.Stderr, "routing.include_channels.nope", "a channel that is not there is named")
	accepted := ok(t, h, "post", "--text", "From flags", "--media", h.WorldURL+"/files/photo-4.png", "--channel", "on-telegram", "--endpoint", "cms")
	require.Contains(t, accepted, "accepted as submission")
	// A picture from this machine is stored by the command itself.
	picture := filepath.Join(t.TempDir(), "photo.png")
	require.NoError(t, os.WriteFile(picture, photo(t), 0o600))
	require.Contains(t, ok(t, h, "post", "--text", "From the disk", "--media", picture, "--channel", "on-telegram", "--endpoint", "cms"), "1 enqueued")
	h.UntilTrue(`select count(*) = 5 from autopost.deliveries where status = 'sent'`)
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.messages where payload ->> 'text' = 'From the disk' and payload -> 'media' -> 0 ? 'blob_ref'`))
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.messages where payload -> 'media' -> 0 ? 'url'`), "the source URL is not stored")
	require.Zero(t, d.Stop())
	h.Verified()
}

func TestExplainMisuse(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	picture := filepath.Join(t.TempDir(), "photo.png")
	require.NoError(t, os.WriteFile(picture, photo(t), 0o600))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"why"}, 2, "one delivery id"},
		{[]string{"why", "x"}, 2, "must be a UUID"},
		{[]string{"source", "why", "nope"}, 1, "unknown source nope"},
		{[]string{"webhook", "why", "nope"}, 1, "unknown result webhook nope"},
		{[]string{"webhook", "why", "crm", "--event", "x"}, 2, "event id must be a UUID"},
		{[]string{"media", "upload", "sha256:12", "--platform", "max", "--auth-ref", "max-bot", "--kind", "image", because}, 2, `blob_ref must be sha256: and 64 lower-case hexadecimal digits, got "sha256:12"`},
		{[]string{"why", "00000000-0000-7000-8000-000000000000"}, 1, "unknown delivery 00000000-0000-7000-8000-000000000000 in workspace news"},
		{[]string{"why", "00000000-0000-7000-8000-000000000000", "--workspace", "none"}, 1, "none"},
		{[]string{"plan"}, 2, "must contain JSON"},
		{[]string{"plan", "/nowhere/post.json"}, 2, "/nowhere/post.json"},
		{[]string{"plan", "a.json", "b.json"}, 2, "one file"},
		{[]string{"plan", "a.json", "--text", "x"}, 2, "must not be used with flags"},
		{[]string{"plan", "--text", "x", "--at", "noon"}, 2, "noon"},
		{[]string{"plan", "--link", "nonsense"}, 1, "link must be an http or https URL"},
		{[]string{"post", "--tag", "x"}, 1, "text the post is empty"},
		{[]string{"post", "--media", "https://e.x/what"}, 2, "TYPE=URL"},
		{[]string{"post", "--media", "/nowhere/photo.png"}, 2, "a file that can be read"},
		{[]string{"post", "--media", "video=" + picture}, 1, "media_wrong_type"},
		{[]string{"plan", "--media", picture}, 2, "a plan stores nothing"},
		{[]string{"post", "--text", "x", "--endpoint", "nobody"}, 2, "must be an enabled endpoint, got nobody"},
		{[]string{"post", "--text", "x", "--scheduled-for", "noon"}, 1, "scheduled_for"},
	} {
		result := h.Run(nil, c.args...)
		require.Equal(t, c.code, result.Code, "%v: %s", c.args, result.Stderr)
		require.Contains(t, result.Stderr, c.says, c.args)
		require.Empty(t, result.Stdout, c.args)
	}
	rejected := h.Run(nil, "plan", "--tag", "x", "--json")
	require.Equal(t, 1, rejected.Code)
	require.Equal(t, "text", decode[plan](t, rejected.Stdout).Errors[0]["field"])
	require.Contains(t, h.RunWithInput(`{"text": "x", "colour": "red"}`, "plan").Stderr, "colour")
	h.Endpoint("news", "second", "secret-second")
	several := h.Run(nil, "post", "--text", "x")
	require.Equal(t, 2, several.Code)
	require.Contains(t, several.Stderr, "several: cms, second")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries`))
}

// photo returns a picture that every platform takes.
func photo(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 200, 100))))
	return b.Bytes()
}
