create or replace function autopost.put_budget(
	p_workspace_id text, p_auth_ref text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: limits the money spent with a credential per calendar month (UTC) to p_fields.month_usd
--          dollars, to a millionth, by the platform's prices; null removes the budget and wakes
--          held deliveries. Applies from the next claim.
-- Returns: {"applied": true, "dry_run", "created", "before", "after"}, or {"applied": false,
--          "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, budgets, channel_gates.
-- Reads:   credential_bindings.
-- Writes:  budgets, channel_gates, admin_audit_log.
declare
	v_act jsonb;
	v_rules constant jsonb := '{"month_usd": {"is": "number", "min": 0, "max": 1000000000}}';
	v_micros bigint;
	v_put jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('auth_ref', p_auth_ref <> '');
	if not p_dry_run then
		perform autopost.lock_configuration(p_workspace_id);
		perform autopost.lock_budgets(p_workspace_id, array[p_auth_ref]);
	end if;
	select b.month_micros into v_micros from autopost.budgets b
		where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref;
	v_put := autopost.put_row(p_fields, v_rules, jsonb_build_object('month_usd', autopost.dollars(v_micros)))
		|| jsonb_build_object('created', v_micros is null);
	v_answer := autopost.put_answer(v_put,
		case when jsonb_path_exists(v_put, '$.after.month_usd ? (@ * 1000000 % 1 != 0)')
			then autopost.field_error('month_usd', 'must have at most six decimals', 'write dollars, as in 25 or 0.5')
				else '[]' end
		|| case when v_micros is null and not exists (
			select 1 from autopost.credential_bindings b
				where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref)
			then autopost.field_error('auth_ref', format('must be an existing credential, got %s', p_auth_ref),
				'add the credential first') else '[]' end, p_dry_run);
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		v_micros := (v_put -> 'after' ->> 'month_usd')::numeric * 1000000;
		delete from autopost.budgets b where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref
			and v_micros is null;
		insert into autopost.budgets (workspace_id, auth_ref, month_micros)
		select p_workspace_id, p_auth_ref, v_micros where v_micros is not null
		on conflict (workspace_id, auth_ref) do update set month_micros = excluded.month_micros;
		perform autopost.audit(p_workspace_id, 'put_budget', 'budget:' || p_auth_ref, v_act, v_answer -> 'before',
			v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
