begin;
\ir fake_clock.sql
\ir world.sql
select plan(4);

select test.channel('a');
select test.say('x');
update autopost.workspaces set status = 'paused';
select is(test.claimed(), '{}', 'a paused workspace sends nothing');
select is(array(select autopost.ready_workspaces(10)), '{}', 'and is not named as ready');
select is(test.say('y') ->> 'enqueued', '1', 'but takes posts in');
update autopost.workspaces set status = 'active';
select is(test.claimed(), '{a}', 'once active again it goes on');

select * from finish();
rollback;
