package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"autopost/internal/ingest"
	"autopost/internal/recurrence"
)

// ReadyRecurrenceWorkspaces returns workspaces with a rule to expand or an occurrence to post.
func (s *Store) ReadyRecurrenceWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_recurrence_workspaces($1)`, limit)
}

// localTime is a local time in the JSON of the database.
type localTime struct{ time.Time }

// UnmarshalJSON reads a time without offset.
func (t *localTime) UnmarshalJSON(raw []byte) (err error) {
	t.Time, err = time.Parse(`"2006-01-02T15:04:05.999999"`, string(raw))
	return err
}

// ListDueRecurrences returns recurrences whose rules must be expanded.
func (s *Store) ListDueRecurrences(ctx context.Context, workspace string, limit int) ([]ingest.DueRecurrence, error) {
	rows, err := call[[]struct {
		RecurrenceID string `json:"recurrence_id"`
		Revision     int    `json:"revision"`
		Rule         string `json:"rule"`
		Most         int    `json:"most"`

		StartsAt localTime `json:"starts_at"`
		After    localTime `json:"after"`
		Until    localTime `json:"until"`
	}](ctx, s, `select * from autopost.list_due_recurrences($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list due recurrences ws=%s: %w", workspace, err)
	}
	due := make([]ingest.DueRecurrence, 0, len(rows))
	for _, r := range rows {
		due = append(due, ingest.DueRecurrence{
			RecurrenceID: r.RecurrenceID, Revision: r.Revision, Rule: r.Rule, Most: r.Most, StartsAt: r.StartsAt.Time, After: r.After.Time, Until: r.Until.Time,
		})
	}
	return due, nil
}

// localTexts returns local times as the literal of an array. A cluster does not accept text[]::timestamp[].
func localTexts(times []time.Time) string {
	texts := make([]string, 0, len(times))
	for _, at := range times {
		texts = append(texts, at.Format("2006-01-02T15:04:05"))
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// PutOccurrences stores the expansion of a rule, or the reason why there is none.
func (s *Store) PutOccurrences(ctx context.Context, workspace string, due ingest.DueRecurrence, found recurrence.Expansion, fault error) error {
	through, refused := "infinity", any(nil)
	if fault != nil {
		through, refused = due.After.Format(time.RFC3339), map[string]string{"code": "rule_refused", "message": fault.Error()}
	} else if !found.Through.IsZero() {
		through = found.Through.Format("2006-01-02T15:04:05")
	}
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.put_occurrences($1, $2::text::uuid, $3::timestamp[], $4::timestamp, $5, $6)`,
		workspace, due.RecurrenceID, localTexts(found.Times), through, due.Revision, refused)
	if err != nil {
		return fmt.Errorf("put occurrences of %s ws=%s: %w", due.RecurrenceID, workspace, err)
	}
	return nil
}

// RunRecurrences makes posts of due occurrences; more means that others are due.
func (s *Store) RunRecurrences(ctx context.Context, workspace string) (ran int, more bool, err error) {
	a, err := call[struct {
		Ran  int
		More bool
	}](ctx, s, `select * from autopost.run_recurrences($1)`, workspace)
	if err != nil {
		return 0, false, fmt.Errorf("run recurrences ws=%s: %w", workspace, err)
	}
	return a.Ran, a.More, nil
}

// PutRecurrence adds or changes a post that repeats; id "" makes a new one.
func (s *Store) PutRecurrence(ctx context.Context, a OperatorAction, id string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_recurrence(@workspace, nullif(@id, '')::uuid, @fields, @operator, @reason, @dry_run)`, args{"id": id, "fields": fields})
}

// RemoveRecurrence deletes a post that repeats. The posts that it made stay.
func (s *Store) RemoveRecurrence(ctx context.Context, a OperatorAction, id string) (Written, error) {
	return s.write(ctx, a, `autopost.remove_recurrence(@workspace, @id::text::uuid, @operator, @reason, @dry_run)`, args{"id": id})
}

// MoveOccurrence moves an expected occurrence to an instant in RFC 3339; at "" skips it.
func (s *Store) MoveOccurrence(ctx context.Context, a OperatorAction, id, occurrence, at string) (Written, error) {
	return s.write(ctx, a, `autopost.move_occurrence(@workspace, @id::text::uuid, @occurrence::text::uuid, @at::timestamptz, @operator, @reason, @dry_run)`,
		args{"id": id, "occurrence": occurrence, "at": instantOrNull(at)})
}

// PreviewOccurrences returns the instants of local times in a zone, as RFC 3339 in UTC.
func (s *Store) PreviewOccurrences(ctx context.Context, workspace, zone string, times []time.Time) ([]string, error) {
	instants, err := call[[]string](ctx, s, `select * from autopost.preview_occurrences($1, $2, $3::timestamp[])`, workspace, zone, localTexts(times))
	if err != nil {
		return nil, fmt.Errorf("preview occurrences ws=%s: %w", workspace, err)
	}
	return instants, nil
}
