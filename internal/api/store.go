package api

import (
	"context"
	"encoding/json"
	"time"

	"autopost"
	"autopost/internal/api/rest"
	"autopost/internal/media"
)

// Store is what the API needs from the database. *pg.Store implements it.
// Each method is named for the SQL function that it calls. Reads return JSON; nil means that the row does not exist.
type Store interface {
	rest.Store
	reads
	postWrites
	channelWrites
	configurationWrites
	botTools
	peopleWrites
}

type reads interface {
	GetRun(ctx context.Context, workspace, run string) (json.RawMessage, error)
	GetMessage(ctx context.Context, workspace, message string) (json.RawMessage, error)
	GetSubmission(ctx context.Context, workspace, submission string) (json.RawMessage, error)
	// PreviewOccurrences returns the instants of local times in a zone, in RFC 3339.
	PreviewOccurrences(ctx context.Context, workspace, zone string, times []time.Time) ([]string, error)
	// GetDraft returns a draft of a person.
	GetDraft(ctx context.Context, workspace, draft, author string) (json.RawMessage, error)
	GetPublishJob(ctx context.Context, workspace, job, platform string) (json.RawMessage, error)
	GetXPostConfig(ctx context.Context, workspace string) (json.RawMessage, error)
	XPostStats(ctx context.Context, workspace string) (json.RawMessage, error)
	// PreviewXPost renders an event of a type. template may be nil.
	PreviewXPost(ctx context.Context, workspace, kind string, template *string, values json.RawMessage) (json.RawMessage, error)
	// ListEventTypes returns an array.
	ListEventTypes(ctx context.Context, workspace string) (json.RawMessage, error)
	GetDelivery(ctx context.Context, workspace, delivery string) (json.RawMessage, error)
	Why(ctx context.Context, workspace, id string) (json.RawMessage, error)
	WhySource(ctx context.Context, workspace, source string) (json.RawMessage, error)
	// WhyWebhook explains the call for an event, or the whole webhook if event is "".
	WhyWebhook(ctx context.Context, workspace, webhook, event string) (json.RawMessage, error)
	// NextFreeSlots takes an instant in RFC 3339; "" is now.
	NextFreeSlots(ctx context.Context, workspace, channel, after string, limit int) (json.RawMessage, error)
	// Calendar takes instants in RFC 3339. channel "" means all channels.
	Calendar(ctx context.Context, workspace, from, until, channel string) (json.RawMessage, error)
	CalendarDays(ctx context.Context, workspace string, q CalendarDays) (json.RawMessage, error)
	Forecast(ctx context.Context, workspace string) (json.RawMessage, error)
	HealthSnapshot(ctx context.Context, workspace string) (json.RawMessage, error)
	AuditHead(ctx context.Context, workspace string) (seq int64, hash string, err error)
	// VerifyAudit takes an AuditHead that was kept outside; nil for none.
	VerifyAudit(ctx context.Context, workspace string, head any) (AuditVerdict, error)
	// ListDaemons returns the daemons of the installation.
	ListDaemons(ctx context.Context) ([]Daemon, error)
	GetSummary(ctx context.Context, workspace string) (json.RawMessage, error)
	GetOverview(ctx context.Context, workspace string) (json.RawMessage, error)
	// Plan takes an instant in RFC 3339; "" is now.
	Plan(ctx context.Context, workspace string, post json.RawMessage, at string) (json.RawMessage, error)
	// PreviewTemplate renders post in template, or in the newest enabled version if template is nil.
	PreviewTemplate(ctx context.Context, workspace string, key TemplateKey, template any, post json.RawMessage) (json.RawMessage, error)
}

