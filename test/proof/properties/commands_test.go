package properties

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func parse(t *rapid.T, v any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, v.(string))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return at
}

// enqueue posts something that may have been posted before.
func (s *shop) enqueue(t *rapid.T) {
	content := rapid.IntRange(0, 5).Draw(t, "content")
	raw := payload(content)
	raw["tags"] = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2).Draw(t, "tags")
	wait := s.now
	if rapid.IntRange(0, 3).Draw(t, "scheduled") == 0 {
		wait = s.now.Add(time.Duration(rapid.IntRange(-3600, 36*3600).Draw(t, "in")) * time.Second)
		raw["scheduled_for"] = wait.Format(time.RFC3339Nano)
	}
	s.post(t, content, raw, wait)
}

// post enqueues a payload that is due at wait, and knows what each channel will do with it.
func (s *shop) post(t *rapid.T, content int, raw map[string]any, wait time.Time) {
	t.Helper()
	want := map[string]string{}
	for _, c := range s.channels {
		if s.rows(t, `select c.enabled from autopost.channels c where c.workspace_id = $1 and c.channel_id = $2`, s.workspace, c.id)[0][0] == true {
			want[c.id] = s.verdict(c, content)
		}
	}
	answer := s.answer(t, `select autopost.enqueue_messages_and_deliveries($1, 'in', 'api', $2::jsonb)`, s.workspace, raw)
	got := map[string]string{}
	for _, d := range answer["deliveries"].([]any) {
		made := d.(map[string]any)
		id, status := made["channel_id"].(string), made["status"].(string)
		got[id] = status
		if status == "queued" {
			delivery := uuid.MustParse(made["delivery_id"].(string))
			s.rowsByID[delivery] = &row{channel: id, status: status, content: content, wait: wait}
			s.order = append(s.order, delivery)
		}
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Fatalf("content %d at %v: want %v, got %v (%v)", content, s.now, want, got, answer)
	}
}

// again posts what was sent, at the very edge of its dedup window.
func (s *shop) again(t *rapid.T) {
	var had []func() (*channel, int)
	for _, c := range s.channels {
		for content := range 6 {
			if sent, ever := c.sent[content]; ever && sent.Add(c.ttl).After(s.now.Add(time.Hour)) {
				had = append(had, func() (*channel, int) { return c, content })
			}
		}
	}
	if len(had) == 0 {
		s.enqueue(t)
		return
	}
	c, content := had[rapid.IntRange(0, len(had)-1).Draw(t, "which")]()
	off := rapid.SampledFrom([]time.Duration{-time.Microsecond, 0, time.Microsecond, -30 * time.Minute, 30 * time.Minute}).Draw(t, "off the edge by")
	edge := c.sent[content].Add(c.ttl + off)
	s.tick(t, edge.Sub(s.now))
	s.post(t, content, payload(content), s.now)
}

// evening claims half a minute before a channel closes, and lets the minute pass.
func (s *shop) evening(t *rapid.T) {
	c := s.any(t)
	if len(c.spans) == 0 || c.spans[0][1] == "24:00" {
		s.pass(t)
		return
	}
	local := s.now.In(berlin)
	ends, err := time.ParseInLocation("2006-01-02 15:04", local.Format("2006-01-02 ")+c.spans[0][1], berlin)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if ends = ends.Add(-30 * time.Second); !ends.After(s.now) {
		ends = ends.AddDate(0, 0, 1)
	}
	s.tick(t, ends.Sub(s.now))
	s.claim(t)
	s.tick(t, time.Duration(rapid.IntRange(28, 60).Draw(t, "seconds"))*time.Second)
}

// verdict of a channel: what lives or was sent inside the window is suppressed.
func (s *shop) verdict(c *channel, content int) string {
	for _, r := range s.rowsByID {
		if r.channel == c.id && r.content == content && !r.final() {
			return "deduped"
		}
	}
	if sent, ever := c.sent[content]; ever && sent.After(s.now.Add(-c.ttl)) {
		return "deduped"
	}
	return "queued"
}

