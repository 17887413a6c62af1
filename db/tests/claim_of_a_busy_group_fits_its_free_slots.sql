begin;
\ir fake_clock.sql
\ir world.sql
select plan(4);

select test.channel('c' || n, p_max_parallel => 1) from generate_series(1, 20) n;
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'bot', 2);
select test.say('post');

create function pg_temp.gates_of_group() returns table (channel_id text, version tid) language sql as $$
	select g.channel_id, g.ctid from autopost.channel_gates g where g.rate_group = 'bot'
$$;
create function pg_temp.claimed_and_visited(out claimed bigint, out visited bigint) language plpgsql as $$
begin
	create temp table before_claim on commit drop as select * from pg_temp.gates_of_group();
	claimed := (select count(*) from test.claim());
	visited := (select count(*) from pg_temp.gates_of_group() g join before_claim b using (channel_id)
		where g.version <> b.version);
	drop table before_claim;
end
$$;

select is((select claimed from pg_temp.claimed_and_visited()), 2::bigint,
	'two slots of a second, which nobody has taken yet');
select test.tick('0.5 seconds');
select results_eq('select claimed, visited from pg_temp.claimed_and_visited()', 'values (1::bigint, 1::bigint)',
	'one slot came free: one gate is held for it, though many wait');
select results_eq('select claimed, visited from pg_temp.claimed_and_visited()', 'values (0::bigint, 0::bigint)',
	'none is free: no gate is held');
select test.tick('1 second');
select is((select claimed from pg_temp.claimed_and_visited()), 2::bigint, 'all are');

select * from finish();
rollback;