type postWrites interface {
	CreateRawLink(ctx context.Context, a rest.OperatorAction, event, token string) (rest.Written, error)
	// UseRawLink returns the name of the payload; "" if the link is unknown, used or expired.
	UseRawLink(ctx context.Context, workspace, token string) (ref string, err error)
	Reschedule(ctx context.Context, a rest.OperatorAction, m Move) (rest.Written, error)
	// EditPost takes the time of the change of sent posts in RFC 3339; "" is now.
	EditPost(ctx context.Context, a rest.OperatorAction, message string, changes json.RawMessage, at string) (rest.Written, error)
	SkipPost(ctx context.Context, a rest.OperatorAction, message string) (rest.Written, error)
	SubmitPost(ctx context.Context, a rest.OperatorAction, endpoint, kind string, post json.RawMessage) (rest.Written, error)
	// PutDraft makes a new draft of the operator if draft is "".
	PutDraft(ctx context.Context, a rest.OperatorAction, draft string, fields any) (rest.Written, error)
	RemoveDraft(ctx context.Context, a rest.OperatorAction, draft string) (rest.Written, error)
	SubmitDraft(ctx context.Context, a rest.OperatorAction, draft, kind string) (rest.Written, error)
	// PutRecurrence makes a new recurrence if id is "".
	PutRecurrence(ctx context.Context, a rest.OperatorAction, id string, fields any) (rest.Written, error)
	RemoveRecurrence(ctx context.Context, a rest.OperatorAction, id string) (rest.Written, error)
	// MoveOccurrence takes an instant in RFC 3339; "" skips the occurrence.
	MoveOccurrence(ctx context.Context, a rest.OperatorAction, id, occurrence, at string) (rest.Written, error)
	// PutUpload registers origin for the workspace. shown is added to the answer.
	PutUpload(ctx context.Context, a rest.OperatorAction, origin media.Origin, shown any) (rest.Written, error)
	// RecordUpload uses the workspace of a; that of key is ignored.
	RecordUpload(ctx context.Context, a rest.OperatorAction, key media.BlobKey, used autopost.Used) (rest.Written, error)
	ManualRequeue(ctx context.Context, a rest.OperatorAction, deliveries []string) (rest.Written, error)
	SkipDeliveries(ctx context.Context, a rest.OperatorAction, deliveries []string) (rest.Written, error)
	PutXPostConfig(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error)
	PutEventType(ctx context.Context, a rest.OperatorAction, event string, fields any) (rest.Written, error)
	PutAvatar(ctx context.Context, a rest.OperatorAction, avatar string, fields any) (rest.Written, error)
	// SubmitEvent takes the only endpoint of the workspace if endpoint is "".
	SubmitEvent(ctx context.Context, a rest.OperatorAction, endpoint string, event json.RawMessage) (rest.Written, error)
	RetrySubmission(ctx context.Context, a rest.OperatorAction, submission string) (rest.Written, error)
	// DecideSubmission takes the decision approve or reject, and an Approval.
	DecideSubmission(ctx context.Context, a rest.OperatorAction, submission, decision string, approval any) (rest.Written, error)
	EditSubmission(ctx context.Context, a rest.OperatorAction, submission string, changes json.RawMessage) (rest.Written, error)
	// DecidePublishJob takes the decision approve or reject.
	DecidePublishJob(ctx context.Context, a rest.OperatorAction, job, platform, decision string, approval any) (rest.Written, error)
	// PreparePublishJob takes the only source of kind filebus if source is "".
	PreparePublishJob(ctx context.Context, a rest.OperatorAction, source, job, platform string, fields any) (rest.Written, error)
	// ResolveUnknown takes the verdict found, with the platform's id of the message, or absent.
	ResolveUnknown(ctx context.Context, a rest.OperatorAction, delivery, verdict, messageID string) (rest.Written, error)
	ReleaseStale(ctx context.Context, a rest.OperatorAction, olderThan time.Duration) (rest.Written, error)
	RequestActs(ctx context.Context, a rest.OperatorAction, r ActRequest) (rest.Written, error)
	CancelActs(ctx context.Context, a rest.OperatorAction, acts []string) (rest.Written, error)
}

