package db_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/posttest"
)

// A claim takes the oldest of the due deliveries, retries too. Its cost does not depend on the retries that wait, on later schedules or on the
// other due retries, whatever the statistics were when the connection planned for it.
func TestClaimPassesWhatMayNotGoYet(t *testing.T) {
	t.Parallel()
	const backlog = `insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, not_before, scheduled_for, next_retry_at)
		select 'w', autopost.uuid_v7_of(now(), 'k' || n), m.message_id, 'a', 1, 'k' || n, %s, %s, %s
		from generate_series(1, 10000) n, (select message_id from autopost.messages limit 1) m`
	waits := map[string]string{
		"retries that wait": fmt.Sprintf(backlog, "'retry', now() - interval '10 days'", "null", "now() + n * interval '1 minute'"),
		"schedules":         fmt.Sprintf(backlog, "'queued', now() - interval '10 days'", "now() + n * interval '1 minute'", "null"),
		"due retries":       fmt.Sprintf(backlog, "'retry', now() - interval '1 day'", "null", "now() - n * interval '1 second'"),
	}
	for _, statistics := range []string{"no statistics", "stale statistics", "true statistics"} {
		for kind, insert := range waits {
			t.Run(kind+", "+statistics, func(t *testing.T) {
				t.Parallel()
				base := world(t, "a")
				posttest.Post(base, "w", "one")
				daemon, source := base.Session("daemon", "engine"), base.Session("source", "")
				source.Exec(`set session_replication_role = replica`)
				source.Exec(`delete from autopost.deliveries`)
				due := 0
				claim := func(statuses ...string) float64 {
					due++
					source.Exec(`update autopost.channel_gates set ready_at = now() - interval '1 second', inflight = 0`)
					source.Exec(fmt.Sprintf(`insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, not_before, next_retry_at)
						select 'w', gen_random_uuid(), m.message_id, 'a', 1, s || %d, s, now() - case s when 'retry' then interval '3 days' else '2 days' end, now() - interval '1 second'
						from (select message_id from autopost.messages limit 1) m, unnest($1::text[]) s`, due), statuses)
					cost := pages(daemon, `select autopost.claim_deliveries('w', 'daemon', 1)`)
					require.Equal(t, [][]any{{fmt.Sprint(statuses[0], due)}}, source.Exec(`select content_hash from autopost.deliveries where status = 'sending'`), "the oldest")
					source.Exec(`delete from autopost.deliveries where content_hash ~ '^(queued|retry)'`)
					return cost
				}
				if statistics == "stale statistics" {
					base.Exec(`analyze`)
				}
				claim("retry", "queued") // plans, and fills the caches of the session
				few := claim("retry", "queued")
				source.Exec(insert)
				source.Exec(`select pg_stat_force_next_flush()`)
				source.Exec(`select`)
				base.Session("monitor", "engine").Exec(`select autopost.refresh_statistics()`)
				if statistics == "true statistics" {
					base.Exec(`analyze`)
				}
				claim("retry", "queued") // new plans
				require.Less(t, claim("queued"), 2*few+50)
				require.Less(t, claim("retry", "queued"), 2*few+150, "a due retry is found among those that wait in the index alone")
			})
		}
	}
}
