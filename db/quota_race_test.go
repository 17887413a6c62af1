package db_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

const groupQuota = `insert into autopost.quotas (workspace_id, platform, rate_group, window_seconds, max_sends) values ('w', 'telegram', 'bot', 3600, $1)`

// A quota is one claimer's at a time: the others wait for nothing and find nothing,
// and what they find afterwards has been counted.
func TestQuotaIsOneClaimersAtATime(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b", "c", "d")
	base.Exec(groupQuota, 3)
	base.Exec(`update autopost.channels set max_parallel = 1`)
	base.Exec(`insert into autopost.quota_uses (workspace_id, delivery_id, attempt, subject, used_at)
		values ('w', gen_random_uuid(), 1, 'group:telegram/bot', now() - interval '2 hours')`)
	posttest.Post(base, "w", "one")
	first, second := base.Session("first", "engine"), impatient(base, "second")

	const claimTwo = `select c.channel_id from autopost.claim_deliveries('w', 'run', 2) c order by 1`
	first.Exec(`begin`)
	require.Len(t, first.Exec(claimTwo), 2)
	require.Empty(t, second.Exec(claimTwo), "the channels that are left are of the same group")
	first.Exec(`commit`)
	require.Len(t, second.Exec(claimTwo), 1, "what the first took is counted")
	require.Empty(t, second.Exec(claimTwo))
}

// Series are reserved whole: many claimers never take more posts than the quota has, nor leave room for another series.
func TestQuotaOfPostsIsNotOverrunBySeries(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b", "c", "d", "e", "f", "g", "h")
	base.Exec(groupQuota, 17)
	posttest.Post(base, "w", "one")
	posttest.Post(base, "w", "two")
	base.Exec(`update autopost.deliveries set render_meta = jsonb_set(render_meta, '{steps}', '[{"step": "1"}, {"step": "2"}, {"step": "3"}]')`)
	claimTogether(t, base, 10, 2)
	require.Equal(t, 15, pgtest.Value[int](base, `select sum(posts)::int from autopost.quota_uses`))
	require.Equal(t, 5, pgtest.Value[int](base, `select count(*)::int from autopost.deliveries where status = 'sending'`))
	require.True(t, pgtest.Value[bool](base, `select quota_until > now() from autopost.platform_limits where rate_group = 'bot'`), "the group waits for room for a series")
}

