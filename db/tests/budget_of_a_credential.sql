-- The monthly budget of a credential: cost of a post, time of spending, waiting deliveries.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(33);
select test.bind(), test.bind('purse', 'x');

select test.channel('x', p_platform => 'x', p_rate_group => 'purse', p_max_parallel => 100);
select test.channel('y', p_platform => 'x', p_rate_group => 'purse', p_max_parallel => 100);
select test.channel('tg', p_max_parallel => 100);
create function test.spent() returns bigint
language sql
as $$
select autopost.spent_this_month('w', 'purse', autopost.now_ts())
$$;
create function test.held_by(p_channel text) returns text
language sql
as $$
select string_agg(h.value ->> 'gate', ',')
	from jsonb_array_elements(autopost.why('w', (test.row(p_channel)).delivery_id) -> 'now' -> 'held_by') h
$$;
create function test.on_x(p_text text, p_channel text default 'x') returns void
language sql
as $$
select test.tick('1 second');
select test.post(jsonb_build_object('text', p_text, 'routing',
	jsonb_build_object('include_channels', jsonb_build_array(p_channel))))
$$;

-- Without a budget nothing is reckoned.
select test.say('free');
select is(array(select unnest(test.claimed()) order by 1), '{tg,x,y}');
select is((select count(*)::int from autopost.charges), 0);
select test.start('x'), test.start('y'), test.start('tg');
select test.commit('x', test.sent('1')), test.commit('y', test.sent('2')), test.commit('tg', test.sent('3'));

-- Prices: a post, one with a link, each part of a thread; what stands already is paid for.
create function test.price(p_text text, p_meta jsonb default '{"steps": [{"step": "text", "text": true}]}')
	returns bigint
language sql
as $$
select autopost.post_price(f, p_text, p_meta) from autopost.platforms f where f.platform = 'x'
$$;
select is(test.price('words'), 15000::bigint);
select is(test.price('see https://e.org/a'), 200000::bigint);
select is(test.price('see example.com'), 200000::bigint, 'what X makes a link of');
select is(test.price('', '{"steps": [{"step": "a", "text": true, "body": "one e.org"}, {"step": "b", "text": true, "body": "two"}, {"step": "c", "items": [0]}]}'), 230000::bigint);
select is(test.price('', '{"steps": [{"step": "a", "text": true, "body": "one e.org"}, {"step": "b", "text": true, "body": "two"}], "series_progress": {"steps": {"a": ["1"]}}}'), 15000::bigint);
select is((select autopost.post_price(f, 'https://e.org', '{"steps": [{"step": "text", "text": true}]}')
	from autopost.platforms f where f.platform = 'telegram'), 0::bigint);

-- Spent by the claim, in order, as far as it goes: of both channels together.
insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ('w', 'purse', 230000);
select test.on_x('a link https://e.org/1');
select test.on_x('words');
select test.on_x('more words', 'y');
select test.on_x('even more words', 'y');
select test.tick('1 second');
select is(cardinality(test.claimed()), 3, 'a link and two posts');
select is(test.spent(), 230000::bigint);
select is((test.row('y')).status, 'queued');
select is(test.held_by('y'), 'budget');
select is(autopost.why('w', (test.row('y')).delivery_id) -> 'now' ->> 'send_at',
	to_jsonb(autopost.month_begin(autopost.now_ts()) + interval '1 month') #>> '{}', 'the next month');
select is((test.gate('y')).ready_at, autopost.now_ts() + interval '10 minutes', 'looked at again');
select is(test.claimed(), '{}');
select is(jsonb_path_query_array(autopost.plan('w', '{"text": "planned", "routing": {"include_channels": ["x"]}}',
	autopost.now_ts()),
	'$.channels[*] ? (@.channel_id == "x").held_by[*].gate ? (@ == "budget")'), '["budget"]', 'a plan says so too');

-- Calls that certainly made nothing are refunded; others are not.
select test.start('x');
select test.commit('x', test.failure('TRANSIENT', 'delivery', 'x_conflict'));
select is(test.spent(), 215000::bigint, 'refused');
select is((test.row('x')).quota_held, false);
select autopost.start_call('w', d.delivery_id, d.claim_token),
	autopost.commit_outcome('w', d.delivery_id, d.claim_token,
	test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'))
from autopost.deliveries d where d.channel_id = 'y' and d.status = 'sending';
select is(test.spent(), 215000::bigint, 'in doubt');
select autopost.start_call('w', d.delivery_id, d.claim_token),
	autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('9'))
from autopost.deliveries d where d.channel_id = 'x' and d.status = 'sending';
select is(test.spent(), 215000::bigint, 'sent');
select is(array(select status from autopost.deliveries where channel_id = 'x' order by delivery_id),
	'{sent,sent,retry}');
update autopost.budgets set month_micros = 0;
select test.tick('1 hour');
select is(test.claimed(), '{}', 'a smaller budget');

-- A part of a thread that stands is not paid back.
update autopost.budgets set month_micros = 1000000;
select is(cardinality(test.claimed()), 3, 'a larger budget acts at once');
select is(test.spent(), 260000::bigint);
select test.start('x');
select autopost.record_series_progress('w', r.delivery_id, r.claim_token, '{"step": "text", "ids": ["77"]}')
	from test.row('x') r;
select test.commit('x', test.failure('TRANSIENT', 'delivery', 'x_conflict'));
select is(test.spent(), 260000::bigint);
-- A claim that never began is.
select autopost.release_claims('w', array(select d.claim_token from autopost.deliveries d
	where d.channel_id = 'y' and d.status = 'sending'));
select is(test.spent(), 230000::bigint);

-- Other platforms cost nothing, other credentials are not concerned, and the month ends.
update autopost.budgets set month_micros = 230000;
insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ('w', 'bot', 0);
select test.on_x('free again', 'tg');
select test.tick('1 second');
select is(test.claimed(), '{tg}');
select is(test.held_by('y'), 'budget', 'what was handed back has its place again, ahead of what is tried again later');
select test.tick(autopost.month_begin(autopost.now_ts()) + interval '1 month' - autopost.now_ts());
select is(test.spent(), 0::bigint, 'a new month');
select is(array(select distinct unnest(test.claimed()) order by 1), '{x,y}');
select is(test.spent() > 0, true);
delete from autopost.budgets where auth_ref = 'purse';
select test.on_x('a post', 'y');
select test.tick('1 second');
select is(test.claimed(), '{y}', 'spending is unlimited without a budget');
select is((select count(*)::int from autopost.charges where delivery_id = (test.row('y')).delivery_id), 0);

select * from finish();
rollback;
