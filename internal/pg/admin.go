package pg

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"autopost"
)

// APIKey is what resolve_api_key answers.
type APIKey struct {
	WorkspaceID string   `json:"workspace_id"`
	KeyID       string   `json:"key_id"`
	Name        string   `json:"name"`
	Role        string   `json:"role"`
	Scopes      []string `json:"scopes"`
	// Unseen says that TouchAPIKey has something to note.
	Unseen bool `json:"unseen"`
}

// ResolveAPIKey finds the enabled key of a secret's SHA-256 that has not ended; nil when there is none.
func (s *Store) ResolveAPIKey(ctx context.Context, secretHash string) (*APIKey, error) {
	key, err := call[*APIKey](ctx, s, `select * from autopost.resolve_api_key($1)`, secretHash)
	if err != nil {
		return nil, fmt.Errorf("resolve api key: %w", err)
	}
	return key, nil
}

// TouchAPIKey notes that a key is used, once an hour at most.
func (s *Store) TouchAPIKey(ctx context.Context, workspace, key string) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.touch_api_key($1, $2::text::uuid)`, workspace, key); err != nil {
		return fmt.Errorf("touch api key %s: %w", key, err)
	}
	return nil
}

// NewAPIKey is what a key is made from; Scopes and ExpiresAt may be left out.
type NewAPIKey struct {
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	Scopes    []string   `json:"scopes,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// CreateAPIKey adds a key by the SHA-256 of its secret and returns its id.
func (s *Store) CreateAPIKey(ctx context.Context, a Act, key NewAPIKey, secretHash string) (string, error) {
	fields, err := json.Marshal(key)
	if err != nil {
		return "", fmt.Errorf("create api key ws=%s: %w", a.Workspace, err)
	}
	answer, err := call[struct{ ID string }](ctx, s, `select * from autopost.create_api_key($1, $2, $3, $4, $5)`,
		a.Workspace, json.RawMessage(fields), secretHash, a.Operator, a.Reason)
	if err != nil {
		return "", fmt.Errorf("create api key ws=%s: %w", a.Workspace, err)
	}
	return answer.ID, nil
}

// KeyAnswer is what became of a key.
type KeyAnswer struct {
	Applied bool `json:"applied"`
	// Reason says why nothing was applied: unknown_key, unchanged, disabled or expired.
	Reason string `json:"reason"`
	// ID is the new key's, of a rotation.
	ID string `json:"id"`
	// Before and After are the key that was named.
	Before APIKeyState `json:"before"`
	After  APIKeyState `json:"after"`
}