type channelWrites interface {
	PauseChannel(ctx context.Context, a rest.OperatorAction, channel string, pause time.Duration) (rest.Written, error)
	ResumeChannel(ctx context.Context, a rest.OperatorAction, channel string) (rest.Written, error)
	// RotateAuth keeps the rate group if group is "".
	RotateAuth(ctx context.Context, a rest.OperatorAction, channel, authRef, group string) (rest.Written, error)
	RemoveCredential(ctx context.Context, a rest.OperatorAction, authRef string) (rest.Written, error)
	RequeueAuthLost(ctx context.Context, a rest.OperatorAction, authRef string) (rest.Written, error)
	PauseGroup(ctx context.Context, a rest.OperatorAction, platform, group string, pause time.Duration) (rest.Written, error)
	DisableGroup(ctx context.Context, a rest.OperatorAction, platform, group string) (rest.Written, error)
	EnableGroup(ctx context.Context, a rest.OperatorAction, platform, group string) (rest.Written, error)
}

// configurationWrites change rows of configuration. fields marshals to a JSON object of the columns that change; null
// restores the default.
type configurationWrites interface {
	PutWorkspace(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error)
	PutChannel(ctx context.Context, a rest.OperatorAction, channel string, fields any) (rest.Written, error)
	RemoveChannel(ctx context.Context, a rest.OperatorAction, channel string) (rest.Written, error)
	PutRateGroup(ctx context.Context, a rest.OperatorAction, platform, group string, fields any) (rest.Written, error)
	// PutQuota and DeleteQuota take the id SUBJECT/SECONDS.
	PutQuota(ctx context.Context, a rest.OperatorAction, quota string, fields any) (rest.Written, error)
	DeleteQuota(ctx context.Context, a rest.OperatorAction, quota string) (rest.Written, error)
	PutBudget(ctx context.Context, a rest.OperatorAction, authRef string, fields any) (rest.Written, error)
	// PutRetryPolicy takes the id PLATFORM/CODE.
	PutRetryPolicy(ctx context.Context, a rest.OperatorAction, policy string, fields any) (rest.Written, error)
	PutTemplate(ctx context.Context, a rest.OperatorAction, key TemplateKey, template any) (rest.Written, error)
	EnableTemplate(ctx context.Context, a rest.OperatorAction, key TemplateKey, version int, enabled bool) (rest.Written, error)
	PutEndpoint(ctx context.Context, a rest.OperatorAction, endpoint string, fields any) (rest.Written, error)
	RotateEndpoint(ctx context.Context, a rest.OperatorAction, endpoint string, fields any) (rest.Written, error)
	DisableEndpoint(ctx context.Context, a rest.OperatorAction, endpoint string) (rest.Written, error)
	PutSource(ctx context.Context, a rest.OperatorAction, source string, fields any) (rest.Written, error)
	PollSourceNow(ctx context.Context, a rest.OperatorAction, source string) (rest.Written, error)
	RemoveWebhook(ctx context.Context, a rest.OperatorAction, webhook string) (rest.Written, error)
	PutWebhook(ctx context.Context, a rest.OperatorAction, webhook string, fields any) (rest.Written, error)
	TestWebhook(ctx context.Context, a rest.OperatorAction, webhook string) (rest.Written, error)
	// ReplayWebhook takes a filter with since and until, or event_ids, and failed_only.
	ReplayWebhook(ctx context.Context, a rest.OperatorAction, webhook string, filter any) (rest.Written, error)
	PutModerationChat(ctx context.Context, a rest.OperatorAction, chat string, fields any) (rest.Written, error)
	RemoveModerationChat(ctx context.Context, a rest.OperatorAction, chat string) (rest.Written, error)
	RemoveAlertTarget(ctx context.Context, a rest.OperatorAction, target string) (rest.Written, error)
	// ApplySettings takes the changed settings by key; null restores a default.
	ApplySettings(ctx context.Context, a rest.OperatorAction, values any) (rest.Written, error)
	ExportConfig(ctx context.Context, workspace string) ([]ConfigItem, error)
	ApplyConfig(ctx context.Context, a rest.OperatorAction, items []ConfigItem) (rest.Written, error)
	PutAlertTarget(ctx context.Context, a rest.OperatorAction, target string, fields any) (rest.Written, error)
	ConfirmAlertTarget(ctx context.Context, a rest.OperatorAction, target, code string) (rest.Written, error)
	TestAlertTarget(ctx context.Context, a rest.OperatorAction, target string) (rest.Written, error)
	AcknowledgeAlert(ctx context.Context, a rest.OperatorAction, alert string) (rest.Written, error)
	DisableAPIKey(ctx context.Context, a rest.OperatorAction, key string) (rest.Written, error)
}

