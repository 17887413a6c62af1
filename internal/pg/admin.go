package pg

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"autopost"
	"autopost/internal/api"
	"autopost/internal/api/rest"
	"autopost/internal/credential"
	"autopost/internal/problem"
)

// ResolveAPIKey returns the valid key with this SHA-256 of its secret; nil if there is none.
func (s *Store) ResolveAPIKey(ctx context.Context, secretHash string) (*rest.Key, error) {
	key, err := call[*rest.Key](ctx, s, `select * from autopost.resolve_api_key($1)`, secretHash)
	if err != nil {
		return nil, fmt.Errorf("resolve api key: %w", err)
	}
	return key, nil
}

// TouchAPIKey records the use of a key, at most once per hour.
func (s *Store) TouchAPIKey(ctx context.Context, workspace, key string) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.touch_api_key($1, $2::text::uuid)`, workspace, key); err != nil {
		return fmt.Errorf("touch api key %s: %w", key, err)
	}
	return nil
}

// NewAPIKey describes a new key.
type NewAPIKey = rest.NewKey

// CreateAPIKey adds a key with this SHA-256 of its secret. The answer has its id.
func (s *Store) CreateAPIKey(ctx context.Context, a OperatorAction, key NewAPIKey, secretHash string) (Written, error) {
	return s.write(ctx, a, `autopost.create_api_key(@workspace, @fields, @secret_hash, @operator, @reason)`, args{"fields": key, "secret_hash": secretHash})
}

// KeyAnswer is the answer to a change of a key.
type KeyAnswer struct {
	Applied bool `json:"applied"`
	// Reason is unknown_key, unchanged, disabled or expired if nothing was changed.
	Reason string `json:"reason"`
	// ID is the id of the new key after a rotation.
	ID string `json:"id"`
	// Before and After describe the named key.
	Before APIKeyState `json:"before"`
	After  APIKeyState `json:"after"`
}

// APIKeyState is the changeable part of a key.
type APIKeyState struct {
	Name      string     `json:"name"`
	Enabled   bool       `json:"enabled"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// RotateAPIKey adds a key with a new secret that replaces another. The old key ends after overlap: whole seconds, at most
// thirty days.
func (s *Store) RotateAPIKey(ctx context.Context, a OperatorAction, key, secretHash string, overlap time.Duration) (KeyAnswer, error) {
	answer, err := call[KeyAnswer](ctx, s, `select * from autopost.rotate_api_key($1, $2::text::uuid, $3, $4, $5, $6, $7)`,
		a.Workspace, key, secretHash, int(overlap/time.Second), a.Operator, a.Reason, a.DryRun)
	if err != nil {
		return answer, fmt.Errorf("rotate api key %s: %w", key, err)
	}
	return answer, nil
}

// DisableAPIKey disables a key permanently.
func (s *Store) DisableAPIKey(ctx context.Context, a OperatorAction, key string) (Written, error) {
	return s.write(ctx, a, `autopost.disable_api_key(@workspace, @key::text::uuid, @operator, @reason, @dry_run)`, args{"key": key})
}

// APIKeyRow is a row of list_api_keys.
type APIKeyRow struct {
	KeyID      string     `json:"key_id"`
	Name       string     `json:"name"`
	Role       string     `json:"role"`
	Scopes     []string   `json:"scopes"`
	Enabled    bool       `json:"enabled"`
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	ReplacedBy *string    `json:"replaced_by"`
	CreatedAt  time.Time  `json:"created_at"`
}

// ListAPIKeys returns the keys of a workspace, newest first; only one if key is not "". limit is 1 to 10,000.
func (s *Store) ListAPIKeys(ctx context.Context, workspace, key string, limit int) ([]APIKeyRow, error) {
	filter := map[string]string{}
	if key != "" {
		filter["key_id"] = key
	}
	return List[APIKeyRow](ctx, s, Query{Function: "list_api_keys", Workspace: workspace, Filter: filter, Limit: limit})
}

// ActAnswer is the answer to a manual change of channels or deliveries. A dry run has the same answer.
type ActAnswer struct {
	whole

	Applied bool `json:"applied"`
	// Reason is the code of a refusal; "" if nothing was refused.
	Reason string `json:"reason"`
	// Waiting and Sending count deliveries of the channels.
	Waiting int `json:"waiting"`
	Sending int `json:"sending"`
	// Channels are the changed channels by id.
	Channels []ChannelChange `json:"channels"`
	// Results has one row per delivery.
	Results []DeliveryResult `json:"results"`
	// Errors are set if Reason is "invalid".
	Errors []problem.Fault `json:"errors"`
}

