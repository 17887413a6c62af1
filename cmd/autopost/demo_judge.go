package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"autopost"
	"autopost/internal/pg"
	"autopost/internal/sim"
)

const (
	// demoSlotEpsilon is for rounding: slots are spaced by the rate exactly.
	demoSlotEpsilon = time.Millisecond
	// demoArrivalEpsilon is how long before its slot a call may arrive: the daemon waits by a clock that it compares with the database's.
	demoArrivalEpsilon = 5 * time.Millisecond
)

// loadResult is what the load came to, to be judged.
type loadResult struct {
	began    time.Time
	channels []pg.ChannelRow
	// expected is how many pairs of post and channel the filters let through.
	expected int
	taken    taken
}

// judgeLoad compares rows with the receiver's log.
func (d *demo) judgeLoad(ctx context.Context, l loadResult) (string, error) {
	drained := time.Since(l.began)
	rows, err := d.deliveriesOf(ctx, l.taken.messages)
	if err != nil {
		return "", err
	}
	byStatus := map[string]int{}
	for _, row := range rows {
		byStatus[row.Status]++
	}
	t := l.taken
	d.report.line("   conservation: %d routed = %d enqueued + %d deduped + %d invalid + %d skipped; rows: %d sent, %d waiting in paused channels, %d refused before sending",
		l.expected, t.enqueued, t.deduped, t.invalid, t.skipped, byStatus["sent"], byStatus["queued"], byStatus["failed_permanent"])
	if l.expected != t.enqueued+t.deduped+t.invalid+t.skipped || len(rows) != t.enqueued+t.invalid || byStatus["failed_permanent"] != t.invalid ||
		byStatus["sent"]+byStatus["queued"] != t.enqueued {
		return "", fmt.Errorf("conservation is broken: %d routed, %d rows, by status %v, events say %+v", l.expected, len(rows), byStatus, t)
	}
	arrivals, err := d.judgeArrivals(rows, l)
	if err != nil {
		return "", err
	}
	headroom, err := d.judgeRates(ctx, l, arrivals.sendings)
	if err != nil {
		return "", err
	}
	d.report.line("   rates: %d channel and group limits held: slots are spaced by the rate, and nothing arrived before its slot (tolerance: %s and %s)",
		headroom.limits, demoSlotEpsilon, demoArrivalEpsilon)
	broken, checked, err := d.broken(ctx)
	if err != nil {
		return "", err
	}
	if len(broken) > 0 {
		return "", fmt.Errorf("verify: %v", broken)
	}
	d.report.line("   verify: %d invariants hold", checked)
	d.report.figure("deliveries", "%d of %d pairs (%d filtered out)", l.expected, (demoPushed+demoFed)*len(l.channels), (demoPushed+demoFed)*len(l.channels)-l.expected)
	d.report.figure("accepted by the receiver", "%d messages in %.1f s", arrivals.accepted, drained.Seconds())
	d.report.figure("duplicates", "%d", arrivals.duplicates)
	d.report.figure("refused by the platforms' own limits", "%d", arrivals.refused)
	d.report.figure("rate headroom", "arrivals 0 to %d ms after their slots; none came more than %d ms sooner after another than the rate says",
		headroom.late.Milliseconds(), headroom.sooner.Milliseconds())
	return fmt.Sprintf("%d deliveries, each accepted exactly once; %d wait in a paused channel; no limit exceeded; nothing lost, verify clean",
		byStatus["sent"], byStatus["queued"]), nil
}

// arrivals is what the platforms saw of the load.
type arrivals struct {
	accepted, duplicates, refused int
	// sendings are the sent deliveries, each with its arrival.
	sendings []sending
}

// sending is one call that was accepted.
type sending struct {
	deliveryID, channelID string
	arrived               time.Time
	// cost is in rate slots: an album costs its items.
	cost float64
	// slot is when it might begin.
	slot time.Time
}

// judgeArrivals finds each sent delivery exactly once in the receiver's log, by the text it was sent as, and nothing else there.
func (d *demo) judgeArrivals(rows []pg.DeliveryRow, l loadResult) (arrivals, error) {
	var a arrivals
	type copyKey struct{ platform, chat, digest string }
	copies := map[copyKey][]sim.Entry{}
	for _, c := range l.channels {
		for _, e := range d.received(c, l.began) {
			if !e.Accepted {
				a.refused++
				continue
			}
			a.accepted++
			key := copyKey{e.Platform, e.Chat, e.TextDigest}
			copies[key] = append(copies[key], e)
		}
	}
	calls := 0
	var wrong []error
	for _, row := range rows {
		got := copies[copyKey{row.Platform, row.TargetID, sim.Digest([]byte(row.RenderedText))}]
		if row.Status != "sent" {
			if len(got) > 0 {
				wrong = append(wrong, fmt.Errorf("delivery %s to %s is %s and arrived %d times", row.DeliveryID, row.ChannelID, row.Status, len(got)))
			}
			continue
		}
		var meta autopost.RenderMeta
		if err := json.Unmarshal(row.RenderMeta, &meta); err != nil {
			return a, fmt.Errorf("delivery %s: %w", row.DeliveryID, err)
		}
		calls += len(meta.Steps)
		a.duplicates += max(0, len(got)-1)
		if len(got) != 1 || row.ProviderMessageID == nil || !slices.Contains(got[0].MessageIDs, *row.ProviderMessageID) {
			wrong = append(wrong, fmt.Errorf("delivery %s to %s arrived %d times", row.DeliveryID, row.ChannelID, len(got)))
			continue
		}
		a.sendings = append(a.sendings, sending{
			deliveryID: row.DeliveryID, channelID: row.ChannelID, arrived: got[0].Start, cost: float64(max(got[0].Items, len(got[0].Media))),
		})
	}
	if a.accepted != calls {
		wrong = append(wrong, fmt.Errorf("%d messages were accepted, %d were due", a.accepted, calls))
	}
	d.report.line("   receiver's log: %d messages accepted, %d duplicates, %d refused", a.accepted, a.duplicates, a.refused)
	return a, errors.Join(wrong[:min(len(wrong), 5)]...)
}

