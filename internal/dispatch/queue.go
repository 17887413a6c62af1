package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"autopost"
	"autopost/internal/telemetry"
)

// Queue tells what is due and leases it.
type Queue interface {
	// ReadyWork names the parts with due work of up to limit workspaces, a ring from the one that follows after,
	// and says how long it is until more is due. Where there is no room, nothing is.
	ReadyWork(ctx context.Context, after string, limit int, rooms []Room) (Work, error)
	// ClaimWithin leases up to limit due deliveries of a workspace to the run, and of no group more than it has room for. None is a normal answer.
	ClaimWithin(ctx context.Context, workspace, runID string, limit int, rooms []Room) ([]autopost.Delivery, error)
	// ReleaseLost hands back what the run has claimed in a workspace, and not begun, but for the claims that it knows of.
	ReleaseLost(ctx context.Context, workspace, runID string, known []string) (released int, err error)
}

// Work is what there is to do.
type Work struct {
	Ready []Part
	// NextIn is how long it is until something is due; nil when nothing waits.
	NextIn *time.Duration
}

// Part is what is claimed at a time: the deliveries of a workspace that go to one platform.
type Part struct {
	WorkspaceID string
	Platform    autopost.Platform
}

// Room is how many more deliveries of a group the daemon can take. What a name is
// missing of is any; the least of those that speak of a group counts.
type Room struct {
	WorkspaceID string
	Platform    autopost.Platform
	RateGroup   string
	Room        int
}

// Claim is what a claimed delivery is known by.
type Claim struct {
	DeliveryID string
	ClaimToken string
}

// Settlement is a claim with the outcome that ends it.
type Settlement struct {
	DeliveryID string
	ClaimToken string
	Outcome    autopost.Outcome
}

// Calls keeps the record of a call while it goes on. All three may be repeated
// with the same token.
type Calls interface {
	// StartCallBatch answers in the order of the claims.
	StartCallBatch(ctx context.Context, workspace string, claims []Claim) ([]Start, error)
	RecordSeriesProgress(ctx context.Context, workspace, deliveryID, claimToken string, ack autopost.Acknowledged) (Progress, error)
	// ExtendLease makes the lease end the given number of seconds from now.
	ExtendLease(ctx context.Context, workspace, deliveryID, claimToken string, seconds int) (applied bool, err error)
}

// Commits ends a claim, one way or the other.
type Commits interface {
	// CommitOutcomeBatch records outcomes and answers in their order; repeated with the same tokens it gives the same answers.
	CommitOutcomeBatch(ctx context.Context, workspace string, settlements []Settlement) ([]Commit, error)
	// ReleaseClaims hands back deliveries whose call has not begun.
	ReleaseClaims(ctx context.Context, workspace string, tokens []string) error
}

// Runs keeps the heartbeat by which recovery tells a live daemon from a dead one.
type Runs interface {
	TouchRun(ctx context.Context, runID, host string, ended bool) error
}

// ErrNoCredential says that a credential is not bound, or bound to nothing. Any
// other error of Credentials means that it could not be looked up just now.
var ErrNoCredential = errors.New("no such credential")

// Refused is a credential that could not be renewed: the attempt comes to Failure.
type Refused struct{ Failure autopost.Error }

// Error implements error.
func (r *Refused) Error() string { return "renew the credential: " + r.Failure.String() }

// Credentials resolves a logical credential key to the credential. Its errors are
// ErrNoCredential, a *Refused, or that the answer is not to be had just now.
type Credentials interface {
	Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error)
	// Renew returns a secret in place of one that the platform took for the reason of
	// the failure not to be good; a zero one when another would not help.
	Renew(ctx context.Context, d autopost.Delivery, used autopost.Secret, failure autopost.Error) (autopost.Secret, error)
}

// Media gives an adapter its view of the media of one delivery.
type Media interface {
	MaterialsFor(d autopost.Delivery) autopost.Materials
}

// Start is the database's answer to "may this call begin?".
type Start struct {
	// Applied is false when the call must not be made; the row has been handed back already.
	Applied bool
	// Limited says that the call has a slot; without one it may begin at once.
	Limited bool
	// SendIn is how long to wait from now until the slot, by the database's clock; negative when the slot has just passed.
	SendIn time.Duration
	// Deadline is how long from now the lease lives.
	Deadline time.Duration
	// Reason says why not: stale, paused, disabled, workspace, window or rate.
	Reason string
}

// Progress is the answer to an acknowledged step.
type Progress struct {
	// Applied is false when the claim is no longer ours; no further step may begin.
	Applied bool
	// Limited and SendIn speak of the next step as those of Start do of the first.
	Limited bool
	SendIn  time.Duration
	Reason  string
}

// Commit is what became of a delivery.
type Commit struct {
	// Applied is false when the token was stale: the outcome changed nothing.
	Applied bool
	// Status is the delivery's status afterwards.
	Status      string
	Reason      string
	NextRetryAt *time.Time
}

// Deps is what a Dispatcher works with. All but the wakes, Boot and Watch are required.
type Deps struct {
	Queue       Queue
	Calls       Calls
	Commits     Commits
	Runs        Runs
	Acts        Acts
	Credentials Credentials
	Media       Media
	Adapters    map[autopost.Platform]autopost.Adapter
	// Wake hints that a gate was armed, or that one will be open soon. It may be nil, lose hints, or be closed.
	Wake <-chan struct{}
	// ActsWake hints that something is to be done to a post that was sent, in the same way.
	ActsWake <-chan struct{}
	// Boot reads a clock that goes on while the machine sleeps. Default: service.SinceBoot.
	Boot func() time.Duration
	Log  *slog.Logger
	// Watch is told what happens; nil is nobody.
	Watch *telemetry.Watch
}
