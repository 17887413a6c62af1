package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// traces counts what a push may leave behind.
func traces(h *harness.Harness) map[string]any {
	return h.JSON(`select jsonb_build_object(
		'messages', (select count(*) from autopost.messages),
		'deliveries', (select count(*) from autopost.deliveries),
		'submissions', (select count(*) from autopost.submissions),
		'receipts', (select count(*) from autopost.ingress_receipts))`)
}

var nothing = map[string]any{"messages": 0.0, "deliveries": 0.0, "submissions": 0.0, "receipts": 0.0}

func events(h *harness.Harness, action string) int {
	return pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = $1`, action)
}

// newsroom is a workspace with an endpoint and a channel of each platform.
func newsroom(t *testing.T, options ...harness.Option) (h *harness.Harness, telegramChat, maxChat string) {
	t.Helper()
	h = harness.New(t, options...)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	telegramChat = h.Channel("news", harness.Channel{ID: "on-telegram", Platform: harness.Telegram})
	maxChat = h.Channel("news", harness.Channel{ID: "on-max", Platform: harness.MAX})
	return h, telegramChat, maxChat
}

// Each refusal has a reason and leaves nothing half done.
func TestRefusedPushes(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	for _, c := range []struct {
		name, secret, body string
		status             int
		says               string
		event              string
	}{
		{name: "wrong secret", secret: "guess", body: `{"text": "x"}`, status: 401, says: "secret"},
		{name: "no secret", body: `{"text": "x"}`, status: 401, says: "secret"},
		{name: "not JSON", secret: "secret-cms", body: `{"text": "x"`, status: 400, says: "not JSON"},
		{name: "not UTF-8", secret: "secret-cms", body: "{\"text\": \"\xff\"}", status: 400, says: "UTF-8"},
		{name: "too large", secret: "secret-cms", body: `{"text": "` + strings.Repeat("x", 1<<20) + `"}`, status: 413, says: "bytes", event: "ingress_payload_rejected"},
		{name: "NUL", secret: "secret-cms", body: `{"text": "a\u0000b"}`, status: 422, says: "The post is invalid"},
		{name: "empty post", secret: "secret-cms", body: `{"tags": ["a"]}`, status: 422, says: "The post is invalid"},
		{name: "wrong type", secret: "secret-cms", body: `{"text": 7}`, status: 422, says: "The post is invalid"},
		{name: "empty array", secret: "secret-cms", body: `[]`, status: 422, says: "wrong form"},
		{name: "array of wrong ones", secret: "secret-cms", body: `[{"text": ""}, 7]`, status: 422, says: "None of the posts is valid"},
	} {
		answer := h.Push(d, c.secret, c.body)
		require.Equal(t, c.status, answer.Status, c.name)
		require.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"), c.name)
		require.Equal(t, c.status, answer.Number("status"), c.name)
		require.Contains(t, answer.Text("detail"), c.says, c.name)
		require.Equal(t, nothing, traces(h), c.name)
		if c.event != "" {
			require.Equal(t, 1, events(h, c.event), c.name)
		}
	}
	nul := h.Push(d, "secret-cms", `{"text": "a\u0000b"}`)
	require.Equal(t, "text", nul.Body["errors"].([]any)[0].(map[string]any)["field"])
	unknown := h.Push(d, "guess", `{}`)
	h.Exec(`update autopost.workspace_endpoints set enabled = false where workspace_id = 'news'`)
	disabled := h.Push(d, "secret-cms", `{}`)
	require.Equal(t, unknown.Body, disabled.Body, "an unknown and a disabled secret must look the same")
	require.Empty(t, h.Sends())
}

func TestUnknownFieldsAreKeptAndNamed(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	answer := h.Push(d, "secret-cms", `{"text": "Hello", "colour": "red", "zoom": {"x": 1}}`)
	require.Equal(t, 202, answer.Status)
	require.Equal(t, []any{"colour", "zoom"}, answer.Body["warnings"])
	require.Equal(t, map[string]any{
		"kind": "push", "endpoint_id": "cms", "source_id": nil, "fields": map[string]any{"colour": "red", "zoom": map[string]any{"x": 1.0}},
	}, h.JSON(`select source from autopost.messages`))
	h.Drained("news")
	require.Len(t, h.Accepted(), 2)
}

// A post that only a platform's rules refuse is taken, and fails where it must.
func TestPlatformRulesFailDeliveriesNotPosts(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	for name, body := range map[string]string{
		"too long":     harness.Post("text", strings.Repeat("word ", 1000)),
		"unclosed tag": harness.Post("text", "<b>bold", "parse_mode", "HTML"),
	} {
		answer := h.Push(d, "secret-cms", body)
		require.Equal(t, 202, answer.Status, name)
		require.Equal(t, 2, answer.Number("invalid"), name)
		require.Zero(t, answer.Number("enqueued"), name)
		require.Equal(t, []string{"failed_permanent validation_failed", "failed_permanent validation_failed"}, pgtest.Column[string](h.DB,
			`select status || ' ' || (last_error ->> 'code') from autopost.deliveries where message_id = $1::text::uuid`, answer.Text("message_id")), name)
	}
	require.Equal(t, 4, events(h, "validation_failed"))
	h.Push(d, "secret-cms", harness.Post("text", "A short one"))
	h.Drained("news")
	require.Len(t, h.Sends(), 2, "nothing but the short one was ever tried")
	h.Verified()
}

func TestRepeatedSourceRefIsADuplicate(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	body := harness.Post("source_ref", "cms-1", "text", "Once")
	first, second := h.Push(d, "secret-cms", body), h.Push(d, "secret-cms", body)
	require.Equal(t, 202, first.Status)
	require.Equal(t, 200, second.Status)
	require.Equal(t, "duplicate", second.Text("status"))
	for _, key := range []string{"run_id", "trace_id", "message_id"} {
		require.NotEmpty(t, first.Text(key))
		require.Equal(t, first.Text(key), second.Text(key), key)
	}
	require.Equal(t, 1, events(h, "ingress_dedup_dropped"))
	h.Drained("news")
	require.Len(t, h.Accepted(), 2)
}

func TestOverTheRateOfTheEndpoint(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	h.Exec(`update autopost.workspace_endpoints set ingress_rps = 2`)
	d := h.Serve()
	var refused harness.Answer
	taken, refusals := 0, 0
	for n := 0; refused.Status == 0; n++ {
		require.Less(t, n, 10, "the endpoint never refused")
		answers := make([]harness.Answer, 10) // at once, so that a slow machine reaches the rate, too
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				answers[i], _ = h.TryPush(d.URL, "secret-cms", harness.Post("text", fmt.Sprintf("Post %d of %d", i, n)))
			})
		}
		all.Wait()
		for _, answer := range answers {
			if answer.Status != 202 {
				refused, refusals = answer, refusals+1
				continue
			}
			require.Equal(t, `"ingress_rps";q=2;w=1`, answer.Header.Get("RateLimit-Policy"))
			require.Regexp(t, `^"ingress_rps";r=[01];t=1$`, answer.Header.Get("RateLimit"))
			taken++
		}
	}
	require.Equal(t, 429, refused.Status)
	require.Equal(t, `"ingress_rps";q=2;w=1`, refused.Header.Get("RateLimit-Policy"))
	require.Regexp(t, `^"ingress_rps";r=0;t=[12]$`, refused.Header.Get("RateLimit"))
	wait, err := strconv.Atoi(refused.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, wait)
	require.Positive(t, events(h, "ingress_rate_limited"))
	require.LessOrEqual(t, events(h, "ingress_rate_limited"), refusals)
	require.Equal(t, float64(taken), traces(h)["messages"])
}

// A picture that cannot be fetched: the post is taken, tried again, and given up
// with an event. Nothing of it is ever a message or a delivery.
func TestPictureThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	key := apiKey(t, h, "news")
	missing := h.Push(d, "secret-cms", harness.Post("text", "Look", "media", picture(h, "not-there.png")))
	require.Equal(t, 202, missing.Status)
	require.Equal(t, "accepted", missing.Text("status"))
	require.Nil(t, missing.Body["message_id"])
	// Nothing listens there: worth a later try, and another.
	away := h.Push(d, "secret-cms", harness.Post("text", "Look again", "media", []any{map[string]any{"type": "image", "url": "http://127.0.0.1:1/a.png"}}))
	require.Equal(t, "accepted", away.Text("status"))

	h.UntilTrue(`select exists (select 1 from autopost.submissions where run_id = $1::text::uuid and status = 'failed')`, missing.Text("run_id"))
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'submission_failed'
		and meta ->> 'run_id' = $1 and error ->> 'code' = 'media_fetch_404'`, missing.Text("run_id")))
	h.UntilTrue(`select attempt > 0 and last_error is not null from autopost.submissions where run_id = $1::text::uuid`, away.Text("run_id"))
	waiting := h.Run(nil, "why", pgtest.Value[string](h.DB, `select submission_id::text from autopost.submissions where run_id = $1::text::uuid`, away.Text("run_id"))).Stdout
	require.Contains(t, waiting, "the next try to fetch them")
	require.NotContains(t, waiting, "until an operator acts", "it is tried again automatically")
	counts := traces(h)
	require.Equal(t, map[string]any{"messages": 0.0, "deliveries": 0.0, "submissions": 2.0, "receipts": 2.0}, counts)
	require.Empty(t, h.Sends())

	run, err := h.Get(d.URL+"/api/v1/runs/"+missing.Text("run_id"), key)
	require.NoError(t, err)
	require.Equal(t, 200, run.Status)
	item := run.Body["items"].([]any)[0].(map[string]any)
	require.Equal(t, "failed", item["submission_status"])
	require.Equal(t, "media_fetch_404", item["last_error"].(map[string]any)["code"])

	// It is in no list of posts, and the commands say where it is.
	require.Contains(t, h.Run(nil, "posts", "list").Stderr, "1 failed before they were queued: run autopost submissions list --status")
	failed := h.Run(nil, "submissions", "list", "--status", "failed")
	require.Contains(t, failed.Stdout, "media_fetch_404")
	require.Contains(t, failed.Stdout, "Look")
	id := item["submission_id"].(string)
	shown, err := h.Get(d.URL+"/api/v1/submissions/"+id, key)
	require.NoError(t, err)
	require.Equal(t, "Look", shown.Body["payload"].(map[string]any)["text"])
	require.Contains(t, h.Run(nil, "submissions", "show", id).Stdout, "not-there.png")
	require.Contains(t, h.Run(nil, "events", "list", "--result", "error").Stdout, "submission_failed")

	// The picture is there at last.
	h.Exec(`update autopost.submissions set raw_payload = jsonb_set(raw_payload, '{media,0,url}', to_jsonb($1::text)) where submission_id = $2::text::uuid`, h.WorldURL+"/files/photo-1.png", id)
	require.Zero(t, h.Run(nil, "submissions", "retry", id, "--reason", "the picture is back").Code)
	h.UntilTrue(`select status = 'enqueued' from autopost.submissions where submission_id = $1::text::uuid`, id)
	require.Contains(t, h.Run(nil, "submissions", "retry", id, "--reason", "again").Stderr, "not failed")
	require.Contains(t, h.Run(nil, "audit", "list", "--action", "retry_submission").Stdout, "the picture is back")
	require.Contains(t, h.Run(nil, "posts", "list").Stdout, "1 ")
}

