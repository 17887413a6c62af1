package properties

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

const by = `'ann', 'looked at it'`

func (s *shop) any(t *rapid.T) *channel { return rapid.SampledFrom(s.channels).Draw(t, "channel") }

// some draws a delivery. Without any, it enqueues a post and returns a nil row.
func (s *shop) some(t *rapid.T) (uuid.UUID, *row) {
	if len(s.order) == 0 {
		s.enqueue(t)
		return uuid.Nil, nil
	}
	id := s.order[rapid.IntRange(0, len(s.order)-1).Draw(t, "delivery")]
	return id, s.rowsByID[id]
}

func (s *shop) operate(t *rapid.T) {
	c := s.any(t)
	switch rapid.SampledFrom([]string{"pause", "resume", "resume", "disable", "workspace"}).Draw(t, "act") {
	case "pause":
		s.rows(t, `select autopost.pause_channel($1, $2, $3, `+by+`, false)`, s.workspace, c.id, rapid.IntRange(1, 7200).Draw(t, "seconds"))
	case "resume":
		s.rows(t, `select autopost.resume_channel($1, $2, `+by+`, false)`, s.workspace, c.id)
	case "disable":
		s.rows(t, `update autopost.channels set enabled = false where workspace_id = $1 and channel_id = $2`, s.workspace, c.id)
	case "workspace":
		s.rows(t, `update autopost.workspaces set status = case status when 'active' then 'paused' else 'active' end where workspace_id = $1`, s.workspace)
	}
}

// edit changes a channel's row directly.
func (s *shop) edit(t *rapid.T) {
	c := s.any(t)
	switch rapid.SampledFrom([]string{"rate", "max_parallel", "ttl", "window"}).Draw(t, "column") {
	case "rate":
		c.rate, c.slots = rapid.SampledFrom([]float64{0, 0.1, 1, 7}).Draw(t, "rate"), nil
		s.rows(t, `update autopost.channels set rate_rps = $3 where workspace_id = $1 and channel_id = $2`, s.workspace, c.id, c.rate)
	case "max_parallel":
		c.maxParallel = rapid.IntRange(1, 4).Draw(t, "max_parallel")
		s.rows(t, `update autopost.channels set max_parallel = $3 where workspace_id = $1 and channel_id = $2`, s.workspace, c.id, c.maxParallel)
	case "ttl":
		hours := rapid.IntRange(0, 240).Draw(t, "hours")
		c.ttl = time.Duration(hours) * time.Hour
		s.rows(t, `update autopost.channels set dedup_ttl_hours = $3 where workspace_id = $1 and channel_id = $2`, s.workspace, c.id, hours)
	case "window":
		c.spans = rapid.SampledFrom([][][2]string{nil, {{"09:00", "18:00"}}, {{"08:00", "08:30"}, {"20:15", "24:00"}}, {{"00:00", "24:00"}}}).Draw(t, "spans")
		s.window(t, c)
	}
}

func (s *shop) window(t *rapid.T, c *channel) {
	mode, week := "immediate", map[string][][2]string{}
	if len(c.spans) > 0 {
		mode = "windowed"
	}
	for _, day := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
		week[day] = c.spans
		if c.spans == nil {
			week[day] = [][2]string{}
		}
	}
	spans, err := json.Marshal(week)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.rows(t, `update autopost.channels set window_mode = $3, posting_window = $4::jsonb where workspace_id = $1 and channel_id = $2`, s.workspace, c.id, mode, string(spans))
}

func (s *shop) requeue(t *rapid.T) {
	id, r := s.some(t)
	if r == nil {
		return
	}
	answer := s.answer(t, `select autopost.manual_requeue($1, array[$2::uuid], `+by+`) -> 'results' -> 0`, s.workspace, id)
	failed := r.status == "dead" || r.status == "failed_permanent"
	if answer["applied"] != true {
		if failed == (answer["reason"] == "not_failed") {
			t.Fatalf("requeue of %s: %v", r.status, answer)
		}
		return
	}
	if !failed || s.verdict(s.channelOf(r.channel), r.content) != "queued" {
		t.Fatalf("requeued: %+v", r)
	}
	s.freed[id], r.wait = true, s.now
	r.requeues++
}

func (s *shop) skip(t *rapid.T) {
	id, r := s.some(t)
	if r == nil {
		return
	}
	answer := s.answer(t, `select autopost.skip_deliveries($1, array[$2::uuid], `+by+`, false) -> 'results' -> 0`, s.workspace, id)
	if waits := r.status == "queued" || r.status == "retry"; waits != (answer["applied"] == true) {
		t.Fatalf("skip of %s: %v", r.status, answer)
	}
}

func (s *shop) resolve(t *rapid.T) {
	id, r := s.some(t)
	if r == nil {
		return
	}
	verdict := "absent"
	if r.copies > 0 && rapid.Bool().Draw(t, "found") {
		verdict = "found"
	}
	answer := s.answer(t, `select autopost.resolve_unknown($1, $2, $3, '78', `+by+`)`, s.workspace, id, verdict)
	switch waits := r.status == "retry" && r.unknown > 0; {
	case waits != (answer["applied"] == true):
		t.Fatalf("resolve of %+v: %v", r, answer)
	case waits && verdict == "found":
		s.channelOf(r.channel).sent[r.content] = s.now
	case waits:
		r.wait = s.now
		r.absents++
	}
}

// lift ends all pauses of operators and failures.
func (s *shop) lift(t *rapid.T) {
	s.rows(t, `update autopost.workspaces set status = 'active' where workspace_id = $1`, s.workspace)
	for _, c := range s.channels {
		s.rows(t, `select autopost.resume_channel($1, $2, `+by+`, false)`, s.workspace, c.id)
	}
}

// drain lifts every obstacle and lets the platform take everything: whatever lives must
// come to its end.
func (s *shop) drain(t *rapid.T) {
	s.lift(t)
	for _, c := range s.channels {
		c.spans = nil
		s.window(t, c)
	}
	for range 80 {
		s.tick(t, time.Hour)
		s.rows(t, `select autopost.recover_sending_leases($1)`, s.workspace)
		s.look(t)
		live := 0
		for _, id := range s.order {
			if r := s.rowsByID[id]; r.held {
				s.rows(t, `select autopost.resolve_unknown($1, $2, 'absent', null, `+by+`)`, s.workspace, id)
				r.wait = s.now
			} else if !r.final() {
				live++
			}
		}
		s.rows(t, `select autopost.commit_outcome(c.workspace_id, c.delivery_id, c.claim_token,
				case when jsonb_array_length(c.render_meta -> 'steps') > 1 then $2 else $3 end::jsonb)
			from (select c.*, autopost.start_call(c.workspace_id, c.delivery_id, c.claim_token) as started from autopost.claim_deliveries($1, 'drain', 100) c) c
			where c.started -> 'applied' = 'true'`, s.workspace, stepped, outcomes["accepted"])
		if live == 0 {
			break
		}
	}
	s.look(t)
	for id, r := range s.rowsByID {
		if !r.final() {
			t.Fatalf("%s never comes to its end: %+v", id, r)
		}
	}
}
