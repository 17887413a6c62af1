create or replace function autopost.retry_policy_rules(p_inherited autopost.retry_policies) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the rules of put_row for a retry policy. The defaults are those of the inherited policy.
--          Waits are at most 31 days.
select jsonb_object_agg(r.key, r.value || jsonb_build_object('default', to_jsonb(p_inherited) -> r.key))
from jsonb_each('{
	"kind": {"is": "text", "required": true, "in": ["exponential", "ladder"]},
	"base_ms": {"is": "integer", "required": true, "min": 1, "max": 2678400000},
	"factor": {"is": "number", "required": true, "min": 1, "max": 100},
	"cap_ms": {"is": "integer", "required": true, "min": 1, "max": 2678400000},
	"ladder_ms": {"is": "numbers", "required": true, "min": 1, "max": 2678400000,
		"remedy": "write a list of milliseconds from 1 to 2678400000, like [60000, 300000]"},
	"jitter": {"is": "number", "required": true, "min": 0, "max": 0.9},
	"max_attempts": {"is": "integer", "min": 1, "max": 1000},
	"costs_attempt": {"is": "boolean", "required": true}}') r
$$;

create or replace function autopost.retry_policy_errors(p_policy jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the rules between the fields of a retry policy that is valid field by field.
-- Returns: an array of {field, reason, remedy}.
select case when (p_policy ->> 'cap_ms')::numeric < (p_policy ->> 'base_ms')::numeric
	then autopost.field_error('cap_ms', format('must be at least base_ms, got %s', p_policy ->> 'cap_ms'),
		'raise cap_ms, or lower base_ms') else '[]' end
|| case when p_policy ->> 'kind' = 'ladder' and p_policy -> 'ladder_ms' = '[]'
	then autopost.field_error('ladder_ms', 'must have a wait for the kind ladder',
		'write the wait after each attempt, like [60000, 300000]') else '[]' end
|| case when jsonb_array_length(p_policy -> 'ladder_ms') > 50
	then autopost.field_error('ladder_ms', 'must have at most 50 waits', 'the last wait repeats') else '[]' end
$$;

create or replace function autopost.put_retry_policy(
	p_workspace_id text, p_platform text, p_code text, p_fields jsonb, p_operator text, p_reason text,
		p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: sets how a workspace retries failures of a platform ("*": all; "result_webhook": result
--          webhooks) with a code ("*": all). p_fields: kind (exponential: base_ms times factor per
--          attempt, up to cap_ms; ladder: ladder_ms per attempt, the last repeats), jitter,
--          max_attempts, costs_attempt. Missing fields stay; null restores the inherited value. A
--          policy equal to the inherited one is removed. Applies from the next failure.
-- Returns: {"applied": true, "dry_run", "created", "before", "after"}, or {"applied": false,
--          "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces.
-- Reads:   platforms, retry_policies.
-- Writes:  own_retry_policies, admin_audit_log.
declare
	v_act jsonb;
	v_rules jsonb;
	v_put jsonb;
	v_answer jsonb;
	v_new autopost.retry_policies;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_platform(p_platform)
		where coalesce(p_platform, '') not in ('*', 'result_webhook');
	perform autopost.require_argument('code', p_code <> '');
	perform autopost.check_new_id('code', p_code);
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_rules := autopost.retry_policy_rules(autopost.retry_policy(p_workspace_id, p_platform, p_code, true));
	v_put := autopost.put_row(p_fields, v_rules, coalesce(
		(select autopost.row_fields(to_jsonb(r), v_rules) from autopost.own_retry_policies r
			where r.workspace_id = p_workspace_id and r.platform = p_platform and r.code = p_code),
		autopost.default_fields(v_rules)));
	v_put := v_put || jsonb_build_object('created', v_put -> 'before' = v_put -> 'defaults');
	v_answer := autopost.put_answer(v_put, case when v_put -> 'errors' = '[]'
		then autopost.retry_policy_errors(v_put -> 'after') end, p_dry_run);
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		delete from autopost.own_retry_policies r
		where r.workspace_id = p_workspace_id and r.platform = p_platform and r.code = p_code;
		if v_put -> 'after' <> v_put -> 'defaults' then
			v_new := jsonb_populate_record(null::autopost.retry_policies, v_put -> 'after');
			insert into autopost.own_retry_policies (workspace_id, platform, code, kind, base_ms, factor, cap_ms,
				ladder_ms,
				jitter, max_attempts, costs_attempt)
			values (p_workspace_id, p_platform, p_code, v_new.kind, v_new.base_ms, v_new.factor, v_new.cap_ms,
				v_new.ladder_ms, v_new.jitter, v_new.max_attempts, v_new.costs_attempt);
		end if;
		perform autopost.audit(p_workspace_id, 'put_retry_policy', format('retry_policy:%s/%s', p_platform, p_code),
			v_act, v_answer -> 'before', v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
