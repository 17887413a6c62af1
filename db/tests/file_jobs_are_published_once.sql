-- A file job is published once: after an approval of its content, through the ordinary queue. Its row never expires.
-- What changed since its approval waits for a new one.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(75);

insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
values ('w', 'shows', 'youtube', 'UCshows', 'google', 'google');
select test.channel('town');
update autopost.channels c set route_filter = '{"include_any": ["cat"]}' where c.channel_id = 'town';
select autopost.put_source('w', 'files', '{"kind": "filebus", "config_json": {"root": "/srv/sandbox",
	"channels": {"youtube": "shows", "telegram": "town"}}}', 'o', 'r', false);

create function test.blob(p_digit text) returns text
language sql immutable
as $$
select 'sha256:' || repeat(p_digit, 64)
$$;
create function test.artifact(p_digit text, p_kind text) returns jsonb
language sql
as $$
select autopost.put_job_artifact('w', 'files', jsonb_build_object('blob_ref', test.blob(p_digit), 'origin_url',
	'file:///x',
	'content_type', p_kind || '/x', 'size_bytes', case p_digit when 'a' then 100 << 20 else 1001 end, 'kind', p_kind))
$$;
create function test.put_job(p_job text, p_title text, p_digit text default 'a', p_file jsonb default '{}',
	p_platform text default 'youtube') returns jsonb
language sql
as $$
select autopost.put_publish_job('w', 'files', jsonb_build_object('job_id', p_job, 'platform', p_platform,
	'publish_config',
	jsonb_build_object('title', p_title, 'description', 'Cats #cat', 'tags', '["cat"]'::jsonb, 'privacy', 'unlisted'),
	'file', jsonb_build_object('complete', true, 'no_state', true, 'artifacts', jsonb_build_object('video',
	jsonb_build_object('path', 'output/final.mp4', 'blob_ref', test.blob(p_digit)), 'subtitles',
		jsonb_build_object('blob_ref',
	test.blob('b')), 'thumbnail', jsonb_build_object('blob_ref', test.blob('c')))) || p_file))
$$;
create function test.approved(p_job text, p_nonce text, p_more jsonb default '{}', p_platform text default 'youtube')
	returns jsonb
language sql
as $$
select autopost.receive_approval('w', 'files', jsonb_build_object('job_id', p_job, 'platform', p_platform,
	'approved', true,
	'nonce', p_nonce, 'approved_by', 'telegram:user:12345') || p_more)
$$;
create function test.shown(p_job text, p_platform text default 'youtube') returns jsonb
language sql
as $$
select autopost.get_publish_job('w', p_job, p_platform)
$$;
create function test.start_job(p_job text, p_platform text default 'youtube') returns jsonb
language sql
as $$
select autopost.start_publish_job('w', p_job, p_platform, test.shown(p_job, p_platform) ->> 'digest')
$$;
create function test.followed() returns jsonb
language sql
as $$
select autopost.follow_publish_jobs('w', 'files', 100)
$$;
create function test.outcome(p_outcome jsonb) returns text
language plpgsql
as $$
declare
	v_claim autopost.claimed_delivery;
begin
	perform test.tick('5 minutes');
	select c.* into v_claim from autopost.claim_deliveries('w', 'run-1', 1) c;
	perform autopost.start_call('w', v_claim.delivery_id, v_claim.claim_token);
	if p_outcome -> 'ok' = 'true' then
		perform autopost.record_series_progress('w', v_claim.delivery_id, v_claim.claim_token,
			jsonb_build_object('step', s.value -> 'step', 'ids', '["vid1"]'::jsonb))
		from jsonb_array_elements(v_claim.render_meta -> 'steps') s;
	end if;
	perform autopost.commit_outcome('w', v_claim.delivery_id, v_claim.claim_token, p_outcome);
	return (select d.status from autopost.deliveries d where d.delivery_id = v_claim.delivery_id);
end
$$;
create function test.happened(p_action text) returns bigint
language sql
as $$
select count(*) from autopost.events e where e.workspace_id = 'w' and e.action = p_action
$$;

-- Artifacts have a limit of their own.
select is(test.artifact('a', 'video'), '{"applied": true}', 'larger than other media');
select is(test.artifact('b', 'file') || test.artifact('c', 'image') || test.artifact('d', 'video'),
	'{"applied": true}');
update autopost.pull_sources s set config_json = s.config_json || '{"max_bytes": 1000}' where s.source_id = 'files';
select is(test.artifact('e', 'video'), '{"applied": false, "reason": "too_large", "limit": 1000}');
update autopost.pull_sources s set config_json = s.config_json - 'max_bytes' where s.source_id = 'files';

