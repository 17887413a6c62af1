package properties

import (
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// look compares the rows with what they were, after every command.
func (s *shop) look(t *rapid.T) {
	t.Helper()
	live, sending := map[string]uuid.UUID{}, map[string]int{}
	for _, r := range s.rows(t, `
		select d.delivery_id, d.channel_id, d.status, d.attempt, d.granted_attempts, d.unknown_outcomes, coalesce(d.next_retry_at = 'infinity', false),
			coalesce(d.sending_lease_until > autopost.now_ts(), false), jsonb_array_length(coalesce(d.render_meta -> 'steps', '[]')),
			(select count(*) from jsonb_object_keys(coalesce(d.render_meta -> 'series_progress' -> 'steps', '{}')))::int, coalesce(d.claim_token, '')
		from autopost.deliveries d where d.workspace_id = $1 order by d.delivery_id`, s.workspace) {
		id := uuid.UUID(r[0].([16]byte))
		now := row{channel: r[1].(string), status: r[2].(string), attempt: int(r[3].(int32)), granted: int(r[4].(int32)), unknown: int(r[5].(int32)),
			held: r[6].(bool), leased: r[7].(bool), steps: int(r[8].(int32)), acked: int(r[9].(int32)), token: r[10].(string)}
		was, known := s.rowsByID[id]
		if !known {
			t.Fatalf("a delivery that nobody enqueued: %v", now)
		}
		s.follows(t, id, *was, now)
		was.status, was.attempt, was.granted, was.unknown = now.status, now.attempt, now.granted, now.unknown
		was.held, was.leased, was.steps, was.acked, was.token = now.held, now.leased, now.steps, now.acked, now.token
		if !now.final() {
			key := was.channel + text(was.content)
			if other, twice := live[key]; twice {
				t.Fatalf("one content lives twice in %s: %s and %s", was.channel, other, id)
			}
			live[key] = id
		}
		if now.status == "sending" {
			sending[now.channel]++
		}
	}
	for _, r := range s.rows(t, `select g.channel_id, g.inflight from autopost.channel_gates g where g.workspace_id = $1`, s.workspace) {
		if n := sending[r[0].(string)]; n != int(r[1].(int32)) {
			t.Fatalf("%s: %d are sending, the gate counts %d", r[0], n, r[1])
		}
	}
	clear(s.freed)
}

// follows holds one command's change of a row to what may change.
func (s *shop) follows(t *rapid.T, id uuid.UUID, was, now row) {
	t.Helper()
	switch {
	case now.attempt < was.attempt || now.attempt > was.attempt+1:
		t.Fatalf("%s: attempt went from %d to %d", id, was.attempt, now.attempt)
	case now.unknown < was.unknown || now.granted < was.granted || now.acked < was.acked:
		t.Fatalf("%s: a counter fell: %+v to %+v", id, was, now)
	case was.final() && now.status != was.status && !s.freed[id]:
		t.Fatalf("%s: left its end by nobody's hand: %s to %s", id, was.status, now.status)
	case now.attempt > s.mostAttempts()+now.granted:
		t.Fatalf("%s: attempt %d with %d granted", id, now.attempt, now.granted)
	case now.attempt > was.attempt && was.final() && !s.freed[id]:
		t.Fatalf("%s: claimed after its end", id)
	}
}

func (s *shop) mostAttempts() int { return 5 }

// spaced holds a slot to its distance from the others of its gate.
func spaced(t *rapid.T, gate string, rate float64, slots []slot, now slot) {
	t.Helper()
	if rate == 0 {
		return
	}
	for _, other := range slots {
		first, second := other, now
		if now.at.Before(other.at) {
			first, second = now, other
		}
		need := time.Duration(float64(first.cost)/rate*1e9) - 5*time.Microsecond
		if second.at.Sub(first.at) < need {
			t.Fatalf("%s: slots %v and %v are closer than %v at a rate of %v", gate, first, second, need, rate)
		}
	}
}

// takes notes a slot that was handed out for a call of this cost.
func (s *shop) takes(t *rapid.T, c *channel, at time.Time, cost int) {
	t.Helper()
	given := slot{at, cost}
	spaced(t, c.id, c.rate, c.slots, given)
	spaced(t, "the group", s.groupRate, s.group, given)
	if c.rate > 0 {
		c.slots = append(c.slots, given)
	}
	if s.groupRate > 0 {
		s.group = append(s.group, given)
	}
}

var berlin = func() *time.Location {
	at, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return at
}()

// inside says whether a channel is open by the clock of its zone.
func (c *channel) inside(at time.Time) bool {
	clock := at.In(berlin).Format("15:04:05.999999")
	for _, span := range c.spans {
		if clock >= span[0] && clock < span[1] {
			return true
		}
	}
	return len(c.spans) == 0
}

// mayBegin holds the beginning of a call to the rows of its channel and workspace,
// and to what was answered before.
func (s *shop) mayBegin(t *rapid.T, r *row, c *channel, at time.Time) {
	t.Helper()
	shut := s.rows(t, `select w.status, c.enabled, coalesce(c.paused_until > n.at, false), coalesce(greatest(c.cooldown_until, l.cooldown_until) > n.at, false)
		from autopost.workspaces w
		join autopost.channels c on c.workspace_id = w.workspace_id and c.channel_id = $2
		left join autopost.platform_limits l on l.workspace_id = w.workspace_id and l.platform = c.platform and l.rate_group = c.rate_group
		cross join lateral (select autopost.now_ts() as at) n
		where w.workspace_id = $1`, s.workspace, c.id)[0]
	if shut[0] != "active" || shut[1] != true || shut[2] != false || shut[3] != false {
		t.Fatalf("a call begins on %s, which is shut: %v", c.id, shut)
	}
	if at.Before(r.wait) {
		t.Fatalf("a call begins at %v, before %v", at, r.wait)
	}
	if !c.inside(at) {
		t.Fatalf("a call begins on %s at %v, outside of %v", c.id, at.In(berlin), c.spans)
	}
}

// bound of copies, by the policy of the channel and what people did.
func (c *channel) bound(r *row) int {
	switch c.policy {
	case "reconcile":
		return 2 + 2*r.requeues
	case "hold":
		return 1 + r.requeues + r.absents
	}
	return 5 + r.requeues
}
