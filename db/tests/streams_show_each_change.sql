-- stream_items returns what changed in the workspaces of open streams: submissions, deliveries, posts
-- and alerts.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(33);

create table test.position (value jsonb);
insert into test.position values (null);
create table test.seen (item jsonb primary key);
create function test.watched() returns jsonb
language sql
as $$
select '[{"workspace_id": "w"}]'::jsonb
$$;
create function test.read(p_watched jsonb default test.watched()) returns jsonb
language plpgsql
as $$
-- Reads on from the position before. Items are repeated while other transactions of the server are
-- open: like the daemon, this leaves out those that were seen.
declare
	v_answer jsonb;
	v_new jsonb;
begin
	perform test.tick('3 seconds');
	v_answer := autopost.stream_items(p_watched, (select p.value from test.position p));
	update test.position set value = v_answer -> 'position';
	perform test.tick('3 seconds');
	with new as (
		insert into test.seen
		select distinct i - 'data' from jsonb_array_elements(v_answer -> 'items') i
		on conflict do nothing
		returning item)
	select coalesce(jsonb_agg(i.value order by i.n), '[]') into v_new
	from jsonb_array_elements(v_answer -> 'items') with ordinality i (value, n)
	where i.value - 'data' in (select item from new);
	return v_answer || jsonb_build_object('items', v_new);
end
$$;
create function test.shown(p_fields text[], p_kind text default null) returns text[]
language sql
as $$
-- The items of the next read: the kind, and some fields of the data.
select array(select concat_ws(' ', i ->> 'kind', (
	select string_agg(i -> 'data' ->> f, ' ' order by o) from unnest(p_fields) with ordinality f (f, o)))
from jsonb_array_elements(test.read() -> 'items') with ordinality x (i, n)
where i ->> 'kind' = coalesce(p_kind, i ->> 'kind') and (p_kind is not null or i ->> 'kind' <> 'change') order by n)
$$;

select test.channel('a', p_max_parallel => 2);
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, moderated)
values ('w', 'mod', 'webhook_push', repeat('b', 64), true);
insert into autopost.workspaces (workspace_id) values ('v');
select test.tick('1 minute');
select is(test.read() -> 'items', '[]', 'the position begins now');
select is(test.read() -> 'items', '[]');

-- Submissions and posts.
select autopost.receive_push('w', 'mod', '[{"text": "Hello"}]');
create temp table held as select l.submission_id as id from autopost.list_submissions('w', '{}', 1) l;
select is(test.shown('{submission_id,status,kind}'), array[format('submission %s pending push', (select id from held))]);
select is(test.read() -> 'items', '[]', 'once');
select autopost.decide_submission('w', (select id from held), 'approve', null, 'user:olga', 'seen');
select is(test.shown('{status,decision,decided_by}', 'submission'), '{"submission enqueued approve user:olga"}');
select test.say('Again');
select is(test.shown('{enqueued,deduped,invalid}'), '{"post 1 0 0"}');

-- Deliveries: the last event with the present state.
select test.claimed();
select test.start('a');
select is(test.shown('{channel_id,status,attempt,action}', 'delivery'), '{"delivery a sending 1 send_attempt"}');
select test.commit('a', test.failure('TRANSIENT', 'delivery', 'http_502'));
select is(test.shown('{status,action}'), '{"delivery retry retry_scheduled"}');
select test.tick('1 hour');
select test.round('a', test.sent('7'));
select is(test.shown('{status,action}'), '{"delivery sent sent"}', 'two events, one item');

-- Alerts.
select autopost.raise_alert('w', 'auth_lost', 'credential:bot', '{"message": "no"}', '{}');
select is(test.shown('{kind,subject,severity,state}'), '{"alert auth_lost credential:bot critical open"}');
select autopost.acknowledge_alert('w', a.alert_id, 'olga', 'seen', false) from autopost.alerts a;
select is(test.shown('{state}'), '{"alert acknowledged"}');
select autopost.end_alert('w', 'auth_lost', 'credential:bot');
select is(test.shown('{state}'), '{"alert ended"}');
select is(test.read() -> 'items', '[]');