func (s *shop) claim(t *rapid.T) {
	limit := rapid.IntRange(1, 6).Draw(t, "limit")
	const columns = `select c.delivery_id, c.channel_id, c.attempt, c.claim_token, c.call_begun_at is not null, c.send_at from `
	statement := columns + `autopost.claim_deliveries($1, 'run', $2) c`
	if rapid.Bool().Draw(t, "start at once") {
		statement = columns + `autopost.claim_and_start($1, 'run', $2, '[]', (select array_agg(distinct c.auth_ref) from autopost.channels c)) c`
	}
	rows := s.rows(t, statement, s.workspace, limit)
	if len(rows) > limit {
		t.Fatalf("%d rows for a limit of %d", len(rows), limit)
	}
	flying, slots := map[string]int{}, map[*call]time.Time{}
	var claimed []*call // with a started call
	for _, r := range s.rowsByID {
		if r.status == "sending" {
			flying[r.channel]++
		}
	}
	for _, got := range rows {
		id, c, token := uuid.UUID(got[0].([16]byte)), s.channelOf(got[1].(string)), got[3].(string)
		r := s.rowsByID[id]
		switch flying[c.id]++; {
		case s.tokens[token]:
			t.Fatalf("a token was issued again")
		case int(got[2].(int32)) != r.attempt+1:
			t.Fatalf("attempt %d after %d", got[2], r.attempt)
		case flying[c.id] > c.maxParallel:
			t.Fatalf("%s has %d in flight, %d are allowed", c.id, flying[c.id], c.maxParallel)
		case s.now.Before(r.wait):
			t.Fatalf("claimed at %v, before %v", s.now, r.wait)
		}
		s.tokens[token] = true
		k := &call{id: id, token: token, channel: c}
		begun := got[4].(bool)
		if begun || rapid.IntRange(0, 9).Draw(t, "answer lost") > 0 {
			s.calls = append(s.calls, k)
		}
		if begun {
			claimed = append(claimed, k)
			if got[5] != nil {
				slots[k] = got[5].(time.Time)
			}
		}
	}
	if len(claimed) > 0 {
		s.look(t)
	}
	for _, k := range claimed {
		s.began(t, k, slots[k])
	}
}

// cost is the number of slots of the next step.
func (r *row) cost() int {
	if r.steps > 1 && r.acked > 0 {
		return images
	}
	return 1
}

// began judges a call that has just started with this slot; zero if nothing limits it.
func (s *shop) began(t *rapid.T, k *call, slot time.Time) {
	t.Helper()
	r, at := s.rowsByID[k.id], s.now
	if slot.After(at) {
		at = slot
	}
	s.mayBegin(t, r, k.channel, at)
	if !slot.IsZero() {
		s.takes(t, k.channel, slot, r.cost())
	}
	k.started = true
}

// held draws one of the claims that workers hold; where nobody holds any, somebody claims.
func (s *shop) held(t *rapid.T) *call {
	if len(s.calls) == 0 {
		s.claim(t)
		return nil
	}
	return s.calls[rapid.IntRange(0, len(s.calls)-1).Draw(t, "call")]
}

func (s *shop) drop(k *call) {
	s.calls = slices.DeleteFunc(s.calls, func(o *call) bool { return o == k })
}

// work is what a worker does to which nothing happens, until the retries have come round.
func (s *shop) work(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "as it is") > 0 {
		s.lift(t)
	}
	for range rapid.IntRange(1, 4).Draw(t, "rounds") {
		s.claim(t)
		s.look(t)
		for _, k := range slices.Clone(s.calls) {
			s.begin(t, k)
			s.look(t)
		}
		for _, k := range slices.Clone(s.calls) {
			s.settle(t, k)
			s.look(t)
		}
		s.tick(t, time.Minute)
	}
}

