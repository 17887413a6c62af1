package model

import "fmt"

// Kind of a step of the world.
type Kind uint8

// The steps. Those up to Expire happen automatically when nothing goes wrong, and make progress.
// From ClaimLost on they are faults, then operator actions.
const (
	Claim Kind = iota
	ClaimStart
	EndLost
	Begin
	Send
	Commit
	Recover
	Wait
	CoolOver
	PauseOver
	Expire

	ClaimLost
	ClaimStartLost
	BeginLost
	CommitLost
	GiveUp
	Crash
	RecoverEarly
	Release

	PauseByHand
	Resume
	Skip
	Move
	Requeue
	Absent
	Found
)

func (k Kind) String() string {
	return [...]string{"claim", "claim and start", "lost claim ended", "begin", "send", "commit", "recover", "wait", "cooldown over", "pause over", "lease over",
		"claim, answer lost", "claim and start, answer lost", "begin, answer lost", "commit, answer lost", "commit given up", "crash", "recover early", "release",
		"pause", "resume", "skip", "move", "requeue", "resolve absent", "resolve found"}[k]
}

// Outcome of a call, as seen by the platform and the network.
type Outcome uint8

// The outcomes; Swallowed and Vanished look the same to the caller.
const (
	Accepted  Outcome = iota // and the reply arrived
	Swallowed                // accepted, the reply was lost
	Vanished                 // a part was written, and the platform accepted nothing
	Refused                  // nothing was written, or the platform said not now
	TooMany                  // 429
	Banned                   // the channel is lost
	Wrong                    // the post is invalid
	outcomes
)

func (o Outcome) String() string {
	return [...]string{"accepted", "accepted, reply lost", "vanished", "refused", "429", "forbidden", "invalid"}[o]
}

func (o Outcome) accepted() bool { return o == Accepted || o == Swallowed }

// phase is the outcome as the caller understands it.
func (o Outcome) phase() Phase {
	return [...]Phase{Success, Uncertain, Uncertain, Transient, Limited, Forbidden, Invalid}[o]
}

// Action is a step of a worker for a delivery, with an outcome.
type Action struct {
	Kind             Kind
	Worker, Delivery uint8
	Outcome          Outcome
}

func (a Action) String() string {
	s := fmt.Sprintf("%s: worker %d, delivery %d", a.Kind, a.Worker, a.Delivery)
	if a.Kind == Send {
		s += ": " + a.Outcome.String()
	}
	return s
}

// Enabled appends the possible next steps.
func (c Config) Enabled(s *State, to []Action) []Action {
	db := database{State: s, config: c}
	for i := range c.Workers {
		to = c.workerSteps(&db, uint8(i), to)
	}
	for i := range c.Deliveries {
		to = c.deliverySteps(&db, uint8(i), to)
	}
	to = c.timeSteps(s, to)
	if s.Pauses < c.Pauses && s.Channel.Pause != ByHand {
		to = append(to, Action{Kind: PauseByHand})
	}
	if s.shut() || c.OneClock && s.Channel.Streak > 0 {
		to = append(to, Action{Kind: Resume})
	}
	return to
}

func (c Config) workerSteps(db *database, i uint8, to []Action) []Action {
	w := db.Workers[i]
	if w.Phase == Idle {
		for d := range c.Deliveries {
			if db.claimable(d) {
				to = append(to, Action{Kind: Claim, Worker: i, Delivery: uint8(d)}, Action{Kind: ClaimLost, Worker: i, Delivery: uint8(d)})
				if c.Fused {
					to = append(to, Action{Kind: ClaimStart, Worker: i, Delivery: uint8(d)}, Action{Kind: ClaimStartLost, Worker: i, Delivery: uint8(d)})
				}
			}
		}
		return to
	}
	to = append(to, Action{Kind: Crash, Worker: i, Delivery: w.Delivery})
	if db.Releases < c.Releases {
		to = append(to, Action{Kind: Release, Worker: i, Delivery: w.Delivery})
	}
	switch w.Phase {
	case Claimed:
		to = append(to, Action{Kind: Begin, Worker: i, Delivery: w.Delivery}, Action{Kind: BeginLost, Worker: i, Delivery: w.Delivery},
			Action{Kind: Send, Worker: i, Delivery: w.Delivery, Outcome: Refused}) // a post that cannot be sent has no call
	case Started:
		d := &db.Deliveries[w.Delivery]
		for o := range outcomes {
			// A call after its deadline writes nothing.
			if o == Refused || c.Late || c.Bug == StartUnchecked || d.holds(w) && d.Leased {
				to = append(to, Action{Kind: Send, Worker: i, Delivery: w.Delivery, Outcome: o})
			}
		}
	default:
		to = append(to, Action{Kind: Commit, Worker: i, Delivery: w.Delivery}, Action{Kind: CommitLost, Worker: i, Delivery: w.Delivery})
		if c.Fused {
			to = append(to, Action{Kind: GiveUp, Worker: i, Delivery: w.Delivery})
		}
	}
	return to
}

