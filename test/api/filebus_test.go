package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// fileJobs adds a folder with a job that waits, and an approval of a job without a payload.
func (w *world) fileJobs(workspace, word string, ids map[string]string) {
	w.t.Helper()
	ids["job_id"], ids["job_id prepare"] = "job-"+workspace, "later-"+workspace
	w.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json) values ($1, 'files', 'filebus', jsonb_build_object('root', '/nowhere/' || $2, 'channels', '{"telegram": "held"}'::jsonb))`, workspace, word)
	w.Exec(`select autopost.put_publish_job($1, 'files', jsonb_build_object('job_id', $2::text, 'platform', 'telegram', 'publish_config', jsonb_build_object('title', $3::text),
		'file', jsonb_build_object('complete', true, 'artifacts', '{}'::jsonb)))`, workspace, ids["job_id"], word)
	w.Exec(`select autopost.decide_publish_job($1, $2, 'telegram', 'approve', null, 'ann', $3)`, workspace, ids["job_id prepare"], word)
}

// A person approves a job through the API, prepares another one after its approval, and a changed job is refused.
func TestFileJobsAreDecided(t *testing.T) {
	t.Parallel()
	w := open(t)
	post := func(job, verb, role, body string) reply {
		return w.ask(call{method: "POST", path: "/api/v1/filebus/jobs/" + job + "/telegram/" + verb, key: w.keys[role], body: body})
	}
	list := w.ask(call{method: "GET", path: "/api/v1/filebus/jobs?status=waiting", key: w.keys["viewer"]})
	require.Equal(t, 200, list.status, list.raw)
	row := list.body["items"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"job-acme", "waiting"}, []any{row["job_id"], row["status"]})
	post("job-acme", "approve", "approver", `{"digest": "0000000000000000000000000000000000000000000000000000000000000000", "reason": "seen"}`).problem(t, 409)
	require.Equal(t, "approved", post("job-acme", "approve", "approver", `{"digest": "`+row["digest"].(string)+`", "reason": "seen"}`).body["status"])
	post("job-acme", "approve", "approver", `{"reason": "again"}`).problem(t, 409)
	prepare := `{"publish_config": {"title": "Later"}, "artifact_pointers": {"video": "v.mp4"}, "reason": "r"}`
	post("later", "prepare", "editor", prepare).problem(t, 409)
	require.Equal(t, "unseen", post("later", "approve", "approver", `{"reason": "in advance"}`).body["status"])
	require.Equal(t, true, post("later", "prepare", "editor", prepare).body["applied"])
	post("later", "prepare", "editor", `{"publish_config": {}, "artifact_pointers": {}, "reason": "r"}`).problem(t, 422)
	require.Equal(t, 404, w.ask(call{method: "GET", path: "/api/v1/filebus/jobs/nothing/telegram", key: w.keys["viewer"]}).status)
}
