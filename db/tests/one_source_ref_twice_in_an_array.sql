-- If two posts of a push have the same source_ref, the first counts.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(3);

select test.channel('a');
create temp table r on commit drop as
select autopost.receive_push('w', 'in',
	jsonb_agg(jsonb_build_object('source_ref', 's' || (n + 1) / 2, 'text', 'text ' || n)
	order by n)) -> 'results' as answers
from generate_series(1, 20) n;
select is((select array_agg(a.value ->> 'status' order by a.ordinality)
	from r, jsonb_array_elements(answers) with ordinality a where a.ordinality % 2 = 1), array_fill('enqueued'::text,
	array[10]));
select is((select array_agg(a.value ->> 'status' order by a.ordinality)
	from r, jsonb_array_elements(answers) with ordinality a where a.ordinality % 2 = 0), array_fill('duplicate'::text,
	array[10]));
select is(array(select rendered_text from autopost.deliveries order by due_at),
	array(select 'text ' || n from generate_series(1, 19, 2) n), 'in the order of the array');
rollback;
