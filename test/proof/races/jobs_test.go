package races_test

import (
	"strings"

	"autopost/internal/testing/pgtest"
)

// jobs adds a folder with file jobs for channel b: one that waits, one that is approved, one in the queue, one that
// failed, and an approval without its job.
func (s *stage) jobs() []string {
	s.t.Helper()
	s.db.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json) values ('w', 'files', 'filebus', '{"root": "/srv", "channels": {"telegram": "b"}}')`)
	s.db.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('w', 'files', 'pull_source', 'files')`)
	s.db.Exec(`select autopost.put_job_artifact('w', 'files', jsonb_build_object('blob_ref', 'sha256:' || repeat('e', 64), 'origin_url', 'file:///e', 'content_type', 'video/mp4', 'size_bytes', 9, 'kind', 'video'))`)
	var words []string
	for _, job := range []string{"waits", "ready", "goes", "fresh"} {
		payload := `'{"job_id": "` + job + `", "platform": "telegram", "publish_config": {"title": "` + job + `"}, "file": {"complete": true,
			"artifacts": {"video": {"blob_ref": "sha256:` + strings.Repeat("e", 64) + `"}}}}'::jsonb`
		words = append(words, "{job."+job+"}", payload)
		if job == "fresh" {
			break
		}
		s.db.Exec(`select autopost.put_publish_job('w', 'files', ` + payload + `)`)
		digest := pgtest.Value[string](s.db, `select digest from autopost.publish_jobs where job_id = $1`, job)
		words = append(words, "{job."+job+".digest}", "'"+digest+"'")
		if job != "waits" {
			s.db.Exec(`select autopost.decide_publish_job('w', $1, 'telegram', 'approve', null, 'olga', 'a test')`, job)
		}
		if job == "goes" {
			s.db.Exec(`select autopost.start_publish_job('w', 'goes', 'telegram', $1)`, digest)
		}
	}
	s.db.Exec(`select autopost.decide_publish_job('w', 'asked', 'telegram', 'approve', null, 'olga', 'a test')`)
	return words
}
