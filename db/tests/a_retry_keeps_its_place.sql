-- A channel sends by greatest(not_before, scheduled_for), then by id. A retry that is due again goes
-- before what came after it. What may not go yet holds up nothing.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(15);
select test.bind();

create function test.texts(p_limit int default 100) returns text[]
language plpgsql
as $$
-- Claims, starts the calls and returns the texts in the order of the answer.
declare
	v_row record;
	v_texts text[] := '{}';
begin
	for v_row in select c.* from test.claim(p_limit) c loop
		perform autopost.start_call('w', v_row.delivery_id, v_row.claim_token);
		v_texts := v_texts || v_row.rendered_text;
	end loop;
	return v_texts;
end
$$;
create function test.fails(p_text text, p_seconds int) returns text
language sql
as $$
-- The call of a text fails, and its platform asks for a wait.
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.failure('TRANSIENT', 'delivery', 'http_500',
	jsonb_build_object('retry_after_ms', p_seconds * 1000))) ->> 'status'
from autopost.deliveries d where d.rendered_text = p_text and d.status = 'sending'
$$;
create function test.goes(p_text text) returns text
language sql
as $$
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent(p_text)) ->> 'status'
from autopost.deliveries d where d.rendered_text = p_text and d.status = 'sending'
$$;
create function test.ahead_of(p_text text) returns text
language sql
as $$
-- The wait reasons of a text, with the number ahead.
select string_agg((h.value ->> 'gate') || coalesce(' ' || (h.value ->> 'ahead'), ''), ', ' order by h.ordinality)
from autopost.deliveries d
cross join lateral jsonb_array_elements(autopost.why('w', d.delivery_id) #> '{now,held_by}') with ordinality h
where d.rendered_text = p_text
$$;

-- One at a time.
select test.channel('a');
select test.posts('one', 4);
select is(test.texts(), '{one 1}');
select is(test.fails('one 1', 60), 'retry');
select is(test.texts(), '{one 2}', 'a retry that waits holds up nothing');
select test.goes('one 2');
select test.tick('5 minutes');
select test.posts('later', 1);
select is(test.ahead_of('one 1'), null, 'nothing goes before the retry');
select is(test.ahead_of('later 1'), 'queue 3');
select is(test.texts(), '{one 1}', 'due again: before what came after it');
select is(test.fails('one 1', 3600), 'retry');
select is(test.ahead_of('one 1'), 'retry', 'and so when it is due the third time');
select is(test.texts(), '{one 3}');
select test.goes('one 3');

-- Many at once: retries by their own place among themselves and among the queued ones, whatever their waits were.
select test.channel('b', p_max_parallel => 4);
update autopost.channels set enabled = channel_id = 'b';
select test.posts('many', 4);
select is(test.texts(), '{many 1,many 2,many 3,many 4}');
select test.fails('many ' || n, 100 - 10 * n) from generate_series(1, 4) n;
select test.posts('next', 6);
select test.post('{"text": "noon", "scheduled_for": "2026-06-02T12:00:00Z"}');
select is(test.texts(2), '{next 1,next 2}');
select test.fails('next 1', 5), test.fails('next 2', 20);
select test.tick('10 minutes');
select is(test.texts(2), '{many 1,many 2}');
select test.fails('many 1', 3600), test.goes('many 2');
select is(test.texts(), '{many 3,many 4,next 1,next 2}');
select test.goes(t) from unnest('{many 3,many 4,next 1,next 2}'::text[]) t;
select is(test.texts(), '{next 3,next 4,next 5,next 6}');

-- A retry of a scheduled post goes by its schedule.
select test.goes('next ' || n) from generate_series(3, 6) n;
select test.set_clock('2026-06-02 12:00:00+00');
select test.texts(1), test.fails('many 1', 7200), test.texts(1), test.fails('noon', 60);
select test.posts('afternoon', 1);
select test.set_clock('2026-06-02 12:10:00+00');
select is(test.texts(), '{noon,afternoon 1}');

select * from finish();
rollback;