// APIKeyState is what acts change of a key.
type APIKeyState struct {
	Name      string     `json:"name"`
	Enabled   bool       `json:"enabled"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// RotateAPIKey puts a key with a fresh secret in the place of another, which ends after overlap; whole seconds count, thirty days at most.
func (s *Store) RotateAPIKey(ctx context.Context, a Act, key, secretHash string, overlap time.Duration) (KeyAnswer, error) {
	answer, err := call[KeyAnswer](ctx, s, `select * from autopost.rotate_api_key($1, $2::text::uuid, $3, $4, $5, $6, $7)`,
		a.Workspace, key, secretHash, int(overlap/time.Second), a.Operator, a.Reason, a.DryRun)
	if err != nil {
		return answer, fmt.Errorf("rotate api key %s: %w", key, err)
	}
	return answer, nil
}

// DisableAPIKey ends a key for good.
func (s *Store) DisableAPIKey(ctx context.Context, a Act, key string) (KeyAnswer, error) {
	answer, err := call[KeyAnswer](ctx, s, `select * from autopost.disable_api_key($1, $2::text::uuid, $3, $4, $5)`,
		a.Workspace, key, a.Operator, a.Reason, a.DryRun)
	if err != nil {
		return answer, fmt.Errorf("disable api key %s: %w", key, err)
	}
	return answer, nil
}

// APIKeyRow is a row of the read model list_api_keys.
type APIKeyRow struct {
	KeyID      string
	Name       string
	Role       string
	Scopes     []string
	Enabled    bool
	ExpiresAt  *time.Time
	LastUsedAt *time.Time
	ReplacedBy *string
	CreatedAt  time.Time
}

// ListAPIKeys returns the keys of a workspace, or the one that is named, newest first; limit is 1 to 10,000.
func (s *Store) ListAPIKeys(ctx context.Context, workspace, key string, limit int) ([]APIKeyRow, error) {
	filter, err := json.Marshal(struct {
		KeyID string `json:"key_id,omitempty"`
	}{key})
	if err != nil {
		return nil, fmt.Errorf("list api keys ws=%s: %w", workspace, err)
	}
	return read[APIKeyRow](ctx, s, "list api keys ws="+workspace, `
		select key_id::text, name, role, scopes, enabled, expires_at, last_used_at, replaced_by::text, created_at
		from autopost.list_api_keys($1, $2, $3)`, workspace, json.RawMessage(filter), limit)
}

// Act says who does something by hand and why; both are required. A dry run changes
// nothing and answers what the act would.
type Act struct {
	Workspace string
	Operator  string
	Reason    string
	DryRun    bool
}

// ActAnswer is what an act by hand changed, or would.
type ActAnswer struct {
	Applied bool `json:"applied"`
	// Reason says why nothing was applied; empty when there was nothing in the way.
	Reason string `json:"reason"`
	// Waiting and Sending count deliveries of the channels acted on.
	Waiting int `json:"waiting"`
	Sending int `json:"sending"`
	// Channels are those that changed, by their id.
	Channels []ChannelChange `json:"channels"`
	// Results has a row for each delivery.
	Results []DeliveryResult `json:"results"`
	// Errors say why it is refused, where Reason is "invalid".
	Errors []FieldError `json:"errors"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

// ChannelChange is a channel before and after an act.
type ChannelChange struct {
	ChannelID string       `json:"channel_id"`
	Before    ChannelState `json:"before"`
	After     ChannelState `json:"after"`
}

// ChannelState is what acts change of a channel.
type ChannelState struct {
	Enabled     bool   `json:"enabled"`
	PausedUntil string `json:"paused_until"`
	ErrorStreak int    `json:"error_streak"`
}

// String says it in words.
func (s ChannelState) String() string {
	text := "enabled"
	if !s.Enabled {
		text = "disabled"
	}
	if s.PausedUntil != "" {
		text += ", paused until " + s.PausedUntil
	}
	if s.ErrorStreak > 0 {
		text += fmt.Sprintf(", %d failures in a row", s.ErrorStreak)
	}
	return text
}

// DeliveryResult is what became of one delivery, or would.
type DeliveryResult struct {
	DeliveryID string `json:"delivery_id"`
	// ActID, ChannelID and Message are told of acts on posts that were sent.
	ActID     string `json:"act_id"`
	ChannelID string `json:"channel_id"`
	Message   string `json:"message"`
	// Applied is nil where a row is listed only when it was acted on.
	Applied *bool  `json:"applied"`
	Reason  string `json:"reason"`
	Before  string `json:"before"`
	After   string `json:"after"`
	// Started says whether the call of a stale delivery had begun.
	Started bool `json:"started"`
}

// act asks one function of the runbook.
func (s *Store) act(ctx context.Context, what, workspace, sql string, args ...any) (ActAnswer, error) {
	raw, err := call[json.RawMessage](ctx, s, sql, args...)
	if err != nil {
		return ActAnswer{}, fmt.Errorf("%s ws=%s: %w", what, workspace, err)
	}
	answer := ActAnswer{Raw: raw}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return ActAnswer{}, fmt.Errorf("%s ws=%s: decode the answer: %w", what, workspace, err)
	}
	return answer, nil
}

// ManualRequeue puts dead or failed deliveries back into the queue; a dry run asks manual_requeue_preview.
func (s *Store) ManualRequeue(ctx context.Context, a Act, deliveries []string) (ActAnswer, error) {
	if a.DryRun {
		return s.act(ctx, "manual requeue preview", a.Workspace, `select * from autopost.manual_requeue_preview($1, $2::text[]::uuid[])`, a.Workspace, deliveries)
	}
	return s.act(ctx, "manual requeue", a.Workspace, `select * from autopost.manual_requeue($1, $2::text[]::uuid[], $3, $4)`,
		a.Workspace, deliveries, a.Operator, a.Reason)
}

// ResolveUnknown settles a delivery whose outcome nobody knows: it is there as the message of an id, or, where that is empty, it is not.
func (s *Store) ResolveUnknown(ctx context.Context, a Act, delivery, messageID string) (ActAnswer, error) {
	return s.act(ctx, "resolve unknown", a.Workspace, `select * from autopost.resolve_unknown($1, $2::text::uuid, case when $3 = '' then 'absent' else 'found' end, $3, $4, $5)`,
		a.Workspace, delivery, messageID, a.Operator, a.Reason)
}

// SkipDeliveries ends waiting deliveries without sending them.
func (s *Store) SkipDeliveries(ctx context.Context, a Act, deliveries []string) (ActAnswer, error) {
	return s.act(ctx, "skip deliveries", a.Workspace, `select * from autopost.skip_deliveries($1, $2::text[]::uuid[], $3, $4, $5)`,
		a.Workspace, deliveries, a.Operator, a.Reason, a.DryRun)
}

