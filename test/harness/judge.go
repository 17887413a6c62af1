package harness

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
)

// Text identifies a text in one chat of a platform.
type Text struct {
	Platform, Chat, Text string
}

// Sends returns the requests that asked a platform to post, in the order of their arrival and
// whatever their result. A copy that only reads a message (forwardMessage) does not count.
func (h *Harness) Sends(filters ...sim.Filter) []sim.Entry {
	return slices.DeleteFunc(h.World.Log.Entries(filters...), func(e sim.Entry) bool { return e.Items == 0 || e.Method == "forwardMessage" })
}

// Accepted returns the sends that the platform carried out, even if the answer was lost.
func (h *Harness) Accepted(filters ...sim.Filter) []sim.Entry {
	return slices.DeleteFunc(h.Sends(filters...), func(e sim.Entry) bool { return len(e.MessageIDs) == 0 })
}

// Copies counts the copies of each text that the platforms hold.
func (h *Harness) Copies() map[Text]int {
	copies := map[Text]int{}
	for _, e := range h.Accepted() {
		copies[Text{e.Platform, e.Chat, e.Text}]++
	}
	return copies
}

// RecordChangeSlots keeps the slot of each post change, which the database clears after the call.
// WithinRate needs them. Call it before the first change.
func (h *Harness) RecordChangeSlots() {
	h.t.Helper()
	h.Exec(`create table public.change_slots (workspace_id text, channel_id text, send_at timestamptz)`)
	h.Share("public.change_slots")
	h.Exec(`create function public.record_change_slot() returns trigger language plpgsql security definer as $$
		begin insert into public.change_slots values (new.workspace_id, new.channel_id, new.send_at); return null; end $$`)
	h.Exec(`create trigger record_change_slot after update on autopost.post_acts for each row
		when (new.status = 'sending' and new.started_at is distinct from old.started_at and new.send_at is not null) execute function public.record_change_slot()`)
}

// Slots returns the recorded slots of the chats of entries, in order: the start records of
// deliveries and the slots that RecordChangeSlots kept.
func (h *Harness) Slots(entries []sim.Entry) []time.Time {
	h.t.Helper()
	chats := []string{}
	for _, e := range entries {
		chats = append(chats, e.Platform+"/"+e.Chat)
	}
	slots := pgtest.Column[time.Time](h.DB, `
		select (e.meta ->> 'send_at')::timestamptz
		from autopost.events e
		join autopost.channels c on c.workspace_id = e.workspace_id and c.channel_id = e.channel_id
		where e.action = 'send_attempt' and e.meta ->> 'send_at' is not null and c.platform || '/' || c.target_id = any ($1)`, chats)
	if pgtest.Value[bool](h.DB, `select to_regclass('public.change_slots') is not null`) {
		slots = append(slots, pgtest.Column[time.Time](h.DB, `
			select s.send_at from public.change_slots s join autopost.channels c using (workspace_id, channel_id)
			where c.platform || '/' || c.target_id = any ($1)`, chats)...)
	}
	slices.SortFunc(slots, time.Time.Compare)
	return slots
}

// ChannelSlots returns the slots of the start records of a channel, in order. It serves channels
// that share a chat.
func (h *Harness) ChannelSlots(channel string) []time.Time {
	h.t.Helper()
	return pgtest.Column[time.Time](h.DB, `
		select (e.meta ->> 'send_at')::timestamptz from autopost.events e
		where e.channel_id = $1 and e.action = 'send_attempt' and e.meta ->> 'send_at' is not null order by 1`, channel)
}

// clockPrecision is the largest error between the clock of the database and that of the simulators.
const clockPrecision = 10 * time.Millisecond

// WithinRate fails the test unless the program kept rate, in calls per second, for the chats of
// entries. It does not depend on the speed of the machine: the recorded slots must be 1/rate
// apart, and the n-th request must not arrive before the n-th slot.
func (h *Harness) WithinRate(what string, entries []sim.Entry, rate float64) {
	h.t.Helper()
	h.SlotsWithinRate(what, h.Slots(entries), rate)
	h.AfterSlots(what, entries, h.Slots(entries))
}

// SlotsWithinRate fails the test unless the slots i < j, in order, are (j-i)/rate apart.
func (h *Harness) SlotsWithinRate(what string, slots []time.Time, rate float64) {
	h.t.Helper()
	least := time.Duration(float64(time.Second)/rate) - time.Microsecond
	for i := 1; i < len(slots); i++ {
		if apart := slots[i].Sub(slots[i-1]); apart < least {
			require.FailNow(h.t, "too fast: "+what, "slots %d and %d are %s apart; at %g per second they must be %s apart", i-1, i, apart, rate, least)
		}
	}
}

// AfterSlots fails the test if the n-th request arrived before the n-th slot or has no slot.
func (h *Harness) AfterSlots(what string, entries []sim.Entry, slots []time.Time) {
	h.t.Helper()
	entries = slices.SortedFunc(slices.Values(entries), func(a, b sim.Entry) int { return a.Start.Compare(b.Start) })
	require.GreaterOrEqual(h.t, len(slots), len(entries), "too fast: %s: more requests than recorded slots", what)
	for i, e := range entries {
		if early := slots[i].Sub(e.Start); early > clockPrecision {
			require.FailNow(h.t, "too fast: "+what, "request %d arrived %s before its slot\nrequests: %v\nslots: %v", i, early, clockTimes(entries), slots)
		}
	}
}

// clockTimes returns when the entries arrived.
func clockTimes(entries []sim.Entry) []time.Time {
	times := make([]time.Time, 0, len(entries))
	for _, e := range entries {
		times = append(times, e.Start.UTC().Round(0))
	}
	return times
}

