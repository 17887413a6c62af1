package pg

import (
	"context"
	"encoding/json"
	"fmt"
)

// GetXPostConfig returns the stored and the effective configuration of Global X as JSON.
func (s *Store) GetXPostConfig(ctx context.Context, workspace string) (json.RawMessage, error) {
	return s.answerOf(ctx, "get x post config", workspace, `select * from autopost.get_x_post_config($1)`)
}

// XPostStats returns the events of the last days in numbers as JSON.
func (s *Store) XPostStats(ctx context.Context, workspace string) (json.RawMessage, error) {
	return s.answerOf(ctx, "x post stats", workspace, `select * from autopost.x_post_stats($1)`)
}

// ListEventTypes returns the own event types of a workspace as a JSON array.
func (s *Store) ListEventTypes(ctx context.Context, workspace string) (json.RawMessage, error) {
	return s.answerOf(ctx, "list event types", workspace, `select * from autopost.list_event_types($1)`)
}

// PreviewXPost returns the text of an event of a type (image, video, combat) as JSON. template nil is the newest version.
func (s *Store) PreviewXPost(ctx context.Context, workspace, kind string, template *string, values json.RawMessage) (json.RawMessage, error) {
	return s.answerOf(ctx, "preview x post", workspace, `select * from autopost.preview_x_post($1, $2, $3, $4)`, kind, template, values)
}

func (s *Store) answerOf(ctx context.Context, what, workspace, sql string, more ...any) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, sql, append([]any{workspace}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("%s ws=%s: %w", what, workspace, err)
	}
	return raw, nil
}

// PutXPostConfig changes fields of the configuration of Global X.
func (s *Store) PutXPostConfig(ctx context.Context, a OperatorAction, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_x_post_config(@workspace, @fields, @operator, @reason, @dry_run)`, args{"fields": fields})
}

// PutEventType adds or changes an own event type.
func (s *Store) PutEventType(ctx context.Context, a OperatorAction, event string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_event_type(@workspace, @event, @fields, @operator, @reason, @dry_run)`, args{"event": event, "fields": fields})
}

// PutAvatar names an avatar.
func (s *Store) PutAvatar(ctx context.Context, a OperatorAction, avatar string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_avatar(@workspace, @avatar, @fields, @operator, @reason, @dry_run)`, args{"avatar": avatar, "fields": fields})
}

// SubmitEvent stores one domain event of a caller of the API. endpoint "" is the only one of the workspace.
func (s *Store) SubmitEvent(ctx context.Context, a OperatorAction, endpoint string, event json.RawMessage) (Written, error) {
	return s.write(ctx, a, `autopost.receive_event(@workspace, nullif(@endpoint, ''), @event)`, args{"endpoint": endpoint, "event": event})
}

// BackfillXPosts records events that were posted before. lines is an array.
func (s *Store) BackfillXPosts(ctx context.Context, a OperatorAction, endpoint string, lines any) (Written, error) {
	return s.write(ctx, a, `autopost.backfill_x_posts(@workspace, @endpoint, @lines, @operator, @reason, @dry_run)`, args{"endpoint": endpoint, "lines": lines})
}