// ActRequest is something to be done to posts that were sent.
type ActRequest struct {
	Kind autopost.ActKind
	// MessageID names a message with all its channels, else DeliveryIDs name deliveries.
	MessageID   string
	DeliveryIDs []string
	// Changes are what an edit says instead, a JSON object; nil for other kinds.
	Changes json.RawMessage
	// At is when; nil is now.
	At *time.Time
}

// RequestActs has something done to posts that were sent.
func (s *Store) RequestActs(ctx context.Context, a Act, r ActRequest) (ActAnswer, error) {
	return s.act(ctx, "request acts", a.Workspace, `select * from autopost.request_acts($1, $2, nullif($3::text, '')::uuid, $4::text[]::uuid[], $5, $6, $7, $8, $9)`,
		a.Workspace, string(r.Kind), r.MessageID, r.DeliveryIDs, r.Changes, r.At, a.Operator, a.Reason, a.DryRun)
}

// CancelActs ends acts that wait.
func (s *Store) CancelActs(ctx context.Context, a Act, acts []string) (ActAnswer, error) {
	return s.act(ctx, "cancel acts", a.Workspace, `select * from autopost.cancel_acts($1, $2::text[]::uuid[], $3, $4, $5)`,
		a.Workspace, acts, a.Operator, a.Reason, a.DryRun)
}

// PauseChannel stops a channel for a time, of which whole seconds count: one second to a year.
func (s *Store) PauseChannel(ctx context.Context, a Act, channel string, pause time.Duration) (ActAnswer, error) {
	return s.act(ctx, "pause channel "+channel, a.Workspace, `select * from autopost.pause_channel($1, $2, $3, $4, $5, $6)`,
		a.Workspace, channel, int(pause/time.Second), a.Operator, a.Reason, a.DryRun)
}

// ResumeChannel enables a channel and ends its pause.
func (s *Store) ResumeChannel(ctx context.Context, a Act, channel string) (ActAnswer, error) {
	return s.act(ctx, "resume channel "+channel, a.Workspace, `select * from autopost.resume_channel($1, $2, $3, $4, $5)`,
		a.Workspace, channel, a.Operator, a.Reason, a.DryRun)
}

// DisableGroup disables all channels of a rate group; an empty platform stands for all.
func (s *Store) DisableGroup(ctx context.Context, a Act, platform, group string) (ActAnswer, error) {
	return s.act(ctx, "disable group "+group, a.Workspace, `select * from autopost.disable_group($1, nullif($2, ''), $3, $4, $5, $6)`,
		a.Workspace, platform, group, a.Operator, a.Reason, a.DryRun)
}

// EnableGroup resumes all channels of a rate group; an empty platform stands for all.
func (s *Store) EnableGroup(ctx context.Context, a Act, platform, group string) (ActAnswer, error) {
	return s.act(ctx, "enable group "+group, a.Workspace, `select * from autopost.enable_group($1, nullif($2, ''), $3, $4, $5, $6)`,
		a.Workspace, platform, group, a.Operator, a.Reason, a.DryRun)
}

// RotateAuth gives a channel another credential and, unless group is empty, another rate group.
func (s *Store) RotateAuth(ctx context.Context, a Act, channel, authRef, group string) (ActAnswer, error) {
	return s.act(ctx, "rotate auth of channel "+channel, a.Workspace, `select * from autopost.rotate_auth($1, $2, $3, nullif($4, ''), $5, $6, $7)`,
		a.Workspace, channel, authRef, group, a.Operator, a.Reason, a.DryRun)
}

// RequeueAuthLost lets the channels of a credential go on that waited because it was
// refused, and puts back what failed because of it.
func (s *Store) RequeueAuthLost(ctx context.Context, a Act, authRef string) (ActAnswer, error) {
	return s.act(ctx, "requeue auth lost of "+authRef, a.Workspace, `select * from autopost.requeue_auth_lost($1, $2, $3, $4, $5)`,
		a.Workspace, authRef, a.Operator, a.Reason, a.DryRun)
}

// ReleaseStale ends claims that are older than ten minutes or more; whole seconds count.
func (s *Store) ReleaseStale(ctx context.Context, a Act, olderThan time.Duration) (ActAnswer, error) {
	return s.act(ctx, "release stale", a.Workspace, `select * from autopost.release_stale($1, $2, $3, $4, $5)`,
		a.Workspace, int(olderThan/time.Second), a.Operator, a.Reason, a.DryRun)
}

