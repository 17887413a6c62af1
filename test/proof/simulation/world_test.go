package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/dispatch"
)

// world is all that is outside the dispatchers.
type world struct {
	seed  uint64
	began time.Time

	mu       sync.Mutex
	channels []*channel
	rows     []*row
	log      []string
	posts    []post
	wrongs   []string
}

// post is a call as the platform saw it.
type post struct {
	row      *row
	step     string
	attempt  int
	at       time.Time // when it began
	accepted bool
}

// draw is chance: the seed's, for what it is about.
func (w *world) draw(about ...any) *rand.Rand {
	sum := fnv.New64a()
	_, _ = fmt.Fprintln(sum, about...) // a hash takes everything
	return rand.New(rand.NewPCG(w.seed, sum.Sum64()))
}

// note expects mu to be held.
func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%15d ", time.Since(w.began))+fmt.Sprintf(format, args...))
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func newWorld(seed uint64) *world {
	w := &world{seed: seed, began: time.Now()}
	shape := w.draw("shape")
	groups := []*paced{{name: "one", every: time.Second / 8}, {name: "two", every: time.Second / 3}}
	for n := range 5 {
		w.channels = append(w.channels, &channel{
			paced: paced{name: fmt.Sprint("channel-", n), every: time.Second / time.Duration(1+shape.IntN(4))},
			group: groups[n%2], parallel: 1 + shape.IntN(3), hold: shape.IntN(3) == 0,
		})
	}
	for n := range 150 {
		w.rows = append(w.rows, &row{
			id: fmt.Sprintf("d%03d", n), channel: w.channels[shape.IntN(len(w.channels))], steps: 1 + max(0, shape.IntN(5)-2), status: "queued",
			due: w.began.Add(time.Duration(shape.IntN(int(5 * time.Minute)))),
		})
	}
	return w
}

// Platform implements autopost.Adapter.
func (d *daemon) Platform() autopost.Platform { return autopost.Telegram }

// Send sends like each adapter, one step after the other.
func (d *daemon) Send(ctx context.Context, call autopost.Call) autopost.Outcome {
	return adapter.Run(ctx, call, func(ctx context.Context, step autopost.Step, _ string) (adapter.Receipt, *autopost.Error) {
		return d.post(ctx, call.Delivery, step.Name)
	})
}

// post makes one call: it is refused, it hangs, it arrives, its answer does.
func (d *daemon) post(ctx context.Context, delivery autopost.Delivery, step string) (adapter.Receipt, *autopost.Error) {
	luck := d.draw("post", delivery.ClaimToken, step)
	began := time.Now()
	d.begins(delivery, began)
	way := func() bool { return wait(ctx, time.Duration(2_000_000+luck.IntN(600_000_000))) }
	trouble := luck.IntN(40)
	if trouble == 0 {
		wait(ctx, time.Hour) // the caller's patience ends first
	}
	if !way() || d.gone() {
		return adapter.Receipt{}, adapter.Unknown("cut off on its way")
	}
	failure := d.arrives(delivery, step, began, trouble, luck.IntN(20))
	if !way() || trouble == 1 || d.gone() {
		return adapter.Receipt{}, adapter.Unknown("the answer is lost")
	}
	return adapter.Receipt{IDs: []string{delivery.ClaimToken + "/" + step}}, failure
}

// begins checks that who calls may.
func (d *daemon) begins(delivery autopost.Delivery, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.row(delivery.DeliveryID); !d.dead && (!r.holds(delivery.ClaimToken, now) || !r.started) {
		d.wrongs = append(d.wrongs, fmt.Sprintf("%s calls with a claim that is not its own: %s", d.run, delivery.ClaimToken))
	}
}

func (d *daemon) arrives(delivery autopost.Delivery, step string, began time.Time, trouble, seconds int) *autopost.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var failure *autopost.Error
	switch trouble {
	case 2:
		failure = adapter.Refusal(autopost.Transient, autopost.ScopeChannel, "limited", "too many")
		failure.RetryAfterMS = int64(1+seconds) * 1000
	case 3:
		failure = adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, "busy", "come again")
	}
	d.posts = append(d.posts, post{d.row(delivery.DeliveryID), step, delivery.Attempt, began, failure == nil})
	d.note("%s posts %s %s: %v", d.run, delivery.ClaimToken, step, failure == nil)
	return failure
}

// Credential and Renew implement dispatch.Credentials; MaterialsFor dispatch.Media.
// Each delivery has a credential of its own, which takes a time of its own: those of one claim do not begin at one instant.
func (d *daemon) Credential(ctx context.Context, _, authRef string, _ autopost.Platform) (autopost.Secret, error) {
	d.mu.Lock()
	d.made[authRef]++
	luck := d.draw("credential", d.run, authRef, d.made[authRef])
	d.mu.Unlock()
	wait(ctx, time.Duration(luck.IntN(2_000_000)))
	return autopost.NewSecret("canary"), nil
}

func (d *daemon) Renew(context.Context, autopost.Delivery, autopost.Secret, autopost.Error) (autopost.Secret, error) {
	return autopost.Secret{}, nil
}

func (d *daemon) MaterialsFor(autopost.Delivery) autopost.MediaAccess { return nil }

// live runs one daemon for a while: it is stopped in the end, or dies.
func (w *world) live(ctx context.Context, t *testing.T, run string, zombies *sync.WaitGroup) {
	luck := w.draw("life", run)
	d := &daemon{world: w, run: run, made: map[string]int{}}
	dispatcher, err := dispatch.New(dispatch.Config{RunID: run, Senders: 16, Poll: time.Second, Lease: lease, AdapterTimeout: 8 * time.Second, Drain: 10 * time.Second}, dispatch.Deps{
		Store: d, Credentials: d, Media: d,
		Adapters: map[autopost.Platform]autopost.Adapter{autopost.Telegram: d},
		Boot:     func() time.Duration { return time.Since(w.began) }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Error(err)
		return
	}
	life, end := context.WithCancel(ctx)
	done := make(chan struct{})
	zombies.Go(func() {
		defer close(done)
		if err := dispatcher.Run(life); err != nil {
			t.Error(err)
		}
	})
	wait(ctx, time.Duration(luck.Int64N(int64(time.Minute))))
	if luck.IntN(2) == 0 {
		w.mu.Lock()
		d.dead = true
		w.note("%s dies", run)
		w.mu.Unlock()
		end()
		return
	}
	end()
	<-done
	w.mu.Lock()
	w.note("%s has stopped", run)
	w.mu.Unlock()
}