// ClockWasAhead says by how much a test put the clock of the database forward for a while. Judge
// puts the times of that while back.
func (h *Harness) ClockWasAhead(by time.Duration) { h.clockAhead = by }

// trueTime returns a time of the database by the clock of the simulators.
func (h *Harness) trueTime(at time.Time) time.Time {
	if h.clockAhead > 0 && time.Until(at) > h.clockAhead/2 {
		return at.Add(-h.clockAhead)
	}
	return at
}

// delivery is a row with the data to find its copies at the platform.
type delivery struct {
	text    Text
	id      string
	status  string
	policy  string
	message string // the platform's id
	// series is true if the delivery also sends media without a text. A chat has at most one such delivery.
	series  bool
	unknown []time.Time
}

func (h *Harness) deliveries(workspace string) []delivery {
	h.t.Helper()
	rows := pgtest.Column[map[string]any](h.DB, `
		select jsonb_build_object('id', d.delivery_id, 'status', d.status, 'policy', c.on_unknown, 'message', coalesce(d.provider_message_id, ''),
			'platform', c.platform, 'chat', c.target_id, 'text', d.rendered_text,
			'series', coalesce(jsonb_array_length(d.render_meta -> 'steps') > 1, false),
			'unknown', (select coalesce(jsonb_agg(extract(epoch from e.ts)), '[]') from autopost.events e
				where e.workspace_id = d.workspace_id and e.delivery_id = d.delivery_id and e.action = 'unknown_outcome'))
		from autopost.deliveries d
		join autopost.channels c on c.workspace_id = d.workspace_id and c.channel_id = d.channel_id
		where d.workspace_id = $1`, workspace)
	list := make([]delivery, 0, len(rows))
	for _, row := range rows {
		d := delivery{
			id: row["id"].(string), status: row["status"].(string), policy: row["policy"].(string), message: row["message"].(string), series: row["series"].(bool),
			text: Text{row["platform"].(string), row["chat"].(string), row["text"].(string)},
		}
		for _, at := range row["unknown"].([]any) {
			d.unknown = append(d.unknown, h.trueTime(time.UnixMicro(int64(at.(float64)*1e6))))
		}
		slices.SortFunc(d.unknown, time.Time.Compare)
		list = append(list, d)
	}
	return list
}

// Totals counts the deliveries that Judge has compared, and the copies beyond the first.
type Totals struct {
	Deliveries, Sent, Held, Failed, Extra int
}

// Judge compares every delivery of a workspace with the log of the simulators. Each text must be
// unique in its channel. Judge fails the test in these cases:
//   - a delivery is sent, but the platform has no message with its id;
//   - there are more copies than the policy permits: 2 for reconcile, 1 for hold;
//   - a further copy began before an unknown outcome of the delivery was recorded;
//   - the platform has a text without a delivery;
//   - a delivery is not final.
func (h *Harness) Judge(workspace string) Totals {
	h.t.Helper()
	accepted := map[Text][]sim.Entry{}
	for _, e := range h.Accepted() {
		text := Text{e.Platform, e.Chat, e.Text}
		accepted[text] = append(accepted[text], e)
	}
	var totals Totals
	for _, d := range h.deliveries(workspace) {
		totals.Deliveries++
		copies := h.judgeCopies(d, accepted, d.text, &totals)
		if d.series {
			copies = append(copies, h.judgeCopies(d, accepted, Text{d.text.Platform, d.text.Chat, ""}, &totals)...)
		}
		h.judgeStatus(d, copies, &totals)
	}
	for text, copies := range accepted {
		h.t.Errorf("%+v: %d copies without a delivery", text, len(copies))
	}
	return totals
}

// judgeCopies removes the copies of one text of a delivery from accepted, checks and counts them.
func (h *Harness) judgeCopies(d delivery, accepted map[Text][]sim.Entry, text Text, totals *Totals) []sim.Entry {
	copies := accepted[text]
	delete(accepted, text)
	totals.Extra += max(0, len(copies)-1)
	most := 2
	if d.policy == "hold" {
		most = 1
	}
	if len(copies) > most {
		h.t.Errorf("delivery %s: %d copies under %s", d.id, len(copies), d.policy)
	}
	for n := 1; n < len(copies); n++ {
		if len(d.unknown) < n || !d.unknown[n-1].Before(copies[n].Start) {
			h.t.Errorf("delivery %s: copy %d began at %s; unknown outcomes were recorded at %v", d.id, n+1, copies[n].Start, d.unknown)
		}
	}
	return copies
}

// judgeStatus checks and counts the status of a delivery.
func (h *Harness) judgeStatus(d delivery, copies []sim.Entry, totals *Totals) {
	switch d.status {
	case "sent":
		totals.Sent++
		if !slices.ContainsFunc(copies, func(e sim.Entry) bool {
			return e.MessageIDs[len(e.MessageIDs)-1] == d.message || e.MessageIDs[0] == d.message
		}) {
			h.t.Errorf("delivery %s is sent as %q, but the platform has %s", d.id, d.message, ids(copies))
		}
	case "failed_permanent":
		totals.Failed++
		if len(d.unknown) < 2 {
			h.t.Errorf("delivery %s failed with fewer than two unknown outcomes: %v", d.id, d.unknown)
		}
	case "retry":
		totals.Held++
		if d.policy != "hold" {
			h.t.Errorf("delivery %s waits under %s", d.id, d.policy)
		}
	default:
		h.t.Errorf("delivery %s is not final: %s", d.id, d.status)
	}
}

func ids(entries []sim.Entry) string {
	all := make([][]string, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.MessageIDs)
	}
	return fmt.Sprint(all)
}
