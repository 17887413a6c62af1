-- Without a source_ref, the same request is a duplicate inside the window and a new post later.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(13);

select test.channel('a');
create function test.push(p_raw jsonb) returns jsonb
language sql
as $$
select autopost.receive_push('w', 'in', jsonb_build_array(p_raw)) -> 'results' -> 0
$$;
create temp table one on commit drop as select test.push('{"text": "x", "tags": ["a"]}') as answer;
select test.tick('9.9 seconds');
select is(test.push('{"tags": ["a"], "text": "x"}') ->> 'status', 'duplicate', 'whatever the order of its keys');
select is(test.push('{"tags": ["a"], "text": "x"}') ->> 'message_id', (select answer ->> 'message_id' from one));
select is(test.push('{"text": "x", "tags": ["b"]}') ->> 'status', 'enqueued', 'another field is another request');
select is(test.count_events('ingress_dedup_dropped'), 2);
select test.tick('0.1 seconds');
select is(test.push('{"text": "x", "tags": ["a"]}') ->> 'status', 'enqueued', 'after ten seconds it is a post again');
select is((select seen_count from autopost.messages), 3::bigint, 'of the same content');
select is((select count(*)::int from autopost.deliveries), 1, 'which the channel has already');

update autopost.workspace_endpoints set hash_drop_window_sec = 60;
select test.tick('1 hour');
select test.push('{"text": "y"}');
select test.tick('59 seconds');
select is(test.push('{"text": "y"}') ->> 'status', 'duplicate', 'the window is the endpoint''s');
select test.tick('1 second');
select is(test.push('{"text": "y"}') ->> 'status', 'enqueued', 'and begins with the first, not with the repetition');
update autopost.workspace_endpoints set hash_drop_window_sec = 0;
select is(test.push('{"text": "z"}') ->> 'status', 'enqueued');
select is(test.push('{"text": "z"}') ->> 'status', 'enqueued', 'no window, no drops');
-- A source_ref is not judged by the window.
update autopost.workspace_endpoints set hash_drop_window_sec = 60;
select is(test.push('{"text": "r", "source_ref": "1"}') ->> 'status', 'enqueued');
select is(test.push('{"text": "r", "source_ref": "2"}') ->> 'status', 'enqueued');

select * from finish();
rollback;
