-- Priced uses other than posts are charged as the adapter reports them, for each outcome and for manual uploads.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(19);

select test.channel('x', p_platform => 'x', p_rate_group => 'purse', p_max_parallel => 100);
create function test.spent() returns bigint
language sql
as $$
select autopost.spent_this_month('w', 'purse', autopost.now_ts())
$$;
create function test.call(p_outcome jsonb) returns void
language plpgsql
as $$
begin
	perform test.tick('10 minutes');
	perform test.claimed(), test.start('x'), test.commit('x', p_outcome);
end
$$;

-- Without a budget nothing is reckoned.
select test.say('one');
select test.call(test.sent('1') || '{"used": {"owned_read": 3}}');
select is((select count(*)::int from autopost.charges), 0);

insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ('w', 'purse', 1000000);
select test.say('two');
select test.call(test.failure('TRANSIENT', 'delivery', 'x_conflict') || '{"used": {"media_metadata": 2}}');
select is(test.spent(), 10000::bigint, 'the post is paid back, what it used is not');
select test.call(test.sent('2') || '{"used": {"owned_read": 3, "free": 7, "media_metadata": "many"}}');
select is(test.spent(), 10000 + 15000 + 15000::bigint,
	'the post and three reads; uses without a price or a number cost nothing');
select is(array(select h.use || ' ' || h.attempt from autopost.charges h order by h.attempt, h.use),
	'{media_metadata 1,owned_read 2,post 2}');
select is((autopost.commit_outcome('w', (test.row('x')).delivery_id, (test.row('x')).settled ->> 'token',
	test.sent('2') || '{"used": {"owned_read": 3}}')) ->> 'repeated', 'true');
select is(test.spent(), 40000::bigint, 'a commit that is repeated spends nothing');

-- It counts against the budget.
update autopost.budgets set month_micros = 54999;
select test.say('three');
select test.tick('1 second');
select is(test.claimed(), '{}', 'not enough for another post');
update autopost.budgets set month_micros = 1000000;
update autopost.use_prices set micros = 1000 where use = 'owned_read';
select test.call(test.sent('3') || '{"used": {"owned_read": 1}}');
select is(test.spent(), 56000::bigint, 'at the price that is set');

-- An upload by hand.
create function test.upload(p_kind text, p_used jsonb) returns jsonb
language sql
as $$
select autopost.record_upload('w', 'x', 'purse', 'sha256:aa', p_kind, p_used, 'olga', 'n8n')
$$;
select is(test.upload('tweet_image', null), '{"applied": false, "reason": "unknown_upload"}');
select autopost.put_media_blob('w', 'sha256:aa', 'x', 'purse', 'tweet_image', 'id-1',
	autopost.now_ts() + interval '1 day');
select is(test.upload('tweet_image', '{"media_metadata": 1}') - 'expires_at',
	'{"applied": true, "file_id": "id-1", "kind": "tweet_image"}');
select is(test.spent(), 61000::bigint);
select is(test.upload('tweet_image', null) ->> 'file_id', 'id-1', 'asked again');
select is(test.spent(), 61000::bigint);
select is((select count(*)::int from autopost.admin_audit_log
	where action = 'record_upload' and subject = 'media:sha256:aa' and operator = 'olga'
	and after ->> 'platform' = 'x'), 2);
select is((select count(*)::int from autopost.admin_audit_log where after::text like '%id-1%'), 0,
	'only the caller gets the id');
select test.tick('2 days');
select is(test.upload('tweet_image', null) ->> 'reason', 'unknown_upload', 'expired');

-- A success that is refused, since a step is missing, is charged with the commit that is taken.
update autopost.channels set settings = '{"long_text": "split"}';
select test.say(repeat('word ', 100));
select test.call(test.sent('4') || '{"used": {"media_metadata": 1}}');
select is((test.row('x')).status, 'sending');
select is((select count(*)::int from autopost.charges h where h.delivery_id = (test.row('x')).delivery_id
	and h.use = 'media_metadata'), 0);
select test.commit('x', test.sent('4') || '{"used": {"media_metadata": 1}, "raw": {"steps": {"text-1": ["4"]}}}');
select is((select array_agg(h.micros) from autopost.charges h
	where h.delivery_id = (test.row('x')).delivery_id and h.use = 'media_metadata'), '{5000}');

select * from finish();
rollback;
