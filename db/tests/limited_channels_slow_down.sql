-- A channel that its platform limits again and again slows down to what the platform allows: at most
-- one limit in two posts, and its queue ends in little more than the time that the limit allows.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(18);

create table test.taken (channel_id text, at timestamptz);

create function test.wait_of(p_channel_id text, p_form text, p_posts int, p_seconds int) returns int
language plpgsql
as $$
-- The wait that the platform states for the next post of a chat: 0 if it takes it. bucket: p_posts at
-- once, then one in p_seconds / p_posts. window: p_posts in any p_seconds.
declare
	v_now timestamptz := autopost.now_ts();
	v_free timestamptz;
	v_level numeric := p_posts;
	v_last timestamptz;
	v_at timestamptz;
begin
	if p_form = 'window' then
		select t.at + make_interval(secs => p_seconds) into v_free from test.taken t where t.channel_id = p_channel_id
		order by t.at desc offset p_posts - 1 limit 1;
	else
		for v_at in (select t.at from test.taken t where t.channel_id = p_channel_id order by t.at) loop
			v_level := least(p_posts, v_level + coalesce(extract(epoch from v_at - v_last), 0) * p_posts / p_seconds) - 1;
			v_last := v_at;
		end loop;
		v_level := least(p_posts, v_level + coalesce(extract(epoch from v_now - v_last), 0) * p_posts / p_seconds);
		v_free := v_now + make_interval(secs => ((1 - v_level) * p_seconds / p_posts)::float8);
	end if;
	return greatest(0, ceil(coalesce(extract(epoch from v_free - v_now), 0) - 0.000001));
end
$$;

create function test.drain(p_channel_id text, p_form text, p_posts int, p_seconds int, p_code text default 'tg_429')
	returns table (sent int, dead int, limits int, took numeric)
language plpgsql
as $$
-- Sends the queue of a channel to a platform with this limit. took: seconds.
declare
	v_claim record;
	v_wait int;
	v_began timestamptz := autopost.now_ts();
	v_next bigint;
begin
	limits := 0;
	loop
		for v_claim in select c.delivery_id, c.claim_token, c.send_at from test.claim() c loop
			perform test.set_clock(greatest(autopost.now_ts(), v_claim.send_at));
			perform autopost.start_call('w', v_claim.delivery_id, v_claim.claim_token);
			v_wait := test.wait_of(p_channel_id, p_form, p_posts, p_seconds);
			if v_wait = 0 then
				insert into test.taken values (p_channel_id, autopost.now_ts());
			end if;
			perform test.tick('100 milliseconds');
			limits := limits + (v_wait > 0)::int;
			perform autopost.commit_outcome('w', v_claim.delivery_id, v_claim.claim_token, case v_wait
				when 0 then test.sent(v_claim.delivery_id::text)
				else test.failure('TRANSIENT', 'channel', p_code, jsonb_build_object('retry_after_ms', v_wait * 1000)) end);
		end loop;
		v_next := test.next_wake();
		exit when v_next is null;
		perform test.tick(greatest(1, v_next) * interval '1 millisecond');
	end loop;
	took := extract(epoch from autopost.now_ts() - v_began);
	select count(*) filter (where d.status = 'sent'), count(*) filter (where d.status <> 'sent') into sent, dead
	from autopost.deliveries d where d.workspace_id = 'w' and d.channel_id = p_channel_id;
	return next;
end
$$;

create function test.ends_well(p_about text, p_channel_id text, p_count int, p_form text, p_posts int, p_seconds int,
	p_most numeric) returns setof text
language plpgsql
as $$
-- p_most: how much longer than the limit allows.
declare
	v_least numeric := (p_count - p_posts) * p_seconds::numeric / p_posts;
	v_end record;
begin
	perform test.posts(p_channel_id, p_count, jsonb_build_object('include_channels', array[p_channel_id]));
	select * into v_end from test.drain(p_channel_id, p_form, p_posts, p_seconds);
	return query select is(v_end.sent || ' sent, ' || v_end.dead || ' not', p_count || ' sent, 0 not', p_about);
	return query select cmp_ok(v_end.limits, '<=', p_count / 2, p_about || ': limits');
	return query select cmp_ok(v_end.took, '<=', v_least * p_most + p_seconds, p_about || ': seconds');
