package conformance

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"autopost/test/proof/model"
)

// outcomes of calls, as adapters report them.
var outcomes = map[model.Phase]string{
	model.Success:   `{"ok": true, "provider_message_id": "77"}`,
	model.Uncertain: `{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}}`,
	model.Transient: `{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "connect", "known": true}}`,
	model.Limited:   `{"ok": false, "error": {"category": "TRANSIENT", "scope": "channel", "code": "429", "known": true, "retry_after_ms": 3000}}`,
	model.Forbidden: `{"ok": false, "error": {"category": "PERMANENT", "scope": "channel", "code": "forbidden", "known": true}}`,
	model.Invalid:   `{"ok": false, "error": {"category": "PERMANENT", "scope": "delivery", "code": "bad_request", "known": true}}`,
}

// answer is the answer of both sides to a step.
type answer struct {
	Applied, Repeated bool
	Reason, Status    string
	Count             int
}

// take makes a step on both sides and compares them.
func (w *walk) take(a model.Action) {
	w.t.Helper()
	got := w.perform(&a)
	w.steps = append(w.steps, a.String())
	if a.Kind == model.RecoverEarly { // the silence takes time
		w.state, _ = w.config.Step(w.state, model.Action{Kind: model.Wait})
	}
	before := w.state.Workers[a.Worker].Phase
	state, said := w.config.Step(w.state, a)
	if a.Kind == model.Recover || a.Kind == model.RecoverEarly {
		// The sweep takes whatever is over.
		for i := range w.config.Deliveries {
			if d := state.Deliveries[i]; d.Status == model.Sending && !d.Leased && i != int(a.Delivery) {
				var more model.Answer
				state, more = w.config.Step(state, model.Action{Kind: model.Recover, Delivery: uint8(i)})
				said.Count += more.Count
				said.Events = append(said.Events, more.Events...)
			}
		}
	}
	w.state = state
	for _, event := range said.Events {
		w.events[event]++
	}
	want := answer{Applied: said.Applied, Repeated: said.Repeated, Reason: said.Reason, Status: said.Status, Count: said.Count}
	w.compare(fmt.Sprintf("the answer (worker %d was in phase %d)", a.Worker, before), comparable(a.Kind, want), got)
	if a.Kind != model.Send && a.Kind != model.Crash {
		w.compare("the state", w.expected(), w.found())
	}
}

// comparable drops the fields that the function does not return.
func comparable(k model.Kind, said answer) answer {
	switch k {
	case model.Commit, model.CommitLost, model.EndLost:
	case model.Recover, model.RecoverEarly, model.Release:
		said = answer{Applied: true, Count: said.Count}
	case model.Absent, model.Found:
		if !said.Applied {
			said.Status = ""
		}
	case model.Begin, model.BeginLost, model.Requeue, model.Skip, model.Move, model.PauseByHand, model.Resume:
		said.Status, said.Count = "", 0
	default:
		return answer{}
	}
	return said
}

func (w *walk) compare(what string, want, got any) {
	w.t.Helper()
	if difference := cmp.Diff(want, got); difference != "" {
		w.t.Fatalf("%s differs (- model, + functions):\n%s\n%+v\nafter %v", what, difference, w.config, w.steps)
	}
}

// perform makes a step with the functions. A claim sets the delivery of a.
func (w *walk) perform(a *model.Action) answer {
	w.t.Helper()
	id := w.ids[a.Delivery]
	switch a.Kind {
	case model.Claim, model.ClaimLost, model.ClaimStart, model.ClaimStartLost:
		w.claim(a)
	case model.EndLost:
		return w.asked(a, `select autopost.commit_outcome($1, $2, $3, $4::jsonb)`, w.workspace, id, w.lost[a.Delivery], outcomes[model.Transient])
	case model.Begin, model.BeginLost:
		return w.asked(a, `select autopost.start_call($1, $2, $3)`, w.workspace, id, w.tokens[a.Worker])
	case model.Commit, model.CommitLost:
		return w.asked(a, `select autopost.commit_outcome($1, $2, $3, $4::jsonb)`, w.workspace, id, w.tokens[a.Worker], outcomes[w.state.Workers[a.Worker].Phase])
	case model.Release:
		return w.asked(a, `select autopost.release_claims($1, array[$2])`, w.workspace, w.tokens[a.Worker])
	case model.Recover:
		return w.asked(a, `select autopost.recover_sending_leases($1)`, w.workspace)
	case model.RecoverEarly:
		w.session.Exec(`select autopost.touch_run(d.claimed_by) from autopost.deliveries d where d.workspace_id = $1 and d.delivery_id = $2`, w.workspace, id)
		w.session.Exec(tick, silence)
		return w.asked(a, `select autopost.recover_sending_leases($1)`, w.workspace)
	case model.Wait:
		w.session.Exec(tick, short)
	case model.Expire:
		w.session.Exec(tick, long)
	default:
		return w.byHand(a, id)
	}
	return answer{}
}

