package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// Runs reads ingest runs.
type Runs interface {
	// GetRun returns what is known of a run, a JSON object; nil when the workspace has
	// no such run.
	GetRun(ctx context.Context, workspace, runID string) (json.RawMessage, error)
}

type getRunInput struct {
	RunID string `path:"run_id" maxLength:"200" doc:"The run_id of a push's answer."`
}

type getRunOutput struct {
	Body json.RawMessage
}

func registerRuns(api huma.API, deps Deps) {
	huma.Register(api, huma.Operation{
		OperationID: "get-run",
		Method:      http.MethodGet,
		Path:        "/api/v1/runs/{run_id}",
		Summary:     "What became of a push",
		Description: "The run that a push's answer named: its counts, and the messages of posts whose media were still being fetched.",
		Tags:        []string{"runs"},
		Errors:      []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusServiceUnavailable},
	}, func(ctx context.Context, in *getRunInput) (*getRunOutput, error) {
		return getRun(ctx, deps, in.RunID)
	})
}

func getRun(ctx context.Context, deps Deps, runID string) (*getRunOutput, error) {
	absent := huma.Error404NotFound("This workspace has no such run.")
	// No text of the database's has these, so no run can be named by them.
	if !utf8.ValidString(runID) || strings.ContainsRune(runID, 0) {
		return nil, absent
	}
	workspace := caller(ctx).WorkspaceID
	query, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	run, err := deps.Runs.GetRun(query, workspace, runID)
	if err != nil {
		deps.Log.Error("admin.unavailable", "operation", "get run", "workspace_id", workspace, "run_id", runID, "error", err)
		return nil, huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(unavailable), http.Header{"Retry-After": {comeAgain}})
	}
	if run == nil {
		return nil, absent
	}
	return &getRunOutput{Body: run}, nil
}
