package demo

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
	// demoSlotEpsilon is the tolerance for rounding: slots have exactly the distance of the rate.
	demoSlotEpsilon = time.Millisecond
	// demoArrivalEpsilon is the largest time that a call may arrive before its slot, because
	// the clocks of daemon and database differ.
	demoArrivalEpsilon = 5 * time.Millisecond
)

// loadResult is the result of the load.
type loadResult struct {
	began    time.Time
	channels []pg.ChannelRow
	// expected is the number of pairs of post and channel that the filters accept.
	expected int
	totals   totals
}

// judgeLoad compares the rows with the log of the simulators.
func (d *demo) judgeLoad(ctx context.Context, l loadResult) (string, error) {
	drained := time.Since(l.began)
	rows, err := d.deliveriesOf(ctx, l.totals.messages)
	if err != nil {
		return "", err
	}
	byStatus := map[string]int{}
	for _, row := range rows {
		byStatus[row.Status]++
	}
	t := l.totals
	d.report.line("   conservation: %d routed = %d enqueued + %d deduped + %d invalid + %d skipped; rows: %d sent, %d waiting in paused channels, %d rejected before sending",
		l.expected, t.enqueued, t.deduped, t.invalid, t.skipped, byStatus["sent"], byStatus["queued"], byStatus["failed_permanent"])
	if l.expected != t.enqueued+t.deduped+t.invalid+t.skipped || len(rows) != t.enqueued+t.invalid || byStatus["failed_permanent"] != t.invalid ||
		byStatus["sent"]+byStatus["queued"] != t.enqueued {
		return "", fmt.Errorf("conservation does not hold: %d routed, %d rows, by status %v, by events %+v", l.expected, len(rows), byStatus, t)
	}
	arrivals, err := d.judgeArrivals(rows, l)
	if err != nil {
		return "", err
	}
	headroom, err := d.judgeRates(ctx, l, arrivals.sends)
	if err != nil {
		return "", err
	}
	d.report.line("   rates: %d channel and group limits were kept: slots have the distance of the rate, and no call arrived before its slot (tolerance: %s and %s)",
		headroom.limits, demoSlotEpsilon, demoArrivalEpsilon)
	broken, checked, err := d.broken(ctx)
	if err != nil {
		return "", err
	}
	if len(broken) > 0 {
		return "", fmt.Errorf("verify: %v", broken)
	}
	d.report.line("   verify: %d invariants hold", checked)
	d.report.figure("deliveries", "%d of %d pairs (%d filtered out)", l.expected, (pushed+fed)*len(l.channels), (pushed+fed)*len(l.channels)-l.expected)
	d.report.figure("accepted by the simulators", "%d messages in %.1f s", arrivals.accepted, drained.Seconds())
	d.report.figure("duplicates", "%d", arrivals.duplicates)
	d.report.figure("rejected by the limits of the platforms", "%d", arrivals.refused)
	d.report.figure("rate headroom", "arrivals 0 to %d ms after their slots; the smallest distance was %d ms below the rate",
		headroom.late.Milliseconds(), headroom.sooner.Milliseconds())
	return fmt.Sprintf("%d deliveries, each accepted exactly once; %d wait in a paused channel; no limit was exceeded; verify found no violation",
		byStatus["sent"], byStatus["queued"]), nil
}

// arrivals are the calls of the load that the platforms received.
type arrivals struct {
	accepted, duplicates, refused int
	// sends are the accepted calls of sent deliveries.
	sends []send
}

// send is one accepted call.
type send struct {
	deliveryID, channelID string
	arrived               time.Time
	// cost is the number of slots: an album costs one per item.
	cost float64
	// slot is the earliest time of the call.
	slot time.Time
}

// judgeArrivals checks that the log of the simulators contains each sent delivery exactly
// once, found by its text, and nothing else.
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
		a.sends = append(a.sends, send{
			deliveryID: row.DeliveryID, channelID: row.ChannelID, arrived: got[0].Start, cost: float64(max(got[0].Items, len(got[0].Media))),
		})
	}
	if a.accepted != calls {
		wrong = append(wrong, fmt.Errorf("%d messages were accepted, %d were expected", a.accepted, calls))
	}
	d.report.line("   simulators: %d messages accepted, %d duplicates, %d rejected", a.accepted, a.duplicates, a.refused)
	return a, errors.Join(wrong[:min(len(wrong), 5)]...)
}

// headroom is the distance of the arrivals from their limits.
type headroom struct {
	limits int
	// late is the largest time between a slot and its call.
	late time.Duration
	// sooner is the largest time that a call arrived before the time of the rate, counted
	// from the earlier arrivals. Some of those were late.
	sooner time.Duration
}

// judgeRates checks the slots and arrivals of every limited channel and group.
func (d *demo) judgeRates(ctx context.Context, l loadResult, sends []send) (headroom, error) {
	var h headroom
	if err := d.findSlots(ctx, l, sends); err != nil {
		return h, err
	}
	type limit struct{ kind, name string }
	rates := map[limit]float64{}
	under := map[limit][]send{}
	channels := map[string]pg.ChannelRow{}
	for _, c := range l.channels {
		channels[c.ChannelID] = c
		rates[limit{"channel", c.ChannelID}] = c.RateRPS
		rates[limit{c.Platform + " group", c.RateGroup}] = c.GroupRateRPS
	}
	for _, s := range sends {
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
		if early := earliness(list, rates[key], func(s send) time.Time { return s.slot }); early > demoSlotEpsilon {
			wrong = append(wrong, fmt.Errorf("%s %s exceeded %g per second: a slot is %s too early", key.kind, key.name, rates[key], early))
		}
		h.sooner = max(h.sooner, earliness(list, rates[key], func(s send) time.Time { return s.arrived }))
	}
	return h, errors.Join(wrong[:min(len(wrong), 5)]...)
}

// findSlots sets the slots from the send_attempt events.
func (d *demo) findSlots(ctx context.Context, l loadResult, sends []send) error {
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
			return fmt.Errorf("a send_attempt event lacks slot or delivery: %s", e.Meta)
		}
		slots[*e.DeliveryID] = meta.SendAt
	}
	for i := range sends {
		sends[i].slot = slots[sends[i].deliveryID]
	}
	return nil
}

// earliness returns the largest time that a send came too early. Between two sends i < j
// there must be the cost of i up to j-1 at the rate.
func earliness(list []send, rate float64, at func(send) time.Time) time.Duration {
	slices.SortFunc(list, func(a, b send) int { return at(a).Compare(at(b)) })
	var worst, due time.Duration // due is the time of the next send, counted from the first
	for i, s := range list {
		came := at(s).Sub(at(list[0]))
		if i > 0 {
			worst = max(worst, due-came)
		}
		due = max(due, came) + time.Duration(s.cost/rate*float64(time.Second))
	}
	return worst
}

// verify checks the invariants at the end of the demo.
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

// broken returns the invariants that do not hold, with sample rows, and the number of checked
// invariants.
func (d *demo) broken(ctx context.Context) (broken []string, checked int, err error) {
	// Without new statistics the planner assumes empty tables; autovacuum needs a minute.
	if err := d.rows(ctx, `analyze autopost.channels, autopost.messages, autopost.deliveries, autopost.events`); err != nil {
		return nil, 0, err
	}
	findings, err := d.store.Verify(ctx, workspaceID)
	for _, f := range findings {
		if f.Violations > 0 {
			broken = append(broken, fmt.Sprintf("%s %s: %d rows, for example %s", f.Invariant, f.Title, f.Violations, f.Sample))
		}
	}
	return broken, len(findings), err
}
