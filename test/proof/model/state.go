package model

import "fmt"

// Status of a delivery, as in the contract. The status claimed begins and ends in one transaction, so no step sees it.
type Status uint8

// The statuses.
const (
	Queued Status = iota
	Sending
	Retry
	Sent
	FailedPermanent
	Dead
)

func (s Status) String() string {
	return [...]string{"queued", "sending", "retry", "sent", "failed_permanent", "dead"}[s]
}

// Final reports whether only an operator changes the status.
func (s Status) Final() bool { return s >= Sent }

// Due is when a waiting delivery may be claimed.
type Due uint8

// A wait is over, passes with time, or lasts until an operator decides.
const (
	Now Due = iota
	Later
	Never
)

// Policy is a channel's on_unknown.
type Policy uint8

// The policies.
const (
	Reconcile Policy = iota
	Hold
	Resend
)

func (p Policy) String() string { return [...]string{"reconcile", "hold", "resend"}[p] }

// Delivery is a row, its copies at the platform, and its operator actions.
type Delivery struct {
	Status             Status
	Attempt, Granted   uint8
	Unknown, Allowance uint8
	Due                Due
	Moved              bool // its planned time is later
	Started            bool // the call of this attempt is recorded
	Leased             bool // the lease of this claim runs
	Lost               bool // the daemon of this claim does not know it: the answer was lost
	SettledBy          uint8
	SettledAs          Status
	ChannelAtFault     bool // the last error was the channel's

	Copies   uint8 // the receiver's log
	Requeues uint8
	Absents  uint8 // how often an operator said that the platform does not have it
}

func (d Delivery) waits() bool { return d.Status == Queued || d.Status == Retry }

// Held deliveries wait for an operator.
func (d Delivery) Held() bool { return d.Status == Retry && d.Due == Never }

// Ended deliveries are final or wait for an operator.
func (d Delivery) Ended() bool { return d.Status.Final() || d.Held() }

// Phase is the progress of a worker with its claim. From Success on, it is the outcome of the call, kept until a commit
// is answered.
type Phase uint8

// The phases.
const (
	Idle Phase = iota
	Claimed
	Started
	Success
	Uncertain
	Transient
	Limited
	Forbidden
	Invalid
)

// Worker is the memory of a process. A killed process has none.
type Worker struct {
	Phase    Phase
	Delivery uint8
	Claim    uint8 // the attempt of its claim: its token
}

// Pause of a channel.
type Pause uint8

// A pause after a failure passes, one by an operator stays.
const (
	Open Pause = iota
	AfterFailure
	ByHand
)

// Channel is the one channel of all deliveries.
type Channel struct {
	Pause    Pause
	Disabled bool
	Streak   uint8
	Cooling  bool
}

// The most of each that a model may have.
const (
	MaxDeliveries = 2
	MaxWorkers    = 3
)

// State of the world. Comparable: equal states are one.
type State struct {
	Deliveries [MaxDeliveries]Delivery
	Workers    [MaxWorkers]Worker
	Channel    Channel
	Pauses     uint8 // how often an operator paused it
	Releases   uint8
}

// Config of a model.
type Config struct {
	Deliveries, Workers int
	MaxAttempts         uint8
	MaxParallel         int
	Policy              Policy

	// Budgets of steps that could be repeated without end.
	Pauses, Releases, Requeues, Absents uint8
	// Limits is the number of granted attempts from which a rate limit costs an attempt.
	Limits uint8
	// Skips lets an operator skip waiting deliveries.
	Skips bool
	// Moves lets an operator move waiting deliveries to a later time.
	Moves bool
	// Fused lets a claim record the start of its call. A daemon commits such a claim as not called if it does not know
	// it, and stops repeating a commit that is never answered.
	Fused bool
	// Late lets calls leave after their lease, and recovery come before its end.
	Late bool
	// OneClock gives all waits the clock of the database: a worker that has waited for a lease
	// has waited for everything shorter.
	OneClock bool
	// Bug is planted.
	Bug Bug
}

// disableAfter is the streak of channel failures that disables a channel.
const disableAfter = 3

// Start is the state right after the enqueue.
func (c Config) Start() State {
	var s State
	for d := range s.Deliveries {
		if d < c.Deliveries {
			s.Deliveries[d].Allowance = 1
		} else {
			s.Deliveries[d].Status = Dead
		}
	}
	return s
}

// Bound is the largest number of copies of one delivery. A requeue allows one more, and under reconcile also one more
// blind resend. A wrong "absent" for a held delivery allows one more. Under resend every attempt may be a copy.
func (c Config) Bound(d Delivery) uint8 {
	switch c.Policy {
	case Reconcile:
		return 2 + 2*d.Requeues
	case Hold:
		return 1 + d.Requeues + d.Absents
	default:
		return c.MaxAttempts + d.Requeues
	}
}

func (s *State) inFlight() (n int) {
	for _, d := range s.Deliveries {
		if d.Status == Sending {
			n++
		}
	}
	return n
}

func (s *State) shut() bool { return s.Channel.Pause != Open || s.Channel.Disabled }

// canonical gives equivalent states the same form: the order of workers does not matter.
func (s State) canonical() State {
	w := &s.Workers
	for i := 1; i < len(w); i++ {
		for j := i; j > 0 && w[j].less(w[j-1]); j-- {
			w[j], w[j-1] = w[j-1], w[j]
		}
	}
	return s
}

func (w Worker) less(o Worker) bool {
	if w.Phase != o.Phase {
		return w.Phase > o.Phase
	}
	if w.Delivery != o.Delivery {
		return w.Delivery < o.Delivery
	}
	return w.Claim < o.Claim
}

func (s State) String() string {
	return fmt.Sprintf("%+v", struct {
		D [MaxDeliveries]Delivery
		W [MaxWorkers]Worker
		C Channel
	}{s.Deliveries, s.Workers, s.Channel})
}
