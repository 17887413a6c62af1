package flow

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/admin/door"
)

// RunRow is a run in a list.
type RunRow struct {
	RunID      string         `json:"run_id" format:"uuid"`
	Kind       string         `json:"kind" enum:"push,pull,api,command,event,file,page" example:"push"`
	EndpointID *string        `json:"endpoint_id" nullable:"true" example:"cms"`
	SourceID   *string        `json:"source_id" nullable:"true" example:"blog"`
	StartedAt  time.Time      `json:"started_at"`
	FinishedAt instant        `json:"finished_at" nullable:"true"`
	Stats      map[string]any `json:"stats" doc:"Counts: enqueued, deduped, invalid, skipped, …"`
}

type run struct {
	RunRow
	Hints      []map[string]any `json:"hints" nullable:"false" doc:"What came with the posts to route them."`
	Items      []map[string]any `json:"items" nullable:"false" doc:"What has become of each post by now, in their order."`
	Deliveries map[string]int   `json:"deliveries" doc:"Deliveries by status."`
}

type runsInput struct {
	door.Page
	Window
	Kind     string `query:"kind" enum:"push,pull,api,command,event,file,page" doc:"How the posts came in."`
	SourceID string `query:"source_id" doc:"Of this source."`
}

type runInput struct {
	RunID string `path:"run_id" format:"uuid" doc:"The run_id of a push's answer."`
}

var runs = door.List{Function: "list_runs", Key: door.ByID("run_id")}

func registerRuns(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "list-runs", Method: http.MethodGet, Path: "/runs", Summary: "Requests and polls, the newest first", Answer: door.Listed[RunRow]{},
		Description: "Each request that brought posts and each poll of a source, with its counts.",
	}, func(ctx context.Context, in *runsInput) (door.Reply, error) {
		return d.Read(ctx, runs, in.Page, map[string]any{"kind": in.Kind, "source_id": in.SourceID, "since": in.Since, "until": in.Until})
	})
	door.Register(d, door.Operation{
		ID: "get-run", Method: http.MethodGet, Path: "/runs/{run_id}", Summary: "What became of a push", Answer: run{},
		Description: "The run that a push's answer named: its counts, and the messages of posts whose media were still being fetched.",
	}, func(ctx context.Context, in *runInput) (door.Reply, error) {
		return d.Look(ctx, "get_run", "This workspace has no such run.", map[string]any{"run_id": in.RunID})
	})
}
