package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// DraftRow is a draft in a list.
type DraftRow struct {
	DraftID    string    `json:"draft_id" format:"uuid"`
	EndpointID *string   `json:"endpoint_id" nullable:"true" example:"cms"`
	Excerpt    *string   `json:"excerpt" nullable:"true" example:"Hello" doc:"The first 200 characters of the text."`
	Media      int       `json:"media" doc:"How many media."`
	Version    int       `json:"version" example:"3" doc:"It grows with each change."`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

type draft struct {
	DraftID     string         `json:"draft_id" format:"uuid"`
	EndpointID  *string        `json:"endpoint_id" nullable:"true" example:"cms"`
	Payload     map[string]any `json:"payload" doc:"The post so far."`
	Version     int            `json:"version" example:"3" doc:"It grows with each change."`
	CreatedAt   time.Time      `json:"created_at"`
	UpdatedAt   time.Time      `json:"updated_at"`
	SubmittedAt instant        `json:"submitted_at" nullable:"true" doc:"The time of the submit."`
	Answer      map[string]any `json:"answer" nullable:"true" doc:"The answer to the submit."`
}

// draftWriting is the documented body of a stored draft.
type draftWriting struct {
	Payload    map[string]any `json:"payload,omitempty" doc:"The whole post so far. It may be unfinished. At most 262,144 bytes."`
	EndpointID *string        `json:"endpoint_id,omitempty" nullable:"true" example:"cms" doc:"The endpoint of the post; null: the only enabled one."`
	Version    int            `json:"version,omitempty" example:"2" doc:"The version that you changed. Another stored version is 409 with the reason changed. Without it the last change wins."`
}

type draftStored struct {
	Applied bool   `json:"applied"`
	DraftID string `json:"draft_id" format:"uuid"`
	Version int    `json:"version,omitempty" example:"3" doc:"It grows with each change."`
}

// submittedDraft is the answer to the submit of a draft.
type submittedDraft struct {
	submitted

	DraftID  string `json:"draft_id" format:"uuid"`
	Repeated bool   `json:"repeated,omitempty" doc:"The draft was submitted before; this is the first answer."`
}

// DraftPath is the draft in a path.
type DraftPath struct {
	DraftID string `path:"draft_id" format:"uuid" doc:"The draft_id in the answer to POST /api/v1/drafts."`
}

type newDraftInput struct {
	rest.Once
	Body json.RawMessage
}

type draftInput struct {
	rest.Once
	DraftPath
	Body json.RawMessage
}

type draftActInput struct {
	rest.Once
	DraftPath
}

var (
	drafts       = rest.List{Function: "list_drafts", Key: rest.ByID("draft_id")}
	draftExample = map[string]any{"payload": map[string]any{"text": "Hello"}}
)

func registerDrafts(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-drafts", Method: http.MethodGet, Path: "/drafts", Summary: "List your drafts, newest first", Answer: rest.Listed[DraftRow]{},
		Description: "Posts that this key has not submitted. Other keys do not see them.",
	}, func(ctx context.Context, in *struct{ rest.Page }) (rest.Reply, error) {
		return d.Read(ctx, drafts, in.Page, map[string]any{"author": rest.Caller(ctx).Identity()})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-draft", Method: http.MethodGet, Path: "/drafts/{draft_id}", Summary: "Get a draft", Answer: draft{},
		Description: "One draft of this key, with the post so far. A submitted draft stays as long as a receipt.",
	}, func(ctx context.Context, in *DraftPath) (rest.Reply, error) {
		return d.Get(ctx, "This key has no such draft.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.GetDraft(ctx, workspace, in.DraftID, rest.Caller(ctx).Identity())
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "create-draft", Method: http.MethodPost, Path: "/drafts", Summary: "Store a new draft", Status: http.StatusCreated, Answer: draftStored{}, Body: draftWriting{}, Example: draftExample,
		Description: "Stores a post that is not finished. Its media stay in the media store. A key has at most 500 open drafts.",
	}, func(ctx context.Context, in *newDraftInput) (rest.Reply, error) {
		return putDraft(ctx, d, in.Once, "", in.Body)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "put-draft", Method: http.MethodPatch, Path: "/drafts/{draft_id}", Summary: "Store changes of a draft", Answer: draftStored{}, Body: draftWriting{}, Example: draftExample,
		Description: "Replaces the post so far. Fields that the body does not have stay.",
	}, func(ctx context.Context, in *draftInput) (rest.Reply, error) {
		return putDraft(ctx, d, in.Once, in.DraftID, in.Body)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "remove-draft", Method: http.MethodDelete, Path: "/drafts/{draft_id}", Summary: "Delete a draft", Answer: draftStored{},
		Description: "A submitted draft is a post already and is not deleted.",
	}, func(ctx context.Context, in *draftActInput) (rest.Reply, error) {
		return d.Change(ctx, in.Once, in.DraftID, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.RemoveDraft(ctx, a, in.DraftID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "submit-draft", Method: http.MethodPost, Path: "/drafts/{draft_id}/submit", Summary: "Publish a draft", Status: http.StatusAccepted, Also: []int{http.StatusOK}, Answer: submittedDraft{},
		Description: "Publishes the draft as POST /api/v1/posts does, once: a second submit is 200 with the first answer. An invalid post is 422 with all errors and stays a draft.",
	}, func(ctx context.Context, in *draftActInput) (rest.Reply, error) {
		reply, err := d.Change(ctx, in.Once, in.DraftID, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.SubmitDraft(ctx, a, in.DraftID, rest.Caller(ctx).Source())
		})
		if err != nil {
			return reply, ofDraft(err)
		}
		return verdictOf(reply)
	})
}

func putDraft(ctx context.Context, d *server, once rest.Once, id string, body json.RawMessage) (rest.Reply, error) {
	fields, err := withoutSurrogates(body)
	if err != nil {
		return rest.Reply{}, err
	}
	return d.Change(ctx, once, id, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
		return d.db.PutDraft(ctx, a, id, fields)
	})
}

// ofDraft gives an error about the endpoint of a draft its remedy.
func ofDraft(err error) error {
	if p, ok := errors.AsType[*problem.Problem](err); ok && len(p.Errors) == 1 && p.Errors[0].Field == "endpoint_id" {
		return rest.Wrong("endpoint_id", p.Errors[0].Reason, "change endpoint_id of the draft to an enabled endpoint of kind webhook_push: GET /api/v1/endpoints lists them")
	}
	return err
}
