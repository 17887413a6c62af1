package conformance

import (
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/test/proof/model"
)

// stepsOfWalk bounds a walk: as many silences as steps must fit into a lease.
const stepsOfWalk = 60

// reached counts the steps of the walks by kind and answer.
type reached struct {
	sync.Mutex
	walks, steps int
	what         map[string]int
}

func TestFunctionsWalkLikeTheModel(t *testing.T) {
	walks, seed, must := 60, uint64(1), common
	if os.Getenv("AUTOPOST_LONG") != "" {
		walks, seed, must = 3000, rand.Uint64(), append(slices.Clone(common), rare...)
	}
	all := &reached{what: map[string]int{}}
	t.Run("walks", func(t *testing.T) {
		for _, policy := range []model.Policy{model.Reconcile, model.Hold, model.Resend} {
			t.Run(policy.String(), func(t *testing.T) {
				t.Parallel()
				h := open(t)
				for n := range walks / 3 {
					h.stroll(all, policy, rand.New(rand.NewPCG(seed, uint64(n))))
				}
			})
		}
	})
	t.Logf("seed %d: %d walks, %d steps, 0 differences", seed, all.walks, all.steps)
	for _, what := range sorted(all.what) {
		t.Logf("%6d %s", all.what[what], what)
	}
	for _, what := range must {
		require.Positive(t, all.what[what], "no walk contains: %s", what)
	}
}

// The steps and answers that the walks must contain: common in each sample, rare in the full size.
var (
	common = []string{
		"claim", "claim, answer lost", "claim and start", "claim and start, answer lost", "lost claim ended", "commit given up", "begin", "begin: repeated", "begin: stale", "commit: sent", "commit: retry", "commit: failed_permanent",
		"commit: dead", "commit: retry, repeated", "commit: retry, stale", "crash", "recover", "recover early", "release", "pause", "resume",
		"skip", "skip: not_waiting", "move", "move: begun", "requeue", "requeue: not_failed", "requeue: channel_not_resumed",
		"resolve absent", "resolve absent: not_unknown", "resolve found", "lease over",
	}
	rare = []string{
		"begin: paused", "begin: disabled", "begin: rate", "begin, answer lost: paused", "begin, answer lost: stale", "begin, answer lost: repeated",
		"commit: sent, repeated", "commit: dead, repeated", "commit: failed_permanent, repeated", "commit: sending, stale", "commit: sent, stale",
		"commit: dead, stale", "commit: failed_permanent, stale",
	}
)

// stroll makes one walk with its own model.
func (h *fixture) stroll(all *reached, policy model.Policy, luck *rand.Rand) {
	h.t.Helper()
	c := model.Config{
		Deliveries: 1 + luck.IntN(2), Workers: 3, MaxAttempts: uint8(2 + luck.IntN(4)), MaxParallel: 1 + luck.IntN(2), Policy: policy,
		Pauses: 3, Releases: 3, Requeues: 3, Absents: 3, Limits: 200, Skips: true, Moves: true, Late: true, Fused: true, OneClock: true,
	}
	w := h.begin(c)
	w.temper = model.Outcome(luck.IntN(int(model.Wrong) + 1))
	for range stepsOfWalk {
		if w.over() {
			break
		}
		all.step()
		a, any := w.choose(luck)
		if !any {
			w.nothing()
			continue
		}
		before := w.state
		w.take(a)
		_, said := c.Step(before, a)
		all.count(a, said)
	}
	if h.walks%4 == 0 {
		w.verify()
	}
	all.Lock()
	defer all.Unlock()
	all.walks++
}

func (r *reached) step() {
	r.Lock()
	defer r.Unlock()
	r.steps++
}

// verify calls the function verify, which takes longer than the walk.
func (w *walk) verify() {
	w.t.Helper()
	w.session.Exec(`select autopost.recover_sending_leases($1)`, w.workspace)
	for _, row := range w.session.Exec(`select v.invariant, v.title, v.sample from autopost.verify($1) v where v.violations > 0`, w.workspace) {
		w.t.Fatalf("verify: %v\nafter %v", row, w.steps)
	}
}

// over reports that only time and the channel can still change.
func (w *walk) over() bool {
	return !slices.ContainsFunc(w.config.Enabled(&w.state, nil), func(a model.Action) bool {
		switch a.Kind {
		case model.Wait, model.Expire, model.PauseByHand, model.Resume:
			return false
		}
		return true
	})
}

func (r *reached) count(a model.Action, said model.Answer) {
	r.Lock()
	defer r.Unlock()
	what := a.Kind.String()
	if a.Kind == model.Commit || a.Kind == model.CommitLost {
		what = "commit: " + said.Status
	}
	if said.Repeated {
		what += map[bool]string{true: ": repeated", false: ", repeated"}[a.Kind == model.Begin || a.Kind == model.BeginLost]
	}
	if said.Reason != "" {
		what += map[bool]string{true: ", ", false: ": "}[said.Reason == "stale" && a.Kind != model.Begin && a.Kind != model.BeginLost] + said.Reason
	}
	r.what[what]++
}

// weight is the likelihood of a step. Success is more likely than failure, and a wait is likely only if something waits,
// so walks come far.
func (w *walk) weight(a model.Action) int {
	waiting, flying, claimed := w.state.Channel.Cooling, false, false
	for _, worker := range w.state.Workers {
		claimed = claimed || worker.Phase == model.Claimed
	}
	for _, d := range w.state.Deliveries {
		waiting = waiting || d.Status == model.Retry && d.Due == model.Later
		flying = flying || d.Status == model.Sending
	}
	switch a.Kind {
	case model.Claim, model.Begin:
		return 40
	case model.ClaimStart:
		return 20
	case model.Commit, model.Recover, model.EndLost:
		return 24
	case model.Send:
		return map[bool]int{true: 40, false: 6}[a.Outcome == w.temper]
	case model.Resume:
		return 4
	case model.Requeue:
		return 6
	case model.Wait:
		return map[bool]int{true: 12, false: 1}[waiting]
	case model.Expire:
		return map[bool]int{true: 4, false: 1}[flying]
	case model.PauseByHand:
		return map[bool]int{true: 16, false: 1}[claimed]
	case model.BeginLost:
		return 16
	}
	return 2
}

// choose returns a possible next step, and sometimes an operator action that must be refused. It returns false for a
// claim that must find nothing.
func (w *walk) choose(luck *rand.Rand) (model.Action, bool) {
	switch luck.IntN(12) {
	case 0:
		kind := []model.Kind{model.Skip, model.Requeue, model.Absent, model.Requeue, model.Move}[luck.IntN(5)]
		return model.Action{Kind: kind, Delivery: uint8(luck.IntN(w.config.Deliveries))}, true
	case 1:
		if !slices.ContainsFunc(w.config.Enabled(&w.state, nil), func(a model.Action) bool { return a.Kind == model.Claim }) && w.idle() {
			return model.Action{}, false
		}
	}
	enabled := w.config.Enabled(&w.state, nil)
	total := 0
	for _, a := range enabled {
		total += w.weight(a)
	}
	at := luck.IntN(total)
	for _, a := range enabled {
		if at -= w.weight(a); at < 0 {
			return a, true
		}
	}
	panic("the weights do not add up")
}

func (w *walk) idle() bool {
	return slices.ContainsFunc(w.state.Workers[:], func(w model.Worker) bool { return w.Phase == model.Idle })
}

func sorted(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
