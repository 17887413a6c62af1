-- The audit log. Each function returns the offending rows.

create or replace function autopost.audit_chain_faults(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: checks the chain of the audit log from its base to its head, first bad row first. Each
--          row follows the previous one, has its seal, and matches its own seal.
begin
	return query
	select jsonb_build_object('what', c.what, 'seq', c.seq, 'id', c.id)
	from (
		select l.seq, l.id, case
			when l.seq is distinct from coalesce(l.seq_before, h.base_seq) + 1 then 'rows are missing before it'
			when l.prev_hash is distinct from coalesce(l.hash_before, h.base_hash)
				then 'it does not follow the row before it'
			when l.hash <> autopost.audit_hash(l.line) then 'it was changed' end as what
		from (
			select x.workspace_id, x.seq, x.id, x.prev_hash, x.hash, row(x.*)::autopost.admin_audit_log as line,
				lag(x.seq) over (order by x.seq) as seq_before, lag(x.hash) over (order by x.seq) as hash_before
			from autopost.admin_audit_log x
			where x.workspace_id = p_workspace_id) l
		left join autopost.audit_heads h on h.workspace_id = p_workspace_id
		union all
		select h.seq, null, 'rows are missing before the head'
		from autopost.audit_heads h
		left join lateral (
			select x.seq, x.hash from autopost.admin_audit_log x
			where x.workspace_id = p_workspace_id
			order by x.seq desc limit 1) e on true
		where h.workspace_id = p_workspace_id
		and (h.seq <> coalesce(e.seq, h.base_seq) or h.hash <> coalesce(e.hash, h.base_hash))
	) c
	where c.what is not null
	order by c.seq;
end
$$;

create or replace function autopost.verify_i35(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I35. An event with an operator has a row in the log from the same
--          transaction, and the chain is whole. Changes by plain SQL leave neither.
begin
	return query
	select f.fault from autopost.audit_chain_faults(p_workspace_id) f (fault)
	union all
	select jsonb_build_object('event', e.action, 'ts', e.ts, 'channel_id', e.channel_id, 'delivery_id', e.delivery_id,
		'operator', e.meta -> 'operator')
	from autopost.events e
	where e.workspace_id = p_workspace_id and e.meta ? 'operator'
	and e.ts > autopost.now_ts() - (select autopost.setting_interval('audit_retention_days'))
	and not exists (
		select 1 from autopost.admin_audit_log a
		where a.workspace_id = p_workspace_id and a.operator = e.meta ->> 'operator' and a.reason = e.meta ->> 'reason'
		and a.ts between e.ts - interval '1 minute' and e.ts + interval '1 minute');
end
$$;
