package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

// RunRow is a run in a list.
type RunRow struct {
	RunID      string         `json:"run_id" format:"uuid"`
	Kind       string         `json:"kind" enum:"push,pull,api,command,event,file,page,recurrence" example:"push"`
	EndpointID *string        `json:"endpoint_id" nullable:"true" example:"cms"`
	SourceID   *string        `json:"source_id" nullable:"true" example:"blog"`
	StartedAt  time.Time      `json:"started_at"`
	FinishedAt instant        `json:"finished_at" nullable:"true"`
	Stats      map[string]any `json:"stats" doc:"Counts: enqueued, deduped, invalid, skipped, …"`
}

type run struct {
	RunRow
	Hints      []map[string]any `json:"hints" nullable:"false" doc:"The routing hints of the posts."`
	Items      []map[string]any `json:"items" nullable:"false" doc:"The present result of each post, in the order of the request."`
	Deliveries map[string]int   `json:"deliveries" doc:"Deliveries by status."`
}

type runsInput struct {
	rest.Page
	Window
	Kind     string `query:"kind" enum:"push,pull,api,command,event,file,page,recurrence" doc:"Only this kind."`
	SourceID string `query:"source_id" doc:"Only this source."`
}

type runInput struct {
	RunID string `path:"run_id" format:"uuid" doc:"The run_id in the answer to a push."`
}

var runs = rest.List{Function: "list_runs", Key: rest.ByID("run_id")}

func registerRuns(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-runs", Method: http.MethodGet, Path: "/runs", Summary: "List ingest runs, newest first", Answer: rest.Listed[RunRow]{},
		Description: "Each request with posts and each poll of sources, with its counts.",
	}, func(ctx context.Context, in *runsInput) (rest.Reply, error) {
		return d.Read(ctx, runs, in.Page, map[string]any{"kind": in.Kind, "source_id": in.SourceID, "since": in.Since, "until": in.Until})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-run", Method: http.MethodGet, Path: "/runs/{run_id}", Summary: "Get an ingest run", Answer: run{},
		Description: "The run in the answer to a push: its counts, and the messages of posts whose media were fetched later.",
	}, func(ctx context.Context, in *runInput) (rest.Reply, error) {
		return d.Get(ctx, "This workspace has no such run.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.GetRun(ctx, workspace, in.RunID)
		})
	})
}
