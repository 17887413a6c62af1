package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"autopost/internal/api/rest"
)

// registerAll adds every operation of the API, in the order of the document.
func registerAll(d *server, deps Deps) {
	registerPosts(d)
	registerDrafts(d)
	registerRecurrences(d)
	registerPlan(d)
	registerMessages(d)
	registerSubmissions(d)
	registerFilebus(d)
	registerXPosts(d)
	registerEventTypes(d)
	registerAvatars(d)
	registerRuns(d)
	registerDeliveries(d)
	registerDeliveryActs(d)
	registerMoves(d)
	registerAfterwards(d)
	registerQueue(d)
	registerEvents(d)
	registerRaw(d)
	registerMedia(d, deps.Media)
	registerMediaReads(d, deps.Media)
	registerProxy(d, deps.Media.Platforms)
	registerChannels(d)
	registerChannelActs(d)
	registerChats(d)
	registerGroups(d)
	registerTemplates(d)
	registerEndpoints(d)
	registerEndpointActs(d)
	registerSources(d)
	registerSourceActs(d, deps.Sources)
	registerWebhooks(d)
	registerWebhookDeliveries(d)
	registerWebhookActs(d)
	registerWhy(d)
	registerQuotas(d)
	registerBudgets(d)
	registerRetryPolicies(d)
	registerCredentials(d, deps.Credentials)
	registerWorkspaces(d)
	registerNewWorkspace(d)
	registerSettings(d)
	registerConfig(d, deps.Sources)
	registerKeys(d)
	registerNewKey(d)
	registerSessions(d, deps.People)
	registerUsers(d)
	registerInvitations(d)
	registerAudit(d)
	registerDaemons(d)
	registerAlerts(d)
	registerAlertTargets(d)
	registerModerationChats(d)
	registerBot(d)
	registerHealth(d)
	registerSummary(d)
	registerOverview(d)
	registerStream(d, deps.Stream)
}

// Window limits a list to a time range.
type Window struct {
	Since string `query:"since" format:"date-time" doc:"From this instant, with offset." example:"2026-12-01T10:00:00Z"`
	Until string `query:"until" format:"date-time" doc:"Before this instant." example:"2026-12-02T10:00:00Z"`
}

// deliveryError is the error of the last call of a delivery.
type deliveryError struct {
	Category     string   `json:"category" enum:"TRANSIENT,PERMANENT" example:"TRANSIENT"`
	Scope        string   `json:"scope" enum:"delivery,channel,platform" example:"delivery"`
	Code         string   `json:"code" example:"http_502"`
	Known        bool     `json:"known" doc:"false if the platform may have published the post."`
	RetryAfterMS int64    `json:"retry_after_ms,omitempty" example:"5000"`
	Message      string   `json:"message,omitempty" example:"Bad Gateway"`
	Raw          string   `json:"raw,omitempty" doc:"The beginning of the answer of the platform."`
	_            struct{} `nullable:"true" additionalProperties:"true"`
}

// encoded returns value as JSON, unless it could not be read.
func encoded(value any, failure error) (json.RawMessage, error) {
	if failure != nil {
		return nil, failure
	}
	return json.Marshal(value)
}

// instant is an optional time.
type instant = *time.Time

// put is the answer to a changed row of configuration.
type put struct {
	Applied bool           `json:"applied" doc:"false with the reason unchanged if there was nothing to change."`
	DryRun  bool           `json:"dry_run"`
	Reason  string         `json:"reason,omitempty" example:"unchanged"`
	Created bool           `json:"created,omitempty"`
	Before  map[string]any `json:"before,omitempty" doc:"The changed fields before the change."`
	After   map[string]any `json:"after,omitempty" doc:"The changed fields after the change."`
	_       struct{}       `additionalProperties:"true"`
}

type patchBody = map[string]any

// patch changes a row of configuration. The body holds the fields that change, and "reason".
func (d *server) patch(ctx context.Context, in rest.AuditedWrite, c rest.Change, fields patchBody, put func(context.Context, rest.OperatorAction, any) (rest.Written, error)) (rest.Reply, error) {
	if reason, given := fields["reason"]; given {
		text, ok := reason.(string)
		if !ok {
			return rest.Reply{}, rest.Wrong("body.reason", "must be a string", "send the reason for the audit log")
		}
		c.Reason = text
		delete(fields, "reason")
	}
	return d.Do(ctx, in, c, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) { return put(ctx, a, fields) })
}

// listOf registers the list of a kind of configuration, and the read of one row by its id.
func listOf[Row any](d *server, kind, id, plural, path, what string) {
	var row Row
	list := rest.List{Function: "list_configuration", Kind: strings.ReplaceAll(kind, "-", "_"), Key: rest.ByName(id)}
	rest.Register(d.Server, rest.Operation{
		ID: "list-" + plural, Method: http.MethodGet, Path: path, Summary: what, Answer: rest.Listed[Row]{}, Description: "All rows by id.",
	}, func(ctx context.Context, in *struct{ rest.Page }) (rest.Reply, error) {
		return d.Read(ctx, list, in.Page, nil)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-" + kind, Method: http.MethodGet, Path: path + "/{id}", Summary: "Get one " + kind, Answer: row, Description: "The row with this id.",
	}, func(ctx context.Context, in *IDPath) (rest.Reply, error) {
		return d.One(ctx, "This workspace has no such "+kind+".", rest.Query{Function: list.Function, Kind: list.Kind, Filter: map[string]any{"id": in.ID}})
	})
}

// removeOf registers the removal of a row of configuration.
func removeOf(d *server, kind, path, summary, description string, remove func(Store, context.Context, rest.OperatorAction, string) (rest.Written, error)) {
	rest.Register(d.Server, rest.Operation{
		ID: "remove-" + kind, Method: http.MethodPost, Path: path + "/{id}/remove", Summary: summary, Answer: put{}, Example: reasonExample, Description: description,
	}, func(ctx context.Context, in *actInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return remove(d.db, ctx, a, in.ID)
		})
	})
}

// IDPath is an id in a path.
type IDPath struct {
	ID string `path:"id" maxLength:"200"`
}
