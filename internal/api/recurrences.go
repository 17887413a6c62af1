package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
	"autopost/internal/recurrence"
)

type recurring struct {
	RecurrenceID string           `json:"recurrence_id" format:"uuid" doc:"The post that repeats."`
	EndpointID   string           `json:"endpoint_id" example:"cms"`
	Rule         string           `json:"rule" example:"FREQ=WEEKLY;BYDAY=MO,FR" doc:"The rule of RFC 5545."`
	Zone         string           `json:"zone" example:"Europe/Moscow" doc:"The time zone of the rule."`
	StartsAt     string           `json:"starts_at" example:"2026-12-01T10:00" doc:"The first local time."`
	Payloads     []map[string]any `json:"payloads" nullable:"false" doc:"The posts, taken in turn."`
	Enabled      bool             `json:"enabled" doc:"Whether it makes posts."`
	NextAt       instant          `json:"next_at" nullable:"true" doc:"The next expected instant."`
	Posts        int              `json:"posts" example:"3" doc:"How many posts it made."`
	LastError    map[string]any   `json:"last_error" nullable:"true" doc:"Why its rule could not be expanded."`
	Author       string           `json:"author" example:"user:olga" doc:"The person that changed it last."`
	CreatedAt    time.Time        `json:"created_at"`
	UpdatedAt    time.Time        `json:"updated_at"`
}

type occurrence struct {
	OccurrenceID string         `json:"occurrence_id" format:"uuid" doc:"The occurrence."`
	RecurrenceID string         `json:"recurrence_id" format:"uuid" doc:"The post that repeats."`
	At           time.Time      `json:"at" doc:"Its instant."`
	Status       string         `json:"status" enum:"expected,enqueued,skipped" example:"expected" doc:"Whether it is still to come, became a post, or did not."`
	MessageID    *string        `json:"message_id" format:"uuid" nullable:"true" doc:"The post that it became."`
	SubmissionID *string        `json:"submission_id" format:"uuid" nullable:"true" doc:"Its submission, if media had to be fetched or people decide."`
	Moved        bool           `json:"moved" doc:"A person chose the instant."`
	Reason       *string        `json:"reason" nullable:"true" example:"missed" doc:"Why it was skipped: missed, paused, person or rejected."`
	Error        map[string]any `json:"error" nullable:"true" doc:"Why its post was rejected."`
}

// putRecurring is the answer to a change of a recurrence.
type putRecurring struct {
	put

	RecurrenceID string      `json:"recurrence_id,omitempty" format:"uuid" doc:"The post that repeats; none after a dry run of a new one."`
	Occurrences  []time.Time `json:"occurrences,omitempty" nullable:"false" doc:"The next ten instants, if the schedule changes."`
}

// RecurrencePath is the recurrence in a path.
type RecurrencePath struct {
	RecurrenceID string `path:"recurrence_id" format:"uuid" doc:"The recurrence_id in the answer to POST /api/v1/recurrences."`
}

type newRecurrenceInput struct {
	rest.AuditedWrite
	rest.Dry
	Body patchBody
}

type recurrenceInput struct {
	rest.AuditedWrite
	rest.Dry
	RecurrencePath
	Body patchBody
}

type removeRecurrenceInput struct {
	rest.AuditedWrite
	rest.Dry
	RecurrencePath
}

type occurrencesInput struct {
	rest.Page
	Window
	RecurrencePath
}

// OccurrencePath is the occurrence in a path.
type OccurrencePath struct {
	RecurrencePath
	OccurrenceID string `path:"occurrence_id" format:"uuid" doc:"The occurrence_id in the list of occurrences."`
}

type moveOccurrenceInput struct {
	rest.AuditedWrite
	rest.Dry
	OccurrencePath
	Body struct {
		At time.Time `json:"at" format:"date-time" doc:"The new instant, with offset."`
		rest.Reasoned
	}
}

type skipOccurrenceInput struct {
	rest.AuditedWrite
	rest.Dry
	OccurrencePath
	Body *rest.Reasoned
}

