create or replace function autopost.bot_try(p_workspace_id text, p_rules jsonb, p_config jsonb, p_state jsonb,
	p_message jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: decides about one message as bot_receive would, and changes nothing. p_rules: an array of
--          rules with the fields of put_bot_rule and rule_id; null for the enabled ones. p_config: meta.bot
--          of an endpoint; null for {}. p_state: {"state", "context", "expired"} of the last answer; null for a
--          new chat. p_message: {"text", "name", "language"}.
-- Returns: {"kind": matched | fallback | guarded | escalated | relayed, "rule_id", "version", "intent",
--          "text", "buttons", "state", "context", "language", "guard": true if the turn guard ended the
--          state}; state and context are the next p_state.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Reads:   bot_rules.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('message', jsonb_typeof(p_message) = 'object');
	return jsonb_strip_nulls(autopost.bot_decide(case when p_rules is null then autopost.bot_rules_of(p_workspace_id)
		else autopost.bot_rules_given(p_rules) end, coalesce(p_config, '{}'), coalesce(p_state, '{}'), p_message));
end
$$;

create or replace function autopost.bot_rules_given(p_rules jsonb) returns jsonb
language plpgsql immutable
as $$
-- Purpose: rules with the fields of put_bot_rule and rule_id, as bot_decide takes them. Rules with enabled
--          false do not count; version is 0 if it is not given.
-- Raises:  AP001 for an invalid rule, with its id, field and reason, and for a rule that is given twice.
declare
	v_rule record;
	v_put jsonb;
	v_fault jsonb;
	v_seen text[] := '{}';
	v_rules jsonb := '[]';
begin
	perform autopost.require_array('rules', p_rules);
	for v_rule in select r.value, r.value ->> 'rule_id' as id,
		r.value - '{rule_id,version,created_at}'::text[] as fields
		from jsonb_array_elements(p_rules) with ordinality r order by r.ordinality loop
		perform autopost.require_argument('rules', coalesce(v_rule.id, '') <> '');
		if v_rule.id = any (v_seen) then
			perform autopost.raise_argument('rules', format('%s: rule_id must be given once', v_rule.id),
				'write one version of each rule');
		end if;
		v_seen := v_seen || v_rule.id;
		v_put := autopost.put_row(v_rule.fields, autopost.bot_rule_fields(), null);
		v_fault := (v_put -> 'errors' || case when v_put -> 'errors' = '[]'
			then autopost.bot_rule_errors(v_put -> 'after') else '[]' end) -> 0;
		if v_fault is not null then
			perform autopost.raise_argument('rules', format('%s: %s %s', v_rule.id, v_fault ->> 'field',
				v_fault ->> 'reason'), v_fault ->> 'remedy');
		end if;
		continue when v_put -> 'after' -> 'enabled' = 'false';
		v_rules := v_rules || ((v_put -> 'after') - '{keywords,enabled}'::text[] || jsonb_build_object('rule_id',
			v_rule.id,
			'version', coalesce(v_rule.value -> 'version', '0'), 'pattern', jsonb_build_object('keywords',
			v_put -> 'after' -> 'keywords', 'mode', 'contains')));
	end loop;
	return v_rules;
end
$$;
