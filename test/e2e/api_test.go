package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/test/harness"
)

// apiKey makes a key as an operator does.
func apiKey(t *testing.T, h *harness.Harness, workspace string) string {
	t.Helper()
	result := h.Run(nil, "apikey", "add", "--workspace", workspace, "--name", "test", "--role", "viewer", "--json")
	require.Zero(t, result.Code, result.Stderr)
	var made struct{ ID, Key string }
	require.NoError(t, json.Unmarshal([]byte(result.Stdout), &made))
	require.NotEmpty(t, made.ID)
	require.NotEmpty(t, made.Key)
	return made.Key
}

// The sender of a picture reads the result of its push later. Nobody else may read it.
func TestRunShowsTheResultOfAPush(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	h.Workspace("rival")
	d := h.Serve()
	own, foreign := apiKey(t, h, "news"), apiKey(t, h, "rival")
	answer := h.Push(d, "secret-cms", harness.Post("text", "Look", "media", picture(h, "photo-1.png")))
	require.Equal(t, 202, answer.Status)
	run := d.URL + "/api/v1/runs/" + answer.Text("run_id")
	for key, status := range map[string]int{"": 401, "no-key": 401, foreign: 404, own: 200} {
		got, err := h.Get(run, key)
		require.NoError(t, err)
		require.Equal(t, status, got.Status)
	}
	unknown, err := h.Get(d.URL+"/api/v1/nothing/here", "")
	require.NoError(t, err)
	require.Equal(t, 401, unknown.Status, "without a key no path under /api shows whether it exists")

	var item map[string]any
	h.Until("the run shows the message", func() bool {
		got, err := h.Get(run, own)
		require.NoError(t, err)
		item = got.Body["items"].([]any)[0].(map[string]any)
		return item["message_id"] != nil
	})
	require.Equal(t, "enqueued", item["submission_status"])
	require.Equal(t, 2.0, item["enqueued"])
	h.Drained("news")
	got, err := h.Get(run, own)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"sent": 2.0}, got.Body["deliveries"])
}
