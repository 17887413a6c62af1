package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// A post to more channels than one transaction takes is answered at once and reaches
// each of them once, though the daemon that took it in is killed over it, and a
// second repeats it. Who pushed it sees how far it is.
func TestPostToManyChannelsIsFannedOutInRanges(t *testing.T) {
	t.Parallel()
	const outlets = 40
	h, _, _ := newsroom(t)
	for i := range outlets {
		h.Channel("news", harness.Channel{ID: fmt.Sprintf("outlet-%02d", i), Platform: []string{harness.Telegram, harness.MAX}[i%2], Parallel: 4})
	}
	h.Exec(`update autopost.settings set value = '3' where key = 'fanout_chunk_channels'`)
	first, second := h.Serve(), h.Serve()
	own := apiKey(t, h, "news")

	answer := h.Push(first, "secret-cms", harness.Post("text", "To everyone", "source_ref", "one"))
	first.Kill()
	require.Equal(t, 202, answer.Status)
	require.Equal(t, "running", answer.Text("fanout"))
	require.Equal(t, outlets+2, answer.Number("planned"))
	again := h.Push(second, "secret-cms", harness.Post("text", "To everyone", "source_ref", "two"))
	require.Equal(t, "running", again.Text("fanout"))
	require.Equal(t, answer.Text("message_id"), again.Text("message_id"))

	counted := func(run string) []any {
		got, err := h.Get(second.URL+"/api/v1/runs/"+run, own)
		require.NoError(t, err)
		item := got.Body["items"].([]any)[0].(map[string]any)
		return []any{item["fanout"], item["enqueued"], item["deduped"], got.Body["finished_at"] != nil}
	}
	h.Until("both are done", func() bool {
		return slices.Equal(counted(answer.Text("run_id")), []any{"done", float64(outlets + 2), 0.0, true}) &&
			slices.Equal(counted(again.Text("run_id")), []any{"done", 0.0, float64(outlets + 2), true})
	})
	h.Drained("news")
	copies := h.Copies()
	require.Len(t, copies, outlets+2)
	for place, n := range copies {
		require.Equal(t, 1, n, "%v", place)
	}
	require.Equal(t, outlets+2, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'sent'`))
	h.Verified()
}