// headroom is how close to their limits the arrivals came.
type headroom struct {
	limits int
	// late is the most that a call arrived after its slot.
	late time.Duration
	// sooner is the most that a call arrived before what the rate says, counted from
	// the arrivals before it: some of those were late.
	sooner time.Duration
}

// judgeRates checks slots and arrivals of every limited channel and group.
func (d *demo) judgeRates(ctx context.Context, l loadResult, sendings []sending) (headroom, error) {
	var h headroom
	if err := d.findSlots(ctx, l, sendings); err != nil {
		return h, err
	}
	type limit struct{ kind, name string }
	rates := map[limit]float64{}
	under := map[limit][]sending{}
	channels := map[string]pg.ChannelRow{}
	for _, c := range l.channels {
		channels[c.ChannelID] = c
		rates[limit{"channel", c.ChannelID}] = c.RateRPS
		rates[limit{c.Platform + " group", c.RateGroup}] = c.GroupRateRPS
	}
	for _, s := range sendings {
		c := channels[s.channelID]
		for _, key := range []limit{{"channel", c.ChannelID}, {c.Platform + " group", c.RateGroup}} {
			if rates[key] > 0 {
				under[key] = append(under[key], s)
			}
		}
	}
	var wrong []error
	for key, list := range under {
		h.limits++
		for _, s := range list {
			h.late = max(h.late, s.arrived.Sub(s.slot))
			if s.slot.Sub(s.arrived) > demoArrivalEpsilon {
				wrong = append(wrong, fmt.Errorf("delivery %s to %s arrived %s before its slot", s.deliveryID, s.channelID, s.slot.Sub(s.arrived)))
			}
		}
		if early := earliness(list, rates[key], func(s sending) time.Time { return s.slot }); early > demoSlotEpsilon {
			wrong = append(wrong, fmt.Errorf("%s %s exceeded %g a second: a slot is %s too early", key.kind, key.name, rates[key], early))
		}
		h.sooner = max(h.sooner, earliness(list, rates[key], func(s sending) time.Time { return s.arrived }))
	}
	return h, errors.Join(wrong[:min(len(wrong), 5)]...)
}

// findSlots fills in the slots, which the send_attempt events have.
func (d *demo) findSlots(ctx context.Context, l loadResult, sendings []sending) error {
	events, err := d.events(ctx, pg.EventFilter{Action: "send_attempt", Since: l.began.UTC()})
	if err != nil {
		return err
	}
	slots := map[string]time.Time{}
	for _, e := range events {
		var meta struct {
			SendAt time.Time `json:"send_at"`
		}
		if err := json.Unmarshal(e.Meta, &meta); err != nil || e.DeliveryID == nil {
			return fmt.Errorf("a send_attempt event without slot or delivery: %s", e.Meta)
		}
		slots[*e.DeliveryID] = meta.SendAt
	}
	for i := range sendings {
		sendings[i].slot = slots[sendings[i].deliveryID]
	}
	return nil
}

// earliness is how long before its time the earliest one came: between any two
// i < j must lie what i up to j-1 cost at that rate.
func earliness(list []sending, rate float64, at func(sending) time.Time) time.Duration {
	slices.SortFunc(list, func(a, b sending) int { return at(a).Compare(at(b)) })
	var worst, due time.Duration // due is the time of the next one, counted from the first
	for i, s := range list {
		came := at(s).Sub(at(list[0]))
		if i > 0 {
			worst = max(worst, due-came)
		}
		due = max(due, came) + time.Duration(s.cost/rate*float64(time.Second))
	}
	return worst
}

// verify checks the invariants once more, after all that was done to the house.
func (d *demo) verify(ctx context.Context) (string, error) {
	broken, checked, err := d.broken(ctx)
	if err != nil {
		return "", err
	}
	if len(broken) > 0 {
		return "", fmt.Errorf("verify: %v", broken)
	}
	return fmt.Sprintf("%d invariants, 0 violations", checked), nil
}

// broken returns the invariants that do not hold, with a sample of rows, and how many were checked.
func (d *demo) broken(ctx context.Context) (broken []string, checked int, err error) {
	// PostgreSQL does this by itself within a minute; rows this new are planned for as if there were none.
	if err := d.rows(ctx, `analyze autopost.channels, autopost.messages, autopost.deliveries, autopost.events`); err != nil {
		return nil, 0, err
	}
	findings, err := d.store.Verify(ctx, demoWorkspace)
	for _, f := range findings {
		if f.Violations > 0 {
			broken = append(broken, fmt.Sprintf("%s %s: %d, such as %s", f.Invariant, f.Title, f.Violations, f.Sample))
		}
	}
	return broken, len(findings), err
}