var (
	recurrences       = rest.List{Function: "list_recurrences", Key: rest.ByID("recurrence_id")}
	occurrences       = rest.List{Function: "list_occurrences", Nested: "after", Key: rest.ByInstant("at", "occurrence_id")}
	recurrenceExample = map[string]any{
		"endpoint_id": "in", "rule": "FREQ=WEEKLY;BYDAY=MO,FR", "zone": "Europe/Moscow", "starts_at": "2026-12-01T10:00",
		"payloads": []any{map[string]any{"text": "The shop opens"}}, "reason": "every week",
	}
)

func registerRecurrences(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-recurrences", Method: http.MethodGet, Path: "/recurrences", Summary: "List posts that repeat, newest first", Answer: rest.Listed[recurring]{},
		Description: "Each with its rule, its posts and its next instant.",
	}, func(ctx context.Context, in *struct{ rest.Page }) (rest.Reply, error) {
		return d.Read(ctx, recurrences, in.Page, nil)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-recurrence", Method: http.MethodGet, Path: "/recurrences/{recurrence_id}", Summary: "Get a post that repeats", Answer: recurring{}, Description: "One post that repeats.",
	}, func(ctx context.Context, in *RecurrencePath) (rest.Reply, error) {
		return d.recurrence(ctx, in.RecurrenceID)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "create-recurrence", Method: http.MethodPost, Path: "/recurrences", Summary: "Repeat a post", Status: http.StatusCreated, Also: []int{http.StatusOK}, Answer: putRecurring{},
		Change: changeOf("recurrence"), Example: recurrenceExample,
		Description: "Makes a post at each time of the rule, in the time zone. A dry run shows the next ten instants.",
	}, func(ctx context.Context, in *newRecurrenceInput) (rest.Reply, error) {
		reply, err := d.putRecurrence(ctx, in.AuditedWrite, in.DryRun, "", in.Body)
		if in.DryRun {
			reply.Status = http.StatusOK
		}
		return reply, err
	})
	rest.Register(d.Server, rest.Operation{
		ID: "put-recurrence", Method: http.MethodPatch, Path: "/recurrences/{recurrence_id}", Summary: "Change a post that repeats", Answer: putRecurring{},
		Change: changeOf("recurrence"), Example: map[string]any{"enabled": false, "reason": "summer"},
		Description: "A changed rule, zone or start forgets the expected occurrences. What would have been due while it was disabled is skipped.",
	}, func(ctx context.Context, in *recurrenceInput) (rest.Reply, error) {
		return d.putRecurrence(ctx, in.AuditedWrite, in.DryRun, in.RecurrenceID, in.Body)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "remove-recurrence", Method: http.MethodDelete, Path: "/recurrences/{recurrence_id}", Summary: "Delete a post that repeats", Answer: put{},
		Description: "Its posts stay. X-Autopost-Reason may have the reason.",
	}, func(ctx context.Context, in *removeRecurrenceInput) (rest.Reply, error) {
		return d.Change(ctx, in.Once, in.RecurrenceID, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			a.Reason, a.DryRun = cmp.Or(in.HeaderReason, "removed by the API"), in.DryRun
			return d.db.RemoveRecurrence(ctx, a, in.RecurrenceID)
		})
	})
	d.registerOccurrences()
}

// recurrence replies with one recurrence.
func (d *server) recurrence(ctx context.Context, id string) (rest.Reply, error) {
	return d.One(ctx, "This workspace has no such recurrence.", rest.Query{Function: recurrences.Function, Filter: map[string]any{"recurrence_id": id}})
}