// ChannelChange is a channel before and after a change.
type ChannelChange struct {
	ChannelID string       `json:"channel_id"`
	Before    ChannelState `json:"before"`
	After     ChannelState `json:"after"`
}

// ChannelState is the changeable part of a channel.
type ChannelState struct {
	Enabled     bool   `json:"enabled"`
	PausedUntil string `json:"paused_until"`
	ErrorStreak int    `json:"error_streak"`
}

// String describes the state for people.
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

// DeliveryResult is the result for one delivery.
type DeliveryResult struct {
	DeliveryID string `json:"delivery_id"`
	// ActID, ChannelID and Message are set for post changes.
	ActID     string `json:"act_id"`
	ChannelID string `json:"channel_id"`
	Message   string `json:"message"`
	// Applied is nil if the answer lists only changed deliveries.
	Applied *bool  `json:"applied"`
	Reason  string `json:"reason"`
	Before  string `json:"before"`
	After   string `json:"after"`
	// Started means that the call of a stale delivery had started.
	Started bool `json:"started"`
}

// ManualRequeue requeues dead or failed deliveries. A dry run calls manual_requeue_preview.
func (s *Store) ManualRequeue(ctx context.Context, a OperatorAction, deliveries []string) (Written, error) {
	change := `autopost.manual_requeue(@workspace, @deliveries::text[]::uuid[], @operator, @reason)`
	if a.DryRun {
		change = `autopost.manual_requeue_preview(@workspace, @deliveries::text[]::uuid[])`
	}
	return s.write(ctx, a, change, args{"deliveries": deliveries})
}

// ResolveUnknown resolves an unknown outcome. The verdict is found, with the platform's id of the message, or absent.
func (s *Store) ResolveUnknown(ctx context.Context, a OperatorAction, delivery, verdict, messageID string) (Written, error) {
	return s.write(ctx, a, `autopost.resolve_unknown(@workspace, @delivery::text::uuid, @verdict, nullif(@message, ''), @operator, @reason)`, args{"delivery": delivery, "verdict": verdict, "message": messageID})
}

// SkipDeliveries makes waiting deliveries dead without sending them.
func (s *Store) SkipDeliveries(ctx context.Context, a OperatorAction, deliveries []string) (Written, error) {
	return s.write(ctx, a, `autopost.skip_deliveries(@workspace, @deliveries::text[]::uuid[], @operator, @reason, @dry_run)`, args{"deliveries": deliveries})
}

// Reschedule moves deliveries that wait: by their ids, or up to 1,000 of a message.
func (s *Store) Reschedule(ctx context.Context, a OperatorAction, m api.Move) (Written, error) {
	given := args{"message": m.MessageID, "deliveries": m.DeliveryIDs, "at": instantOrNull(m.At), "seconds": m.ShiftSeconds}
	switch {
	case m.MessageID != "":
		to := map[string]any{}
		switch {
		case m.NextFree:
			to["slot"] = "next_free"
		case m.At != "":
			to["at"] = m.At
		default:
			to["seconds"] = m.ShiftSeconds
		}
		if m.After != "" {
			to["after"] = m.After
		}
		given["to"] = to
		return s.write(ctx, a, `autopost.reschedule_post(@workspace, @message::text::uuid, @to, @operator, @reason, @dry_run)`, given)
	case m.NextFree || m.At != "":
		return s.write(ctx, a, `autopost.reschedule(@workspace, @deliveries::text[]::uuid[], @at::timestamptz, @operator, @reason, @dry_run)`, given)
	default:
		return s.write(ctx, a, `autopost.shift_deliveries(@workspace, @deliveries::text[]::uuid[], @seconds, @operator, @reason, @dry_run)`, given)
	}
}

// ReplacePost replaces the content of a post: where it waits by the new post, where it was sent by an edit.
func (s *Store) ReplacePost(ctx context.Context, a OperatorAction, message string, post json.RawMessage) (Written, error) {
	return s.write(ctx, a, `autopost.replace_post(@workspace, @message::text::uuid, @post, @operator, @reason, @dry_run)`, args{"message": message, "post": post})
}

