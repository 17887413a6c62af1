-- State files, approvals that come first, signed approvals, prepared payloads, refused files, and the scan of a folder.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(57);

insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
values ('w', 'shows', 'youtube', 'UCshows', 'google', 'google');
create function test.put_files(p_config jsonb) returns jsonb
language sql
as $$
select autopost.put_source('w', 'files', jsonb_build_object('kind', 'filebus', 'config_json', p_config), 'o', 'r',
	false)
$$;
create function test.put_job(p_job text, p_title text, p_file jsonb default '{}') returns jsonb
language sql
as $$
select autopost.put_publish_job('w', 'files', jsonb_build_object('job_id', p_job, 'platform', 'youtube',
	'publish_config',
	jsonb_build_object('title', p_title), 'file', jsonb_build_object('complete', true, 'artifacts',
		jsonb_build_object('video',
	jsonb_build_object('blob_ref', 'sha256:' || repeat('a', 64)))) || p_file))
$$;
create function test.approved(p_job text, p_nonce text, p_more jsonb default '{}') returns jsonb
language sql
as $$
select autopost.receive_approval('w', 'files', jsonb_build_object('job_id', p_job, 'platform', 'youtube', 'approved',
	true,
	'nonce', p_nonce) || p_more)
$$;
create function test.shown(p_job text) returns jsonb
language sql
as $$
select autopost.get_publish_job('w', p_job, 'youtube')
$$;
create function test.state(p_job text, p_more jsonb default '{}') returns jsonb
language sql
as $$
select autopost.import_publish_state('w', 'files', jsonb_build_object('job_id', p_job, 'platform', 'youtube', 'status',
	'PUBLISHED', 'published_at', '2026-02-08T12:30:00Z', 'platform_post_id', 'dQw4w9WgXcQ', 'post_url',
	'https://www.youtube.com/watch?v=dQw4w9WgXcQ') || p_more)
$$;
create function test.damaged(p_job text, p_digest text, p_more jsonb default '{}') returns jsonb
language sql
as $$
select autopost.import_publish_state('w', 'files', jsonb_build_object('job_id', p_job, 'platform', 'youtube', 'damaged',
	'it is not JSON', 'digest', p_digest) || p_more)
$$;
create function test.start_job(p_job text) returns jsonb
language sql
as $$
select autopost.start_publish_job('w', p_job, 'youtube', test.shown(p_job) ->> 'digest')
$$;

