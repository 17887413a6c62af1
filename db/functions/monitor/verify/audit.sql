-- The record of what people did. Each function answers the offending rows.

create or replace function autopost.audit_chain_faults(p_workspace_id text) returns setof jsonb
language sql stable
as $$
-- The chain of the audit log from the row that its base names to its head, the first bad row first: each follows the one before, bears its
-- seal, and is what its own seal says.
select jsonb_build_object('what', c.what, 'seq', c.seq, 'id', c.id)
from (
	select l.seq, l.id, case
		when l.seq is distinct from coalesce(l.seq_before, h.base_seq) + 1 then 'rows are missing before it'
		when l.prev_hash is distinct from coalesce(l.hash_before, h.base_hash) then 'it does not follow the row before it'
		when l.hash <> autopost.audit_hash(l.line) then 'it was changed' end as what
	from (
		select x.workspace_id, x.seq, x.id, x.prev_hash, x.hash, x as line,
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
order by c.seq
$$;

create or replace function autopost.verify_i35(p_workspace_id text) returns setof jsonb
language sql stable
as $$
-- An event that names an operator has its row in the log, written in the same transaction; configuration changed by plain rows leaves neither.
-- And the chain of the log is whole.
select f.fault from autopost.audit_chain_faults(p_workspace_id) f (fault)
union all
select jsonb_build_object('event', e.action, 'ts', e.ts, 'channel_id', e.channel_id, 'delivery_id', e.delivery_id, 'operator', e.meta -> 'operator')
from autopost.events e
where e.workspace_id = p_workspace_id and e.meta ? 'operator'
and e.ts > autopost.now_ts() - (select autopost.setting_interval('audit_retention_days'))
and not exists (
	select 1 from autopost.admin_audit_log a
	where a.workspace_id = p_workspace_id and a.operator = e.meta ->> 'operator' and a.reason = e.meta ->> 'reason'
	and a.ts between e.ts - interval '1 minute' and e.ts + interval '1 minute')
$$;