// SealedAnswer is what put_sealed_secret answers.
type SealedAnswer struct {
	Applied bool `json:"applied"`
	// Reason is other_platform or newer where nothing was applied.
	Reason   string `json:"reason"`
	Platform string `json:"platform"`
	Created  bool   `json:"created"`
	Version  int    `json:"version"`
	// Resumed counts channels that go on; AuthLost deliveries that may be put back.
	Resumed  int `json:"resumed"`
	AuthLost int `json:"auth_lost"`
}

// SecretToPut is a sealed secret that a person gave, or the platform gave to a person.
type SecretToPut struct {
	AuthRef  string
	Platform string
	Sealed   SealedSecret
	// MadeBy is "set" or "link".
	MadeBy string
	// ValidFor is how long it is good for; 0 = nobody knows.
	ValidFor time.Duration
}

// PutSealedSecret keeps a secret sealed and binds the credential to it.
func (s *Store) PutSealedSecret(ctx context.Context, a Act, put SecretToPut) (SealedAnswer, error) {
	answer, err := call[SealedAnswer](ctx, s, `select * from autopost.put_sealed_secret($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		a.Workspace, put.AuthRef, put.Platform, put.Sealed, put.MadeBy, wholeSeconds(put.ValidFor), a.Operator, a.Reason, a.DryRun)
	if err != nil {
		return answer, fmt.Errorf("put sealed secret of %s ws=%s: %w", put.AuthRef, a.Workspace, err)
	}
	return answer, nil
}

// RecordCredentialCheck keeps what the platform said of a credential; failure is nil when it said it.
func (s *Store) RecordCredentialCheck(ctx context.Context, workspace, authRef string, standing autopost.Standing, failure *autopost.Error) error {
	var check any = map[string]any{"error": failure}
	if failure == nil {
		check = standing
	}
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.record_credential_check($1, $2, $3)`, workspace, authRef, check)
	if err != nil {
		return fmt.Errorf("record check of %s ws=%s: %w", authRef, workspace, err)
	}
	return nil
}

// ListMasterKeys counts the sealed secrets by the master key that wraps them.
func (s *Store) ListMasterKeys(ctx context.Context) (map[string]int, error) {
	keys, err := call[map[string]int](ctx, s, `select * from autopost.list_master_keys()`)
	if err != nil {
		return nil, fmt.Errorf("list master keys: %w", err)
	}
	return keys, nil
}

// ListSealedSecrets returns sealed secrets of a workspace that another master key than the given one wraps; limit is 1 to 10,000.
func (s *Store) ListSealedSecrets(ctx context.Context, workspace, notKeyID string, limit int) ([]SealedSecret, error) {
	list, err := call[[]SealedSecret](ctx, s, `select * from autopost.list_sealed_secrets($1, $2, $3)`, workspace, notKeyID, limit)
	if err != nil {
		return nil, fmt.Errorf("list sealed secrets ws=%s: %w", workspace, err)
	}
	return list, nil
}

