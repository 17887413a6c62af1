package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// Secrets and personal data in the answers of the platform; no raw payload contains them.
var planted = []string{"7001002:AAcanaryAnotherBotsTelegramToken12", "ann.canary@example.org", "+7 911 555-01-02"}

// linkRaw asks for a link to the raw payload of an event.
func linkRaw(t *testing.T, d *harness.Daemon, key, event string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/api/v1/events/"+event+"/raw", strings.NewReader(`{"reason": "ticket 4711"}`))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var body map[string]any
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&body))
	return resp.StatusCode, body
}

func keyOf(t *testing.T, h *harness.Harness, workspace, role string) string {
	t.Helper()
	result := h.Run(nil, "apikey", "add", "--workspace", workspace, "--name", role, "--role", role, "--json")
	require.Zero(t, result.Code, result.Stderr)
	var made struct{ Key string }
	require.NoError(t, json.Unmarshal([]byte(result.Stdout), &made))
	return made.Key
}

// The answer of a platform to a failed call is kept sealed and without secrets. An owner reads it by a link that works
// once, each read is recorded, and it goes when its retention is over.
func TestRawAnswerOfAFailedCall(t *testing.T) {
	t.Parallel()
	h, chat, _ := newsroom(t)
	h.Workspace("rival")
	ok(t, h, "setting", "set", "raw_retention_days", "7")
	h.Fault(sim.Fault{Platform: harness.Telegram, Chat: chat, To: 1, Effect: sim.EffectStatus, Status: 400,
		Description: "Bad Request: " + strings.Join(planted, ", ") + " are wrong"})
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "Hello"))
	h.Drained("news")
	event := pgtest.Value[string](h.DB, `select id::text from autopost.events where action = 'failed_permanent' and payload_ref is not null`)
	ref := pgtest.Value[string](h.DB, `select payload_ref from autopost.events where id = $1`, event)
	blobs := h.Folder("data")
	object := func() string {
		found := ""
		require.NoError(t, filepath.WalkDir(blobs, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, filepath.FromSlash(ref)) {
				found = path
			}
			return nil
		}))
		return found
	}
	h.Until("the payload is stored", func() bool { return object() != "" })
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where payload_ref is not null`), "only the failed call has one")

	owner := keyOf(t, h, "news", "owner")
	for key, status := range map[string]int{keyOf(t, h, "news", "operator"): 403, keyOf(t, h, "rival", "owner"): 404, "no-key": 401} {
		got, _ := linkRaw(t, d, key, event)
		require.Equal(t, status, got)
	}
	status, link := linkRaw(t, d, owner, event)
	require.Equal(t, 200, status, link)
	require.Equal(t, ref, link["payload_ref"])
	address := d.URL + link["path"].(string)
	head, err := http.Head(address)
	require.NoError(t, err)
	require.NoError(t, head.Body.Close())
	require.Equal(t, 405, head.StatusCode, "a preview does not use it up")
	got, err := h.Get(strings.Replace(address, "/raw/news/", "/raw/rival/", 1), "")
	require.NoError(t, err)
	require.Equal(t, 404, got.Status)
	got, err = h.Get(address, "")
	require.NoError(t, err)
	require.Equal(t, 200, got.Status)
	require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
	require.Equal(t, 400.0, got.Body["status"])
	require.Equal(t, "Bad Request: [redacted], [redacted], [redacted] are wrong", got.Body["body"].(map[string]any)["description"])
	got, err = h.Get(address, "")
	require.NoError(t, err)
	require.Equal(t, 404, got.Status, "it works once")

	printed := ok(t, h, "events", "raw", event, "--workspace", "news", "--reason", "ticket 4712", "--operator", "olga")
	require.Contains(t, printed, `"status": 400`)
	require.Equal(t, []string{"ticket 4711", "olga ticket 4712"}, pgtest.Column[string](h.DB, `
		select case when l.operator = 'olga' then 'olga ' else '' end || l.reason from autopost.admin_audit_log l where l.workspace_id = 'news' and l.action = 'read_raw' order by l.seq`))
	sealedBytes, err := os.ReadFile(object())
	require.NoError(t, err)
	for _, secret := range append(planted, "Bad Request") {
		require.False(t, bytes.Contains(sealedBytes, []byte(secret)), "the object is sealed")
	}
	for _, secret := range planted {
		require.NotContains(t, printed, secret)
	}

	// The object is missing.
	require.NoError(t, os.Remove(object()))
	_, link = linkRaw(t, d, owner, event)
	got, err = h.Get(d.URL+link["path"].(string), "")
	require.NoError(t, err)
	require.Equal(t, 410, got.Status)
	refused := h.Run(nil, "events", "raw", event, "--workspace", "news", "--reason", "ticket 4713")
	require.Equal(t, 1, refused.Code)
	require.Contains(t, refused.Stderr, "is not in the media store")
	unknown := h.Run(nil, "events", "raw", "0190b3a4-0000-7000-8000-000000000000", "--workspace", "news", "--reason", "ticket 4713")
	require.Equal(t, 1, unknown.Code)
	require.Contains(t, unknown.Stderr, "payload_ref")
	h.Verified()
}

// A media store that fails takes no outcome with it, and raw payloads go when they are turned off.
func TestRawPayloadsNeverHoldUpAnOutcome(t *testing.T) {
	t.Parallel()
	h, chat, _ := newsroom(t)
	ok(t, h, "setting", "set", "raw_retention_days", "7")
	h.Fault(sim.Fault{Platform: harness.Telegram, Chat: chat, To: 2, Effect: sim.EffectStatus, Status: 400, Description: "Bad Request"})
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "One"))
	h.Drained("news")
	raw := filepath.Join(h.Folder("data"), "media", "raw")
	h.Until("the payload is stored", func() bool { _, err := os.Stat(raw); return err == nil })
	require.NoError(t, os.RemoveAll(raw))
	require.NoError(t, os.WriteFile(raw, nil, 0o600)) // no folder can be made here
	h.Push(d, "secret-cms", harness.Post("text", "Two"))
	h.Drained("news")
	require.Equal(t, 2, events(h, "failed_permanent"))
	require.NoError(t, os.Remove(raw))

	require.NoError(t, os.MkdirAll(filepath.Join(raw, "20260101"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(raw, "20260101", "0190b3a4-0000-7000-8000-000000000000"), []byte("without an event"), 0o600))
	swept := ok(t, h, "media", "sweep")
	require.Regexp(t, `raw_payloads\s+1\s+16\s+yes`, swept)
	h.Verified()
}
