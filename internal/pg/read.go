package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost"
)

// DeliveryRow is a row of the read model list_deliveries.
type DeliveryRow struct {
	DeliveryID string
	MessageID  string
	ChannelID  string
	Platform   string
	TargetID   string
	Status     string
	Attempt    int
	// NextRetryAt is nil also for one that waits for a person.
	NextRetryAt       *time.Time
	ProviderMessageID *string
	SentAt            *time.Time
	LastError         json.RawMessage
	RenderedText      string
	RenderMeta        json.RawMessage
}

// DeliveryFilter selects deliveries; an empty field selects all.
type DeliveryFilter struct {
	DeliveryID string `json:"delivery_id,omitempty"`
	MessageID  string `json:"message_id,omitempty"`
	ChannelID  string `json:"channel_id,omitempty"`
	Status     string `json:"status,omitempty"`
}

// ListDeliveries returns the newest deliveries that fit, newest first; limit is 1 to 10,000.
func (s *Store) ListDeliveries(ctx context.Context, workspace string, filter DeliveryFilter, limit int) ([]DeliveryRow, error) {
	return read[DeliveryRow](ctx, s, "list deliveries ws="+workspace, `
		select delivery_id::text, message_id::text, channel_id, platform, target_id, status, attempt, nullif(next_retry_at, 'infinity'), provider_message_id, sent_at,
			last_error, rendered_text, render_meta
		from autopost.list_deliveries($1, $2, $3)`, workspace, filter, limit)
}

// Why explains a delivery: where it came from, what happened to it, what holds it now.
func (s *Store) Why(ctx context.Context, workspace, delivery string) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.why($1, $2::text::uuid)`, workspace, delivery)
	if err != nil {
		return nil, fmt.Errorf("why delivery=%s: %w", delivery, err)
	}
	return a, nil
}

// Forecast tells when what waits in a workspace will have gone.
func (s *Store) Forecast(ctx context.Context, workspace string) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.forecast($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("forecast ws=%s: %w", workspace, err)
	}
	return a, nil
}

// Plan tells what an enqueue of a post would do at an instant, or now where at is zero; it writes nothing.
func (s *Store) Plan(ctx context.Context, workspace string, post json.RawMessage, at time.Time) (json.RawMessage, error) {
	var instant *time.Time
	if !at.IsZero() {
		instant = &at
	}
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.plan($1, $2, $3)`, workspace, post, instant)
	if err != nil {
		return nil, fmt.Errorf("plan ws=%s: %w", workspace, err)
	}
	return a, nil
}

// EventRow is a row of the read model list_events.
type EventRow struct {
	TS         time.Time
	Action     string
	Result     string
	Attempt    int
	DeliveryID *string
	MessageID  *string
	ChannelID  *string
	Error      json.RawMessage
	Meta       json.RawMessage
}

// EventFilter selects events; an empty field selects all.
type EventFilter struct {
	DeliveryID string `json:"delivery_id,omitempty"`
	MessageID  string `json:"message_id,omitempty"`
	ChannelID  string `json:"channel_id,omitempty"`
	Action     string `json:"action,omitempty"`
	// Since is included.
	Since time.Time `json:"since,omitzero"`
}

// ListEvents returns the newest events that fit, newest first; limit is 1 to 10,000.
func (s *Store) ListEvents(ctx context.Context, workspace string, filter EventFilter, limit int) ([]EventRow, error) {
	return read[EventRow](ctx, s, "list events ws="+workspace, `
		select ts, action, result, attempt, delivery_id::text, message_id::text, channel_id, error, meta
		from autopost.list_events($1, $2, $3)`, workspace, filter, limit)
}