// RewrapSecret lets another master key wrap a secret's data key; false means that it is under from no more.
func (s *Store) RewrapSecret(ctx context.Context, workspace, from string, sealed SealedSecret) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.rewrap_secret($1, $2, $3, $4, $5, $6)`,
		workspace, sealed.AuthRef, sealed.Version, from, sealed.KeyID, base64.StdEncoding.EncodeToString(sealed.WrappedKey))
	if err != nil {
		return false, fmt.Errorf("rewrap secret of %s ws=%s: %w", sealed.AuthRef, workspace, err)
	}
	return a.Applied, nil
}

// Template is how a template is written; all but Body may be left out.
type Template struct {
	Body      string            `json:"body"`
	Defaults  map[string]string `json:"defaults,omitempty"`
	Vars      []string          `json:"vars,omitempty"`
	Sanitize  []string          `json:"sanitize,omitempty"`
	ParseMode string            `json:"parse_mode,omitempty"`
	MaxLength int               `json:"max_length,omitempty"`
}

// FieldError says what is wrong with a field of what was written.
type FieldError struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// TemplateAnswer is what became of a template that was written.
type TemplateAnswer struct {
	Applied bool `json:"applied"`
	// Reason is "unchanged" or "invalid" where nothing was applied; Errors say why it is invalid.
	Reason  string       `json:"reason"`
	Version int          `json:"version"`
	Errors  []FieldError `json:"errors"`
}

// PutTemplate writes the next version of a template for a platform, or for all ("*").
func (s *Store) PutTemplate(ctx context.Context, a Act, id, platform string, template Template) (TemplateAnswer, error) {
	answer, err := call[TemplateAnswer](ctx, s, `select * from autopost.put_template($1, $2, $3, $4, $5, $6)`,
		a.Workspace, id, platform, template, a.Operator, a.Reason)
	if err != nil {
		return answer, fmt.Errorf("put template %s ws=%s: %w", id, a.Workspace, err)
	}
	return answer, nil
}

// EnableTemplate takes a version of a template out of use, or back into it.
func (s *Store) EnableTemplate(ctx context.Context, a Act, id, platform string, version int, enabled bool) (TemplateAnswer, error) {
	answer, err := call[TemplateAnswer](ctx, s, `select * from autopost.enable_template($1, $2, $3, $4, $5, $6, $7)`,
		a.Workspace, id, platform, version, enabled, a.Operator, a.Reason)
	if err != nil {
		return answer, fmt.Errorf("enable template %s ws=%s: %w", id, a.Workspace, err)
	}
	return answer, nil
}

// Preview is how a post looks in a template.
type Preview struct {
	// Status is "ok", or "invalid" with Errors.
	Status    string       `json:"status"`
	Text      string       `json:"text"`
	Truncated bool         `json:"truncated"`
	Length    int          `json:"length"`
	Limit     int          `json:"limit"`
	Version   string       `json:"template_version"`
	Errors    []FieldError `json:"errors"`
}

// PreviewTemplate shows a raw payload, whose template.vars are the sample, in a stored template, or in one still being written.
func (s *Store) PreviewTemplate(ctx context.Context, workspace, id, platform string, written *Template, payload json.RawMessage) (Preview, error) {
	answer, err := call[Preview](ctx, s, `select * from autopost.preview_template($1, $2, $3, $4, $5)`, workspace, id, platform, written, payload)
	if err != nil {
		return answer, fmt.Errorf("preview template %s ws=%s: %w", id, workspace, err)
	}
	return answer, nil
}

// EndpointChange is what became of an endpoint that was changed by hand, or would.
type EndpointChange struct {
	Applied bool `json:"applied"`
	Created bool `json:"created"`
	// Reason says why nothing was applied: unchanged, secret_in_use, source_in_use,
	// unknown_endpoint, disabled, id_in_use, rotating, or invalid, with Errors.
	Reason string `json:"reason"`
	// EndpointID is where the new secret belongs after a rotation.
	EndpointID string       `json:"endpoint_id"`
	Errors     []FieldError `json:"errors"`
	// Bound says whether signing_ref has its credential; nil where there is no signing_ref.
	Bound *bool `json:"bound"`
	// Note says what is left to do by hand; mostly empty.
	Note   string         `json:"note"`
	Before map[string]any `json:"before"`
	After  map[string]any `json:"after"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

func (s *Store) changeEndpoint(ctx context.Context, what string, a Act, endpoint, sql string, args ...any) (EndpointChange, error) {
	raw, err := call[json.RawMessage](ctx, s, sql, args...)
	if err != nil {
		return EndpointChange{}, fmt.Errorf("%s %s ws=%s: %w", what, endpoint, a.Workspace, err)
	}
	answer := EndpointChange{Raw: raw}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return EndpointChange{}, fmt.Errorf("%s %s ws=%s: decode the answer: %w", what, endpoint, a.Workspace, err)
	}
	return answer, nil
}

// PutEndpoint makes an endpoint, or changes those of its fields that are given.
func (s *Store) PutEndpoint(ctx context.Context, a Act, endpoint string, fields map[string]any) (EndpointChange, error) {
	return s.changeEndpoint(ctx, "put endpoint", a, endpoint, `select * from autopost.put_endpoint($1, $2, $3, $4, $5, $6)`,
		a.Workspace, endpoint, fields, a.Operator, a.Reason, a.DryRun)
}

// RotateEndpoint gives an endpoint another secret, the old one being good for a time.
func (s *Store) RotateEndpoint(ctx context.Context, a Act, endpoint string, fields map[string]any) (EndpointChange, error) {
	return s.changeEndpoint(ctx, "rotate endpoint", a, endpoint, `select * from autopost.rotate_endpoint($1, $2, $3, $4, $5, $6)`,
		a.Workspace, endpoint, fields, a.Operator, a.Reason, a.DryRun)
}

// DisableEndpoint ends an endpoint; its row stays.
func (s *Store) DisableEndpoint(ctx context.Context, a Act, endpoint string) (EndpointChange, error) {
	return s.changeEndpoint(ctx, "disable endpoint", a, endpoint, `select * from autopost.disable_endpoint($1, $2, $3, $4, $5)`,
		a.Workspace, endpoint, a.Operator, a.Reason, a.DryRun)
}