-- The configuration of a folder.
select is(test.put_files('{"channels": {}}') ->> 'reason', 'invalid');
select is((select string_agg(e.value ->> 'field', ' ') from jsonb_array_elements(test.put_files('{"root": "sandbox",
	"dist_dir": "../x", "channels": {"youtube": "nowhere"}, "max_bytes": 0, "require_signed_approvals":
		"yes"}') -> 'errors') e),
	'config_json.dist_dir config_json.max_bytes config_json.require_signed_approvals config_json.root config_json.channels.youtube');
select is(test.put_files('{"root": "/srv/sandbox", "channels": {"youtube": "shows"}, "require_signed_approvals": true}') #>> '{errors,0,field}',
	'config_json.approval_ref');
select is(test.put_files('{"root": "/srv/sandbox", "channels": {"youtube": "shows"}, "interval_seconds": 10}') ->
	'applied', 'true');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes, kind)
values ('w', 'sha256:' || repeat('a', 64), 'file:///a', 10, 'video');

-- The scan of a folder.
select is(autopost.list_file_sources(),
	'[{"workspace_id": "w", "source_id": "files", "root": "/srv/sandbox", "due": true}]');
select is(autopost.ready_sources() -> 'workspaces', '[]', 'feeds are polled without it');
select is((select count(*) from autopost.list_due_sources('w', 10)), 0::bigint);
select is((select array_agg(d) from autopost.due_stages(0) d), '{files}');
select is(autopost.claim_file_source('w', 'files', 'run-1') - 'config_json',
	'{"applied": true, "endpoint_id": "files"}');
select is(autopost.claim_file_source('w', 'files', 'run-2') ->> 'reason', 'leased');
select is(autopost.claim_file_source('w', 'files', 'run-1') -> 'applied', 'true', 'renewed');
select is(autopost.end_file_scan('w', 'files', '{}'), '{"applied": true}');
select is(autopost.list_file_sources() #> '{0,due}', 'false');
select is(autopost.claim_file_source('w', 'files', 'run-2') -> 'applied', 'true', 'a change comes before its time');
select test.tick('1 hour');
select is(autopost.claim_file_source('w', 'files', 'run-3') -> 'applied', 'true', 'the lease has ended');
select autopost.end_file_scan('w', 'files', '{}');
update autopost.pull_sources s set enabled = false;
select is(autopost.claim_file_source('w', 'files', 'run-3') ->> 'reason', 'disabled');
update autopost.pull_sources s set enabled = true;
select is(autopost.refuse_file('w', 'files', '{"path": "x/y", "digest": "1", "code": "not_json", "message": "no"}'),
	'{"applied": true}');
select is(autopost.refuse_file('w', 'files', '{"path": "x/y", "digest": "1", "code": "not_json", "message": "no"}'),
	'{"applied": false}', 'once');
select is(autopost.refuse_file('w', 'files', '{"path": "x/y", "digest": "2", "code": "not_json"}'),
	'{"applied": true}', 'other content');
select is(autopost.refuse_file('w', 'files',
	'{"path": "in/a", "digest": "1", "code": "not_json", "approval": true}'), '{"applied": true}');
select autopost.end_file_scan('w', 'files', '{in/a}');
select is((select array_agg(r.path) from autopost.file_refusals r), '{in/a}', 'the other one is gone');
select is((select array_agg(e.action || ' ' || (e.error ->> 'code') order by e.action) from autopost.list_events('w',
	'{}', 10) e
	where e.action in ('filebus_refused', 'approval_refused')),
		'{"approval_refused not_json","filebus_refused not_json","filebus_refused not_json"}');

-- A state file that is there first.
select is(test.state('old') ->> 'status', 'published');
select is(test.state('old') ->> 'reason', 'known', 'repeated');
select is(test.put_job('old', 'Old') ->> 'reason', 'published', 'its payload publishes nothing');
select is(test.approved('old', 'n1') ->> 'reason', 'published');
select is(test.shown('old') -> 'imported', 'true');
select throws_like($$select test.state('other', '{"status": "PUBLISHING"}')$$, '%must have status PUBLISHED%');

-- An unreadable one: the platform is asked first.
select is(test.damaged('odd', 'd1') ->> 'status', 'unknown');
select is(test.put_job('odd', 'Odd') ->> 'status', 'unknown', 'its payload is taken');
select is(test.put_job('odd', 'Odd') ->> 'reason', 'unchanged');
select is(test.approved('odd', 'n1') ->> 'status', 'unknown', 'an approval waits for the answer');
select is(test.damaged('odd', 'd1') ->> 'reason', 'known');
select is(jsonb_array_length(autopost.follow_publish_jobs('w', 'files', 10)), 2, 'it is to be asked about');
select is(test.damaged('odd', 'd1', '{"asked": "absent"}') ->> 'status', 'approved', 'the platform does not have it');
select is(test.damaged('odd', 'd1') ->> 'reason', 'known', 'once asked');
select is(test.damaged('odd', 'd2') ->> 'status', 'unknown', 'another content');
select is(test.put_job('odd', 'Odd', '{"no_state": true}') ->> 'status', 'approved', 'the file was removed');
select is(test.damaged('odd', 'd3') ->> 'status', 'unknown');
select is(test.state('odd') ->> 'status', 'published', 'the file was corrected');

-- A state file appears while the delivery waits; after its call it is too late.
select test.put_job('race', 'Race'), test.approved('race', 'n1');
select is(test.start_job('race') ->> 'status', 'publishing');
select is(test.damaged('race', 'd1') ->> 'reason', 'known', 'the delivery decides');
select is(test.state('race') ->> 'status', 'published', 'the delivery is withdrawn');
select is((select array_agg(d.status) from autopost.deliveries d), '{dead}');

-- An approval that comes first. It may expire while it waits.
select is(test.approved('next', 'n1', '{"expires_at": "2026-06-01T14:00:00Z"}') ->> 'status', 'unseen');
select matches(test.shown('next') #>> '{now,sentence}', 'a decision waits for the payload');
select is(test.approved('late', 'n2', '{"expires_at": "2026-06-01T12:00:00Z"}') ->> 'reason', 'expired');
select is(autopost.prepare_publish_job('w', 'files', 'none', 'youtube',
	'{"publish_config": {}, "artifact_pointers": {"video": "v.mp4"}}',
	'user:ed', 'r', false) ->> 'reason', 'not_approved');
select is(autopost.prepare_publish_job('w', 'files', 'next', 'youtube', '{"publish_config": {"title": "Next"},
	"artifact_pointers": {"video": "v.mp4"}}', 'user:ed', 'r', false) #>> '{after,job_id}', 'next');
select is(autopost.prepare_publish_job('w', 'files', 'next', 'youtube',
	'{"publish_config": {}, "artifact_pointers": {"video": "v.mp4"}}',
	'user:ed', 'r', false) ->> 'reason', 'prepared');
select is(test.put_job('next', 'Next') ->> 'status', 'approved', 'the approval was there first');
update autopost.workspaces set approvals_needed = 2;
select test.put_job('two', 'Two');
update autopost.publish_jobs j set prepared_by = 'user:ed' where j.job_id = 'two';
select is(autopost.decide_publish_job('w', 'two', 'youtube', 'approve', '{}', 'user:ed', 'r') ->> 'reason',
	'own_approval');
select is(test.approved('two', 'n1') || test.approved('two', 'n2'),
	'{"applied": true, "status": "waiting", "approvals": 1, "needed": 2}',
	'a source counts once');
select is(autopost.decide_publish_job('w', 'two', 'youtube', 'approve', '{}', 'user:olga', 'r') ->> 'status',
	'approved');

-- Signed approvals.
update autopost.workspaces set approvals_needed = 1;
update autopost.pull_sources s set config_json = s.config_json || '{"require_signed_approvals": true}';
select test.put_job('signed', 'Signed');
select is(test.approved('signed', 'n1') ->> 'reason', 'not_signed');
select is(test.approved('signed', 'n1', '{"signed": true}') ->> 'status', 'approved');

select is((select jsonb_agg(v.violations) from autopost.verify('w') v where v.invariant in ('I33', 'I34', 'I35')),
	'[0, 0, 0]');
select * from finish();
rollback;