// claimTogether claims up to limit deliveries at a time in eight sessions, and at last all that is left.
func claimTogether(t *testing.T, base *pgtest.DB, times, limit int) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), base.URL("engine"))
	require.NoError(t, err)
	defer pool.Close()
	var work sync.WaitGroup
	errs := make(chan error, 8)
	for n := range 8 {
		work.Go(func() {
			for range times {
				if _, err := pool.Exec(t.Context(), `select count(*) from autopost.claim_deliveries('w', $1, $2)`, fmt.Sprint("run-", n), limit); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	work.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	// The last session may have found the quota used up by another one.
	base.Exec(`select count(*) from autopost.claim_deliveries('w', 'run', 100)`)
}

func TestQuotaIsNotOverrunByManyClaimers(t *testing.T) {
	t.Parallel()
	ids := make([]string, 24)
	for i := range ids {
		ids[i] = fmt.Sprintf("c%02d", i)
	}
	base := world(t, ids...)
	base.Exec(groupQuota, 17)
	base.Exec(`insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends)
		select 'w', c.channel_id, 60, 1 from autopost.channels c where c.channel_id < 'c12'`)
	posttest.Post(base, "w", "one")
	posttest.Post(base, "w", "two")
	claimTogether(t, base, 30, 3)
	require.Equal(t, 17, pgtest.Value[int](base, `select count(*)::int from autopost.deliveries where status = 'sending'`))
	require.Zero(t, pgtest.Value[int](base, `select count(*)::int from (select 1 from autopost.deliveries
		where status = 'sending' and channel_id < 'c12' group by channel_id having count(*) > 1) x`))
}

// A budget is spent by one claimer at a time: nobody spends what another one is spending.
func TestBudgetIsOneClaimersAtATime(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b", "c", "d")
	base.Exec(`update autopost.platforms set post_micros = 10 where platform = 'telegram'`)
	base.Exec(`update autopost.channels set max_parallel = 1, auth_ref = 'purse', rate_group = channel_id`)
	base.Exec(`insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ('w', 'purse', 35)`)
	posttest.Post(base, "w", "one")
	first, second := base.Session("first", "engine"), impatient(base, "second")

	const claimTwo = `select c.channel_id from autopost.claim_deliveries('w', 'run', 2) c order by 1`
	first.Exec(`begin`)
	require.Len(t, first.Exec(claimTwo), 2)
	require.Empty(t, second.Exec(claimTwo), "the channels that are left are paid for with the same money")
	first.Exec(`commit`)
	require.Len(t, second.Exec(claimTwo), 1, "what the first took is spent")
	require.Empty(t, second.Exec(claimTwo))
	require.Equal(t, 30, pgtest.Value[int](base, `select sum(micros)::int from autopost.charges`))
}

// A post that is sent does not queue up behind its group's row, unless that has an
// outage to end.
func TestSentWaitsForItsGroupOnlyInAnOutage(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	base.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group) values ('w', 'telegram', 'bot')`)
	posttest.Post(base, "w", "one")
	base.Exec(claim)
	base.Exec(`select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d`)
	ids := pgtest.Column[[]string](base, `select array[delivery_id::text, claim_token] from autopost.deliveries order by channel_id`)
	owner, sender := base.Session("owner", ""), impatient(base, "sender")
	owner.Exec(`begin`)
	owner.Exec(`select 1 from autopost.platform_limits for update`)
	sender.Exec(commit, ids[0][0], ids[0][1])
	owner.Exec(`update autopost.platform_limits set failing_channels = '{b}'`)
	owner.Exec(`commit`)
	owner.Exec(`begin`)
	owner.Exec(`select 1 from autopost.platform_limits for update`)
	require.ErrorContains(t, sender.Start(commit, ids[1][0], ids[1][1]).Err(), "lock timeout")
	owner.Exec(`commit`)
	sender.Exec(commit, ids[1][0], ids[1][1])
	require.Equal(t, []string{}, pgtest.Value[[]string](base, `select failing_channels from autopost.platform_limits`))
}

// A refused credential pauses the other channels without waiting for any: a commit
// that holds one may be about to wait for this one's locks.
func TestRefusedCredentialWaitsForNoOtherChannel(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b", "c", "d")
	posttest.Post(base, "w", "one")
	base.Exec(claim)
	base.Exec(`select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d`)
	commitOf := func(s *pgtest.Session, channel, outcome string) *pgtest.Pending {
		var id, token string
		held := base.QueryRow(`select delivery_id::text, claim_token from autopost.deliveries where channel_id = $1 and status = 'sending'`, channel)
		require.NoError(t, held.Scan(&id, &token))
		return s.Start(`select autopost.commit_outcome('w', $1, $2, $3)`, id, token, outcome)
	}
	const (
		sent    = `{"ok": true, "provider_message_id": "1"}`
		refused = `{"ok": false, "error": {"category": "PERMANENT", "scope": "channel", "code": "tg_unauthorized"}}`
	)
	first, second := impatient(base, "first"), base.Session("second", "engine")

	second.Exec(`begin`)
	commitOf(second, "a", sent).Wait()
	first.Exec(`begin`)
	commitOf(first, "b", refused).Wait()
	waiting := commitOf(second, "c", refused)
	require.Equal(t, []string{"first"}, waiting.Blocked(), "c is paused by the first")
	first.Exec(`commit`)
	waiting.Wait()
	second.Exec(`commit`)
	require.Equal(t, []string{"a", "b", "c", "d"}, pgtest.Column[string](base, `select channel_id from autopost.channels where auth_held order by 1`),
		"the second commit found what the first had to leave")
}
