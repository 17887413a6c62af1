package model

// Answer of a function, and the events that its transaction wrote.
type Answer struct {
	Applied  bool
	Repeated bool
	Reason   string
	Status   string
	Count    int // rows that a sweep moved
	Events   []string
}

// Bug is a mistake in the functions that the checker must see.
type Bug string

// The mistakes.
const (
	NoBug             Bug = ""
	StartedIsNotSent  Bug = "recovery takes a call that began for one that did not"
	TokenUnchecked    Bug = "a commit does not look at the token"
	StartUnchecked    Bug = "start_call does not look at the claim"
	UnknownUncounted  Bug = "an unknown outcome is not counted"
	AllowanceIgnored  Bug = "the allowance of blind resends is not looked at"
	HoldIgnored       Bug = "hold sends again automatically"
	StartedIsReleased Bug = "a release hands back a call that began"
	SettledReopened   Bug = "a late commit moves a delivery that has its end"
	RoomIgnored       Bug = "a claim does not count what is in flight"
	PauseIgnored      Bug = "start_call does not look at the pause"
	AttemptsIgnored   Bug = "the attempts are not counted"
	NothingRecovered  Bug = "leases are not recovered"
	CallForgotten     Bug = "a daemon does not know a call whose outcome it could not commit"
	UnknownIsDead     Bug = "a last attempt with an unknown outcome ends dead, uncounted"
)

// database is the state seen through its functions.
type database struct {
	*State
	config Config
	answer Answer
}

func (db *database) event(actions ...string) { db.answer.Events = append(db.answer.Events, actions...) }

func (db *database) refused(reason string) { db.answer.Reason = reason }

func (db *database) attemptsLeft(d *Delivery) bool {
	return d.Attempt < db.config.MaxAttempts+d.Granted || db.config.Bug == AttemptsIgnored && d.Attempt < db.config.MaxAttempts+d.Granted+2
}

// claimable says whether a claim may take the delivery.
func (db *database) claimable(d int) bool {
	row := &db.Deliveries[d]
	return (row.Status == Queued || row.Status == Retry) && row.Due == Now && !db.shut() && !db.Channel.Cooling &&
		(db.inFlight() < db.config.MaxParallel || db.config.Bug == RoomIgnored)
}

func (db *database) claim(d *Delivery) {
	d.Status, d.Started, d.Leased, d.Lost = Sending, false, true, false
	d.Attempt++
	db.answer.Applied = true
}

// leave ends the claim; settledBy is the claim whose commit did it, 0 if no commit did.
func (db *database) leave(d *Delivery, to Status, due Due, settledBy uint8) {
	*d = Delivery{Status: to, Attempt: d.Attempt, Granted: d.Granted, Unknown: d.Unknown, Allowance: d.Allowance, Due: due,
		SettledBy: settledBy, ChannelAtFault: d.ChannelAtFault, Copies: d.Copies, Requeues: d.Requeues, Absents: d.Absents}
	if settledBy > 0 {
		d.SettledAs = to
	}
	db.answer.Status = to.String()
}

func (db *database) handBack(d *Delivery) {
	db.event("released")
	d.Granted++
	db.leave(d, Retry, Now, 0)
}

// holds reports whether the claim of the worker is the present one.
func (d *Delivery) holds(w Worker) bool { return d.Status == Sending && d.Attempt == w.Claim }

func (db *database) start(d *Delivery, w Worker) {
	if !d.holds(w) || !d.Leased {
		if db.config.Bug == StartUnchecked {
			db.answer.Applied = true
			return
		}
		db.refused("stale")
		return
	}
	if d.Started {
		db.answer.Applied, db.answer.Repeated = true, true
		return
	}
	if obstacle := db.obstacle(); obstacle != "" {
		db.handBack(d)
		db.refused(obstacle)
		return
	}
	d.Started = true
	db.event("send_attempt")
	db.answer.Applied = true
}

func (db *database) obstacle() string {
	switch {
	case db.config.Bug == PauseIgnored:
		return ""
	case db.Channel.Disabled:
		return "disabled"
	case db.Channel.Pause != Open:
		return "paused"
	case db.Channel.Cooling:
		return "rate"
	}
	return ""
}

