-- A post of a moderated endpoint or channel waits for a decision. The first decision wins. What was
-- approved is what goes out.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(60);

select test.channel('a');
select test.channel('b', p_platform => 'max', p_rate_group => 'maxbot');
update autopost.channels set updated_at = autopost.now_ts() - interval '1 hour'; -- verify compares channels that are older
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, moderated)
values ('w', 'mod', 'webhook_push', repeat('b', 64), true);

create function test.push(p_raw jsonb) returns jsonb
language sql
as $$
select autopost.receive_push('w', 'mod', jsonb_build_array(p_raw)) #> '{results,0}'
$$;
create function test.last() returns uuid
language sql
as $$
select l.submission_id from autopost.list_submissions('w', '{}', 1) l
$$;
create function test.decide(p_decision text, p_by text default 'user:olga', p_approval jsonb default '{}',
	p_id uuid default test.last()) returns jsonb
language sql
as $$
select autopost.decide_submission('w', p_id, p_decision, p_approval, p_by, 'looked at it')
$$;
create function test.shown() returns jsonb
language sql
as $$
select autopost.get_submission('w', test.last())
$$;
create function test.texts() returns text[]
language sql
as $$
select array(select distinct d.channel_id || ':' || d.rendered_text from autopost.deliveries d
	where d.workspace_id = 'w' and d.status = 'queued' order by 1)
$$;