-- From the payload to the video.
select is(test.put_job('cat', 'Vibing') ->> 'status', 'waiting');
select is(test.put_job('cat', 'Vibing') ->> 'reason', 'unchanged', 'repeated');
select is(test.start_job('cat') ->> 'reason', 'not_approved');
select matches(test.shown('cat') #>> '{now,sentence}', 'waits for an approval: 0 of 1');
select is(test.approved('cat', 'n1', '{"payload_digest": "sha256:0"}') ->> 'reason', 'digest_changed');
select is(test.approved('cat', 'n1', '{"payload_digest": "sha256:0"}') -> 'first', 'false', 'reported once');
select is(test.happened('approval_refused'), 1::bigint);
select is(test.approved('cat', 'n1'), '{"applied": true, "status": "approved", "approvals": 1, "needed": 1}',
	'a refusal spends no nonce');
select is(test.approved('cat', 'n1'), '{"applied": false, "reason": "repeated"}', 'the same bytes');
select is(test.approved('cat', 'n1', '{"approved": false}') ->> 'reason', 'nonce_used', 'other bytes');
select is(test.happened('approval_refused'), 2::bigint);
select is((select a.operator || ' ' || a.action || ' ' || a.subject from autopost.list_audit('w', '{}', 1) a),
	'file:files approve_publish_job job:cat/youtube');
select is(test.shown('cat') #> '{approvals,0}' ->> 'stated_by', 'telegram:user:12345', 'shown, no identity');
select is(autopost.start_publish_job('w', 'cat', 'youtube', repeat('0', 64)) ->> 'reason', 'digest_changed');
update autopost.channels c set enabled = false where c.channel_id = 'shows';
select is(test.start_job('cat') ->> 'reason', 'channel_disabled');
select matches(test.shown('cat') #>> '{now,sentence}', 'channel shows is disabled');
update autopost.channels c set enabled = true where c.channel_id = 'shows';
select is(autopost.plan_publish_job('w', 'cat', 'youtube') -> 'channel',
	'{"channel_id": "shows", "target_id": "UCshows", "auth_ref": "google"}');
select is((autopost.plan_publish_job('w', 'cat', 'youtube') #>> '{post,text}') || ', ' ||
	(autopost.plan_publish_job('w', 'cat',
	'youtube') #>> '{warnings,0}'),
		'Cats #cat, subtitles are left out: give publish_config.subtitles_language, or captions_language of the channel');
select is(autopost.plan_publish_job('w', 'none', 'youtube') ->> 'status', 'unknown');
select is(test.start_job('cat') ->> 'status', 'publishing');
select is(test.start_job('cat') ->> 'reason', 'not_approved', 'once');
select is((select jsonb_build_object('text', d.rendered_text, 'title', d.render_meta -> 'title', 'video',
	d.render_meta -> 'video')
	from autopost.deliveries d where d.workspace_id = 'w'),
	'{"text": "Cats #cat", "title": "Vibing", "video": {"privacy": "unlisted", "tags": ["cat"]}}',
		'no language: no subtitles');
select is((select s.kind || ' ' || s.source_ref || ' ' || s.status from autopost.submissions s where s.workspace_id =
	'w'),
	'file cat_youtube enqueued');
select is(autopost.why('w', (test.shown('cat') ->> 'delivery_id')::uuid) #>> '{source,job,job_id}', 'cat');
select is(jsonb_array_length(test.followed()), 1, 'its files are to be written');
select is(autopost.record_job_files('w', 'cat', 'youtube', (test.shown('cat') ->> 'updated_at')::timestamptz),
	'{"applied": true}');
select is(test.followed(), '[]', 'nothing to do');
select is(test.outcome('{"ok": true, "provider_message_id": "vid1"}'), 'sent');
select is((select w.due_at from autopost.file_source_work() w), '-infinity', 'there is work');
select is((test.followed() #> '{0,file}') - 'published_at',
	'{"job_id": "cat", "platform": "youtube", "idempotency_key": "cat_youtube",
	"status": "PUBLISHED", "platform_post_id": "vid1", "post_url": "https://www.youtube.com/watch?v=vid1"}');
select is(test.approved('cat', 'n2'), '{"applied": false, "reason": "published"}');
select is(test.put_job('cat', 'Vibing again') ->> 'reason', 'published', 'a changed payload publishes nothing');
select is(autopost.import_publish_state('w', 'files', '{"job_id": "cat", "platform": "youtube", "status": "PUBLISHED",
	"published_at": "2026-02-08T12:30:00Z", "platform_post_id": "other"}') ->> 'reason', 'known');
select is(test.shown('cat') ->> 'platform_post_id', 'vid1');

-- The language of subtitles; another platform.
select test.put_job('dog', 'Dog', 'd', '{}');
update autopost.channels c set settings = '{"youtube": {"captions_language": "en"}}' where c.channel_id = 'shows';
select is(test.approved('dog', 'n1') ->> 'status', 'approved');
select is(test.start_job('dog') ->> 'status', 'publishing');
select is((select d.render_meta #> '{video,captions,captions}' from autopost.deliveries d
	where d.delivery_id = (test.shown('dog') ->> 'delivery_id')::uuid), '{"language": "en"}');
select test.put_job('dog', 'Dog', 'd', p_platform => 'telegram'), test.approved('dog', 't1', p_platform => 'telegram');
select is(test.start_job('dog', 'telegram') ->> 'status', 'publishing');
select is((select d.rendered_text from autopost.deliveries d
	where d.delivery_id = (test.shown('dog', 'telegram') ->> 'delivery_id')::uuid), E'Dog\n\nCats #cat',
		'title, blank line, description');

-- A change before the call takes the delivery out of the queue; after the call it changes nothing.
select is(test.put_job('dog', 'Big dog', 'd') ->> 'status', 'waiting');
select is((select d.status || ' ' || (d.last_error ->> 'code') from autopost.deliveries d
	where d.channel_id = 'shows' and d.status <> 'sent'),
	'dead manual_skip');
select is(test.shown('dog') #> '{approvals,0}' -> 'void', 'true', 'the approval is void');
select is(autopost.manual_requeue('w', array[(select d.delivery_id from autopost.deliveries d where d.status =
	'dead')], 'o', 'r')
	#>> '{results,0,reason}', 'job_replaced');
select is(test.put_job('dog', 'Big dog', 'a') ->> 'status', 'waiting', 'a changed artifact');
select is(autopost.decide_publish_job('w', 'dog', 'youtube', 'approve', '{"digest": "0"}', 'user:olga', 'r') ->>
	'reason', 'digest_changed');
select is(autopost.decide_publish_job('w', 'dog', 'youtube', 'approve', null, 'user:olga', 'r') ->> 'status',
	'approved');
select is(autopost.decide_publish_job('w', 'dog', 'youtube', 'approve', null, 'user:olga', 'r') ->> 'reason',
	'decided');
select is(test.put_job('dog', 'Bigger dog', 'a') ->> 'status', 'waiting', 'before it is queued');
select is(autopost.decide_publish_job('w', 'dog', 'youtube', 'approve', null, 'user:olga', 'r') ->> 'status',
	'approved');
select test.start_job('dog');
update autopost.channels c set enabled = false where c.channel_id = 'town';
select is(test.outcome('{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "http_500"}}'),
	'retry');
select is(test.put_job('dog', 'Another dog', 'a') ->> 'reason', 'publishing', 'it was called');
select is(autopost.decide_publish_job('w', 'dog', 'youtube', 'reject', null, 'user:olga', 'r') ->> 'reason',
	'publishing');
select is(test.outcome('{"ok": false, "error": {"category": "PERMANENT", "scope": "delivery", "code": "yt_bad"}}'),
	'failed_permanent');
select is(test.followed() @> '[{"job_id": "dog", "platform": "youtube", "status": "failed"}]', true);
select is(autopost.retry_submission('w', (test.shown('dog') ->> 'submission_id')::uuid, 'o', 'r', false) ->>
	'reason', 'not_failed');

-- A failed job is tried again by a new approval; its old delivery stays out.
select is(autopost.decide_publish_job('w', 'dog', 'youtube', 'approve', '{"nonce": "x"}', 'user:olga', 'r') ->>
	'status', 'approved');
select is(autopost.decide_publish_job('w', 'dog', 'youtube', 'approve', '{"nonce": "x"}', 'user:olga', 'r') ->>
	'reason', 'repeated');
select is(test.start_job('dog') ->> 'status', 'publishing');
select is(test.outcome('{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}}'), 'retry');
update autopost.deliveries d set next_retry_at = 'infinity' where d.status = 'retry';
select is(test.followed() @> '[{"job_id": "dog", "platform": "youtube", "status": "unknown"}]', true,
	'held: it may exist');
select is(test.put_job('dog', 'No dog', 'a') ->> 'reason', 'unknown');
select is(test.approved('dog', 'n9') ->> 'reason', 'unknown_outcome');
select is(autopost.resolve_unknown('w', (test.shown('dog') ->> 'delivery_id')::uuid, 'found', 'vid2', 'o', 'r') ->
	'applied', 'true');
select is(test.followed() @> '[{"job_id": "dog", "platform": "youtube", "status": "published"}]', true);

-- A rejection, and a job that is rejected before it comes.
select test.put_job('cow', 'Cow');
select is(autopost.decide_publish_job('w', 'cow', 'youtube', 'reject', '{}', 'user:ivan', 'no cows') ->> 'status',
	'rejected');
select is(test.approved('cow', 'n1') ->> 'reason', 'rejected', 'only new content opens it');
select is(test.put_job('cow', 'Cow', 'a', '{"complete": false}') ->> 'reason', 'unchanged',
	'an unreadable artifact changes nothing');
select is(test.put_job('cow', 'A cow') ->> 'status', 'waiting');
select is(test.approved('owl', 'n1', '{"approved": false}') ->> 'status', 'unseen');
select is(test.put_job('owl', 'Owl') ->> 'status', 'rejected');

select is((select jsonb_agg(v.violations) from autopost.verify('w') v where v.invariant in ('I33', 'I34', 'I35')),
	'[0, 0, 0]');
select is((select array_agg(j.job_id || ' ' || j.status order by j.job_id) from autopost.list_publish_jobs('w',
	'{"platform": "youtube"}', 10) j),
	'{"cat published","cow waiting","dog published","owl rejected"}');
select * from finish();
rollback;