// EditPost changes fields of a post, where it waits and where it was sent. at is the time of the change of sent posts in RFC 3339; "" is now.
func (s *Store) EditPost(ctx context.Context, a OperatorAction, message string, changes json.RawMessage, at string) (Written, error) {
	return s.write(ctx, a, `autopost.edit_post(@workspace, @message::text::uuid, @changes, @at::timestamptz, @operator, @reason, @dry_run)`,
		args{"message": message, "changes": changes, "at": instantOrNull(at)})
}

// SkipPost ends waiting deliveries of a post without sending them, at most 1,000 per call.
func (s *Store) SkipPost(ctx context.Context, a OperatorAction, message string) (Written, error) {
	return s.write(ctx, a, `autopost.skip_post(@workspace, @id::text::uuid, @operator, @reason, @dry_run)`, args{"id": message})
}

// RetrySubmission makes a failed submission fetch its media again.
func (s *Store) RetrySubmission(ctx context.Context, a OperatorAction, submission string) (Written, error) {
	return s.write(ctx, a, `autopost.retry_submission(@workspace, @submission::text::uuid, @operator, @reason, @dry_run)`, args{"submission": submission})
}

// DecideSubmission approves or rejects a submission. approval has digest, source and nonce; all are optional.
func (s *Store) DecideSubmission(ctx context.Context, a OperatorAction, submission, decision string, approval any) (Written, error) {
	return s.write(ctx, a, `autopost.decide_submission(@workspace, @submission::text::uuid, @decision, @approval, @operator, @reason)`,
		args{"submission": submission, "decision": decision, "approval": approval})
}

// EditSubmission changes fields of a post that waits for a decision. null removes a field.
func (s *Store) EditSubmission(ctx context.Context, a OperatorAction, submission string, changes json.RawMessage) (Written, error) {
	return s.write(ctx, a, `autopost.edit_submission(@workspace, @submission::text::uuid, @changes, @operator, @reason, @dry_run)`,
		args{"submission": submission, "changes": changes})
}

// RequestActs requests changes of sent posts.
func (s *Store) RequestActs(ctx context.Context, a OperatorAction, r api.ActRequest) (Written, error) {
	return s.write(ctx, a, `autopost.request_acts(@workspace, @kind, nullif(@message, '')::uuid, @deliveries::text[]::uuid[], @changes, @at::timestamptz,
		@operator, @reason, @dry_run)`, args{"kind": string(r.Kind), "message": r.MessageID, "deliveries": r.DeliveryIDs, "changes": r.Changes, "at": instantOrNull(r.At)})
}

// CancelActs cancels waiting post changes.
func (s *Store) CancelActs(ctx context.Context, a OperatorAction, acts []string) (Written, error) {
	return s.write(ctx, a, `autopost.cancel_acts(@workspace, @acts::text[]::uuid[], @operator, @reason, @dry_run)`, args{"acts": acts})
}

// PauseChannel pauses a channel for whole seconds: one second to a year.
func (s *Store) PauseChannel(ctx context.Context, a OperatorAction, channel string, pause time.Duration) (Written, error) {
	return s.write(ctx, a, `autopost.pause_channel(@workspace, @channel, @seconds, @operator, @reason, @dry_run)`, args{"channel": channel, "seconds": int(pause / time.Second)})
}

// ResumeChannel enables a channel and ends its pause.
func (s *Store) ResumeChannel(ctx context.Context, a OperatorAction, channel string) (Written, error) {
	return s.write(ctx, a, `autopost.resume_channel(@workspace, @channel, @operator, @reason, @dry_run)`, args{"channel": channel})
}

// PauseGroup pauses all channels of a rate group for whole seconds; platform "" means all platforms.
func (s *Store) PauseGroup(ctx context.Context, a OperatorAction, platform, group string, pause time.Duration) (Written, error) {
	return s.write(ctx, a, `autopost.pause_group(@workspace, nullif(@platform, ''), @group, @seconds, @operator, @reason, @dry_run)`,
		args{"platform": platform, "group": group, "seconds": int(pause / time.Second)})
}

// DisableGroup disables all channels of a rate group; platform "" means all platforms.
func (s *Store) DisableGroup(ctx context.Context, a OperatorAction, platform, group string) (Written, error) {
	return s.write(ctx, a, `autopost.disable_group(@workspace, nullif(@platform, ''), @group, @operator, @reason, @dry_run)`, args{"platform": platform, "group": group})
}

