package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost"
	"autopost/internal/api"
)

// DeliveryRow is a row of list_deliveries.
type DeliveryRow struct {
	DeliveryID string `json:"delivery_id"`
	MessageID  string `json:"message_id"`
	ChannelID  string `json:"channel_id"`
	Platform   string `json:"platform"`
	TargetID   string `json:"target_id"`
	Status     string `json:"status"`
	Attempt    int    `json:"attempt"`
	// ScheduledFor is nil if the post may go at once.
	ScheduledFor *time.Time `json:"scheduled_for"`
	CreatedAt    time.Time  `json:"created_at"`
	// NextRetryAt is nil also if the delivery waits for an operator.
	NextRetryAt       *time.Time      `json:"next_retry_at"`
	ProviderMessageID *string         `json:"provider_message_id"`
	SentAt            *time.Time      `json:"sent_at"`
	LastError         json.RawMessage `json:"last_error"`
	RenderedText      string          `json:"rendered_text"`
	RenderMeta        json.RawMessage `json:"render_meta"`
}

// DeliveryFilter selects deliveries; an empty field selects all.
type DeliveryFilter struct {
	DeliveryID string `json:"delivery_id,omitempty"`
	MessageID  string `json:"message_id,omitempty"`
	ChannelID  string `json:"channel_id,omitempty"`
	Status     string `json:"status,omitempty"`
	ErrorCode  string `json:"error_code,omitempty"`
	// Since is the earliest creation in RFC 3339.
	Since string `json:"since,omitempty"`
}

// Query returns the query of the newest deliveries; limit is 1 to 10,000.
func (f DeliveryFilter) Query(workspace string, limit int) Query {
	return Query{Function: "list_deliveries", Workspace: workspace, Filter: f, Limit: limit}
}

// ListDeliveries returns deliveries, newest first; limit is 1 to 10,000.
func (s *Store) ListDeliveries(ctx context.Context, workspace string, filter DeliveryFilter, limit int) ([]DeliveryRow, error) {
	return List[DeliveryRow](ctx, s, filter.Query(workspace, limit))
}

// Why explains a delivery: its origin, its history and its wait reasons.
func (s *Store) Why(ctx context.Context, workspace, delivery string) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.why($1, $2::text::uuid)`, workspace, delivery)
	if err != nil {
		return nil, fmt.Errorf("why delivery=%s: %w", delivery, err)
	}
	return a, nil
}

// WhySource explains a source as JSON; nil if it does not exist.
func (s *Store) WhySource(ctx context.Context, workspace, source string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.why_source($1, $2)`, workspace, source)
	if err != nil {
		return nil, fmt.Errorf("why source=%s ws=%s: %w", source, workspace, err)
	}
	return raw, nil
}

// WhyWebhook explains a result webhook as JSON, or its call for an event if event is not ""; nil if there is none.
func (s *Store) WhyWebhook(ctx context.Context, workspace, webhook, event string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.why_webhook($1, $2, nullif($3::text, '')::uuid)`, workspace, webhook, event)
	if err != nil {
		return nil, fmt.Errorf("why webhook=%s ws=%s: %w", webhook, workspace, err)
	}
	return raw, nil
}

// Forecast predicts when the queue of a workspace is empty.
func (s *Store) Forecast(ctx context.Context, workspace string) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.forecast($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("forecast ws=%s: %w", workspace, err)
	}
	return a, nil
}

// NextFreeSlots returns the next free slots of a channel from an instant in RFC 3339 on; "" is now. It reserves nothing.
func (s *Store) NextFreeSlots(ctx context.Context, workspace, channel, after string, limit int) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.next_free_slots($1, $2, $3::timestamptz, $4)`, workspace, channel, instantOrNull(after), limit)
	if err != nil {
		return nil, fmt.Errorf("next free slots ws=%s channel=%s: %w", workspace, channel, err)
	}
	return a, nil
}

// Calendar returns what was sent and what waits in an interval; instants are in RFC 3339. channel "" means all channels.
func (s *Store) Calendar(ctx context.Context, workspace, from, until, channel string) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.calendar($1, $2::timestamptz, $3::timestamptz, nullif($4, ''))`, workspace, from, until, channel)
	if err != nil {
		return nil, fmt.Errorf("calendar ws=%s: %w", workspace, err)
	}
	return a, nil
}

// CalendarDays returns the calendar of an interval by the days of a zone, with the first items of each.
func (s *Store) CalendarDays(ctx context.Context, workspace string, q api.CalendarDays) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.calendar_days($1, $2::timestamptz, $3::timestamptz, $4, nullif($5, ''), $6)`,
		workspace, q.From, q.Until, q.Zone, q.ChannelID, q.Shown)
	if err != nil {
		return nil, fmt.Errorf("calendar days ws=%s: %w", workspace, err)
	}
	return a, nil
}