// ChannelRow is a row of the read model list_channels.
type ChannelRow struct {
	ChannelID string
	Platform  string
	TargetID  string
	Title     *string
	Enabled   bool
	// Paused says that the channel's pause lies in the future by the database's clock.
	Paused bool
	// PausedUntil is nil for a channel that never paused; AuthHeld says that it waits for its credential.
	PausedUntil *time.Time
	AuthHeld    bool
	ErrorStreak int
	AuthRef     string
	RateGroup   string
	// RateRPS and GroupRateRPS are messages a second, an album costing its items; 0 is no limit.
	RateRPS      float64
	GroupRateRPS float64
	SendMode     string
	Tags         []string
	// RouteFilter is null for a channel that takes every post.
	RouteFilter json.RawMessage
}

// ListChannels returns the channels of a workspace by their id; limit is 1 to 10,000.
func (s *Store) ListChannels(ctx context.Context, workspace string, limit int) ([]ChannelRow, error) {
	return read[ChannelRow](ctx, s, "list channels ws="+workspace, `
		select channel_id, platform, target_id, title, enabled, coalesce(paused_until > pg_catalog.now(), false), nullif(paused_until, 'infinity'), auth_held, error_streak, auth_ref, rate_group,
			coalesce(rate_rps, 0)::float8, coalesce(group_rate_rps, 0)::float8, send_mode, tags, route_filter
		from autopost.list_channels($1, $2)`, workspace, limit)
}

// QueueRow is a row of the read model queue_snapshot: a status that needs work or a person.
type QueueRow struct {
	Status     string
	Deliveries int64
	// OldestDueAt is nil when all of them wait for a person.
	OldestDueAt *time.Time
}

// QueueSnapshot counts what waits, is in flight or needs a person, by status.
func (s *Store) QueueSnapshot(ctx context.Context, workspace string) ([]QueueRow, error) {
	return read[QueueRow](ctx, s, "queue snapshot ws="+workspace, `
		select status, deliveries, nullif(oldest_due_at, 'infinity') from autopost.queue_snapshot($1)`, workspace)
}

// TemplateRow is a row of autopost.templates; version 0 is a built-in one.
type TemplateRow struct {
	TemplateID string
	Platform   string
	Version    int
	Body       string
	Defaults   json.RawMessage
	Vars       []string
	Sanitize   []string
	ParseMode  string
	// MaxLength is 0 where the platform's limit rules.
	MaxLength int
	Enabled   bool
	CreatedAt *time.Time
}

// ListTemplates returns the templates of a workspace by name and platform, newest version first; limit is 1 to 10,000.
func (s *Store) ListTemplates(ctx context.Context, workspace string, limit int) ([]TemplateRow, error) {
	return read[TemplateRow](ctx, s, "list templates ws="+workspace, `
		select template_id, platform, version, body, defaults, vars, sanitize, parse_mode, coalesce(max_length, 0), enabled, created_at
		from autopost.list_templates($1, '{}', $2)`, workspace, limit)
}

// CredentialRow is a row of the read model list_credentials: how a credential is, never the secret.
type CredentialRow struct {
	AuthRef  string
	Platform string
	// Kept is env, file or sealed.
	Kept string
	// Version is of the sealed secret in force, 0 where the first one of env or file is.
	Version     int
	MasterKeyID *string
	// ValidUntil is nil where nobody knows; NextRefreshAt where nobody renews it by itself.
	ValidUntil    *time.Time
	RefreshedAt   *time.Time
	NextRefreshAt *time.Time
	Failures      int
	CheckedAt     *time.Time
	Account       *string
	Rights        []autopost.Right
	Error         *autopost.Error
	LostAt        *time.Time
	Channels      int64
}

// ListCredentials returns the credentials of a workspace by name; limit is 1 to 10,000.
func (s *Store) ListCredentials(ctx context.Context, workspace string, limit int) ([]CredentialRow, error) {
	return read[CredentialRow](ctx, s, "list credentials ws="+workspace, `
		select auth_ref, platform, kept, coalesce(version, 0), master_key_id, valid_until, refreshed_at, next_refresh_at, coalesce(failures, 0), checked_at, account,
			coalesce(rights, '[]'), error, lost_at, channels
		from autopost.list_credentials($1, $2)`, workspace, limit)
}

