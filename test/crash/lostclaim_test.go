package crash

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
	"autopost/test/netfault"
)

// The line to the database is cut after a claim and before its answer. The leases last five minutes,
// but the daemon releases the claims that it does not know. Each post is sent once.
func TestAnswerOfAClaimIsLost(t *testing.T) {
	t.Parallel()
	const channels = 6
	h := harness.New(t)
	station(h, channels, harness.Channel{})
	database, address := h.DatabaseProxy()
	d := h.Serve(address)
	h.Exec(`create table public.gone ()`)
	h.Exec(`create function public.linger() returns trigger language plpgsql security definer as $$
		begin while not exists (select 1 from public.gone) loop perform pg_sleep(0.02); end loop; return new; end $$`)
	h.Exec(`create trigger linger before update on autopost.deliveries for each row
		when (new.status = 'sending' and old.status <> 'sending') execute function public.linger()`)
	h.Push(d, "secret-cms", harness.Post("text", "Claimed, answer lost"))
	lingers := `select coalesce(array_agg(pid), '{}') from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`
	h.Until("a claim runs", func() bool { return len(pgtest.Value[[]int32](h.DB, lingers)) > 0 })
	claims := pgtest.Value[[]int32](h.DB, lingers)
	database.Make(netfault.Fault{Kind: netfault.Deaf})
	h.Exec(`insert into public.gone default values`)
	h.UntilTrue(`select not exists (select 1 from pg_stat_activity where pid = any ($1))`, claims)
	require.Positive(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'sending'`), "the claim is committed")
	database.Mend()
	h.Drained("news")
	require.Equal(t, harness.Totals{Deliveries: channels, Sent: channels}, h.Judge("news"))
	require.Equal(t, []string{"answer_lost"}, pgtest.Column[string](h.DB, `select distinct meta ->> 'reason' from autopost.events where action = 'released'`))
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action in ('sending_lease_expired', 'unknown_outcome', 'stale_commit')`))
	require.Contains(t, d.Log(), "dispatch.lost_claims_released")
	require.Zero(t, d.Stop())
	h.Verified()
}
