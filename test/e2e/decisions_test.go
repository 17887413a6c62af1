package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// Approve, reject, edit and expire compete for each of many posts. Each post has one decision, and the receiver gets the
// approved text of each approved post once, and nothing else.
func TestCompetingDecisionsGiveOne(t *testing.T) {
	t.Parallel()
	h := moderatedNews(t)
	d := h.Serve()
	approver, editor := keyed(h, "news", "approver", "approver"), keyed(h, "news", "editor", "editor")
	const posts = 24
	var all sync.WaitGroup
	for n := range posts {
		answer := h.Push(d, "secret-news", harness.Post("text", fmt.Sprint("Post ", n)))
		id := answer.Text("submission_id")
		require.NotEmpty(t, id)
		digest := h.API(d, http.MethodGet, "/api/v1/submissions/"+id, approver, "").Text("digest")
		acts := []func(){
			func() {
				_, _ = h.TryAPI(d, "/api/v1/submissions/"+id+"/approve", approver, `{"reason": "seen", "digest": "`+digest+`"}`)
			},
			func() { _, _ = h.TryAPI(d, "/api/v1/submissions/"+id+"/reject", approver, `{"reason": "no"}`) },
			func() {
				_, _ = h.TryAPI(d, "/api/v1/submissions/"+id+"/edit", editor, `{"reason": "typo", "changes": {"text": "Edited `+fmt.Sprint(n)+`"}}`)
			},
			func() {
				_, _ = h.TryAPI(d, "/api/v1/submissions/"+id+"/approve", approver, `{"reason": "whatever it is"}`)
			},
		}
		if n%4 == 0 {
			h.Exec(`update autopost.submissions set expires_at = now() where submission_id = $1::uuid`, id)
			acts = append(acts, func() { _ = h.DB.Err(`select autopost.expire_submissions('news')`) })
		}
		rand.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
		for _, act := range acts {
			all.Go(act)
		}
	}
	all.Wait()
	h.Drained("news")
	require.Equal(t, posts, pgtest.Value[int](h.DB, `select count(*)::int from autopost.submissions where status in ('enqueued', 'rejected', 'expired')`))
	require.Empty(t, pgtest.Column[string](h.DB, `select s.submission_id::text from autopost.submissions s where (s.status = 'enqueued') <> (s.decision is not distinct from 'approve')
		or (s.status = 'rejected') <> (s.decision is not distinct from 'reject')`))
	approved := pgtest.Column[string](h.DB, `select s.plan #>> '{renderings,0,text}' from autopost.submissions s
		join autopost.approvals a on a.workspace_id = s.workspace_id and a.subject = 'submission:' || s.submission_id and a.voided_at is null and a.decision = 'approve' and a.digest = s.digest
		where s.status = 'enqueued' order by 1`)
	require.Equal(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.submissions where status = 'enqueued'`), len(approved))
	var arrived []string
	for _, send := range h.Accepted() {
		arrived = append(arrived, send.Text)
	}
	require.ElementsMatch(t, approved, arrived)
	h.Verified()
}