func (c Config) deliverySteps(db *database, i uint8, to []Action) []Action {
	d := &db.Deliveries[i]
	step := func(k Kind) { to = append(to, Action{Kind: k, Delivery: i}) }
	if d.Status == Sending && !d.Leased && c.Bug != NothingRecovered {
		step(Recover)
	}
	if d.Status == Sending && d.Leased && c.Late {
		step(RecoverEarly)
	}
	if d.Status == Sending && d.Lost {
		step(EndLost)
	}
	if !c.OneClock {
		if d.waits() && d.Due == Later {
			step(Wait)
		}
		if d.Status == Sending && d.Leased {
			step(Expire)
		}
	}
	if c.Skips && d.waits() {
		step(Skip)
	}
	if c.Moves && d.waits() {
		step(Move)
	}
	if (d.Status == Dead || d.Status == FailedPermanent) && d.Requeues < c.Requeues {
		step(Requeue)
	}
	if d.Status == Retry && d.Unknown > 0 {
		if d.Absents < c.Absents {
			step(Absent)
		}
		if d.Copies > 0 {
			step(Found)
		}
	}
	return to
}

func (c Config) timeSteps(s *State, to []Action) []Action {
	if c.OneClock {
		return append(to, Action{Kind: Wait}, Action{Kind: Expire})
	}
	if s.Channel.Cooling {
		to = append(to, Action{Kind: CoolOver})
	}
	if s.Channel.Pause == AfterFailure {
		to = append(to, Action{Kind: PauseOver})
	}
	return to
}

// Step is the state after an action, and the answer of the database.
func (c Config) Step(s State, a Action) (State, Answer) {
	db := database{State: &s, config: c}
	w := &s.Workers[a.Worker]
	d := &s.Deliveries[a.Delivery]
	switch a.Kind {
	case Claim, ClaimLost:
		db.claim(d)
		if a.Kind == Claim {
			*w = Worker{Phase: Claimed, Delivery: a.Delivery, Claim: d.Attempt}
		}
	case ClaimStart, ClaimStartLost:
		db.claim(d)
		d.Started, d.Lost = true, a.Kind == ClaimStartLost
		db.event("send_attempt")
		if a.Kind == ClaimStart {
			*w = Worker{Phase: Started, Delivery: a.Delivery, Claim: d.Attempt}
		}
	case EndLost:
		db.commit(d, Worker{Phase: Transient, Claim: d.Attempt})
	case Begin, BeginLost:
		db.start(d, *w)
		switch {
		case a.Kind == BeginLost:
		case db.answer.Applied:
			w.Phase = Started
		default:
			*w = Worker{}
		}
	case Send:
		if a.Outcome.accepted() {
			d.Copies++
		}
		w.Phase = a.Outcome.phase()
	case Commit, CommitLost:
		db.commit(d, *w)
		if a.Kind == Commit {
			*w = Worker{}
		}
	case Crash:
		*w = Worker{}
	case GiveUp:
		d.Lost = d.Lost || db.config.Bug == CallForgotten && d.holds(*w)
		*w = Worker{}
	case Release:
		db.release(d, *w)
		s.Releases++
		*w = Worker{}
	default:
		db.elsewhere(d, a.Kind)
	}
	return s, db.answer
}

// elsewhere makes a step that does not belong to a worker.
func (db *database) elsewhere(d *Delivery, k Kind) {
	s := db.State
	switch k {
	case Recover, RecoverEarly:
		db.recover(d)
	case Wait, Expire:
		if db.config.OneClock {
			db.passes(k == Expire)
		} else if k == Wait {
			d.Due, d.Moved = Now, false
		} else {
			d.Leased = false
		}
	case CoolOver:
		s.Channel.Cooling = false
	case PauseOver:
		s.Channel.Pause = Open
	case PauseByHand:
		s.Channel.Pause = ByHand
		s.Pauses++
		db.event("channel_paused")
		db.answer.Applied = true
	case Resume:
		s.Channel = Channel{Cooling: s.Channel.Cooling}
		db.event("channel_enabled")
		db.answer.Applied = true
	case Skip:
		db.skip(d)
	case Move:
		db.move(d)
	case Requeue:
		db.requeue(d)
	case Absent, Found:
		db.resolve(d, k == Found)
		if k == Absent && db.answer.Applied {
			d.Absents++
		}
	}
}

// passes ends every wait, or with long every lease and pause, too.
func (db *database) passes(long bool) {
	for i := range db.Deliveries {
		d := &db.Deliveries[i]
		if d.waits() && d.Due == Later {
			d.Due = Now
		}
		d.Moved = false
		d.Leased = d.Leased && !long
	}
	db.Channel.Cooling = false
	if long && db.Channel.Pause == AfterFailure {
		db.Channel.Pause = Open
	}
}
