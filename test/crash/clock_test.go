package crash

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// The clock of the database jumps a day forward and a day back while posts are sent. No live call is
// recovered, cooldowns and rates are kept, and no post waits for a day.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	const channels, posts, rate = 8, 60, 4
	h := harness.New(t)
	station(h, channels, harness.Channel{Rate: rate, Parallel: 2})
	h.Exec(`create table public.clock_error (by interval not null)`)
	h.Share("public.clock_error")
	h.Exec(`insert into public.clock_error values ('0'); grant select on public.clock_error to public`)
	h.Exec(`create or replace function autopost.now_ts() returns timestamptz language sql volatile parallel safe
		as 'select clock_timestamp() + (select e.by from public.clock_error e)'`)
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 700})
	asleep := pgtest.Value[string](h.DB, `select target_id from autopost.channels where channel_id = 'channel-07'`)
	d := h.Serve(quick...)
	s := newSource(h, d)
	s.wait(s.pushAll(t.Context(), 0, posts))
	sends := func(n int) {
		h.Until("sends go on", func() bool { return len(h.Sends()) >= n })
	}
	sends(channels * 4)
	// Platforms say "wait": a rule before all others.
	slow := h.World.Faults.List()
	h.World.Faults.Clear()
	// On a busy machine, an answer may come after the deadline of its call: the platform says it until the daemon has read it.
	h.Fault(sim.Fault{Chat: asleep, Effect: sim.EffectStatus, Status: 429, RetryAfter: 10})
	h.Fault(slow[0])
	h.UntilTrue(`select exists (select 1 from autopost.channels where cooldown_until > autopost.now_ts())`)
	h.World.Faults.Clear()
	h.Fault(slow[0])
	limited := func() (at time.Time) {
		for _, e := range h.World.Log.Entries(sim.Filter{Chat: asleep}) {
			if e.Status == 429 {
				at = e.End
			}
		}
		return at
	}

	h.ClockWasAhead(24 * time.Hour)
	h.Exec(`update public.clock_error set by = '1 day'`)
	h.UntilTrue(`select count(*) = 1 from autopost.clock_jumps where jump between '23 hours' and '25 hours'`)
	h.UntilTrue(`select not exists (select 1 from autopost.clock_debts)`)
	followed := time.Now().Add(2 * time.Second) // calls that began before may still arrive
	at := limited()
	sends(len(h.Sends()) + channels*3)
	h.Exec(`update public.clock_error set by = '0'`)
	h.UntilTrue(`select count(*) = 2 from autopost.clock_jumps`)
	// The rate that the limit lowered to a post in ten seconds would drain the channel for minutes.
	h.Exec(`update autopost.channels set limited_rps = null, limited_sends = 0`)
	h.Drained("news")

	for _, e := range h.Sends(sim.Filter{Chat: asleep}) {
		require.False(t, e.Start.After(followed) && e.Start.Before(at.Add(10*time.Second)), "a call %s after the platform asked for 10 s", e.Start.Sub(at))
	}
	for _, chat := range pgtest.Column[string](h.DB, `select target_id from autopost.channels`) {
		sends := h.Sends(sim.Filter{Chat: chat})
		var during, beside []time.Time // slots by the jumped clock, put back, and the others
		for _, slot := range h.Slots(sends) {
			if time.Until(slot) > 12*time.Hour {
				during = append(during, slot.Add(-24*time.Hour))
			} else {
				beside = append(beside, slot)
			}
		}
		h.SlotsWithinRate("chat "+chat+" after the jump", during, rate)
		before := slices.IndexFunc(beside, func(slot time.Time) bool { return len(during) > 0 && slot.After(during[0]) })
		if before < 0 {
			before = len(beside)
		}
		h.SlotsWithinRate("chat "+chat+" before the jump", beside[:before], rate)
		h.SlotsWithinRate("chat "+chat+" after the return", beside[before:], rate)
		all := slices.SortedFunc(slices.Values(slices.Concat(beside, during)), time.Time.Compare)
		h.AfterSlots("chat "+chat, sends, all)
	}
	require.Empty(t, pgtest.Column[string](h.DB, `select e.error::text from autopost.events e where e.action = 'unknown_outcome' and e.error ->> 'code' = 'lease_expired'`),
		"a live call was recovered")
	totals := h.Judge("news")
	require.Equal(t, posts*channels, totals.Sent+totals.Held+totals.Failed, "%+v", totals)
	require.Zero(t, d.Stop())
	h.Verified()
}