// EnableGroup resumes all channels of a rate group; platform "" means all platforms.
func (s *Store) EnableGroup(ctx context.Context, a OperatorAction, platform, group string) (Written, error) {
	return s.write(ctx, a, `autopost.enable_group(@workspace, nullif(@platform, ''), @group, @operator, @reason, @dry_run)`, args{"platform": platform, "group": group})
}

// RotateAuth replaces the credential of a channel and, unless group is "", its rate group.
func (s *Store) RotateAuth(ctx context.Context, a OperatorAction, channel, authRef, group string) (Written, error) {
	return s.write(ctx, a, `autopost.rotate_auth(@workspace, @channel, @auth_ref, nullif(@group, ''), @operator, @reason, @dry_run)`, args{"channel": channel, "auth_ref": authRef, "group": group})
}

// RequeueAuthLost resumes channels that wait because the credential was refused, and requeues deliveries that failed
// because of it.
func (s *Store) RequeueAuthLost(ctx context.Context, a OperatorAction, authRef string) (Written, error) {
	return s.write(ctx, a, `autopost.requeue_auth_lost(@workspace, @auth_ref, @operator, @reason, @dry_run)`, args{"auth_ref": authRef})
}

// ReleaseStale releases claims that are older than olderThan: whole seconds, at least ten minutes.
func (s *Store) ReleaseStale(ctx context.Context, a OperatorAction, olderThan time.Duration) (Written, error) {
	return s.write(ctx, a, `autopost.release_stale(@workspace, @seconds, @operator, @reason, @dry_run)`, args{"seconds": int(olderThan / time.Second)})
}

// SealedAnswer is the answer of put_sealed_secret.
type SealedAnswer struct {
	Applied bool `json:"applied"`
	// Reason is other_platform or newer if nothing was changed.
	Reason   string `json:"reason"`
	Platform string `json:"platform"`
	Created  bool   `json:"created"`
	Version  int    `json:"version"`
	// Resumed counts resumed channels; AuthLost deliveries that may be requeued.
	Resumed  int `json:"resumed"`
	AuthLost int `json:"auth_lost"`
}

// SecretToPut is a sealed secret from an operator, or from the platform through a link.
type SecretToPut struct {
	AuthRef  string
	Platform string
	// Hosts are those that get a secret of platform http; nil: as before.
	Hosts  []string
	Sealed credential.SealedSecret
	// MadeBy is "set" or "link".
	MadeBy string
	// ValidFor is the time until it expires; 0 if unknown.
	ValidFor time.Duration
}

// PutSealedSecret stores a sealed secret and binds the credential to it. Its answer is a SealedAnswer.
func (s *Store) PutSealedSecret(ctx context.Context, a OperatorAction, put SecretToPut) (Written, error) {
	return s.write(ctx, a, `autopost.put_sealed_secret(@workspace, @id, @platform, @sealed, @made_by, @valid_seconds, @operator, @reason, @dry_run, @hosts)`, args{
		"id": put.AuthRef, "platform": put.Platform, "sealed": put.Sealed, "made_by": put.MadeBy, "valid_seconds": wholeSeconds(put.ValidFor), "hosts": put.Hosts,
	})
}

