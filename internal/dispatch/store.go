package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"autopost"
	"autopost/internal/telemetry"
)

// Store is what dispatch needs from the database. *pg.Store implements it. An error that is worker.ErrRefused
// repeats if the same call is made again; after any other error the call may have been applied.
type Store interface {
	// ReadyWork returns the claim keys with due work of up to limit workspaces, in a circle that starts behind the
	// workspace after. Groups without capacity are not due.
	ReadyWork(ctx context.Context, after string, limit int, free []Capacity) (Work, error)
	// ClaimAndStart leases up to limit due deliveries of a workspace to the run, and of each group at most its capacity.
	// It starts the calls of those whose slot is due and whose credential is in authRefs.
	ClaimAndStart(ctx context.Context, workspace, runID string, limit int, free []Capacity, authRefs []string) ([]Claimed, error)
	// ReleaseLost releases the unstarted claims of the run in a workspace, except those with a known token, and returns
	// the started ones.
	ReleaseLost(ctx context.Context, workspace, runID string, known []string) (released int, started []Claim, err error)
	// ReleaseClaims releases unstarted claims by their tokens.
	ReleaseClaims(ctx context.Context, workspace string, tokens []string) error

	// StartCallBatch writes start records and answers in the order of the claims. It may be repeated.
	StartCallBatch(ctx context.Context, workspace string, claims []Claim) ([]Start, error)
	// RecordSeriesProgress records an acknowledged step. It may be repeated.
	RecordSeriesProgress(ctx context.Context, workspace, deliveryID, claimToken string, ack autopost.Acknowledged) (Progress, error)
	// ExtendLease makes a lease end the given number of seconds from now; false means that the claim is not current.
	ExtendLease(ctx context.Context, workspace, deliveryID, claimToken string, seconds int) (applied bool, err error)
	// CommitOutcomeBatch records outcomes and answers in their order. A repeated call returns the same answers.
	CommitOutcomeBatch(ctx context.Context, workspace string, results []ClaimResult) ([]Commit, error)

	// ReadyActWorkspaces returns up to limit workspaces with due post changes.
	ReadyActWorkspaces(ctx context.Context, limit int) ([]string, error)
	// ClaimActs leases up to limit due post changes of a workspace to the run.
	ClaimActs(ctx context.Context, workspace, runID string, limit int) ([]autopost.PostChange, error)
	// StartAct writes the start record of a post change. It may be repeated.
	StartAct(ctx context.Context, workspace, actID, claimToken string) (Start, error)
	// CommitAct records the result of a post change; a nil failure is a success. It may be repeated. hasRaw is that of
	// ClaimResult.
	CommitAct(ctx context.Context, workspace, actID, claimToken string, failure *autopost.Error, hasRaw bool) (Commit, error)

	// TouchRun is the heartbeat of the run; ended is true for the last one.
	TouchRun(ctx context.Context, runID, host string, ended bool) error
}

// Work is the due work of an installation.
type Work struct {
	Ready []ClaimKey
	// NextIn is the time until more is due; nil if nothing waits.
	NextIn *time.Duration
}

// ClaimKey identifies the deliveries of one claim: those of a workspace for one platform.
type ClaimKey struct {
	WorkspaceID string
	Platform    autopost.Platform
}

// Capacity is how many more deliveries the daemon accepts of a rate group, or of a wider set of deliveries: an
// empty field matches any value. If several match a group, the least counts.
type Capacity struct {
	WorkspaceID string            `json:"workspace_id,omitempty"`
	Platform    autopost.Platform `json:"platform,omitempty"`
	RateGroup   string            `json:"rate_group,omitempty"`
	Free        int               `json:"room"`
}

// Claim identifies a claimed delivery.
type Claim struct {
	DeliveryID string `json:"delivery_id"`
	ClaimToken string `json:"claim_token"`
}

// Claimed is a claimed delivery. Start is set if its call is already started.
type Claimed struct {
	autopost.Delivery
	Start *Start
}

// ClaimResult is a claim with the outcome that ends it.
type ClaimResult struct {
	DeliveryID string           `json:"delivery_id"`
	ClaimToken string           `json:"claim_token"`
	Outcome    autopost.Outcome `json:"outcome"`
	// HasRaw means that the whole answer to a failed call is available.
	HasRaw bool `json:"has_raw,omitempty"`
}

// Start says whether a call may start. Its times are waits from now by the clock of the database.
type Start struct {
	// Applied is false if the call must not be made; the database has released the claim.
	Applied bool
	// Limited means that the call has a slot. A call without a slot may start at once.
	Limited bool
	// SendIn is the wait until the slot; negative if the slot has just passed.
	SendIn time.Duration
	// Deadline is the remaining time of the lease.
	Deadline time.Duration
	// Reason is stale, paused, disabled, workspace, window or rate if Applied is false.
	Reason string
}

// Progress is the answer to an acknowledged step.
type Progress struct {
	// Applied is false if the claim is not current; no further step may start.
	Applied bool
	// Limited and SendIn describe the slot of the next step, as in Start.
	Limited bool
	SendIn  time.Duration
	Reason  string
}

// Commit is the answer to an outcome.
type Commit struct {
	// Applied is false if the token was stale: the outcome changed nothing.
	Applied bool
	// Status is the delivery's status after the commit.
	Status      string
	Reason      string
	NextRetryAt *time.Time
	// PayloadRef is the name under which the raw payload must be stored; "" if none is kept.
	PayloadRef string
}

// Credentials resolves credential keys. Its errors are autopost.ErrNoCredential, an *autopost.RenewalError, or any
// other if the credential is not available at the moment.
type Credentials interface {
	Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error)
	// Renew replaces a secret that the platform refused with failure. It returns a zero secret if another one
	// would not help.
	Renew(ctx context.Context, d autopost.Delivery, used autopost.Secret, failure autopost.Error) (autopost.Secret, error)
}

// Media gives an adapter access to the media of one delivery.
type Media interface {
	MaterialsFor(d autopost.Delivery) autopost.MediaAccess
}

// RawPayloads stores raw payloads. *rawpayload.Keeper implements it.
type RawPayloads interface {
	// Keep stores what show returns under ref. It never waits, and a failure is only logged.
	Keep(workspace, ref string, show func() json.RawMessage)
}

// Deps is what a Dispatcher works with. The wake-ups, Boot, Raw and Recorder are optional.
type Deps struct {
	Store       Store
	Credentials Credentials
	Media       Media
	// Raw stores the answers to failed calls.
	Raw      RawPayloads
	Adapters map[autopost.Platform]autopost.Adapter
	// Wake hints that a gate is open or will open soon. It may be nil or closed, and it may lose hints.
	Wake <-chan struct{}
	// PostChangesWake hints that a post change is due, in the same way.
	PostChangesWake <-chan struct{}
	// Boot reads a clock that runs while the machine sleeps. Default: worker.SinceBoot.
	Boot     func() time.Duration
	Log      *slog.Logger
	Recorder *telemetry.Recorder
}
