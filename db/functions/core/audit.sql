create or replace function autopost.refuse_change() returns trigger
language plpgsql
as $$
-- Purpose: refuses to change or remove rows of the audit log.
-- Raises:  42501.
begin
	raise exception '% of % is refused: it is append-only', lower(tg_op), tg_table_name
		using errcode = 'insufficient_privilege', hint = 'write another row that says what is right';
end
$$;

create or replace trigger refuse_change before update on autopost.admin_audit_log
	for each row execute function autopost.refuse_change();
create or replace trigger refuse_removal before delete on autopost.admin_audit_log
	for each row when (old.ts >= autopost.kept_from('audit_retention_days')) execute function autopost.refuse_change();
create or replace trigger refuse_truncate before truncate on autopost.admin_audit_log
	for each statement execute function autopost.refuse_change();

create or replace function autopost.audit_hash(p_row autopost.admin_audit_log) returns text
language sql stable
as $$
-- Purpose: the hash of a row over all its fields and the hash of the row before it.
select encode(sha256(convert_to(jsonb_build_array(p_row.prev_hash, p_row.workspace_id, p_row.seq, p_row.id,
	(extract(epoch from p_row.ts) * 1000000)::bigint, p_row.operator, p_row.action, p_row.reason, p_row.subject,
		p_row.before, p_row.after, p_row.login)::text, 'UTF8')), 'hex')
$$;

create or replace function autopost.audit(p_workspace_id text, p_action text, p_subject text, p_act jsonb,
	p_before jsonb, p_after jsonb) returns void
language plpgsql
as $$
-- Purpose: records an operator action as the last act of its transaction. Another action of the
--          workspace waits here, so the chain has one order. p_act: {"operator", "reason", …}.
--          The caller states the operator. The login of its session is recorded beside it.
-- Locks:   audit_heads, after all other locks.
-- Writes:  admin_audit_log, audit_heads.
declare
	v_row autopost.admin_audit_log;
begin
	insert into autopost.audit_heads as h (workspace_id, seq) values (p_workspace_id, 1)
	on conflict (workspace_id) do update set seq = h.seq + 1
	returning h.seq, h.hash into v_row.seq, v_row.prev_hash;
	v_row.workspace_id := p_workspace_id;
	v_row.id := autopost.new_id();
	v_row.ts := autopost.now_ts();
	v_row.operator := p_act ->> 'operator';
	v_row.login := session_user;
	v_row.action := p_action;
	v_row.reason := autopost.redact(p_act ->> 'reason');
	v_row.subject := p_subject;
	v_row.before := autopost.redact(p_before);
	v_row.after := autopost.redact(p_after);
	v_row.hash := autopost.audit_hash(v_row);
	insert into autopost.admin_audit_log (workspace_id, id, ts, operator, action, reason, subject, before, after, seq,
		prev_hash, hash, login)
	values (v_row.workspace_id, v_row.id, v_row.ts, v_row.operator, v_row.action, v_row.reason, v_row.subject,
		v_row.before, v_row.after,
		v_row.seq, v_row.prev_hash, v_row.hash, v_row.login);
	update autopost.audit_heads h set hash = v_row.hash where h.workspace_id = p_workspace_id;
end
$$;
