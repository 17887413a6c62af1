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

// reached counts what the walks came by: kinds of steps, and what was answered.
type reached struct {
	sync.Mutex
	walks, steps int
	what         map[string]int
}

func TestFunctionsWalkLikeTheModel(t *testing.T) {
	walks, seed := 24, uint64(1)
	if os.Getenv("AUTOPOST_LONG") != "" {
		walks, seed = 2000, rand.Uint64()
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
	for _, must := range everything {
		require.Positive(t, all.what[must], "no walk came by: %s", must)
	}
}

// everything that the walks must have come by, so that they prove it.
var everything = []string{
	"begin: stale", "begin: paused", "begin: disabled", "begin: rate", "begin: repeated", "begin",
	"commit: sent", "commit: retry", "commit: failed_permanent", "commit: dead", "commit: sent, repeated", "commit: retry, repeated", "commit: sending, stale",
	"commit: retry, stale", "recover", "recover early", "release", "pause", "resume", "skip", "skip: not_waiting", "requeue", "requeue: not_failed",
	"requeue: channel_not_resumed", "resolve absent", "resolve absent: not_unknown", "resolve found", "claim", "claim, answer lost", "crash", "lease over",
}

// stroll is one walk, of a model of its own.
func (h *house) stroll(all *reached, policy model.Policy, luck *rand.Rand) {
	h.t.Helper()
	c := model.Config{
		Deliveries: 1 + luck.IntN(2), Workers: 3, MaxAttempts: uint8(2 + luck.IntN(4)), MaxParallel: 1 + luck.IntN(2), Policy: policy,
		Pauses: 3, Releases: 3, Requeues: 3, Absents: 3, Skips: true, Late: true, OneClock: true,
	}
	w := h.begin(c)
	for range stepsOfWalk {
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
	h.session.Exec(`select autopost.recover_sending_leases($1)`, w.workspace)
	for _, row := range h.session.Exec(`select v.invariant, v.title, v.sample from autopost.verify($1) v where v.violations > 0`, w.workspace) {
		h.t.Fatalf("verify: %v\nafter %v", row, w.steps)
	}
	all.Lock()
	defer all.Unlock()
	all.walks++
	all.steps += stepsOfWalk
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

// weight makes walks that come far: what goes well is likelier than what does not, and
// nobody waits for nothing.
func (w *walk) weight(a model.Action) int {
	waiting, flying := w.state.Channel.Cooling, false
	for _, d := range w.state.Deliveries {
		waiting = waiting || d.Status == model.Retry && d.Due == model.Later
		flying = flying || d.Status == model.Sending
	}
	switch a.Kind {
	case model.Claim, model.Begin:
		return 40
	case model.Commit, model.Recover:
		return 24
	case model.Send:
		return 6
	case model.Resume:
		return 8
	case model.Requeue:
		return 6
	case model.Wait:
		return map[bool]int{true: 12, false: 1}[waiting]
	case model.Expire:
		return map[bool]int{true: 4, false: 1}[flying]
	}
	return 2
}

// choose takes one of the steps that may come next; now and then one of a person that
// should be refused. None where a claim should find nothing.
func (w *walk) choose(luck *rand.Rand) (model.Action, bool) {
	switch luck.IntN(12) {
	case 0:
		kind := []model.Kind{model.Skip, model.Requeue, model.Absent, model.Requeue}[luck.IntN(4)]
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
