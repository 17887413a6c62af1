-- Retention times can be changed within bounds. Data that is still needed is kept.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(17);

select test.channel('a');
create function test.put(p_key text, p_value int) returns text
language plpgsql
as $$
begin
	return test.set(p_key, to_jsonb(p_value)) ->> 'applied';
exception when sqlstate 'AP001' then
	return sqlerrm;
end
$$;

select is((select jsonb_object_agg(key, value) from autopost.settings where key like '%\_retention%'), '{"event_retention_days": 30, "bot_log_retention_days": 30, "delivery_retention_days": 90,
	"message_retention_days": 90, "run_retention_days": 30, "alert_retention_days": 90, "audit_retention_days": 365, "origin_retention_days": 30, "origin_retention_large_video_days": 7, "webhook_retention_days": 7, "raw_retention_days": 0}', 'what holds by default');
select is(test.put('delivery_retention_days', 6),
	'argument value: delivery_retention_days must be at least the longest dedup window, 168.0000000000000000 hours');
select is(test.put('message_retention_days', 6),
	'argument value: message_retention_days must be at least the longest dedup window, 168.0000000000000000 hours');
select alike(test.put('delivery_retention_days', 29), '%event_retention_days must not exceed%');
select alike(test.put('event_retention_days', 91), '%event_retention_days must not exceed%');
select alike(test.put('run_retention_days', 0), '%a whole number of days from 1 to %');
select is(test.put('event_retention_days', 7), 'true');
select is(test.put('delivery_retention_days', 7), 'true', 'as long as the longest window is enough');
select is(test.put('delivery_retention_days', 6) like '%dedup window%', true);
select is((select value from autopost.settings where key = 'delivery_retention_days'), '7',
	'what is refused changes nothing');

select throws_like($$update autopost.channels set dedup_ttl_hours = 169$$,
	'argument dedup_ttl_hours: 169 is longer than deliveries are kept');
select throws_like($$insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group,
	dedup_ttl_hours) values ('w', 'b', 'telegram', '@b', 'bot', 'bot', 200)$$, '%is longer than%');
select lives_ok($$update autopost.channels set dedup_ttl_hours = 24$$);
select is(test.put('event_retention_days', 2), 'true');
select is(test.put('delivery_retention_days', 6), 'true', 'a shorter window allows a shorter retention');
select throws_like($$update autopost.channels set dedup_ttl_hours = null$$, '%168 is longer%',
	'no window of its own is the default of a week');
select throws_ok($$select test.put('no_such_retention_days', 6)::int$$, '22P02',
	'invalid input syntax for type integer: "argument key: unknown setting ''no_such_retention_days''"');

select * from finish();
rollback;
