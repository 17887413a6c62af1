package verify_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

func TestSoundWorkspaceHasNoFindings(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.clean()
	h.lively()
	h.clean()

	happened := pgtest.Column[string](h.db, `select distinct e.action from autopost.events e where e.workspace_id = 'w'`)
	require.Subset(t, happened, []string{"enqueue", "validation_failed", "send_attempt", "sent", "retry_scheduled", "dedup_suppressed",
		"failed_permanent", "dead_letter", "channel_paused", "channel_disabled", "sending_lease_expired", "manual_requeue",
		"ingress_dedup_dropped", "unknown_outcome", "unknown_resolved", "comment_failed", "released", "cooldown", "stale_commit",
		"act_requested", "act_done", "act_retry_scheduled", "act_failed", "act_void", "rescheduled", "manual_skip"}, "the history is not lively any more")
	waiting := pgtest.Column[string](h.db, `select distinct d.status from autopost.deliveries d where d.workspace_id = 'w'`)
	require.ElementsMatch(t, []string{"queued", "sending", "sent", "retry", "failed_permanent", "dead"}, waiting)
}

// Retention has dropped half of the events, as whole days. verify reports nothing.
func TestDroppedEventsHaveNoFindings(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.lively()
	h.raw(`delete from autopost.events where ts < date_trunc('day', autopost.now_ts(), 'UTC')`)
	require.Positive(t, pgtest.Value[int64](h.db, `select count(*) from autopost.deliveries d where not exists (
		select 1 from autopost.events e where e.message_id = d.message_id and e.action = 'enqueue')`))
	h.clean()
}

// An operator inserts a delivery as sent; it has no history. verify reports nothing.
func TestBackfilledDeliveryHasNoFindings(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.channels("plain", "archive")
	h.deliver("plain", "one")
	h.do(`insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, provider_message_id, sent_at, created_at)
		select d.workspace_id, gen_random_uuid(), d.message_id, 'archive', d.hash_version, d.content_hash, 'sent', '9', d.created_at - interval '1 hour', d.created_at - interval '1 hour'
		from autopost.deliveries d`)
	h.clean()
}

// verify takes no locks and sees one snapshot an invariant, so that a queue at work
// looks sound at every moment.
func TestQueueAtWorkHasNoFindings(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.do(`update autopost.retry_policies set base_ms = 20`)
	h.channels("a", "b", "c", "d")
	h.do(`update autopost.channels set max_parallel = 3, on_unknown = case channel_id when 'a' then 'resend' else 'reconcile' end`)
	h.do(`create function test.outcome() returns jsonb language sql as $$
		select case when r < 0.6 then '{"ok": true, "provider_message_id": "1"}'
			when r < 0.75 then '{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "http_502"}}'
			when r < 0.9 then '{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}}'
			else '{"ok": false, "error": {"category": "PERMANENT", "scope": "delivery", "code": "refused"}}' end::jsonb
		from random() r $$`)
	// Requests a random change of a random sent post: edit, pin or delete.
	h.do(`create function test.ask_any() returns void language plpgsql as $$
		declare
			v_id uuid := (select d.delivery_id from autopost.deliveries d where d.status = 'sent' order by random() limit 1);
			v_kind text := (array['edit', 'pin', 'delete'])[1 + floor(random() * 3)::int];
		begin
			perform autopost.request_acts('w', v_kind, null, array[v_id], case v_kind when 'edit' then '{"text": "better"}'::jsonb end, null, 'ann', 'at work', false)
			where v_id is not null;
		end $$`)
	var work sync.WaitGroup
	errs := make(chan error, 4)
	posted := make(chan struct{})
	for _, worker := range []string{"run-1", "run-2"} {
		work.Go(func() { errs <- h.work(worker, posted) })
	}
	work.Go(func() {
		defer close(posted)
		for i := range 60 {
			// Every third post is a repeat.
			if err := h.db.Err(`select autopost.enqueue_messages_and_deliveries('w', 'in', 'api', jsonb_build_object('text', $1::text))`, fmt.Sprint("post ", i-i%3/2)); err != nil {
				errs <- err
				return
			}
			if err := h.db.Err(`select test.ask_any()`); err != nil {
				errs <- err
				return
			}
		}
		errs <- h.db.Err(`select autopost.rearm_gates('w')`)
	})
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	looks := 0
	for working := true; working && !t.Failed(); looks++ {
		select {
		case <-done:
			working = false
		default:
		}
		h.clean()
	}
	<-done
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	sent := pgtest.Value[int64](h.db, `select count(*) from autopost.deliveries where status = 'sent'`)
	acts := pgtest.Value[int64](h.db, `select count(*) from autopost.post_acts where status = 'done'`)
	t.Logf("looked %d times while %d deliveries were sent and %d acts done", looks, sent, acts)
	require.Greater(t, looks, 1)
	require.Positive(t, acts)
	require.Greater(t, sent, int64(50))
}

// work claims, starts and commits, each in a transaction of its own, while posts
// come in and for 40 rounds after the last. Every second claim starts its calls.
func (h *fixture) work(run string, posted <-chan struct{}) error {
	const mine = `from autopost.deliveries d where d.workspace_id = 'w' and d.claimed_by = $1 and d.status = 'sending'`
	const acts = `from autopost.post_acts a where a.workspace_id = 'w' and a.claimed_by = $1 and a.status = 'sending'`
	claims := []string{
		`select count(*) from autopost.claim_deliveries('w', $1, 10)`,
		`select count(*) from autopost.claim_and_start('w', $1, 10, '[]', (select array_agg(distinct c.auth_ref) from autopost.channels c))`,
	}
	for rounds := 0; rounds < 40; {
		select {
		case <-posted:
			rounds++
		default:
		}
		slices.Reverse(claims)
		for _, step := range []string{
			claims[0],
			`select autopost.start_call_batch('w', coalesce(jsonb_agg(jsonb_build_object('delivery_id', d.delivery_id, 'claim_token', d.claim_token)), '[]')) ` + mine,
			`select autopost.commit_outcome_batch('w', coalesce(jsonb_agg(jsonb_build_object('delivery_id', d.delivery_id, 'claim_token', d.claim_token, 'outcome', test.outcome())), '[]')) ` + mine,
			`select count(*) from autopost.claim_acts('w', $1, 10)`,
			`select count(autopost.start_act('w', a.act_id, a.claim_token)) ` + acts,
			`select count(autopost.commit_act('w', a.act_id, a.claim_token, test.outcome())) ` + acts,
		} {
			if err := h.db.Err(step, run); err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
		}
	}
	return nil
}
