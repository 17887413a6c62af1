package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errGone = errors.New("connection refused")

// call is one call of the dispatcher, with its time.
type call struct {
	what string
	at   time.Duration
}

// fakes is a database, a platform and a credential store in memory. Hooks replace its answers.
type fakes struct {
	dispatch.Store // nil: there are no post changes, so their methods are never called

	t     *testing.T
	began time.Time
	wake  chan struct{}
	logs  *buffer
	// slept is how long the machine was suspended; no clock of package time counts it.
	slept atomic.Int64
	// panics counts the panics that the dispatcher reports.
	panics atomic.Int64

	mu       sync.Mutex
	queue    map[string][]autopost.Delivery
	made     map[string]int
	calls    []call
	outcomes map[string]autopost.Outcome
	hasRaw   map[string]bool // by delivery: its commit offered a raw payload
	raw      *rawFake
	released map[string][]string
	// sending are the unstarted claims by token; found are the tokens of those that were released as lost.
	sending map[string]autopost.Delivery
	found   []string
	limits  []int
	running int
	most    int

	onReady   func() error
	onClaim   func(workspace string) error
	onClaimed func(rows []autopost.Delivery)
	onAnswer  func(rows []autopost.Delivery) error
	onFind    func(known []string) error
	onTouch   func() error
	onStart   func(id string) (dispatch.Start, error)
	// startAtOnce makes claims start calls. lostStarts are started claims whose answer was lost.
	startAtOnce bool
	lostStarts  []dispatch.Claim
	onProgress  func(ack autopost.Acknowledged) (dispatch.Progress, error)
	onExtend    func(seconds int) (bool, error)
	onCommit    func(id string) (dispatch.Commit, error)
	onSend      func(ctx context.Context, c autopost.Call) autopost.Outcome
	onNext      func() time.Duration
	onSecret    func() (autopost.Secret, error)
	onRenew     func(used autopost.Secret) (autopost.Secret, error)

	// adapter replaces the fakes as the platform if it is set.
	adapter autopost.Adapter
	// store replaces the fakes as the database if it is set.
	store dispatch.Store
}

func newFakes(t *testing.T) *fakes {
	return &fakes{
		t: t, began: time.Now(), wake: make(chan struct{}, 1), logs: &buffer{},
		queue: map[string][]autopost.Delivery{}, made: map[string]int{},
		hasRaw: map[string]bool{}, outcomes: map[string]autopost.Outcome{}, released: map[string][]string{}, sending: map[string]autopost.Delivery{},
	}
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (w *fakes) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call{what, time.Since(w.began)})
}

// when returns the times of the calls named what.
func (w *fakes) when(what string) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var at []time.Duration
	for _, c := range w.calls {
		if c.what == what {
			at = append(at, c.at)
		}
	}
	return at
}

// look reads the fakes while the dispatcher runs.
func (w *fakes) look(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *fakes) outcome(id string) (autopost.Outcome, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.outcomes[id]
	return o, ok
}

// put adds n due deliveries to a workspace, named "<workspace>-<n>".
func (w *fakes) put(workspace string, n int, change ...func(*autopost.Delivery)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range n {
		id := fmt.Sprintf("%s-%d", workspace, w.made[workspace])
		w.made[workspace]++
		d := autopost.Delivery{
			WorkspaceID: workspace, DeliveryID: id, ClaimToken: "token-" + id,
			Platform: autopost.Telegram, AuthRef: "bot", RateGroup: "bot", Attempt: 1,
		}
		for _, f := range change {
			f(&d)
		}
		w.queue[workspace] = append(w.queue[workspace], d)
	}
}

func slotIn(wait time.Duration) func(*autopost.Delivery) {
	return func(d *autopost.Delivery) {
		at := time.Now().Add(wait)
		d.SendAt = &at
	}
}

