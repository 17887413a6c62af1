-- Helpers of the permuter. A clock that is set back with the rows, and at which a session can stop.
-- Functions that keep all rows, restore them in one call, and return the state as one text.
create schema test;
grant usage on schema test to public;
create table test.clock (ahead interval not null, looked_at timestamptz);
insert into test.clock values ('0');
grant select on test.clock to autopost_owner;

create or replace function autopost.now_ts() returns timestamptz
language plpgsql volatile
as $$
-- test.stop_at = n stops its session at its n-th look at the clock, until the holder of advisory lock 1 releases it.
declare
	v_left int := nullif(current_setting('test.stop_at', true), '')::int;
	v_patience text := current_setting('lock_timeout'); -- of the caller: a stop does not count as one of its locks
begin
	if v_left > 0 then
		perform set_config('test.stop_at', (v_left - 1)::text, true);
		if v_left = 1 then
			perform set_config('lock_timeout', '0', true);
			perform pg_advisory_lock_shared(1);
			perform pg_advisory_unlock_shared(1);
			perform set_config('lock_timeout', v_patience, true);
		end if;
	end if;
	return (select clock_timestamp() + c.ahead from test.clock c);
end
$$;

create function test.keep() returns void
language plpgsql
as $f$
-- Keeps all rows of autopost as they are now, and makes test.reset(), which puts them back without any trigger, the last first: no order of
-- locks may come of itself.
declare
	v_table record;
	v_body text := '';
begin
	update test.clock set looked_at = clock_timestamp() + ahead;
	create schema kept;
	for v_table in
		select c.oid::regclass as name, c.relname, (select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
			where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
		from pg_class c
		where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
		and c.relname not in ('installed_functions', 'schema_version')
	loop
		execute format('create table kept.%I as select %s from %s order by ctid desc', v_table.relname, v_table.columns, v_table.name);
		v_body := v_body || format('delete from %1$s; insert into %1$s (%2$s) select %2$s from kept.%3$I;', v_table.name, v_table.columns, v_table.relname);
	end loop;
	execute format('create function test.reset() returns void language plpgsql set session_replication_role = replica as $r$ begin %s
		update test.clock set ahead = looked_at - clock_timestamp(); end $r$', v_body);
end
$f$;

create function test.state() returns text
language sql
as $$
-- All that the order of two acts may decide, and nothing that the clock, chance or an id does.
select concat_ws(e'\n',
	(select string_agg(concat_ws(' ', 'delivery', d.channel_id, left(d.content_hash, 8), d.status, d.attempt,
		d.granted_attempts, d.unknown_outcomes,
		d.unknown_allowance, d.last_error ->> 'code', d.provider_message_id, d.next_retry_at = 'infinity',
			d.render_meta -> 'series_progress'), e'\n'
		order by d.channel_id, d.content_hash, d.status, d.attempt) from autopost.deliveries d),
	(select string_agg(concat_ws(' ', 'channel', c.channel_id, c.target_id, c.enabled, c.paused_until is not null,
		c.error_streak, c.cooldown_until is not null, c.rate_group,
		c.auth_ref, c.max_parallel, g.rate_group, g.inflight), e'\n' order by c.channel_id)
		from autopost.channels c join autopost.channel_gates g using (workspace_id, channel_id)),
	(select string_agg(concat_ws(' ', 'limit', l.rate_group, l.cooldown_until is not null), e'\n' order by l.rate_group)
		from autopost.platform_limits l),
	(select string_agg(concat_ws(' ', 'message', left(m.content_hash, 8), m.seen_count), e'\n' order by m.content_hash)
		from autopost.messages m),
	(select string_agg(concat_ws(' ', 'submission', s.status, s.attempt, s.claim_token is not null, s.decision, s.event_type,
		left(md5(s.raw_payload ->> 'text'), 4)), e'\n'
		order by s.status, s.attempt, s.claim_token is not null, s.decision, s.event_type, md5(s.raw_payload ->> 'text')) from autopost.submissions s),
	(select string_agg(concat_ws(' ', 'source', p.source_id, p.cursor_json, p.failures), e'\n' order by p.source_id)
		from autopost.pull_cursors p),
	(select string_agg(concat_ws(' ', 'receipt', r.source_ref, r.answer ->> 'status', r.answer -> 'enqueued'), e'\n'
		order by r.source_ref, r.answer -> 'enqueued') from autopost.ingress_receipts r),
	(select string_agg(concat_ws(' ', 'seen', r.source_id, r.source_ref), e'\n' order by r.source_ref)
		from autopost.pull_receipts r),
	(select string_agg(concat_ws(' ', 'event', e.action, e.channel_id, e.attempt, e.result, e.n), e'\n'
		order by e.action, e.channel_id, e.attempt, e.result)
		from (select e.action, e.channel_id, e.attempt, e.result, count(*) as n from autopost.events e
			group by 1, 2, 3, 4) e),
	(select string_agg(concat_ws(' ', 'afterwards', a.kind, a.status, a.attempt, a.last_error ->> 'code'), e'\n'
		order by a.kind, a.status, a.attempt) from autopost.post_acts a),
	(select string_agg(concat_ws(' ', 'act', a.action, a.n), e'\n' order by a.action)
		from (select a.action, count(*) as n from autopost.admin_audit_log a group by 1) a),
	(select string_agg(concat_ws(' ', 'job', j.job_id, j.status, j.digest is not null, j.imported, d.status), e'\n'
		order by j.job_id) from autopost.publish_jobs j
		left join autopost.deliveries d on d.delivery_id = j.delivery_id),
	(select concat_ws(' ', 'runs', count(*),
		'blobs', (select string_agg(concat_ws(' ', b.kind, b.file_id), ' ' order by b.kind)
		from autopost.media_blobs b),
		'origin', (select count(*) from autopost.media_origin), 'keys', (select count(*) from autopost.api_keys),
			'heartbeats', (select count(*) from autopost.dispatch_runs))
		from autopost.ingest_runs))
$$;