// picture is a list of one image that the world's file shelf serves, or not.
func picture(h *harness.Harness, name string) []any {
	return []any{map[string]any{"type": "image", "url": h.WorldURL + "/files/" + name}}
}

// failuresAtOnce is the number of wrong secrets that an address may send at once.
const failuresAtOnce = 30

// An address that sends wrong secrets has to wait at every endpoint. A request with a good secret is not delayed.
func TestGuessingOfSecretsIsStopped(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	require.Equal(t, 202, h.Push(d, "secret-cms", harness.Post("text", "Before")).Status)
	guesses := 0
	var refused harness.Answer
	h.Until("the address has to wait", func() bool {
		guesses++
		refused = h.Push(d, fmt.Sprint("guess-", guesses), harness.Post("text", "no"))
		require.Contains(t, []int{401, 429}, refused.Status)
		return refused.Status == 429
	})
	require.Greater(t, guesses, failuresAtOnce)
	require.Equal(t, "urn:autopost:problem:wrong-secrets", refused.Text("type"))
	require.NotEmpty(t, refused.Header.Get("Retry-After"))
	// A failure expires each second, so a slow machine may need more than one try. An address with another count of
	// failures at the API would not be refused before failuresAtOnce tries.
	for tries := 0; ; tries++ {
		require.Less(t, tries, failuresAtOnce, "an address is the same at every endpoint")
		h.Push(d, "guess", "{}")
		guessed, err := h.Get(d.URL+"/api/v1/channels", "guess")
		require.NoError(t, err)
		if guessed.Status == 429 {
			break
		}
		require.Equal(t, 401, guessed.Status)
	}
	require.Equal(t, 202, h.Push(d, "secret-cms", harness.Post("text", "After")).Status)
	require.Contains(t, d.Log(), `"msg":"http.address_limited"`)
	h.Drained("news")
}
