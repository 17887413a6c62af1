package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// pictured is a domain event with a picture.
func pictured(h *harness.Harness, n int) string {
	return fmt.Sprintf(`{"event": "MEDIA.IMAGE.GENERATED", "payload": {"type": "image", "avatarId": "avatar-1", "imageUrl": "%s/files/photo-%d.png", "prompt": "Ranger %d",
		"guildId": "123456789012345678", "createdAt": "2026-06-01T12:00:00Z"}}`, h.WorldURL, n, n)
}

// filmed is a domain event with a video.
func filmed(h *harness.Harness, n int) string {
	return fmt.Sprintf(`{"event": "MEDIA.VIDEO.GENERATED", "payload": {"type": "video", "videoUrl": "%s/files/video-%d.mp4", "title": "Origin %d", "avatarId": "avatar-1",
		"createdAt": "2026-06-01T13:00:00Z"}}`, h.WorldURL, n, n)
}

// The mode shadow takes all three types of events, calls nothing, and shows them in lists, numbers and metrics. An event that
// a person retries goes out.
func TestShadowModeTakesAllTypes(t *testing.T) {
	t.Parallel()
	h := account(t, `{"avatar_id": "avatar-1"}`)
	d := h.Serve("GLOBAL_X_ACCOUNT_AVATAR_ID=avatar-1")
	operator, viewer := keyed(h, "news", "operator", "operator"), keyed(h, "news", "viewer", "viewer")
	const at = "/api/admin/x-posts"
	require.Equal(t, http.StatusOK, h.API(d, http.MethodPut, at+"/config", operator, `{"mode": "shadow"}`).Status)
	var last harness.Answer
	for _, event := range []string{pictured(h, 1), filmed(h, 1), combat(1)} {
		last = h.Event(d, "secret-cms", event)
		require.Equal(t, []any{http.StatusAccepted, "skipped", "shadow_mode"}, []any{last.Status, last.Text("status"), last.Text("reason")}, last.Body)
	}
	items := h.API(d, http.MethodGet, at+"?status=skipped", viewer, "").Body["items"].([]any)
	require.Len(t, items, 3)
	for n, kind := range []string{"combat", "video", "image"} {
		row := items[n].(map[string]any)
		require.Equal(t, []any{kind, "shadow_mode"}, []any{row["eventType"], row["lastError"]})
		require.NotEmpty(t, row["resolvedContent"])
	}
	stats := h.API(d, http.MethodGet, at+"/stats", viewer, "")
	require.Equal(t, map[string]any{"skipped": 3.0}, stats.Body["counts"])
	require.Empty(t, h.Sends())
	metrics := h.Metrics(d.URL)
	for _, kind := range []string{"image", "video", "combat"} {
		require.EqualValues(t, 1, metrics[`x_post_events_ingested_total{backfill="false",eventType="`+kind+`"}`], kind)
	}
	for _, name := range []string{"x_post_queue_depth", "x_post_pending_moderation", "x_post_latency_seconds_count"} {
		require.Contains(t, metrics, name)
	}
	require.Equal(t, http.StatusOK, h.API(d, http.MethodPost, at+"/"+last.Text("submission_id")+"/retry", operator, "").Status)
	require.Equal(t, "Nyx defeated Helion in 1 rounds!", sentOnX(h, 1)[0].Text)
	require.NotContains(t, d.Log(), `"level":"ERROR"`)
	h.Verified()
}

// Images of events are posted, those with transient failures too. Each change is in the audit log, and the numbers are exact.
func TestImagesOfEventsArePosted(t *testing.T) {
	t.Parallel()
	h := account(t, `{"avatar_id": "avatar-1"}`)
	d := h.Serve("GLOBAL_X_ACCOUNT_AVATAR_ID=avatar-1")
	operator, approver := keyed(h, "news", "operator", "operator"), keyed(h, "news", "approver", "approver")
	const at, images = "/api/admin/x-posts", 10
	h.Exec(`select autopost.put_retry_policy('news', 'x', '*', '{"ladder_ms": [50, 50, 50, 50, 50], "max_attempts": 6}', 'ann', 'r', false)`)
	require.Equal(t, http.StatusOK, h.API(d, http.MethodPut, at+"/config", operator, `{"rate": {"perHour": 100, "perDay": 100}, "moderation": {"enabled": true}}`).Status)
	h.Fault(sim.Fault{Platform: harness.X, Method: "POST /2/media/upload", From: 2, To: 4, Effect: sim.EffectStatus, Status: http.StatusServiceUnavailable})
	h.Fault(sim.Fault{Platform: harness.X, Method: "POST /2/tweets", From: 3, To: 3, Effect: sim.EffectResetBeforeBody})
	var ids []string
	for n := range images {
		answer := h.Event(d, "secret-cms", pictured(h, n+1))
		require.Equal(t, "pending", answer.Text("status"), answer.Body)
		ids = append(ids, answer.Text("submission_id"))
	}
	h.UntilTrue(`select count(*) = $1 from autopost.submissions where status = 'pending'`, images)
	depth := func() []any {
		stats := h.API(d, http.MethodGet, at+"/stats", approver, "")
		return []any{stats.Body["pendingModeration"], stats.Body["counts"].(map[string]any)["rejected"]}
	}
	require.Equal(t, []any{float64(images), nil}, depth())
	require.Equal(t, http.StatusOK, h.API(d, http.MethodPost, at+"/"+ids[0]+"/reject", approver, `{"reason": "blurred"}`).Status)
	require.Equal(t, []any{images - 1.0, 1.0}, depth())
	for n, id := range ids[1:] {
		require.Equal(t, http.StatusOK, h.API(d, http.MethodPost, at+"/"+id+"/approve", approver, "").Status)
		require.Equal(t, []any{images - 2.0 - float64(n), 1.0}, depth())
	}
	posts := sentOnX(h, images-1)
	require.Len(t, posts, images-1)
	require.Len(t, h.Accepted(sim.Filter{Method: "POST /2/tweets"}), images-1, "each once")
	stats := h.API(d, http.MethodGet, at+"/stats", approver, "")
	require.Equal(t, []any{1.0, 0.0}, []any{stats.Body["successRate"], stats.Body["queueDepth"]})
	require.Less(t, 0, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'retry_scheduled'`), "some failed at first")
	rows := h.API(d, http.MethodGet, at+"?status=posted&type=image&limit=4", approver, "")
	require.Len(t, rows.Body["items"], 4)
	require.NotEmpty(t, rows.Body["next_cursor"])
	row := rows.Body["items"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"image", "https://x.com/i/status/" + row["tweetId"].(string)}, []any{row["mediaType"], row["tweetUrl"]})
	rejected := h.API(d, http.MethodGet, at+"?status=rejected", approver, "").Body["items"].([]any)[0].(map[string]any)
	require.Equal(t, []any{ids[0], "blurred"}, []any{rejected["_id"], rejected["rejectedReason"]})
	audited := map[string]int{}
	for _, item := range h.API(d, http.MethodGet, "/api/v1/audit?limit=100", operator, "").Body["items"].([]any) {
		audited[item.(map[string]any)["action"].(string)]++
	}
	require.Equal(t, []int{1, 1, images - 1}, []int{audited["x_post_config_update"], audited["x_post_event_reject"], audited["x_post_event_approve"]})
	h.Verified()
}