func (w *walk) byHand(a *model.Action, id uuid.UUID) answer {
	w.t.Helper()
	switch a.Kind {
	case model.PauseByHand:
		return w.asked(a, `select autopost.pause_channel($1, 'c', 31536000, `+operator+`, false)`, w.workspace)
	case model.Resume:
		return w.asked(a, `select autopost.resume_channel($1, 'c', `+operator+`, false)`, w.workspace)
	case model.Skip:
		return w.asked(a, `select autopost.skip_deliveries($1, array[$2::uuid], `+operator+`, false) -> 'results' -> 0`, w.workspace, id)
	case model.Move:
		return w.asked(a, `select r || jsonb_build_object('applied', r -> 'status' = '"moved"')
			from (select autopost.reschedule($1, array[$2::uuid], autopost.now_ts() + interval '10 seconds', `+operator+`, false) #> '{results,0}' as r) m`, w.workspace, id)
	case model.Requeue:
		return w.asked(a, `select autopost.manual_requeue($1, array[$2::uuid], `+operator+`) -> 'results' -> 0`, w.workspace, id)
	case model.Absent:
		return w.asked(a, `select autopost.resolve_unknown($1, $2, 'absent', null, `+operator+`)`, w.workspace, id)
	case model.Found:
		return w.asked(a, `select autopost.resolve_unknown($1, $2, 'found', '78', `+operator+`)`, w.workspace, id)
	}
	return answer{}
}

// asked reads an answer.
func (w *walk) asked(a *model.Action, sql string, args ...any) answer {
	w.t.Helper()
	object, ok := w.value(sql, args...).(map[string]any)
	require.True(w.t, ok, sql)
	got := answer{}
	got.Applied, _ = object["applied"].(bool)
	got.Repeated, _ = object["repeated"].(bool)
	got.Reason, _ = object["reason"].(string)
	got.Status, _ = object["status"].(string)
	for _, key := range []string{"released", "recovered"} {
		if n, any := object[key]; any {
			got.Applied, got.Count = true, number(n)
		}
	}
	return comparable(a.Kind, got)
}

// claim claims one delivery. The functions choose among those that the model allows.
func (w *walk) claim(a *model.Action) {
	w.t.Helper()
	w.runs++
	claim := `autopost.claim_deliveries($1, $2, 1)`
	if a.Kind == model.ClaimStart || a.Kind == model.ClaimStartLost {
		claim = `autopost.claim_and_start($1, $2, 1, '[]', '{bot}')`
	}
	rows := w.session.Exec(`select c.delivery_id, c.claim_token, c.attempt from `+claim+` c`, w.workspace, fmt.Sprint(w.workspace, "-", w.runs))
	if len(rows) == 0 {
		w.t.Fatalf("the model allows a claim, the functions do not: %+v\n%v\nafter %v", w.config, w.state, w.steps)
	}
	for i, id := range w.ids {
		if id == uuid.UUID(rows[0][0].([16]byte)) {
			a.Delivery = uint8(i)
		}
	}
	token, ok := rows[0][1].(string)
	require.True(w.t, ok)
	switch a.Kind {
	case model.Claim, model.ClaimStart:
		w.tokens[a.Worker] = token
	case model.ClaimStartLost:
		w.lost[a.Delivery] = token
	}
}

// nothing makes a claim that the model does not allow.
func (w *walk) nothing() {
	w.t.Helper()
	w.steps = append(w.steps, "claim in vain")
	if rows := w.session.Exec(`select c.delivery_id from autopost.claim_deliveries($1, 'nobody', 10) c`, w.workspace); len(rows) > 0 {
		w.t.Fatalf("the functions allow a claim, the model does not: %+v\n%v\nafter %v", w.config, w.state, w.steps)
	}
}
