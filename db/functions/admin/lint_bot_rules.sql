create or replace function autopost.lint_bot_rules(p_workspace_id text, p_rules jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: checks rules of the bot together. p_rules: as in bot_try; null for the enabled rules. It finds
--          a state to which no rule leads, a keyword that never decides, a variable of a template
--          that a conversation may reach without its text, and a state that no rule ends. It
--          decides in the order in which the bot does, with case and ё folded. Nothing changes.
-- Returns: {"rules": how many were checked, "findings": [{"kind": unreachable_state |
--          shadowed_keyword | missing_variable | endless_loop, "rule_id", "field", "reason",
--          "remedy"}]}; no findings if the rules are clean.
-- Raises:  AP001 for a wrong argument or an invalid rule; AP002, AP003, AP005 as enter_workspace.
-- Reads:   bot_rules.
declare
	v_rules jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_rules := case when p_rules is null then autopost.bot_rules_of(p_workspace_id)
		else autopost.bot_rules_given(p_rules) end;
	return jsonb_build_object('rules', jsonb_array_length(v_rules), 'findings', autopost.bot_lint(v_rules));
end
$$;
