// Package setup is the part of the API about how a workspace is set up: channels,
// rate groups, templates, endpoints, sources, result webhooks, credentials and keys, the record
// of who changed what, and what people must look at. One file a resource.
package setup

import (
	"context"
	"net/http"
	"strings"
	"time"

	"autopost/internal/admin/door"
)

// Register adds the operations of this package.
func Register(d *door.Door) {
	registerChannels(d)
	registerChannelActs(d)
	registerChats(d)
	registerGroups(d)
	registerTemplates(d)
	registerEndpoints(d)
	registerEndpointRotation(d)
	registerSources(d)
	registerWebhooks(d)
	registerWebhookDeliveries(d)
	registerWebhookActs(d)
	registerCredentials(d)
	registerWorkspaces(d)
	registerSettings(d)
	registerKeys(d)
	registerAudit(d)
	registerAlerts(d)
	registerAlertTargets(d)
	registerHealth(d)
}

// instant is a time that may be missing.
type instant = *time.Time

// put is what became of a row that was written.
type put struct {
	Applied bool           `json:"applied" doc:"false with the reason unchanged where it was so already."`
	DryRun  bool           `json:"dry_run"`
	Reason  string         `json:"reason,omitempty" example:"unchanged"`
	Created bool           `json:"created,omitempty"`
	Before  map[string]any `json:"before,omitempty" doc:"What changes, as it was."`
	After   map[string]any `json:"after,omitempty" doc:"What changes, as it is now."`
	_       struct{}       `additionalProperties:"true"`
}

type patchBody = map[string]any

// patch writes a row by the one convention that all put_ functions share: only the fields that change, "reason" beside them.
func patch(ctx context.Context, d *door.Door, act door.Act, w door.Write, fields patchBody) (door.Reply, error) {
	if reason, given := fields["reason"]; given {
		text, ok := reason.(string)
		if !ok {
			return door.Reply{}, door.Wrong("body.reason", "is no text", "say why, for the audit log")
		}
		w.Reason = text
		delete(fields, "reason")
	}
	w.Args["fields"] = fields
	return d.Do(ctx, act, w)
}

// listOf registers the list of a kind of configuration, and one by its id.
func listOf[Row any](d *door.Door, kind, id, plural, path, what string) {
	var row Row
	list := door.List{Function: "list_configuration", Kind: strings.ReplaceAll(kind, "-", "_"), Key: door.ByName(id)}
	door.Register(d, door.Operation{
		ID: "list-" + plural, Method: http.MethodGet, Path: path, Summary: what, Answer: door.Listed[Row]{}, Description: "All of them, by id.",
	}, func(ctx context.Context, in *struct{ door.Page }) (door.Reply, error) {
		return d.Read(ctx, list, in.Page, nil)
	})
	door.Register(d, door.Operation{
		ID: "get-" + kind, Method: http.MethodGet, Path: path + "/{id}", Summary: "One " + kind, Answer: row, Description: "The one with this id.",
	}, func(ctx context.Context, in *IDPath) (door.Reply, error) {
		return d.One(ctx, list.Function, list.Kind, "This workspace has no such "+kind+".", map[string]any{"id": in.ID})
	})
}

// IDPath names one thing by the id that people chose.
type IDPath struct {
	ID string `path:"id" maxLength:"200"`
}