func (s *shop) start(t *rapid.T) {
	if k := s.held(t); k != nil {
		s.begin(t, k)
	}
}

func (s *shop) begin(t *rapid.T, k *call) {
	t.Helper()
	r := s.rowsByID[k.id]
	answer := s.answer(t, `select autopost.start_call($1, $2, $3)`, s.workspace, k.id, k.token)
	holds := r.status == "sending" && r.token == k.token && r.leased
	if answer["applied"] != true {
		if !holds != (answer["reason"] == "stale") {
			t.Fatalf("start: %v, and the claim holds: %v", answer, holds)
		}
		s.drop(k)
		return
	}
	if !holds {
		t.Fatalf("start: %v, and the claim is over: %+v", answer, r)
	}
	if answer["repeated"] == true {
		return
	}
	var slot time.Time
	if answer["send_at"] != nil {
		slot = parse(t, answer["send_at"])
	}
	s.began(t, k, slot)
}

var outcomes = map[string]string{
	"accepted":  `{"ok": true, "provider_message_id": "77"}`,
	"swallowed": `{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}}`,
	"vanished":  `{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}}`,
	"refused":   `{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "connect", "known": true}}`,
	"limited":   `{"ok": false, "error": {"category": "TRANSIENT", "scope": "channel", "code": "429", "known": true, "retry_after_ms": 7000}}`,
	"flooded":   `{"ok": false, "error": {"category": "TRANSIENT", "scope": "platform", "code": "429", "known": true, "retry_after_ms": 7000}}`,
	"forbidden": `{"ok": false, "error": {"category": "PERMANENT", "scope": "channel", "code": "forbidden", "known": true}}`,
	"invalid":   `{"ok": false, "error": {"category": "PERMANENT", "scope": "delivery", "code": "bad_request", "known": true}}`,
	"revoked":   `{"ok": false, "error": {"category": "PERMANENT", "scope": "platform", "code": "unauthorized", "known": true}}`,
}

// moods of a platform: what most of its calls come to, if anything.
var moods = []string{"", "accepted", "swallowed", "vanished", "refused", "limited", "flooded", "forbidden", "invalid", "revoked"}

// stepped is the outcome of a call in steps: it lists the steps before the last one.
const stepped = `{"ok": true, "provider_message_id": "77", "raw": {"steps": {"text": ["5"]}}}`

// call lets the platform decide: only a call that began, inside its lease, reaches it.
func (s *shop) call(t *rapid.T, k *call) {
	if k.outcome != "" {
		return
	}
	r := s.rowsByID[k.id]
	k.outcome = "refused"
	if k.started && r.status == "sending" && r.token == k.token && r.leased {
		k.outcome = s.mood
		if k.outcome == "" || rapid.Bool().Draw(t, "out of mood") {
			k.outcome = rapid.SampledFrom(moods[1:]).Draw(t, "outcome")
		}
	}
	if k.outcome == "accepted" || k.outcome == "swallowed" {
		if r.copies++; r.copies > k.channel.bound(r) {
			t.Fatalf("%d copies under %s: %+v", r.copies, k.channel.policy, r)
		}
		if r.copies > 1+r.unknown {
			t.Fatalf("a copy that follows no unknown outcome: %+v", r)
		}
	}
}

func (s *shop) commit(t *rapid.T) {
	if k := s.held(t); k != nil {
		s.settle(t, k)
	}
}

func (s *shop) settle(t *rapid.T, k *call) {
	t.Helper()
	s.call(t, k)
	r := s.rowsByID[k.id]
	holds := r.status == "sending" && r.token == k.token
	outcome := outcomes[k.outcome]
	if k.outcome == "accepted" && r.steps > 1 {
		outcome = stepped
	}
	answer := s.answer(t, `select autopost.commit_outcome($1, $2, $3, $4::jsonb)`, s.workspace, k.id, k.token, outcome)
	switch {
	case holds != (answer["applied"] == true && answer["repeated"] != true):
		t.Fatalf("commit: %v, and the claim holds: %v", answer, holds)
	case holds && answer["status"] == "sent":
		k.channel.sent[r.content] = s.now
	case holds && answer["status"] == "retry":
		s.delayed(t, k, r, answer["next_retry_at"])
	}
	if rapid.IntRange(0, 3).Draw(t, "answer lost") > 0 {
		s.drop(k)
	}
}

