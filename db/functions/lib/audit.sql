create or replace function autopost.refuse_change() returns trigger
language plpgsql
as $$
-- Refuses (42501) to change or remove what was written, whoever tries it.
begin
	raise exception '% of % is refused: it is append-only', lower(tg_op), tg_table_name
		using errcode = 'insufficient_privilege', hint = 'write another row that says what is right';
end
$$;

create or replace trigger refuse_change before update or delete on autopost.admin_audit_log
	for each row execute function autopost.refuse_change();
create or replace trigger refuse_truncate before truncate on autopost.admin_audit_log
	for each statement execute function autopost.refuse_change();

create or replace function autopost.audit(p_workspace_id text, p_action text, p_subject text, p_act jsonb, p_before jsonb, p_after jsonb) returns void
language plpgsql
as $$
-- Records what a person did, in the transaction that does it. p_act: {"operator", "reason", …}.
-- Writes: admin_audit_log.
begin
	insert into autopost.admin_audit_log (workspace_id, id, ts, operator, action, reason, subject, before, after)
	values (p_workspace_id, autopost.new_id(), autopost.now_ts(), p_act ->> 'operator', p_action, autopost.redact(p_act ->> 'reason'), p_subject,
		autopost.redact(p_before), autopost.redact(p_after));
end
$$;