// RecordCredentialCheck stores the result of a credential check. failure is nil if the platform answered.
func (s *Store) RecordCredentialCheck(ctx context.Context, workspace, authRef string, standing autopost.CredentialInfo, failure *autopost.Error) error {
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

// ListSealedSecrets returns the sealed secrets of a workspace that another master key wraps; limit is 1 to 10,000.
func (s *Store) ListSealedSecrets(ctx context.Context, workspace, notKeyID string, limit int) ([]credential.SealedSecret, error) {
	list, err := call[[]credential.SealedSecret](ctx, s, `select * from autopost.list_sealed_secrets($1, $2, $3)`, workspace, notKeyID, limit)
	if err != nil {
		return nil, fmt.Errorf("list sealed secrets ws=%s: %w", workspace, err)
	}
	return list, nil
}

// RewrapSecret replaces the master key that wraps a secret. It returns false if the present master key is not from.
func (s *Store) RewrapSecret(ctx context.Context, workspace, from string, sealed credential.SealedSecret) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.rewrap_secret($1, $2, $3, $4, $5, $6)`,
		workspace, sealed.AuthRef, sealed.Version, from, sealed.KeyID, base64.StdEncoding.EncodeToString(sealed.WrappedKey))
	if err != nil {
		return false, fmt.Errorf("rewrap secret of %s ws=%s: %w", sealed.AuthRef, workspace, err)
	}
	return a.Applied, nil
}

// Template is a new template. Only Body is required.
type Template struct {
	Body      string            `json:"body"`
	Defaults  map[string]string `json:"defaults,omitempty"`
	Vars      []string          `json:"vars,omitempty"`
	Sanitize  []string          `json:"sanitize,omitempty"`
	ParseMode string            `json:"parse_mode,omitempty"`
	MaxLength int               `json:"max_length,omitempty"`
}

// TemplateAnswer is the answer to a change of a template.
type TemplateAnswer struct {
	Applied bool `json:"applied"`
	// Reason is "unchanged", or "invalid" with Errors, if nothing was changed.
	Reason  string          `json:"reason"`
	Version int             `json:"version"`
	Errors  []problem.Fault `json:"errors"`
}

// PutTemplate adds a version of a template.
func (s *Store) PutTemplate(ctx context.Context, a OperatorAction, key api.TemplateKey, template any) (Written, error) {
	return s.write(ctx, a, `autopost.put_template(@workspace, @id, nullif(@platform, ''), @template, @operator, @reason)`, args{"id": key.ID, "platform": key.Platform, "template": template})
}

// EnableTemplate enables or disables a version of a template.
func (s *Store) EnableTemplate(ctx context.Context, a OperatorAction, key api.TemplateKey, version int, enabled bool) (Written, error) {
	return s.write(ctx, a, `autopost.enable_template(@workspace, @id, nullif(@platform, ''), @version, @enabled, @operator, @reason)`, args{"id": key.ID, "platform": key.Platform, "version": version, "enabled": enabled})
}

// Preview is a post rendered in a template, the answer of PreviewTemplate.
type Preview struct {
	// Status is "ok", or "invalid" with Errors.
	Status    string          `json:"status"`
	Text      string          `json:"text"`
	Truncated bool            `json:"truncated"`
	Length    int             `json:"length"`
	Limit     int             `json:"limit"`
	Version   string          `json:"template_version"`
	Errors    []problem.Fault `json:"errors"`
}

// PreviewTemplate renders a raw payload, with the sample in template.vars, in a template; nil means the stored one.
func (s *Store) PreviewTemplate(ctx context.Context, workspace string, key api.TemplateKey, template any, post json.RawMessage) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.preview_template($1, $2, $3, $4, $5)`, workspace, key.ID, key.Platform, template, post)
	if err != nil {
		return nil, fmt.Errorf("preview template %s ws=%s: %w", key.ID, workspace, err)
	}
	return raw, nil
}

// EndpointChange is the answer to a change of an endpoint. A dry run has the same answer.
type EndpointChange struct {
	whole

	Applied bool `json:"applied"`
	Created bool `json:"created"`
	// Reason is unchanged, secret_in_use, source_in_use, unknown_endpoint, disabled, id_in_use, rotating, or invalid
	// with Errors, if nothing was changed.
	Reason string `json:"reason"`
	// EndpointID is the endpoint of the new secret after a rotation.
	EndpointID string          `json:"endpoint_id"`
	Errors     []problem.Fault `json:"errors"`
	// Bound reports whether the credential of signing_ref exists; nil without signing_ref.
	Bound *bool `json:"bound"`
	// Note is a remaining manual step; usually "".
	Note   string         `json:"note"`
	Before map[string]any `json:"before"`
	After  map[string]any `json:"after"`
}

// PutEndpoint adds or changes an endpoint.
func (s *Store) PutEndpoint(ctx context.Context, a OperatorAction, endpoint string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_endpoint(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": endpoint, "fields": fields})
}

// RotateEndpoint replaces the secret of an endpoint. The old one stays valid for a time.
func (s *Store) RotateEndpoint(ctx context.Context, a OperatorAction, endpoint string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.rotate_endpoint(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": endpoint, "fields": fields})
}

// DisableEndpoint disables an endpoint permanently. Its row stays.
func (s *Store) DisableEndpoint(ctx context.Context, a OperatorAction, endpoint string) (Written, error) {
	return s.write(ctx, a, `autopost.disable_endpoint(@workspace, @id, @operator, @reason, @dry_run)`, args{"id": endpoint})
}