// delayed holds the time of the next attempt to the policy: twenty percent about two
// seconds, doubled with each attempt up to ten minutes; never less than the platform asked for.
func (s *shop) delayed(t *rapid.T, k *call, r *row, next any) {
	t.Helper()
	if unknown := k.outcome == "swallowed" || k.outcome == "vanished"; unknown && k.channel.policy == "hold" {
		if next != "infinity" {
			t.Fatalf("held until %v", next)
		}
		return
	}
	delay := parse(t, next).Sub(s.now)
	least, most := 0.8*float64(min(600, 2<<(r.attempt-1))), 1.2*float64(min(600, 2<<(r.attempt-1)))
	if k.outcome == "limited" || k.outcome == "flooded" {
		least, most = 7, 7*1.2
	}
	if delay.Seconds() < least-1e-5 || delay.Seconds() > most+1e-5 {
		t.Fatalf("%s in attempt %d: the next is %v away, not %v to %v seconds", k.outcome, r.attempt, delay, least, most)
	}
	r.wait = parse(t, next)
}

// progress acknowledges the first step of a call that has two.
func (s *shop) progress(t *rapid.T) {
	k := s.held(t)
	if k == nil {
		return
	}
	r := s.rowsByID[k.id]
	if !k.started || r.steps < 2 || r.acked > 0 {
		return
	}
	holds := r.status == "sending" && r.token == k.token
	answer := s.answer(t, `select autopost.record_series_progress($1, $2, $3, '{"step": "text", "ids": ["5"]}')`, s.workspace, k.id, k.token)
	if holds != (answer["applied"] == true) {
		t.Fatalf("progress: %v, and the claim holds: %v", answer, holds)
	}
	if answer["send_at"] != nil {
		s.takes(t, k.channel, parse(t, answer["send_at"]), images)
	}
}

func (s *shop) extend(t *rapid.T) {
	k := s.held(t)
	if k == nil {
		return
	}
	r := s.rowsByID[k.id]
	answer := s.answer(t, `select autopost.extend_lease($1, $2, $3, $4)`, s.workspace, k.id, k.token, rapid.IntRange(1, 3600).Draw(t, "seconds"))
	if holds := r.status == "sending" && r.token == k.token; holds != (answer["applied"] == true) {
		t.Fatalf("extend: %v, and the claim holds: %v", answer, holds)
	}
}

func (s *shop) release(t *rapid.T) {
	k := s.held(t)
	if k == nil {
		return
	}
	r := s.rowsByID[k.id]
	holds := r.status == "sending" && r.token == k.token && !k.started
	answer := s.answer(t, `select autopost.release_claims($1, array[$2])`, s.workspace, k.token)
	if (answer["released"] == 1.0) != holds {
		t.Fatalf("release: %v, and the claim could be released: %v", answer, holds)
	}
	s.drop(k)
}

// crash forgets a claim, perhaps after the platform took it.
func (s *shop) crash(t *rapid.T) {
	k := s.held(t)
	if k == nil {
		return
	}
	if k.started && rapid.Bool().Draw(t, "after the call") {
		s.call(t, k)
	}
	s.drop(k)
}

func (s *shop) recover(t *rapid.T) {
	s.rows(t, `select autopost.recover_sending_leases($1)`, s.workspace)
}

func (s *shop) pass(t *rapid.T) {
	unit := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "unit")
	s.tick(t, time.Duration(rapid.IntRange(1, 60).Draw(t, "n"))*unit/2)
}
