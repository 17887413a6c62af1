-- Each row of the audit log has the hash of the previous row. Changed, deleted or inserted rows are
-- found. Only the oldest rows may be purged, in order.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(38);

select test.channel('a');
create function test.act(p_reason text) returns void
language sql
as $$
select test.tick('1 hour'), autopost.pause_channel('w', 'a', 60, 'olga', p_reason, false)
$$;
create function test.chain() returns jsonb
language sql
as $$
-- The rows that verify offends at; null where it holds.
select jsonb_agg(v) from autopost.verify_i35('w') v
$$;
create function test.tamper(p_sql text) returns jsonb
language plpgsql
as $$
-- Result of verify after a change by a superuser; the change is undone.
declare
	v_found jsonb;
begin
	begin
		alter table autopost.admin_audit_log disable trigger user;
		execute p_sql;
		v_found := test.chain();
		raise exception 'undo' using errcode = 'TS001';
	exception when sqlstate 'TS001' then
		null;
	end;
	return v_found;
end
$$;
create function test.ids(p_seqs int[]) returns jsonb
language sql
as $$
select jsonb_object_agg(l.seq, l.id) from autopost.admin_audit_log l where l.seq = any (p_seqs)
$$;

select is(autopost.audit_head('w'), jsonb_build_object('seq', 0, 'hash', repeat('0', 64)), 'nothing was recorded yet');
select is(test.chain(), null);
select test.act('one'), test.act('two'), test.act('three'), test.act('four'), test.act('five');
select is((select array_agg(l.seq order by l.id) from autopost.admin_audit_log l), '{1,2,3,4,5}');
select is((select l.prev_hash from autopost.admin_audit_log l where l.seq = 1), repeat('0', 64));
select is((select count(*)::int from autopost.admin_audit_log l
	join autopost.admin_audit_log b on b.seq = l.seq - 1 and b.hash = l.prev_hash), 4,
	'each row has the hash of the row before');
select is(autopost.audit_head('w'), (select jsonb_build_object('seq', 5, 'hash', l.hash) from autopost.admin_audit_log l
	where l.seq = 5));
select is(test.chain(), null, 'the chain holds');
select is(autopost.verify_audit('w', null) - 'hash', '{"ok": true, "rows": 5, "seq": 5, "faults": []}');
create temp table kept on commit drop as select jsonb_build_object('seq', l.seq, 'hash', l.hash) as head
	from autopost.admin_audit_log l where l.seq = 3;
select is((select autopost.verify_audit('w', head) ->> 'ok' from kept), 'true', 'the log has the row that was kept');
select is((select autopost.verify_audit('w', head || '{"seq": 4}') -> 'faults' from kept),
	'[{"what": "the row of the given head is missing or was changed", "seq": 4, "id": null}]');
set local timezone = 'Asia/Tokyo';
set local datestyle = 'SQL, DMY';
select is(test.chain(), null, 'wherever one looks from');
set local timezone = 'UTC';
set local datestyle = 'ISO, MDY';

select is(test.tamper($$update autopost.admin_audit_log set reason = 'else' where seq = 3$$) -> 0 ->> 'what',
	'it was changed');
select is(test.tamper($$update autopost.admin_audit_log set reason = 'else' where seq = 3$$) -> 0 -> 'seq', '3',
	'the first bad row is named');
select is(test.tamper($$update autopost.admin_audit_log set ts = ts + interval '1 microsecond'
	where seq = 1$$) -> 0 -> 'seq', '1');
select is(test.tamper($$update autopost.admin_audit_log set operator = 'someone' where seq = 5$$) -> 0 -> 'seq', '5');
select is(test.tamper($$update autopost.admin_audit_log set login = 'someone' where seq = 5$$) -> 0 -> 'seq', '5',
	'the hash covers the login');
select is((select array_agg(distinct l.operator || ' ' || l.login) from autopost.admin_audit_log l),
	array['olga ' || session_user], 'the login is beside the operator that the caller states');
select is((select array_agg(distinct a.login) from autopost.list_audit_rows a), array[session_user::text],
	'and is listed');
select is(test.tamper($$update autopost.admin_audit_log l set before = '{}',
	hash = autopost.audit_hash(jsonb_populate_record(l, '{"before": {}}')) where seq = 2$$) -> 0,
	jsonb_build_object('what', 'it does not follow the row before it', 'seq', 3, 'id', test.ids('{3}') -> '3'),
		'a new hash breaks the next row');
select is(test.tamper($$delete from autopost.admin_audit_log where seq = 3$$) -> 0 ->> 'what',
	'rows are missing before it');
select is(test.tamper($$delete from autopost.admin_audit_log where seq = 1$$) -> 0 ->> 'what',
	'rows are missing before it');
select is(test.tamper($$delete from autopost.admin_audit_log where seq > 3$$) -> 0,
	'{"what": "rows are missing before the head", "seq": 5, "id": null}');
select is(test.tamper($$delete from autopost.admin_audit_log$$) -> 0 ->> 'what', 'rows are missing before the head');
select isnt(test.tamper($$update autopost.admin_audit_log set seq = seq + 1 where seq = 5$$), null);
select throws_ok($$insert into autopost.admin_audit_log (workspace_id, id, ts, operator, action, reason, subject,
	before, after) values ('w', gen_random_uuid(), now(), 'o', 'a', 'r', 's', '{}', '{}')$$, '23502', null,
	'nothing gets in beside the chain');
select throws_ok($$update autopost.admin_audit_log set reason = 'else'$$, '42501');
select throws_ok($$delete from autopost.admin_audit_log$$, '42501');
select throws_ok($$truncate autopost.admin_audit_log$$, '42501');
select is(test.chain(), null);

-- Another workspace has a chain of its own.
set local autopost.workspace_id = '';
insert into autopost.workspaces (workspace_id) values ('v');
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
	values ('v', 'a', 'telegram', '@a', 'bot', 'bot');
select autopost.pause_channel('v', 'a', 60, 'olga', 'there', false);
select is(autopost.audit_head('v') -> 'seq', '1');

-- After a year the oldest go, and the chain goes on.
select test.set_clock('2026-06-01 12:00:00+00');
select test.tick('366 days 2 hours 30 minutes');
select is(autopost.purge_audit_log('w'), '{"purged": 2, "more": false}',
	'the first two are older than a year and a day');
select is((select array_agg(l.seq order by l.seq) from autopost.admin_audit_log l where l.workspace_id = 'w'),
	'{3,4,5}');
select is(test.chain(), null, 'the chain holds from there');
select isnt(test.tamper($$delete from autopost.admin_audit_log where seq = 3$$), null);
select test.act('six');
select is(autopost.audit_head('w') -> 'seq', '6');
select test.tick('3 years');
select is(autopost.purge_audit_log('w'), '{"purged": 4, "more": false}');
select is(test.chain(), null, 'also when nothing is left');
select test.act('seven');
select is((select array_agg(l.seq) from autopost.admin_audit_log l where l.workspace_id = 'w'), '{7}');

select * from finish();
rollback;