func (w *fakes) ReadyWork(_ context.Context, after string, limit int, free []dispatch.Capacity) (dispatch.Work, error) {
	w.note("ready")
	if w.onReady != nil {
		if err := w.onReady(); err != nil {
			return dispatch.Work{}, err
		}
	}
	var work dispatch.Work
	if w.onNext != nil {
		in := w.onNext()
		work.NextIn = &in
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var ready []string
	for workspace, rows := range w.queue {
		if slices.ContainsFunc(rows, func(d autopost.Delivery) bool { return capacityFor(d, free) > 0 }) {
			ready = append(ready, workspace)
		}
	}
	slices.Sort(ready)
	next, found := slices.BinarySearch(ready, after)
	if found {
		next++
	}
	ready = append(ready[next:], ready[:next]...)
	for _, workspace := range ready[:min(limit, len(ready))] {
		var platforms []autopost.Platform
		for _, d := range w.queue[workspace] {
			if capacityFor(d, free) > 0 && !slices.Contains(platforms, d.Platform) {
				platforms = append(platforms, d.Platform)
				work.Ready = append(work.Ready, dispatch.ClaimKey{WorkspaceID: workspace, Platform: d.Platform})
			}
		}
	}
	return work, nil
}

// capacityFor is the least capacity that matches a delivery.
func capacityFor(d autopost.Delivery, free []dispatch.Capacity) int {
	least := 1_000_000
	for _, c := range free {
		if (c.WorkspaceID == "" || c.WorkspaceID == d.WorkspaceID) && (c.Platform == "" || c.Platform == d.Platform) &&
			(c.RateGroup == "" || c.RateGroup == d.RateGroup) {
			least = min(least, c.Free)
		}
	}
	return least
}

// ClaimAndStart starts the calls of known accounts if startAtOnce is set.
func (w *fakes) ClaimAndStart(_ context.Context, workspace, _ string, limit int, free []dispatch.Capacity, authRefs []string) ([]dispatch.Claimed, error) {
	w.note("claim")
	if w.onClaim != nil {
		if err := w.onClaim(workspace); err != nil {
			return nil, err
		}
	}
	rows := w.claimed(workspace, limit, free)
	if w.onClaimed != nil {
		w.onClaimed(rows)
	}
	if w.onAnswer != nil {
		if err := w.onAnswer(rows); err != nil {
			return nil, err
		}
	}
	claimed := make([]dispatch.Claimed, len(rows))
	for i, d := range rows {
		claimed[i].Delivery = d
		if w.startAtOnce && slices.Contains(authRefs, d.AuthRef) {
			w.note("claim starts " + d.DeliveryID)
			w.begin(d.ClaimToken)
			claimed[i].Start = &dispatch.Start{Applied: true, Deadline: 300 * time.Second}
		}
	}
	return claimed, nil
}

// ReleaseLost gives each released delivery another token for its next claim.
func (w *fakes) ReleaseLost(_ context.Context, workspace, _ string, known []string) (int, []dispatch.Claim, error) {
	w.note("find " + workspace)
	if w.onFind != nil {
		if err := w.onFind(known); err != nil {
			return 0, nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for token, d := range w.sending {
		if d.WorkspaceID == workspace && !slices.Contains(known, token) {
			delete(w.sending, token)
			w.found = append(w.found, token)
			d.ClaimToken += " again"
			w.queue[workspace] = append(w.queue[workspace], d)
			n++
		}
	}
	started := w.lostStarts
	w.lostStarts = nil
	return n, started, nil
}

func (w *fakes) claimed(workspace string, limit int, free []dispatch.Capacity) []autopost.Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limits = append(w.limits, limit)
	var rows, rest []autopost.Delivery
	given := map[string]int{}
	for _, d := range w.queue[workspace] {
		group := string(d.Platform) + "/" + d.RateGroup
		if len(rows) == limit || given[group] >= capacityFor(d, free) {
			rest = append(rest, d)
			continue
		}
		given[group]++
		w.sending[d.ClaimToken] = d
		rows = append(rows, d)
	}
	w.queue[workspace] = rest
	return rows
}

func (w *fakes) StartCallBatch(_ context.Context, _ string, claims []dispatch.Claim) ([]dispatch.Start, error) {
	w.note(fmt.Sprintf("start of %d", len(claims)))
	starts := make([]dispatch.Start, len(claims))
	for i, c := range claims {
		w.note("start " + c.DeliveryID)
		w.begin(c.ClaimToken)
		starts[i] = dispatch.Start{Applied: true, Deadline: 300 * time.Second}
		if w.onStart == nil {
			continue
		}
		var err error
		if starts[i], err = w.onStart(c.DeliveryID); err != nil {
			return nil, err
		}
	}
	return starts, nil
}

func (w *fakes) begin(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sending, token)
}

func (w *fakes) RecordSeriesProgress(_ context.Context, _, _, _ string, ack autopost.Acknowledged) (dispatch.Progress, error) {
	w.note("progress " + ack.Step)
	if w.onProgress != nil {
		return w.onProgress(ack)
	}
	return dispatch.Progress{Applied: true}, nil
}

func (w *fakes) ExtendLease(_ context.Context, _, _, _ string, seconds int) (bool, error) {
	w.note(fmt.Sprintf("extend %d", seconds))
	if w.onExtend != nil {
		return w.onExtend(seconds)
	}
	return true, nil
}

func (w *fakes) CommitOutcomeBatch(_ context.Context, _ string, results []dispatch.ClaimResult) ([]dispatch.Commit, error) {
	w.note(fmt.Sprintf("commit of %d", len(results)))
	commits := make([]dispatch.Commit, len(results))
	for i, s := range results {
		w.note("commit " + s.DeliveryID)
		commits[i] = dispatch.Commit{Applied: true, Status: "sent"}
		if w.onCommit == nil {
			continue
		}
		var err error
		if commits[i], err = w.onCommit(s.DeliveryID); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range results {
		if commits[i].Applied {
			w.outcomes[s.DeliveryID] = s.Outcome
			w.hasRaw[s.DeliveryID] = s.HasRaw
		}
	}
	return commits, nil
}

func (w *fakes) ReleaseClaims(_ context.Context, workspace string, tokens []string) error {
	w.note("release")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.released[workspace] = append(w.released[workspace], tokens...)
	for _, token := range tokens {
		delete(w.sending, token)
	}
	return nil
}

func (w *fakes) TouchRun(_ context.Context, _, _ string, ended bool) error {
	if ended {
		w.note("left")
		return nil
	}
	w.note("touch")
	if w.onTouch != nil {
		return w.onTouch()
	}
	return nil
}

func (w *fakes) Credential(context.Context, string, string, autopost.Platform) (autopost.Secret, error) {
	if w.onSecret != nil {
		return w.onSecret()
	}
	return autopost.NewSecret("canary-secret"), nil
}

func (w *fakes) Renew(_ context.Context, _ autopost.Delivery, used autopost.Secret, failure autopost.Error) (autopost.Secret, error) {
	w.note("renew " + failure.Code)
	if w.onRenew != nil {
		return w.onRenew(used)
	}
	return autopost.Secret{}, nil
}

func (w *fakes) MaterialsFor(autopost.Delivery) autopost.MediaAccess { return nil }

func (w *fakes) Platform() autopost.Platform { return autopost.Telegram }

func (w *fakes) Send(ctx context.Context, c autopost.Call) autopost.Outcome {
	w.note("send " + c.Delivery.DeliveryID)
	w.mu.Lock()
	w.running++
	w.most = max(w.most, w.running)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running--
	}()
	if w.onSend != nil {
		return w.onSend(ctx, c)
	}
	return autopost.Sent("77", time.Time{}, nil)
}

func (w *fakes) dispatcher(cfg dispatch.Config) *dispatch.Dispatcher {
	adapter := w.adapter
	if adapter == nil {
		adapter = w
	}
	store := w.store
	if store == nil {
		store = w
	}
	var raw dispatch.RawPayloads
	if w.raw != nil {
		raw = w.raw
	}
	d, err := dispatch.New(cfg, dispatch.Deps{
		Store: store, Credentials: w, Media: w, Raw: raw,
		Adapters: map[autopost.Platform]autopost.Adapter{autopost.Telegram: adapter, autopost.MAX: adapter},
		Wake:     w.wake,
		Boot:     func() time.Duration { return time.Since(w.began) + time.Duration(w.slept.Load()) },
		Log:      slog.New(slog.NewJSONHandler(w.logs, nil)),
	})
	require.NoError(w.t, err)
	return d
}

func (w *fakes) ReadyActWorkspaces(context.Context, int) ([]string, error) { return nil, nil }

// start runs a dispatcher in the bubble; stop stops it and waits for it.
func (w *fakes) start(cfg dispatch.Config) (stop func()) {
	d := w.dispatcher(cfg)
	ctx, cancel := context.WithCancel(worker.ReportPanics(w.t.Context(), func(*worker.Panic) { w.panics.Add(1) }))
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(w.t, <-done)
	}
}

// after advances the clock by d and waits until all goroutines are idle.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
