package monitor

import (
	"context"
	"encoding/json"
	"time"

	"autopost"
)

// Store is what monitor needs from the database. *pg.Store implements it. The methods that return a count usually
// return 0.
type Store interface {
	MediaStore

	// ObserveClock compares the clock of the database with the time that has passed for the observer since its last
	// answered call; nil at the first. It returns how far the database's clock has jumped meanwhile.
	ObserveClock(ctx context.Context, observer string, elapsed *time.Duration) (jumped time.Duration, err error)

	// RecoverSendingLeases and RecoverClaimedLeases end the leases of dead holders and count the deliveries.
	RecoverSendingLeases(ctx context.Context, workspace string) (int, error)
	RecoverClaimedLeases(ctx context.Context, workspace string) (int, error)
	// ExpireSubmissions ends submissions that waited too long for a decision.
	ExpireSubmissions(ctx context.Context, workspace string) (int, error)
	// ExpireAuthLost ends deliveries that have waited too long for a refused credential.
	ExpireAuthLost(ctx context.Context, workspace string) (int, error)
	// CloseIngressFloods writes the events of drop counters whose period is over.
	CloseIngressFloods(ctx context.Context, workspace string) (int, error)
	// RearmGates opens the gates of channels with due deliveries whose wake-up was lost.
	RearmGates(ctx context.Context, workspace string) (int, error)

	// EnsureEventPartitions creates the missing event partitions of the coming days.
	EnsureEventPartitions(ctx context.Context) error
	// DropEventPartitions drops some expired days of events. inDefault counts rows outside every day's partition.
	DropEventPartitions(ctx context.Context) (dropped int, more bool, inDefault int, err error)
	// RefreshStatistics analyzes the tables that have outgrown their statistics, and returns their names.
	RefreshStatistics(ctx context.Context) ([]string, error)

	// The Purge methods remove some expired rows per call; more means that there are others.
	PurgeReceipts(ctx context.Context, workspace string) (purged int, more bool, err error)
	PurgeRuns(ctx context.Context, workspace string) (purged int, more bool, err error)
	PurgeSubmissions(ctx context.Context, workspace string) (purged int, more bool, err error)
	PurgeAuditLog(ctx context.Context, workspace string) (purged int, more bool, err error)
	PurgeSealedSecrets(ctx context.Context, workspace string) (purged int, more bool, err error)
	PurgeWebhookSends(ctx context.Context, workspace string) (purged int, more bool, err error)
	// PurgeConversations removes some expired conversations of the shop bot.
	PurgeConversations(ctx context.Context, workspace string) (purged int, more bool, err error)
	// PurgeDeliveries and PurgeMessages continue behind after ("" for the first call); next is "" at the end.
	PurgeDeliveries(ctx context.Context, workspace, after string) (purged int, next string, err error)
	PurgeMessages(ctx context.Context, workspace, after string) (purged int, next string, err error)

	// CheckIntegrity returns the rows of the last whole day that refer to nothing, as an object per kind with a
	// count and a sample, and the faults of the audit log. Each is also an alert.
	CheckIntegrity(ctx context.Context, workspace string) (orphans, audit []json.RawMessage, err error)
	// AuditHead returns the last row of a workspace's audit log; seq is 0 if the log is empty.
	AuditHead(ctx context.Context, workspace string) (seq int64, hash string, err error)

	// ListDueRefreshes returns up to limit credentials that must be renewed now.
	ListDueRefreshes(ctx context.Context, workspace string, limit int) ([]string, error)
	// WarnExpiring warns of expiring credentials without automatic renewal, and counts them.
	WarnExpiring(ctx context.Context, workspace string) (int, error)

	// ListDueSubscriptions leases endpoints whose bot subscriptions must be checked.
	ListDueSubscriptions(ctx context.Context, workspace string, limit int) ([]Bot, error)
	// BeginSubscription compares a subscription with the wanted one; why is "" if they are equal.
	BeginSubscription(ctx context.Context, workspace string, check SubscriptionCheck) (why string, err error)
	// FinishSubscription records the result of a check or a subscription; a nil failure means that the platform
	// accepted it.
	FinishSubscription(ctx context.Context, workspace, endpoint, secretHash string, failure *autopost.Error) (applied bool, err error)
	// ListUnaskedChats leases chats whose rights are unknown.
	ListUnaskedChats(ctx context.Context, workspace string, limit int) ([]Chat, error)
	// RecordChatRights records the rights in a chat; rights is "lost" or "regained" if channels changed with it.
	RecordChatRights(ctx context.Context, workspace string, chat Chat, right autopost.Right) (rights string, err error)

	// CheckAlerts checks a workspace and CheckInstallation what concerns all workspaces. They raise new alerts and
	// end those that are over.
	CheckAlerts(ctx context.Context, workspace string) (AlertChange, error)
	CheckInstallation(ctx context.Context) (AlertChange, error)
	// ClaimNotices leases up to limit due notices of a workspace.
	ClaimNotices(ctx context.Context, workspace string, limit int) ([]autopost.Notice, error)
	// FinishNotice records the result of a notice; a nil failure means that it was sent.
	FinishNotice(ctx context.Context, workspace, messageID, token string, failure *autopost.Error) error
	// ReadyModerationWorkspaces returns up to limit workspaces with a due call to a moderators' chat.
	ReadyModerationWorkspaces(ctx context.Context, limit int) ([]string, error)
	// ClaimModeration leases up to limit due calls to moderators' chats.
	ClaimModeration(ctx context.Context, workspace string, limit int) ([]autopost.ModerationCall, error)
	// FinishModeration records the outcome of a call.
	FinishModeration(ctx context.Context, workspace string, call autopost.ModerationCall, outcome autopost.Outcome) error
	// ReportDuty records the result of a duty.
	ReportDuty(ctx context.Context, report DutyReport) error
}

