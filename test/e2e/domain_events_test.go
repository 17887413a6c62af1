package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// combat is a domain event; no two numbers give the same text.
func combat(n int) string {
	return fmt.Sprintf(`{"event": "COMBAT.SUMMARY.GENERATED", "payload": {"type": "combat", "encounterId": "e%d", "winner": {"id": "a1", "name": "Nyx"},
		"loser": {"id": "b2", "name": "Helion"}, "summaryText": "Nyx won", "rounds": %d, "createdAt": "2026-06-01T14:00:00Z"}}`, n, n)
}

// An event waits for a decision and arrives once at the X channel of its avatar. A repeat is skipped.
func TestAnApprovedEventArrivesOnce(t *testing.T) {
	t.Parallel()
	h := account(t, `{"avatar_id": "avatar-1"}`)
	d := h.Serve("GLOBAL_X_ACCOUNT_AVATAR_ID=avatar-1", "GLOBAL_X_MODERATION_ENABLED=true")
	answer := h.Event(d, "secret-cms", combat(7))
	require.Equal(t, []any{http.StatusAccepted, "pending"}, []any{answer.Status, answer.Text("status")}, answer.Body)
	repeat := h.Event(d, "secret-cms", combat(7))
	require.Equal(t, []any{http.StatusOK, "skipped", answer.Text("submission_id")}, []any{repeat.Status, repeat.Text("status"), repeat.Text("submission_id")})
	require.Equal(t, http.StatusUnprocessableEntity, h.Event(d, "secret-cms", `{"event": "COMBAT.SUMMARY.GENERATED", "payload": {}}`).Status)
	require.Empty(t, h.Sends(), "nothing is called before the decision")

	result := h.Run(nil, "moderation", "approve", answer.Text("submission_id"), "--workspace", "news", "--reason", "checked")
	require.Zero(t, result.Code, result.Stderr)
	posts := sentOnX(h, 1)
	require.Len(t, posts, 1)
	require.Equal(t, "Nyx defeated Helion in 7 rounds!", posts[0].Text)
	result = h.Run(nil, "moderation", "reject", answer.Text("submission_id"), "--workspace", "news", "--reason", "late")
	require.NotZero(t, result.Code, result.Stdout)
	result = h.Run(nil, "x-posts", "list", "--workspace", "news", "--status", "posted", "--json")
	require.Contains(t, result.Stdout, `"tweetId": "`+posts[0].ID+`"`)
	require.Len(t, h.Accepted(), 1)
	require.EqualValues(t, 1, h.Metrics(d.URL)[`x_post_events_posted_total{backfill="false",eventType="combat"}`])
	h.Verified()
}

// Of fifty events at once, as many go out as the caps of Global X allow.
func TestABurstOfEventsKeepsTheCaps(t *testing.T) {
	t.Parallel()
	h := account(t, `{"avatar_id": "avatar-1"}`)
	d := h.Serve("GLOBAL_X_ACCOUNT_AVATAR_ID=avatar-1")
	for n := range 50 {
		require.Equal(t, http.StatusAccepted, h.Event(d, "secret-cms", combat(n)).Status)
	}
	sentOnX(h, 8)
	h.UntilTrue(`select count(*) = 42 and bool_and(d.status = 'queued') from autopost.deliveries d where d.status <> 'sent'`)
	require.Len(t, h.Accepted(), 8)
	require.Equal(t, 42, pgtest.Value[int](h.DB, `select count(*)::int from autopost.list_x_posts('news', '{"status": "approved"}', 100)`))
	require.Contains(t, pgtest.Value[string](h.DB, `select autopost.why('news', d.delivery_id)::text from autopost.deliveries d where d.status = 'queued' limit 1`), "channel_quota")
	require.Equal(t, []int{8, 30}, pgtest.Column[int](h.DB, `select max_sends from autopost.quotas order by window_seconds`))
	// After each hour the next eight go out, until the day is full.
	for _, sent := range []int{16, 24, 30} {
		h.Exec(`update autopost.quota_uses set used_at = autopost.later(used_at, interval '-61 minutes')`)
		h.Exec(`update autopost.channel_gates set ready_at = now()`)
		sentOnX(h, sent)
		require.Len(t, h.Accepted(), sent)
	}
	h.Exec(`update autopost.quota_uses set used_at = autopost.later(used_at, interval '-61 minutes')`)
	h.Exec(`update autopost.channel_gates set ready_at = now()`)
	h.UntilTrue(`select min(ready_at) > clock_timestamp() + interval '2 minutes' from autopost.channel_gates`)
	require.Len(t, h.Accepted(), 30)
	// The next day the rest goes out by the same caps.
	h.Exec(`update autopost.quota_uses set used_at = autopost.later(used_at, interval '-24 hours')`)
	h.Exec(`update autopost.channel_gates set ready_at = now()`)
	sentOnX(h, 38)
	require.Len(t, h.Accepted(), 38)
}
