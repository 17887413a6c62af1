-- A workspace sees only its own media. Sizes are limited by kind. One session at a time removes
-- objects without rows.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(36);

insert into autopost.workspaces (workspace_id) values ('v');
create function test.ref(p_digit int) returns text
language sql
as $$
select 'sha256:' || repeat(p_digit::text, 64)
$$;
create function test.put(p_digit int, p_kind text, p_bytes bigint) returns jsonb
language sql
as $$
select autopost.put_media_origin('w', test.ref(p_digit), 'file:///' || p_digit, 'a/b', p_bytes, p_kind, 4, 3)
$$;

select is(test.put(1, 'image', 10485760), '{"applied": true}');
select is(test.put(2, 'image', 10485761), '{"applied": false, "reason": "too_large", "limit": 10485760}');
select is(test.put(2, 'video', 52428800), '{"applied": true}');
select is(test.put(3, 'file', 52428801), '{"applied": false, "reason": "too_large", "limit": 52428800}');
select test.set('max_media_bytes_video', '2147483648');
select is(test.put(3, 'audio', 2147483648), '{"applied": true}', 'past what an integer holds');

select is(autopost.get_media_origin('w', test.ref(1)),
	jsonb_build_object('blob_ref', test.ref(1), 'origin_url', 'file:///1',
	'content_type', 'a/b', 'kind', 'image', 'size_bytes', 10485760, 'width', 4, 'height', 3));
select is(autopost.get_media_origin('v', test.ref(1)), null, 'another workspace does not hold it');
select is(autopost.get_media_origin('w', test.ref(9)), null);
update autopost.media_origin set deleted_at = autopost.now_ts() where blob_ref = test.ref(1);
select is(autopost.get_media_origin('w', test.ref(1)), null, 'nor one that has forgotten it');

create function test.listed(p_workspace_id text, p_filter jsonb, p_limit int) returns jsonb
language sql
as $$
select coalesce(jsonb_agg(right(o ->> 'blob_ref', 1) || case when (o ->> 'forgotten')::boolean then '-' else '' end), '[]')
from autopost.list_media_origins(p_workspace_id, p_filter, p_limit) o
$$;
update autopost.media_origin set last_seen_at = last_seen_at + right(blob_ref, 1)::int * interval '1 second';
update autopost.media_origin set ref_count = 1 where blob_ref = test.ref(3);
select is(test.listed('w', '{}', 10), '["3", "2", "1-"]', 'the last seen first');
select is(test.listed('w', '{}', 1), '["3"]');
select is(test.listed('v', '{}', 10), '[]');
select is(test.listed('w', '{"kind": "video"}', 10), '["2"]');
select is(test.listed('w', '{"unused": true}', 10), '["2", "1-"]');
select is(test.listed('w', jsonb_build_object('blob_ref', test.ref(1)), 10), '["1-"]');
select is(test.listed('w', (select jsonb_build_object('before_seen', o -> 'last_seen_at', 'before_ref', o -> 'blob_ref')
	from autopost.list_media_origins('w', '{}', 1) o), 10), '["2", "1-"]', 'the next page');
update autopost.media_origin set last_seen_at = autopost.now_ts(), ref_count = 0;
select is(test.listed('w', jsonb_build_object('before_seen', autopost.now_ts(), 'before_ref', test.ref(2)), 10), '["1-"]',
	'media of one instant are in the order of their names');
select throws_ok($$select autopost.list_media_origins('w', '{"kind": "song"}', 10)$$, 'AP001');

select is(autopost.list_unknown_media(array[test.ref(1), test.ref(2), test.ref(7), test.ref(8)]),
	jsonb_build_array(test.ref(7), test.ref(8)));
select is(autopost.list_unknown_media('{}'), '[]');
select is(autopost.begin_media_removal(test.ref(2)), '{"applied": false, "reason": "held"}');
select is(autopost.begin_media_removal(test.ref(7)) - 'token', '{"applied": true}');
select is(autopost.begin_media_removal(test.ref(7)), '{"applied": false, "reason": "busy"}');
select is(test.put(7, 'image', 1), '{"applied": false, "reason": "being_removed"}');
select test.tick('10 minutes');
select is(autopost.begin_media_removal(test.ref(7)) - 'token', '{"applied": true}', 'the first one is taken for dead');

-- A caller that knows a hash does not get the content of another workspace, before or after it is stored.
create role contract_w login in role autopost_caller;
create role contract_v login in role autopost_caller;
insert into autopost.role_workspaces (role_name, workspace_id) values ('contract_w', 'w'), ('contract_v', 'v');
create function test.put_as(p_workspace_id text, p_digit int) returns text
language plpgsql
as $$
declare
	v_answer jsonb;
begin
	execute format('set local session authorization %I', 'contract_' || p_workspace_id);
	v_answer := autopost.put_media_origin(p_workspace_id, 'sha256:' || repeat(p_digit::text, 64), 'file:///' || p_digit, 'a/b',
		5, 'image', 4, 3);
	reset session authorization;
	return coalesce(v_answer ->> 'reason', 'applied');
end
$$;
grant usage on schema test to public;
select is(test.put(4, 'image', 5), '{"applied": true}');
select is(test.put_as('v', 4), 'not_yours', 'the engine stored it for w');
select is(autopost.get_media_origin('v', test.ref(4)), null);
select is(test.put_as('w', 4), 'applied', 'w sees it again');
select is(test.put_as('v', 5), 'applied', 'new content of a caller');
select is(test.put_as('w', 5), 'not_yours', 'the first caller has it');
select isnt(autopost.get_media_origin('v', test.ref(5)), null, 'it can be posted at once');
select is(test.put(5, 'image', 5), '{"applied": true}', 'the engine stores it for w');
select is(autopost.get_media_origin('v', test.ref(5)), null, 'a claim made in advance ends');
select is(test.put_as('v', 5), 'not_yours', 'and is not made again');
select is(autopost.put_media_origin('v', test.ref(5), 'file:///5', 'a/b', 5, 'image', 4, 3), '{"applied": true}',
	'but the engine stores it for each workspace that brings it');

select * from finish();
rollback;