// MediaStore is what the removal of unneeded media needs from the database. *pg.Store implements it.
type MediaStore interface {
	// ListServedWorkspaces returns the active workspaces that a daemon at this node of the database serves; with all,
	// also the paused and the disabled ones.
	ListServedWorkspaces(ctx context.Context, all bool) ([]string, error)
	// ListUnreferencedOrigins returns media that a workspace no longer needs.
	ListUnreferencedOrigins(ctx context.Context, workspace string, limit int) ([]Origin, error)
	// ForgetMediaOrigin marks a medium as deleted. A token means that the object must be removed before
	// EndMediaRemoval; a reason means that the row is needed again, or that another daemon removes it.
	ForgetMediaOrigin(ctx context.Context, workspace, blobRef string) (token, reason string, err error)
	// RemoveMediaOrigin removes the row of a deleted medium.
	RemoveMediaOrigin(ctx context.Context, workspace, blobRef string) error
	// BeginMediaRemoval blocks the registration of content until EndMediaRemoval. It returns no token if a workspace
	// holds the content, or if another daemon removes it.
	BeginMediaRemoval(ctx context.Context, blobRef string) (token string, err error)
	EndMediaRemoval(ctx context.Context, blobRef, token string) error
	// ListMediaRemovals returns content whose removal was begun and not finished in time.
	ListMediaRemovals(ctx context.Context, limit int) ([]string, error)
	// ListUnknownMedia returns those of the given names that no workspace has a row of.
	ListUnknownMedia(ctx context.Context, blobRefs []string) ([]string, error)
	// RawKeptSince returns the first day (YYYYMMDD) whose raw payloads are kept.
	RawKeptSince(ctx context.Context) (string, error)
}

// Origin is a medium that a workspace no longer needs.
type Origin struct {
	BlobRef   string `json:"blob_ref"`
	OriginURL string `json:"origin_url"`
	SizeBytes int64  `json:"size_bytes"`
	// Forgotten means that it is marked as deleted and its row still exists.
	Forgotten bool `json:"forgotten"`
}

// Bot is an endpoint that receives the updates of a bot from its platform.
type Bot struct {
	EndpointID string            `json:"endpoint_id"`
	Platform   autopost.Platform `json:"platform"`
	AuthRef    string            `json:"auth_ref"`
}

// SubscriptionCheck is the wanted and the present subscription of a bot. SecretHash is the SHA-256 of the new secret.
type SubscriptionCheck struct {
	EndpointID string
	Want, Seen autopost.Subscription
	SecretHash string
}

// Chat is a chat in which the rights of a bot are unknown.
type Chat struct {
	Platform autopost.Platform `json:"platform"`
	AuthRef  string            `json:"auth_ref"`
	TargetID string            `json:"target_id"`
	AskAt    time.Time         `json:"ask_at"`
}

// AlertChange counts the alerts that a check raised and ended, and those that are open after it.
type AlertChange struct{ Raised, Ended, Open int }

// DutyReport is the result of a duty.
type DutyReport struct {
	RunID string
	Duty  string
	// At is the time of this machine's clock.
	At time.Time
	// Config is a digest of the settings that all daemons should share.
	Config string
	// Err is "" after a success.
	Err string
}