-- A moderated endpoint.
select is(test.push('{"text": "Hello", "source_ref": "r1"}') ->> 'status', 'accepted');
select is(test.shown() ->> 'status', 'pending');
select is(test.texts(), '{}', 'nothing is queued');
select is(test.shown() #> '{plan,renderings}' -> 0 ->> 'text', 'Hello', 'the plan has the text');
select is(jsonb_array_length(test.shown() #> '{plan,renderings}'), 2, 'one rendering for each platform');
select matches(autopost.why('w', test.last()) #>> '{now,sentence}', 'waits for a decision');
select is(autopost.health_snapshot('w') -> 'submissions', '{"pending": 1}');
select is(test.push('{"text": "Hello", "source_ref": "r1"}') ->> 'status', 'duplicate', 'a repeat');
select is(test.decide('approve', p_approval => '{"digest": "0000"}') ->> 'reason', 'digest_changed');
select is(test.decide('approve', p_id => gen_random_uuid()) ->> 'reason', 'unknown_submission');
select throws_like($$select test.decide('maybe')$$, '%must be approve or reject%');
select is(test.decide('approve', p_approval => jsonb_build_object('digest', test.shown() -> 'digest', 'source', 'api'))
	- '{run_id,trace_id,message_id}'::text[],
	'{"applied": true, "status": "enqueued", "enqueued": 2, "deduped": 0, "invalid": 0, "skipped": 0, "fanout": "done", "approvals": 1, "needed": 1}');
select is(test.texts(), '{a:Hello,b:Hello}');
select is(test.decide('reject', 'user:ivan') -> 'decision' ->> 'by', 'user:olga', 'the second person learns who decided');
select is(test.decide('reject', 'user:ivan') ->> 'reason', 'decided');
select is((select a.action from autopost.list_audit('w', '{}', 1) a), 'approve_submission');
select is((select r.stats_json -> 'enqueued' from autopost.ingest_runs r where r.run_id = (test.shown() ->> 'run_id')::uuid), '2');

-- A rejection.
select is(test.push('{"text": "Bad"}') ->> 'status', 'accepted');
select is(test.decide('reject')::text, '{"status": "rejected", "applied": true}');
select is(test.shown() ->> 'decision_reason', 'looked at it');
select is(test.decide('approve') ->> 'reason', 'decided', 'it is final');
select is(test.texts(), '{a:Hello,b:Hello}');

-- An edit makes earlier approvals void.
update autopost.workspaces set approvals_needed = 2 where workspace_id = 'w';
select test.push('{"text": "Two people"}');
select is(test.decide('approve', 'user:olga') - 'status', '{"applied": true, "approvals": 1, "needed": 2}');
select is(test.decide('approve', 'user:olga') -> 'approvals', '1', 'a person counts once');
create temp table digests as select test.shown() ->> 'digest' as before;
select is(autopost.edit_submission('w', test.last(), '{"text": "Two friends"}', 'user:ivan', 'nicer', true) ->> 'status',
	'pending', 'dry run');
select is(test.shown() #>> '{payload,text}', 'Two people');
select is(autopost.edit_submission('w', test.last(), '{"text": "Two friends"}', 'user:ivan', 'nicer', false) -> 'after',
	'{"text": "Two friends"}');
select is(autopost.edit_submission('w', test.last(), '{"text": "Two friends"}', 'user:ivan', 'nicer', false) ->> 'reason',
	'unchanged');
select is(autopost.edit_submission('w', test.last(), '{"text": 7}', 'user:ivan', 'odd', false) ->> 'reason', 'invalid');
select is(test.decide('approve', 'user:olga', (select jsonb_build_object('digest', d.before) from digests d)) ->> 'reason',
	'digest_changed', 'the digest before the edit');
select is(test.decide('approve', 'user:ivan') ->> 'reason', 'own_approval', 'the last editor');
select is(test.decide('approve', 'user:olga') -> 'approvals', '1', 'the first approval is void');
select is(test.decide('approve', 'user:petra') ->> 'status', 'enqueued');
select is(test.texts(), '{a:Hello,"a:Two friends",b:Hello,"b:Two friends"}');
select is(jsonb_array_length(test.shown() -> 'approvals'), 4);
update autopost.workspaces set approvals_needed = 1 where workspace_id = 'w';

-- A nonce counts once.
select test.push('{"text": "Nonce"}');
select is(test.decide('approve', p_approval => '{"nonce": "n1", "source": "file:jobs"}') ->> 'status', 'enqueued');
select is(test.decide('approve', p_approval => '{"nonce": "n1", "source": "file:jobs"}') ->> 'reason', 'repeated');
select is(test.decide('reject', p_approval => '{"nonce": "n1", "source": "file:jobs"}') ->> 'reason', 'nonce_used');

-- Media are fetched first; a decision meanwhile acts when they are stored.
select test.push('{"text": "Look", "media": [{"type": "image", "url": "https://e.x/1.png"}]}');
select matches(test.shown() #>> '{plan,media}', 'https://e.x/1.png', 'the plan has the media by URL');
select is(test.decide('approve', p_approval => jsonb_build_object('digest', test.shown() -> 'digest')) ->> 'status',
	'fetching');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, sha256, content_type, size_bytes, last_seen_at)
values ('w', 'sha256:' || repeat('1', 64), 'file:///1', repeat('1', 64), 'image/png', 10, autopost.now_ts());
create function test.fetched() returns jsonb
language sql
as $$
select autopost.commit_submission('w', c.submission_id, c.claim_token,
	jsonb_build_object('ok', true, 'media', jsonb_build_array(jsonb_build_object('index', 0, 'blob_ref', 'sha256:' || repeat('1', 64)))))
from autopost.claim_submissions('w', 'r', 1) c
$$;
select is(test.fetched() ->> 'status', 'enqueued');
select test.push('{"text": "Look again", "media": [{"type": "image", "url": "https://e.x/1.png"}]}');
select is(test.fetched() ->> 'status', 'pending');
select matches(test.shown() #>> '{plan,media}', 'sha256:1111');
select is(test.decide('reject') ->> 'status', 'rejected');

-- A text that changes between the approval and the end of the fetch does not go out.
select test.push('{"text": "Changing", "media": [{"type": "image", "url": "https://e.x/1.png"}]}');
select is(test.decide('approve') ->> 'status', 'fetching');
select autopost.put_template('w', 'default', '*', '{"body": "Altered: {text}"}', 'olga', 'other');
select is(test.fetched() ->> 'invalid', '2');
select autopost.enable_template('w', 'default', '*', 1, false, 'olga', 'back');

-- One of many channels is moderated: its part waits, the others get the post.
update autopost.channels set moderated = true where channel_id = 'b';
select is(test.post('{"text": "Part"}') - '{run_id,trace_id,message_id,deliveries,submission_id}'::text[],
	'{"status": "enqueued", "enqueued": 1, "deduped": 0, "invalid": 0, "skipped": 0, "fanout": "done", "pending": 1}');
select is(test.shown() -> 'channels', '["b"]');
select is(test.post('{"text": "Part"}') ->> 'submission_id', test.last()::text, 'a repeat waits in the same part');
select is((autopost.plan('w', '{"text": "Plan"}', null) -> 'counts') - '{channels,deduped,invalid,skipped,not_routed,disabled}'::text[],
	'{"queued": 1, "pending": 1}');
-- Its template changes before the approval.
select is(autopost.put_template('w', 'short', '*', '{"body": "Short: {text}"}', 'olga', 'shorter') ->> 'applied', 'true');
update autopost.channels set template_ref = 'short' where channel_id = 'b';
select is(test.decide('approve', p_approval => jsonb_build_object('digest', test.shown() -> 'digest')) ->> 'enqueued', '1',
	'another template is a rendering that was not in the plan');
select is((select m.seen_count::int from autopost.messages m where m.message_id = (test.shown() ->> 'message_id')::uuid), 2,
	'an approved part is not a repeat');
select test.post('{"text": "Part two"}');
select autopost.put_template('w', 'short', '*', '{"body": "Longer: {text}"}', 'olga', 'longer');
select is(test.decide('approve', p_approval => jsonb_build_object('digest', test.shown() -> 'digest')) ->> 'reason',
	'digest_changed', 'the text changed');
select is(test.decide('approve', p_approval => jsonb_build_object('digest', test.shown() -> 'digest')) ->> 'status', 'enqueued');
select ok('b:Longer: Part two' = any (test.texts()));

-- It expires.
select test.post('{"text": "Late"}');
select test.tick('73 hours');
select is(autopost.expire_submissions('w') ->> 'expired', '1');
select is(test.decide('approve') ->> 'reason', 'not_pending');
select is(array(select distinct e.action from autopost.list_events('w', '{}', 1000) e where e.action like 'submission_%' order by 1),
	'{submission_approved,submission_edited,submission_expired,submission_pending,submission_rejected}'::text[]);
select is((select jsonb_agg(v) from autopost.verify('w') v where v.violations > 0), null, 'the invariants hold');

select * from finish();
rollback;