// peopleWrites change people, their sessions and their keys.
type peopleWrites interface {
	PutUser(ctx context.Context, a rest.OperatorAction, user string, fields any) (rest.Written, error)
	// PutMembership ends the membership if role is "".
	PutMembership(ctx context.Context, a rest.OperatorAction, user, role string) (rest.Written, error)
	InviteUser(ctx context.Context, a rest.OperatorAction, email, role, tokenHash string) (rest.Written, error)
	RevokeInvitation(ctx context.Context, a rest.OperatorAction, invitation string) (rest.Written, error)
	EndSessions(ctx context.Context, a rest.OperatorAction, user string) (rest.Written, error)
	EndOwnSession(ctx context.Context, a rest.OperatorAction, user, session string) (rest.Written, error)
	CreateAPIKey(ctx context.Context, a rest.OperatorAction, key rest.NewKey, secretHash string) (rest.Written, error)
	// CreateWorkspace uses the workspace of a, with user as its owner.
	CreateWorkspace(ctx context.Context, a rest.OperatorAction, name, user string) (rest.Written, error)
}

// TemplateKey names a template. Platform is "*" or "" for the template of all platforms.
type TemplateKey struct{ ID, Platform string }

// ActRequest requests a post change of sent posts.
type ActRequest struct {
	Kind autopost.ChangeKind
	// MessageID selects all deliveries of a message. If it is "", DeliveryIDs select deliveries.
	MessageID   string
	DeliveryIDs []string
	// Changes are the new fields of an edit, a JSON object; nil for other kinds.
	Changes json.RawMessage
	// At is the time in RFC 3339; "" is now.
	At string
}

// Move moves deliveries that wait. At, NextFree and ShiftSeconds exclude each other.
type Move struct {
	// MessageID selects all deliveries of a message. If it is "", DeliveryIDs select deliveries.
	MessageID   string
	DeliveryIDs []string
	// At is the new time in RFC 3339.
	At string
	// NextFree takes the next free slot of each channel.
	NextFree bool
	// ShiftSeconds is how much later than planned; negative: earlier.
	ShiftSeconds int
	// After is the last delivery of the call before, for a message with more deliveries than one call moves.
	After string
}

// botTools are for the authors of the bot's rules. rules nil means the enabled ones.
type botTools interface {
	PutBotRule(ctx context.Context, a rest.OperatorAction, rule string, fields any) (rest.Written, error)
	EnableBotRule(ctx context.Context, a rest.OperatorAction, rule string, version int) (rest.Written, error)
	BotForget(ctx context.Context, a rest.OperatorAction, provider, authRef, chat string) (rest.Written, error)
	BotTry(ctx context.Context, workspace string, rules json.RawMessage, config, state, message any) (json.RawMessage, error)
	LintBotRules(ctx context.Context, workspace string, rules json.RawMessage) (json.RawMessage, error)
	ReplayBotRules(ctx context.Context, workspace string, rules json.RawMessage, filter any, limit int) ([]json.RawMessage, error)
	BotReport(ctx context.Context, workspace string, since time.Time, limit int) (json.RawMessage, error)
	BotTranscript(ctx context.Context, workspace, provider, authRef, chat string, limit int) ([]json.RawMessage, error)
}
