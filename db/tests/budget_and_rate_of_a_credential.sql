-- A budget with a rate limit: a delivery without a slot is not charged and goes later.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(12);

select test.channel('x' || n, p_platform => 'x', p_rate_group => 'purse', p_max_parallel => 1)
	from generate_series(1, 6) n;
select test.channel('tg', p_max_parallel => 1);
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'x', 'purse', 2);
insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ('w', 'purse', 10000000);
select test.say('a post');

create temp table c on commit drop as select * from test.claim();
select is((select count(*)::int from c where platform = 'x'), 2, 'two have a slot within a second');
select is((select count(*)::int from autopost.charges), 2, 'two are paid for');
select is((select count(*)::int from autopost.deliveries where quota_held and status <> 'sending'), 0,
	'nothing else is held');
select test.tick('1 second');
create temp table d on commit drop as select * from test.claim();
select is((select count(*)::int from d), 2, 'then the next two');
select test.tick('1 second');
select is((select count(*)::int from test.claim()), 2, 'and the last');
select is((select count(*)::int from autopost.charges), 6);
select is((select sum(micros)::bigint from autopost.charges), 6 * 15000::bigint);
select is((select count(*)::int from autopost.deliveries where status = 'queued'), 0);

-- A fault of one group is its own.
select test.say('another');
select test.tick('1 minute');
select autopost.release_claims('w', array(select claim_token from autopost.deliveries where status = 'sending'));
insert into autopost.charges (workspace_id, delivery_id, attempt, auth_ref, charged_at, micros)
select 'w', d.delivery_id, d.attempt + 1, 'purse', autopost.now_ts(), 1 from autopost.deliveries d
	where d.channel_id like 'x%';
set local client_min_messages = error;
select is(array(select distinct channel_id from test.claim()), '{tg}',
	'what cannot be claimed on x does not keep telegram waiting');
set local client_min_messages = warning;
select throws_like('select test.claim()', '%claim of the group x/purse: duplicate key%', 'alone it is the error');
update autopost.budgets set month_micros = 0;
delete from autopost.charges;
update autopost.budgets set month_micros = 1000000;
select is((select count(*)::int from test.claim()), 2, 'nothing of it stays');
select is((select count(*)::int from autopost.deliveries where quota_held and status <> 'sending'), 0);

select * from finish();
rollback;
