package crash

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
	"autopost/test/house"
	"autopost/test/wire"
)

// The line to the database is cut after a claim was made and before its answer came. The
// daemon lives, and its leases are of five minutes: it hands back what it does not know of,
// and all is sent as if nothing had been, once.
func TestAnswerOfAClaimIsLost(t *testing.T) {
	t.Parallel()
	const channels = 6
	h := house.New(t)
	station(h, channels, house.Channel{})
	database, address := h.Wired()
	d := h.Serve(address)
	h.Exec(`create table public.gone ()`)
	h.Exec(`create function public.linger() returns trigger language plpgsql security definer as $$
		begin while not exists (select 1 from public.gone) loop perform pg_sleep(0.02); end loop; return new; end $$`)
	h.Exec(`create trigger linger before update on autopost.deliveries for each row
		when (new.status = 'sending' and old.status <> 'sending') execute function public.linger()`)
	h.Push(d, "secret-cms", house.Post("text", "Taken and not told"))
	lingers := `select coalesce(array_agg(pid), '{}') from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`
	h.Until("a claim is under way", 30*time.Second, func() bool { return len(pgtest.Value[[]int32](h.DB, lingers)) > 0 })
	claims := pgtest.Value[[]int32](h.DB, lingers)
	database.Make(wire.Trouble{Kind: wire.Deaf})
	h.Exec(`insert into public.gone default values`)
	h.UntilTrue(30*time.Second, `select not exists (select 1 from pg_stat_activity where pid = any ($1))`, claims)
	require.Positive(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'sending'`), "the claim stands")
	database.Mend()
	h.Drained("news")
	require.Equal(t, house.Toll{Deliveries: channels, Sent: channels}, h.Judge("news"))
	require.Equal(t, []string{"answer_lost"}, pgtest.Column[string](h.DB, `select distinct meta ->> 'reason' from autopost.events where action = 'released'`))
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action in ('sending_lease_expired', 'unknown_outcome', 'stale_commit')`))
	require.Contains(t, d.Log(), "dispatch.lost_claims_released")
	require.Zero(t, d.Stop())
	h.Verified()
}
