package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// Edits and deletions share a rate with new posts while both processors are busy. None ends later than five seconds
// after its slot, and the rate is kept. In full: 1,000 changes.
func TestChangesKeepTheirSlotsOnABusyMachine(t *testing.T) {
	messages, rate := 2, 20.0
	if pgtest.Long() {
		messages, rate = 50, 25
	}
	const outlets = 20
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	for n := range outlets {
		h.Channel("news", harness.Channel{ID: fmt.Sprintf("channel-%02d", n), Platform: harness.Telegram, Parallel: 4})
	}
	h.Exec(`create table public.slots (act_id uuid, send_at timestamptz, started_at timestamptz)`)
	h.Share("public.slots")
	h.Exec(`create function public.keep_slot() returns trigger language plpgsql security definer as $$
		begin insert into public.slots values (new.act_id, new.send_at, new.started_at); return null; end $$`)
	h.Exec(`create trigger keep_slot after update on autopost.post_acts for each row
		when (new.status = 'sending' and new.send_at is not null) execute function public.keep_slot()`)
	h.RecordChangeSlots()
	d := h.Serve()
	for n := range messages {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Post ", n)))
	}
	h.Drained("news")
	before := len(h.World.Log.Entries(sim.Filter{Platform: harness.Telegram}))
	h.GroupRate("news", harness.Telegram, harness.Telegram, rate)
	idle := make(chan struct{})
	defer close(idle)
	if pgtest.Long() {
		for range 2 {
			go burn(idle)
		}
	}
	began := time.Now()
	for n, message := range pgtest.Column[string](h.DB, `select message_id::text from autopost.messages order by message_id`) {
		kind, changes := "delete", any(nil)
		if n%2 == 0 {
			kind, changes = "edit", `{"text": "Corrected `+fmt.Sprint(n)+`"}`
		}
		h.Exec(`select autopost.request_acts('news', $1, $2::uuid, null, $3::jsonb, null, 'olga', 'drill', false)`, kind, message, changes)
		if n%5 == 0 {
			h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("New ", n)))
		}
	}
	for more := true; more; more = pgtest.Value[bool](h.DB, `select exists (select 1 from autopost.post_acts where status in ('queued', 'sending', 'retry'))`) {
		<-time.After(time.Second)
		require.Less(t, time.Since(began), time.Hour, "%s", h.Metrics(d.URL))
	}
	took := time.Since(began)
	h.Drained("news")
	require.Equal(t, map[string]int{"edit done": outlets * messages / 2, "delete done": outlets * messages / 2}, actsOf(t, h))
	after := func(slot string) []float64 {
		return pgtest.Column[float64](h.DB, `select extract(epoch from a.finished_at - `+slot+`(s.send_at))::float8
			from autopost.post_acts a join public.slots s using (act_id) group by a.act_id, a.finished_at order by 1`)
	}
	late, since := after("max"), after("min")
	calls := len(h.World.Log.Entries(sim.Filter{Platform: harness.Telegram})) - before
	t.Logf("%d changes and %d posts in %s; the rate allows it in %.0f s; a change ends after its slot: half within %.2f s, all within %.2f s; %d missed a slot, and all end within %.2f s of their first one",
		len(late), calls-len(late), took.Round(time.Second), float64(calls)/rate, late[len(late)/2], late[len(late)-1],
		pgtest.Value[int](h.DB, `select count(*)::int from (select act_id from public.slots group by act_id having count(distinct send_at) > 1) x`), since[len(since)-1])
	require.Len(t, late, outlets*messages)
	if pgtest.Long() {
		require.LessOrEqual(t, late[len(late)-1], 5.0, "seconds after the slot")
		require.LessOrEqual(t, since[len(since)-1], 30.0, "seconds after the first slot: far below the lease")
	}
	changes := append(h.World.Log.Entries(sim.Filter{Platform: harness.Telegram, Method: "editMessageText"}), h.World.Log.Entries(sim.Filter{Platform: harness.Telegram, Method: "deleteMessage"})...)
	h.SlotsWithinRate("changes", pgtest.Column[time.Time](h.DB, `select send_at from public.change_slots order by 1`), rate)
	require.Len(t, changes, outlets*messages, "each once")
	h.Verified()
}

// burn keeps a processor busy.
func burn(until <-chan struct{}) {
	for n := 0; ; n++ {
		if n%1_000_000 == 0 {
			select {
			case <-until:
				return
			default:
			}
		}
	}
}
