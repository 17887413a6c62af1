begin;
\ir fake_clock.sql
\ir world.sql
select plan(13);

create function test.ready(p_capacity jsonb) returns jsonb language sql as $$
	select autopost.ready_work('', 10, p_capacity) $$;
create function test.rooms(p_capacity jsonb) returns text[]
language sql
as $$
select coalesce(array_agg(c.channel_id order by c.channel_id), '{}')
	from autopost.claim_within('w', 'r', 10, p_capacity) c
$$;

insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, max_parallel) values
	('w', 'a1', 'telegram', '@a1', 'a', 'a', 1), ('w', 'a2', 'telegram', '@a2', 'a', 'a', 1), ('w', 'a3', 'telegram',
		'@a3', 'a', 'a', 1),
	('w', 'b1', 'telegram', '@b1', 'b', 'b', 1), ('w', 'm1', 'max', '1', 'm', 'm', 1);
select is(test.ready('[]'), '{"workspaces": [], "platforms": {}, "next_wake_ms": null}');
select test.say('one');
select is(test.ready('[]'), '{"workspaces": ["w"], "platforms": {"w": ["max", "telegram"]}, "next_wake_ms": 0}');
select is(test.ready('[{"workspace_id": "w", "room": 0}]'), '{"workspaces": [], "platforms": {}, "next_wake_ms": null}',
	'a workspace without room is passed over');
select is(test.ready('[{"workspace_id": "v", "room": 0}]') -> 'workspaces', '["w"]', 'another one is nobody''s affair');
select is(test.ready('[{"platform": "telegram", "room": 0}]') -> 'platforms', '{"w": ["max"]}',
	'there is a group on another platform');
select is(test.ready('[{"platform": "telegram", "room": 0}, {"platform": "max", "room": 0}]') -> 'workspaces', '[]');
select is(
	test.ready(
	'[{"workspace_id": "w", "platform": "telegram", "rate_group": "a", "room": 0}, {"room": 3}]') -> 'workspaces',
	'["w"]');

select is(test.rooms('[{"room": 0}]'), '{}');
select is(test.rooms('[{"platform": "telegram", "rate_group": "a", "room": 0}, {"platform": "max", "room": 0}]'),
	'{b1}', 'what has room');
select is(array_length(test.rooms('[{"room": 2}]'), 1), 3, 'two of the one group, one of the other');
select is(test.ready('[]') -> 'workspaces', '["w"]', 'and the third is there still');
select is(array_length(test.rooms('[]'), 1), 1);
select is(test.ready('[]'), '{"workspaces": [], "platforms": {}, "next_wake_ms": null}');

select * from finish();
rollback;