func (d *server) registerOccurrences() {
	rest.Register(d.Server, rest.Operation{
		ID: "list-occurrences", Method: http.MethodGet, Path: "/recurrences/{recurrence_id}/occurrences", Summary: "List occurrences by their instants", Answer: rest.Listed[occurrence]{},
		Description: "Those that became posts, those that were skipped, and those expected in the next 60 days.",
	}, func(ctx context.Context, in *occurrencesInput) (rest.Reply, error) {
		if known, err := d.recurrence(ctx, in.RecurrenceID); err != nil {
			return known, err
		}
		return d.Read(ctx, occurrences, in.Page, map[string]any{"recurrence_id": in.RecurrenceID, "since": in.Since, "until": in.Until})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "reschedule-occurrence", Method: http.MethodPost, Path: "/recurrences/{recurrence_id}/occurrences/{occurrence_id}/reschedule", Summary: "Move one occurrence", Answer: put{},
		Example:     map[string]any{"at": "2027-01-01T12:00:00+03:00", "reason": "holiday"},
		Description: "Only an expected occurrence moves. The others stay.",
	}, func(ctx context.Context, in *moveOccurrenceInput) (rest.Reply, error) {
		return d.moveOccurrence(ctx, in.AuditedWrite, in.DryRun, in.OccurrencePath, in.Body.At.Format(time.RFC3339Nano), in.Body.Reason)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "skip-occurrence", Method: http.MethodPost, Path: "/recurrences/{recurrence_id}/occurrences/{occurrence_id}/skip", Summary: "Skip one occurrence", Answer: put{}, Example: reasonExample,
		Description: "Only an expected occurrence is skipped.",
	}, func(ctx context.Context, in *skipOccurrenceInput) (rest.Reply, error) {
		return d.moveOccurrence(ctx, in.AuditedWrite, in.DryRun, in.OccurrencePath, "", why(in.Body))
	})
}

func (d *server) moveOccurrence(ctx context.Context, in rest.AuditedWrite, dry bool, path OccurrencePath, at, reason string) (rest.Reply, error) {
	return d.Do(ctx, in, rest.Change{DryRun: dry, Reason: reason, Subject: path.OccurrenceID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
		return d.db.MoveOccurrence(ctx, a, path.RecurrenceID, path.OccurrenceID, at)
	})
}

// putRecurrence checks the rule, which the database cannot read, and adds the next instants to the answer.
func (d *server) putRecurrence(ctx context.Context, in rest.AuditedWrite, dry bool, id string, body patchBody) (rest.Reply, error) {
	schedule, changes, err := d.schedule(ctx, id, body)
	if err != nil {
		return rest.Reply{}, err
	}
	var times []time.Time
	if changes {
		if times, err = schedule.Upcoming(time.Now()); err != nil {
			return rest.Reply{}, ofSchedule(err)
		}
	}
	reply, err := d.patch(ctx, in, rest.Change{DryRun: dry, Subject: id}, body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
		return d.db.PutRecurrence(ctx, a, id, fields)
	})
	if err != nil || !changes {
		return reply, err
	}
	instants, err := d.db.PreviewOccurrences(ctx, rest.Caller(ctx).WorkspaceID, schedule.Zone, times)
	if err != nil {
		return reply, err
	}
	answer := map[string]any{}
	if err := json.Unmarshal(reply.Body, &answer); err != nil {
		return reply, err
	}
	answer["occurrences"] = instants
	reply.Body, err = json.Marshal(answer)
	return reply, err
}

// schedule returns the schedule after a change, and whether the change has to do with it. Missing fields and wrong types
// are left to the database.
func (d *server) schedule(ctx context.Context, id string, body patchBody) (s recurrence.Schedule, changes bool, err error) {
	all := map[string]any{"zone": "UTC"}
	if id != "" {
		rows, err := d.Rows(ctx, rest.Query{Function: recurrences.Function, Filter: map[string]any{"recurrence_id": id}, Limit: 1})
		if err != nil {
			return s, false, err
		}
		if len(rows) == 0 {
			return s, false, rest.NotFound("This workspace has no such recurrence.")
		}
		if err := json.Unmarshal(rows[0], &all); err != nil {
			return s, false, err
		}
	}
	maps.Copy(all, body)
	given := map[string]*string{"rule": &s.Rule, "zone": &s.Zone, "starts_at": &s.StartsAt}
	for name, into := range given {
		if _, named := body[name]; named || id == "" {
			changes = true
		}
		text, ok := all[name].(string)
		if !ok {
			return s, false, nil
		}
		*into = text
	}
	return s, changes, nil
}

// ofSchedule is the problem of a schedule that never fires or cannot be read.
func ofSchedule(err error) error {
	if fault, ok := errors.AsType[*recurrence.Fault](err); ok {
		return problem.WrongRequest.Says("%s %s: %s.", fault.Field, fault.Reason, fault.Remedy).With(problem.Fault{
			Field: "body." + fault.Field, Reason: fault.Reason, Remedy: fault.Remedy, Code: "bad_" + fault.Field,
		})
	}
	return err
}