// commit ends a claim by its outcome. A repeat gets the same answer, unless another step has ended the claim since.
func (db *database) commit(d *Delivery, w Worker) {
	switch {
	case d.holds(w):
	case d.Status == Sending && db.config.Bug == TokenUnchecked:
	case db.config.Bug == SettledReopened && d.SettledBy != w.Claim && w.Phase == Transient:
	case d.SettledBy == w.Claim:
		db.answer = Answer{Applied: true, Repeated: true, Status: d.SettledAs.String()}
		return
	default:
		db.event("stale_commit")
		db.answer.Reason, db.answer.Status = "stale", d.Status.String()
		return
	}
	db.answer.Applied = true
	switch w.Phase {
	case Success:
		db.event("sent")
		db.Channel.Streak = 0
		db.leave(d, Sent, Now, w.Claim)
	case Uncertain:
		d.ChannelAtFault = false
		db.unknown(d, w.Claim)
	case Transient, Limited:
		if w.Phase == Limited {
			db.event("cooldown")
			db.Channel.Cooling = true
			if d.Granted < db.config.Limits {
				d.Granted++ // a rate limit says nothing about the post
			}
		}
		d.ChannelAtFault = w.Phase == Limited
		db.transient(d, w.Claim)
	default:
		db.permanent(d, w)
	}
}

func (db *database) unknown(d *Delivery, settledBy uint8) {
	last := !db.attemptsLeft(d)
	if db.config.Bug == UnknownIsDead && last {
		db.leave(d, Dead, Now, settledBy)
		return
	}
	if db.config.Bug != UnknownUncounted {
		d.Unknown++
	}
	db.event("unknown_outcome")
	if last || db.config.Policy == Reconcile && d.Unknown > d.Allowance && db.config.Bug != AllowanceIgnored {
		db.event("failed_permanent")
		db.leave(d, FailedPermanent, Now, settledBy)
		return
	}
	db.event("retry_scheduled")
	if db.config.Policy == Hold && db.config.Bug != HoldIgnored {
		db.leave(d, Retry, Never, settledBy)
		return
	}
	db.leave(d, Retry, Later, settledBy)
}

func (db *database) transient(d *Delivery, settledBy uint8) {
	if !db.attemptsLeft(d) {
		db.event("dead_letter")
		db.leave(d, Dead, Now, settledBy)
		return
	}
	db.event("retry_scheduled")
	db.leave(d, Retry, Later, settledBy)
}

func (db *database) permanent(d *Delivery, w Worker) {
	db.event("failed_permanent")
	d.ChannelAtFault = w.Phase == Forbidden
	if d.ChannelAtFault {
		c := &db.Channel
		c.Streak = min(c.Streak+1, disableAfter)
		c.Pause = max(c.Pause, AfterFailure)
		db.event("channel_paused")
		if c.Streak == disableAfter && !c.Disabled {
			c.Disabled = true
			db.event("channel_disabled")
		}
	}
	db.leave(d, FailedPermanent, Now, w.Claim)
}

// recover ends a claim whose lease is over. A call that did not start is a known failure; a started one is an unknown
// outcome.
func (db *database) recover(d *Delivery) {
	db.event("sending_lease_expired")
	d.ChannelAtFault = false
	if d.Started && db.config.Bug != StartedIsNotSent {
		db.unknown(d, 0)
	} else {
		db.transient(d, 0)
	}
	db.answer.Applied = true
	db.answer.Count++
}

func (db *database) release(d *Delivery, w Worker) {
	db.answer.Applied = true
	if d.holds(w) && (!d.Started || db.config.Bug == StartedIsReleased) {
		db.handBack(d)
		db.answer.Count = 1
	}
	db.answer.Status = ""
}

func (db *database) requeue(d *Delivery) {
	switch {
	case d.Status != Dead && d.Status != FailedPermanent:
		db.refused("not_failed")
	case d.ChannelAtFault && db.shut():
		db.refused("channel_not_resumed")
	default:
		db.event("manual_requeue")
		d.Status, d.Due = Retry, Now
		if d.Moved {
			d.Due = Later
		}
		d.Granted++
		d.Requeues++
		d.Allowance = max(d.Allowance, d.Unknown+1)
		db.answer.Applied = true
	}
}

func (db *database) skip(d *Delivery) {
	if !d.waits() {
		db.refused("not_waiting")
		return
	}
	db.event("manual_skip")
	d.Status, d.Due, d.ChannelAtFault = Dead, Now, false
	db.answer.Applied = true
}

// move puts a delivery that waits to a later time. One that may have copies stays.
func (db *database) move(d *Delivery) {
	switch {
	case d.Status == Sent:
		db.refused("sent")
	case d.Status.Final():
		db.refused("ended")
	case d.Status == Sending || d.Unknown > 0:
		db.refused("begun")
	default:
		db.event("rescheduled")
		d.Due, d.Moved = Later, true
		db.answer.Applied = true
	}
}

// resolve settles a delivery that waits after an unknown outcome.
func (db *database) resolve(d *Delivery, found bool) {
	if d.Status != Retry || d.Unknown == 0 {
		db.refused("not_unknown")
		return
	}
	db.event("unknown_resolved")
	db.answer.Applied = true
	if found {
		db.event("sent")
		db.Channel.Streak = 0
		db.leave(d, Sent, Now, 0)
		return
	}
	d.Due = Now
	db.answer.Status = Retry.String()
}
