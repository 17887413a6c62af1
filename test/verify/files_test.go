package verify_test

// files adds a folder whose jobs go to the channel plain, and a job that waits for an approval.
func (h *fixture) files() {
	h.t.Helper()
	h.all(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
		values ('w', 'files', 'filebus', '{"root": "/srv", "channels": {"telegram": "plain"}}')`,
		`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('w', 'files', 'pull_source', 'files')`,
		`select autopost.put_job_artifact('w', 'files', jsonb_build_object('blob_ref', 'sha256:' || repeat('e', 64), 'origin_url', 'file:///e', 'content_type', 'video/mp4', 'size_bytes', 9, 'kind', 'video'))`)
	h.putJob("The cat")
}

// putJob gives the job its content.
func (h *fixture) putJob(title string) {
	h.t.Helper()
	h.do(`select autopost.put_publish_job('w', 'files', jsonb_build_object('job_id', 'cat', 'platform', 'telegram', 'publish_config', jsonb_build_object('title', $1::text),
		'file', jsonb_build_object('complete', true, 'artifacts', jsonb_build_object('video', jsonb_build_object('blob_ref', 'sha256:' || repeat('e', 64))))))`, title)
}

const (
	approveJob = `select autopost.receive_approval('w', 'files', '{"job_id": "cat", "platform": "telegram", "approved": true, "nonce": "n1"}')`
	startJob   = `select autopost.start_publish_job('w', 'cat', 'telegram', (select j.digest from autopost.publish_jobs j))`
	followJobs = `select autopost.follow_publish_jobs('w', 'files', 10)`
)

// published lets the job be published.
func (h *fixture) published() {
	h.t.Helper()
	h.files()
	h.all(approveJob, startJob)
	h.fly("plain")
	h.settle("plain", "sent", `select test.sent('plain')`)
	h.do(followJobs)
}

var inFiles = []planted{
	{invariant: "I33", bug: "a job starts before its approval", plant: func(h *fixture) {
		h.breaks("job_obstacle", "p_job.status is distinct from 'approved'", "false")
		h.files()
		h.do(startJob)
	}},
	{invariant: "I33", bug: "an approval of other content counts", plant: func(h *fixture) {
		h.breaks("change_job", "and a.digest is not null", "and false")
		h.breaks("settle_job", "and a.digest = v_job.digest and a.voided_at is null and a.decision = 'approve'", "and a.decision = 'approve'")
		h.files()
		h.do(approveJob)
		h.putJob("Another cat")
		h.do(startJob)
	}},
	{invariant: "I33", bug: "the content changes after its approval", plant: func(h *fixture) {
		h.published()
		h.do(`update autopost.publish_jobs set artifacts = '{"video": {"blob_ref": "sha256:0"}}'`)
	}},
	{invariant: "I33", bug: "an unknown outcome counts as a failure", plant: func(h *fixture) {
		h.files()
		h.all(approveJob, startJob)
		h.fly("plain")
		h.settle("plain", "failed_permanent", `select test.failed('plain', '{"category": "PERMANENT", "scope": "delivery", "code": "odd", "known": true}')`)
		h.do(followJobs)
		h.raw(`update autopost.deliveries set last_error = last_error || '{"known": false}' where status = 'failed_permanent' and last_error ->> 'code' = 'odd'`)
		h.all(`select autopost.decide_publish_job('w', 'cat', 'telegram', 'approve', '{}', 'ann', 'again')`, startJob)
	}},
	{invariant: "I33", bug: "the state file gets another id", plant: func(h *fixture) {
		h.published()
		h.do(`update autopost.publish_jobs set platform_post_id = 'other'`)
	}},
	{invariant: "I33", bug: "a job that was sent waits again", plant: func(h *fixture) {
		h.published()
		h.do(`update autopost.publish_jobs set status = 'waiting', published_at = null, platform_post_id = null`)
	}},
	{invariant: "I33", bug: "a nonce counts twice", plant: func(h *fixture) {
		h.breaks("approval_refusal", "v_twin.approval_id is not null", "false")
		h.files()
		h.do(`alter table autopost.approvals drop constraint approvals_workspace_id_subject_platform_nonce_key`)
		h.all(approveJob, approveJob)
	}},
}