// read collects the rows of a read model into T by position.
func read[T any](ctx context.Context, s *Store, what, sql string, args ...any) ([]T, error) {
	args, err := jsonArguments(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, translate(err))
	}
	return list, nil
}

// EndpointRow is a row of the read model list_endpoints.
type EndpointRow struct {
	EndpointID      string
	Kind            string
	SourceID        *string
	Enabled         bool
	HasSecret       bool
	SigningRef      *string
	OldSigningRef   *string
	OldSigningUntil *time.Time
	// IngressRPS is posts a second.
	IngressRPS      float64
	MaxPayloadBytes int
}

// ListEndpoints returns the endpoints of a workspace by their id; limit is 1 to 10,000.
func (s *Store) ListEndpoints(ctx context.Context, workspace string, limit int) ([]EndpointRow, error) {
	return read[EndpointRow](ctx, s, "list endpoints ws="+workspace, `
		select endpoint_id, kind, source_id, enabled, has_secret, signing_ref, old_signing_ref, old_signing_until, ingress_rps::float8, max_payload_bytes
		from autopost.list_endpoints($1, $2)`, workspace, limit)
}

// GetEndpoint returns an endpoint with what came in of late; nil when the workspace has no such endpoint.
func (s *Store) GetEndpoint(ctx context.Context, workspace, endpoint string) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.get_endpoint($1, $2)`, workspace, endpoint)
	if err != nil {
		return nil, fmt.Errorf("get endpoint %s: %w", endpoint, err)
	}
	return a, nil
}

// HeldMedium is a row of list_media_origins.
type HeldMedium struct {
	BlobRef     string    `json:"blob_ref"`
	Kind        string    `json:"kind"`
	ContentType string    `json:"content_type"`
	SizeBytes   int64     `json:"size_bytes"`
	Width       int       `json:"width"`
	Height      int       `json:"height"`
	LastSeenAt  time.Time `json:"last_seen_at"`
	// Messages is how many refer to it.
	Messages int `json:"messages"`
	// Forgotten says that it is being removed.
	Forgotten bool `json:"forgotten"`
}

// ListMediaOrigins lists what a workspace holds in the media origin, what was seen
// last first. limit is 1 to 10000.
func (s *Store) ListMediaOrigins(ctx context.Context, workspace string, limit int) ([]HeldMedium, error) {
	list, err := call[[]HeldMedium](ctx, s, `select * from autopost.list_media_origins($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list media origins ws=%s: %w", workspace, err)
	}
	return list, nil
}

// ChatRow is a row of list_chats: a chat that a bot is or was in.
type ChatRow struct {
	Platform   string     `json:"platform"`
	AuthRef    string     `json:"auth_ref"`
	TargetID   string     `json:"target_id"`
	Title      string     `json:"title"`
	Username   *string    `json:"username"`
	Kind       string     `json:"kind"`
	MayPost    *bool      `json:"may_post"`
	Reason     *string    `json:"reason"`
	MigratedTo *string    `json:"migrated_to"`
	FirstSeen  time.Time  `json:"first_seen"`
	LastSeen   time.Time  `json:"last_seen"`
	LeftAt     *time.Time `json:"left_at"`
	ChannelIDs []string   `json:"channel_ids"`
}

// ListChats lists the chats that the workspace's bots are or were in, by platform, credential and id; limit is 1 to 10,000.
func (s *Store) ListChats(ctx context.Context, workspace string, limit int) ([]ChatRow, error) {
	return read[ChatRow](ctx, s, "list chats ws="+workspace, `
		select platform, auth_ref, target_id, title, username, kind, may_post, reason, migrated_to, first_seen, last_seen, left_at, channel_ids
		from autopost.list_chats($1, $2)`, workspace, limit)
}
