-- A late call whose limit was removed starts at once and takes no slot.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(4);

select test.channel('a', 1);
select test.posts('text', 1);
select is(test.claimed(), '{a}');
select isnt((test.row('a')).send_at, null, 'it has a slot');
update autopost.channels set rate_rps = null where workspace_id = 'w' and channel_id = 'a';
select test.tick('30 seconds');
select is(test.start('a') - 'now' - 'deadline', '{"applied": true, "send_at": null}');
select is((test.row('a')).send_at, null);

rollback;