end
$$;

select autopost.put_channel('w', 'group', '{"platform": "telegram", "target_id": "-1001234567890:7", "auth_ref": "a"}',
	'olga', 'new', false);
select test.ends_well('a group with the rate of groups', 'group', 22, 'bucket', 20, 60, 1.1);
select is((test.channel_row('group')).limited_rps, null, 'its rate was low enough');
select autopost.put_channel('w', 'large', '{"platform": "telegram", "target_id": "-1001234567891", "auth_ref": "b"}',
	'olga', 'new', false);
select test.ends_well('a group that looks like a channel', 'large', 40, 'bucket', 20, 60, 1.1);

create function test.next(p_outcome jsonb) returns void
language sql
as $$
-- Claims, and ends each claim with this outcome.
select autopost.commit_outcome('w', c.delivery_id, c.claim_token, p_outcome) from test.claim() c
$$;
create function test.limit(p_seconds int) returns void
language sql
as $$
select test.next(test.failure('TRANSIENT', 'channel', 'tg_429', jsonb_build_object('retry_after_ms', p_seconds * 1000)))
$$;
create function test.rate() returns numeric
language sql
as $$
select c.effective_rps from autopost.channels c where c.workspace_id = 'w' and c.channel_id = 'c'
$$;

select test.channel('c', 1, 2);
select test.posts('c', 80, '{"include_channels": ["c"]}');
select test.limit(10);
select ok(test.rate() between 1 / 13.8 and 1 / 11.4, 'one post in the wait');
select is(jsonb_path_query_first(autopost.why('w', (test.row('c')).delivery_id),
	'$.**.held_by[*] ? (@.gate == "channel_rate") .effective_rps'), to_jsonb(round(test.rate(), 6)), 'why names the rate');
update autopost.channels set limited_rps = 0.5 where channel_id = 'c';
select test.tick('5 seconds');
select autopost.cool_down('w', test.channel_row('c'), 'channel', autopost.now_ts() + interval '10 seconds',
	'{"code": "tg_429"}');
select is(test.rate(), 0.5, 'a limit within the wait is that of an earlier call');
select test.tick('1 minute');
select test.limit(10);
select ok(test.rate() between 1 / 14.1 and 1 / 11.9, 'a limit after no post adds its wait');
do $$
begin
	for n in 1..10 loop
		perform test.tick('1 hour');
		perform test.limit(600);
	end loop;
end
$$;
select is(test.rate(), round(1 / 60.0, 9), 'limits without a post between them say little about the rate');
do $$
begin
	for n in 1..60 loop
		perform test.tick('1 minute');
		perform test.next(test.sent(n::text));
	end loop;
end
$$;
select is(test.rate(), 1::numeric, 'sent posts restore it');
select is((test.channel_row('c')).limited_rps, null);
select test.tick('1 minute');
select test.limit(900);
select is((test.channel_row('c')).limited_rps, 0.5, 'a long wait halves the rate: it may belong to a day');
select autopost.put_channel('w', 'c', '{"rate_rps": 0.75}', 'olga', 'paid', false);
select is((test.channel_row('c')).limited_rps, null, 'a rate that a person sets applies at once');

-- The rate is lowered for an edit too, and for a limit of the whole credential.
select autopost.cool_down('w', test.channel_row('c'), 'platform', autopost.now_ts() + interval '15 minutes',
	'{"code": "tg_429", "category": "TRANSIENT"}')
from test.tick('1 hour');
select is(test.rate(), 0.375);
select autopost.cool_down('w', test.channel_row('c'), 'channel', autopost.now_ts() + interval '10 seconds',
	'{"code": "tg_maintenance", "category": "TRANSIENT"}')
from test.tick('1 hour');
select is(test.rate(), 0.375, 'a wait for another reason says nothing about the rate');
select * from finish();
rollback;