// Plan returns the result that an enqueue of a post would have at an instant in RFC 3339; "" is now. It writes nothing.
func (s *Store) Plan(ctx context.Context, workspace string, post json.RawMessage, at string) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.plan($1, $2, $3::timestamptz)`, workspace, post, instantOrNull(at))
	if err != nil {
		return nil, fmt.Errorf("plan ws=%s: %w", workspace, err)
	}
	return a, nil
}

// EventRow is a row of list_events.
type EventRow struct {
	TS         time.Time       `json:"ts"`
	Action     string          `json:"action"`
	Result     string          `json:"result"`
	Attempt    int             `json:"attempt"`
	DeliveryID *string         `json:"delivery_id"`
	MessageID  *string         `json:"message_id"`
	ChannelID  *string         `json:"channel_id"`
	Error      json.RawMessage `json:"error"`
	Meta       json.RawMessage `json:"meta"`
}

// EventFilter selects events; an empty field selects all.
type EventFilter struct {
	DeliveryID string `json:"delivery_id,omitempty"`
	MessageID  string `json:"message_id,omitempty"`
	ChannelID  string `json:"channel_id,omitempty"`
	Action     string `json:"action,omitempty"`
	// Since is inclusive.
	Since time.Time `json:"since,omitzero"`
}

// ListEvents returns events, newest first; limit is 1 to 10,000.
func (s *Store) ListEvents(ctx context.Context, workspace string, filter EventFilter, limit int) ([]EventRow, error) {
	return List[EventRow](ctx, s, Query{Function: "list_events", Workspace: workspace, Filter: filter, Limit: limit})
}

// ChannelRow is a row of list_channels.
type ChannelRow struct {
	ChannelID string  `json:"channel_id"`
	Platform  string  `json:"platform"`
	TargetID  string  `json:"target_id"`
	Title     *string `json:"title"`
	Enabled   bool    `json:"enabled"`
	// Paused means that the pause ends in the future by the clock of the database.
	Paused bool `json:"paused"`
	// PausedUntil is nil for a channel that never paused. AuthHeld means that it waits for its credential.
	PausedUntil *time.Time `json:"paused_until"`
	AuthHeld    bool       `json:"auth_held"`
	// CredentialMissing means that the last claim found no secret for its credential.
	CredentialMissing bool   `json:"credential_missing"`
	ErrorStreak       int    `json:"error_streak"`
	AuthRef           string `json:"auth_ref"`
	RateGroup         string `json:"rate_group"`
	// RateRPS and GroupRateRPS are messages per second; an album counts its items. 0 means no limit.
	RateRPS      float64 `json:"rate_rps"`
	GroupRateRPS float64 `json:"group_rate_rps"`
	// EffectiveRPS is the present rate: lower than RateRPS after the platform limited the channel.
	EffectiveRPS float64  `json:"effective_rps"`
	SendMode     string   `json:"send_mode"`
	Tags         []string `json:"tags"`
	// RouteFilter is null if the channel accepts every post.
	RouteFilter json.RawMessage `json:"route_filter"`
}

// ListChannels returns the channels of a workspace by id; limit is 1 to 10,000.
func (s *Store) ListChannels(ctx context.Context, workspace string, limit int) ([]ChannelRow, error) {
	return read[ChannelRow](ctx, s, "list channels ws="+workspace, `
		select channel_id, platform, target_id, title, enabled, coalesce(paused_until > pg_catalog.now(), false), nullif(paused_until, 'infinity'), auth_held, credential_missing_at is not null, error_streak, auth_ref, rate_group,
			coalesce(rate_rps, 0)::float8, coalesce(group_rate_rps, 0)::float8, coalesce(effective_rps, 0)::float8, send_mode, tags, route_filter
		from autopost.list_channels($1, $2)`, workspace, limit)
}

// QueueRow counts the deliveries in a status that needs work or an operator.
type QueueRow struct {
	Status     string `json:"status"`
	Deliveries int64  `json:"deliveries"`
	// OldestDueAt is nil if all of them wait for an operator.
	OldestDueAt *time.Time `json:"oldest_due_at"`
}

// QueueSnapshot counts the deliveries that wait, are in flight or need an operator, by status.
func (s *Store) QueueSnapshot(ctx context.Context, workspace string) ([]QueueRow, error) {
	return List[QueueRow](ctx, s, Query{Function: "queue_snapshot", Workspace: workspace})
}

// TemplateRow is a row of list_templates.
type TemplateRow struct {
	TemplateID string          `json:"template_id"`
	Platform   string          `json:"platform"`
	Version    int             `json:"version"`
	Body       string          `json:"body"`
	Defaults   json.RawMessage `json:"defaults"`
	Vars       []string        `json:"vars"`
	Sanitize   []string        `json:"sanitize"`
	ParseMode  string          `json:"parse_mode"`
	// MaxLength is 0 if only the limit of the platform applies.
	MaxLength int        `json:"max_length"`
	Enabled   bool       `json:"enabled"`
	CreatedAt *time.Time `json:"created_at"`
}

// ListTemplates returns the templates of a workspace by name and platform, newest version first; limit is 1 to 10,000.
func (s *Store) ListTemplates(ctx context.Context, workspace string, limit int) ([]TemplateRow, error) {
	return List[TemplateRow](ctx, s, Query{Function: "list_templates", Workspace: workspace, Limit: limit})
}

// CredentialRow is a row of list_credentials, without the secret.
type CredentialRow struct {
	AuthRef  string `json:"auth_ref"`
	Platform string `json:"platform"`
	// Kept is env, file or sealed.
	Kept string `json:"kept_in"`
	// Version is that of the sealed secret in use; 0 if the first secret of env or file is in use.
	Version     int     `json:"version"`
	MasterKeyID *string `json:"master_key_id"`
	// ValidUntil is nil if unknown. NextRefreshAt is nil without automatic renewal.
	ValidUntil    *time.Time       `json:"valid_until"`
	RefreshedAt   *time.Time       `json:"refreshed_at"`
	NextRefreshAt *time.Time       `json:"next_refresh_at"`
	Failures      int              `json:"failures"`
	CheckedAt     *time.Time       `json:"checked_at"`
	Account       *string          `json:"account"`
	Rights        []autopost.Right `json:"rights"`
	Error         *autopost.Error  `json:"error"`
	LostAt        *time.Time       `json:"auth_lost_at"`
	Channels      int64            `json:"channels"`
}

// ListCredentials returns the credentials of a workspace by name; limit is 1 to 10,000.
func (s *Store) ListCredentials(ctx context.Context, workspace string, limit int) ([]CredentialRow, error) {
	return read[CredentialRow](ctx, s, "list credentials ws="+workspace, `
		select auth_ref, platform, kept, coalesce(version, 0), master_key_id, valid_until, refreshed_at, next_refresh_at, coalesce(failures, 0), checked_at, account,
			coalesce(rights, '[]'), error, lost_at, channels
		from autopost.list_credentials($1, $2)`, workspace, limit)
}

// read collects rows into T by position.
func read[T any](ctx context.Context, s *Store, what, sql string, args ...any) ([]T, error) {
	args, err := jsonArguments(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	rows, err := s.calls.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, translate(err))
	}
	return list, nil
}

// EndpointRow is a row of list_endpoints.
type EndpointRow struct {
	EndpointID      string     `json:"endpoint_id"`
	Kind            string     `json:"kind"`
	SourceID        *string    `json:"source_id"`
	Enabled         bool       `json:"enabled"`
	HasSecret       bool       `json:"has_secret"`
	SigningRef      *string    `json:"signing_ref"`
	OldSigningRef   *string    `json:"old_signing_ref"`
	OldSigningUntil *time.Time `json:"old_signing_until"`
	// IngressRPS is posts per second.
	IngressRPS      float64 `json:"ingress_rps"`
	MaxPayloadBytes int     `json:"max_payload_bytes"`
}

// ListEndpoints returns the endpoints of a workspace by id; limit is 1 to 10,000.
func (s *Store) ListEndpoints(ctx context.Context, workspace string, limit int) ([]EndpointRow, error) {
	return read[EndpointRow](ctx, s, "list endpoints ws="+workspace, `
		select endpoint_id, kind, source_id, enabled, has_secret, signing_ref, old_signing_ref, old_signing_until, ingress_rps::float8, max_payload_bytes
		from autopost.list_endpoints($1, $2)`, workspace, limit)
}

// GetEndpoint returns an endpoint with its recent requests as JSON; nil if it does not exist.
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
	// Messages counts the messages that refer to it.
	Messages int `json:"messages"`
	// Forgotten means that it is being removed.
	Forgotten bool `json:"forgotten"`
}

// ListMediaOrigins returns the stored media of a workspace, last used first; limit is 1 to 10,000.
func (s *Store) ListMediaOrigins(ctx context.Context, workspace string, limit int) ([]HeldMedium, error) {
	return List[HeldMedium](ctx, s, Query{Function: "list_media_origins", Workspace: workspace, Limit: limit})
}

// ChatRow is a row of list_chats: a chat with a bot, now or earlier.
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

// ListChats returns the chats of the bots of a workspace by platform, credential and id; limit is 1 to 10,000.
func (s *Store) ListChats(ctx context.Context, workspace string, limit int) ([]ChatRow, error) {
	return read[ChatRow](ctx, s, "list chats ws="+workspace, `
		select platform, auth_ref, target_id, title, username, kind, may_post, reason, migrated_to, first_seen, last_seen, left_at, channel_ids
		from autopost.list_chats($1, $2)`, workspace, limit)
}