-- Operator actions.
select autopost.pause_channel('w', 'a', 60, 'olga', 'quiet', false);
select is(test.shown('{action,subject}', 'change'), '{"change pause_channel channel:a"}');
select autopost.resume_channel('w', 'a', 'olga', 'go on', false);
select is(test.shown('{action,subject}', 'change'), '{"change resume_channel channel:a"}');

-- Other workspaces.
select autopost.raise_alert('v', 'auth_lost', 'credential:bot', '{"message": "no"}', '{}');
select is(test.read() -> 'items', '[]', 'of a workspace that is not watched');
select autopost.raise_alert('v', 'auth_lost', 'credential:two', '{"message": "no"}', '{}');
select autopost.raise_alert('w', 'auth_lost', 'credential:two', '{"message": "no"}', '{}');
select is(array(select distinct i ->> 'workspace_id' from jsonb_array_elements(test.read(
	'[{"workspace_id": "v"}, {"workspace_id": "w"},
	{"workspace_id": "v"}, {"workspace_id": "nowhere"}]') -> 'items') i order by 1), '{v,w}');

-- Keys that end.
select is(jsonb_array_length(autopost.create_api_key('w', '{"name": "k", "role": "viewer"}', repeat('c', 64), 'olga',
	'r') -> 'scopes'), null);
create temp table keys as select k.key_id as id from autopost.api_keys k;
create function test.ended() returns jsonb
language sql
as $$
select test.read(jsonb_build_array(jsonb_build_object('workspace_id', 'w', 'key_id', (select id from keys)))) -> 'ended'
$$;
select is(test.ended(), '[]');
update autopost.api_keys set expires_at = autopost.now_ts();
select is(test.ended(), jsonb_build_array((select id from keys)), 'expired');
update autopost.api_keys set expires_at = null, enabled = false;
select is(test.ended(), jsonb_build_array((select id from keys)), 'disabled');
select is(test.read('[{"workspace_id": "w", "key_id": "00000000-0000-7000-8000-000000000000"}]') -> 'ended',
	'["00000000-0000-7000-8000-000000000000"]', 'unknown');

-- Sessions that end.
insert into autopost.users (user_id, email, name, password_hash)
values ('00000000-0000-7000-8000-000000000001', 'olga@example.org', 'Olga', 'x');
insert into autopost.memberships (workspace_id, user_id, role)
values ('w', '00000000-0000-7000-8000-000000000001', 'viewer');
select autopost.begin_session('00000000-0000-7000-8000-000000000001', repeat('d', 64));
create function test.ended_sessions() returns jsonb
language sql
as $$
select test.read(jsonb_build_array(jsonb_build_object('workspace_id', 'w', 'session_id',
	(select s.session_id from autopost.sessions s)))) -> 'ended'
$$;
select is(test.ended_sessions(), '[]');
update autopost.memberships set workspace_id = 'v';
select is(jsonb_array_length(test.ended_sessions()), 1, 'no member any more');
update autopost.memberships set workspace_id = 'w';
update autopost.users set enabled = false;
select is(jsonb_array_length(test.ended_sessions()), 1, 'a disabled person');

-- Too many for one read: their items are left out, also from a read that repeats them. A later read goes on.
select test.posts('many', 1100);
create temp table crowded as select test.read() as answer;
select is((select answer -> 'lost' from crowded), '["w"]');
select is((select jsonb_array_length(answer -> 'items') from crowded), 0);
create temp table repeated as select test.read() as answer;
select test.say('One more');
select is(test.shown('{enqueued}'), '{"post 1"}');

-- A clock that was turned back, and a position of another server: changes may be missing.
update test.position set value = value || jsonb_build_object('read_at', autopost.now_ts() + interval '1 day');
select is(test.read() -> 'lost', '["w"]');
select test.say('Later');
select is(test.shown('{enqueued}'), '{"post 1"}');
update test.position set value = value || '{"mark_xid": "9000000000000000000"}';
select is(test.read() -> 'lost', '["w"]');
select test.say('Elsewhere');
select is(test.shown('{enqueued}'), '{"post 1"}');

select is(autopost.stream_items('[]', null) -> 'items', '[]');
select * from finish();
rollback;
