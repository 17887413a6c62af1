create or replace function autopost.replay_bot_rules(p_workspace_id text, p_rules jsonb, p_filter jsonb, p_limit int)
	returns table (id uuid, ts timestamptz, provider text, auth_ref text, chat_id text, message_text text,
		changed boolean, before jsonb, after jsonb)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: answers stored conversations by given rules (as in bot_try; null: the enabled ones), with the
--          same function that answers customers, and compares. Nothing changes. Each conversation is
--          played from its oldest message of the period; its state follows the given rules. Texts are those of the
--          log: personal data is masked. p_filter: {"provider", "auth_ref", "chat_id", "since", "until",
--          "changed": true for differences only}.
-- Returns: at most p_limit messages in their order; before and after have kind, rule_id, version, state
--          and text.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Reads:   bot_logs, bot_rules, workspace_endpoints.
declare
	v_rules jsonb;
	v_since timestamptz;
	v_until timestamptz;
	v_line record;
	v_states jsonb := '{}'; -- of each conversation
	v_key text;
	v_done jsonb;
	v_given int := 0;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{provider,auth_ref,chat_id,since,until,changed}', p_limit);
	v_since := autopost.instant_in(p_filter, 'since');
	v_until := autopost.instant_in(p_filter, 'until');
	v_rules := case when p_rules is null then autopost.bot_rules_of(p_workspace_id)
		else autopost.bot_rules_given(p_rules) end;
	for v_line in
		select l.* from autopost.bot_logs l
		where l.workspace_id = p_workspace_id
		and (not p_filter ? 'provider' or l.provider = p_filter ->> 'provider')
		and (not p_filter ? 'auth_ref' or l.auth_ref = p_filter ->> 'auth_ref')
		and (not p_filter ? 'chat_id' or l.chat_id = p_filter ->> 'chat_id')
		and l.ts >= coalesce(v_since, '-infinity') and l.ts < coalesce(v_until, 'infinity')
		and l.kind in ('matched', 'fallback', 'guarded', 'escalated', 'relayed', 'operator', 'handed_back')
		order by l.ts, l.id
	loop
		v_key := concat_ws(' ', v_line.provider, v_line.auth_ref, v_line.chat_id);
		if v_line.kind in ('operator', 'handed_back') then
			v_states := v_states || jsonb_build_object(v_key, jsonb_build_object('state', v_line.state_after,
				'context', '{}'::jsonb));
			continue;
		end if;
		v_done := autopost.bot_decide(v_rules, autopost.bot_config(p_workspace_id, v_line.auth_ref),
			coalesce(v_states -> v_key, jsonb_build_object('state', v_line.state_before, 'context',
				coalesce(v_line.meta -> 'context_before', '{}')))
			|| jsonb_build_object('expired', coalesce(v_line.meta -> 'expired', 'false')),
			jsonb_build_object('text', v_line.message_text, 'language', v_line.meta -> 'language'));
		v_states := v_states || jsonb_build_object(v_key, jsonb_build_object('state', v_done -> 'state', 'context',
			v_done -> 'context'));
		id := v_line.id;
		ts := v_line.ts;
		provider := v_line.provider;
		auth_ref := v_line.auth_ref;
		chat_id := v_line.chat_id;
		message_text := v_line.message_text;
		before := jsonb_strip_nulls(jsonb_build_object('kind', v_line.kind, 'rule_id', v_line.matched_rule_id,
			'version',
			v_line.rule_version, 'state', v_line.state_after, 'text', v_line.response_preview));
		after := jsonb_strip_nulls(jsonb_build_object('kind', v_done -> 'kind', 'rule_id', v_done -> 'rule_id',
			'version',
			v_done -> 'version', 'state', v_done -> 'state', 'text', left(autopost.redact(v_done ->> 'text'), 500)));
		changed := before - 'version' <> after - 'version';
		continue when p_filter -> 'changed' = 'true' and not changed;
		return next;
		v_given := v_given + 1;
		exit when v_given >= p_limit;
	end loop;
end
$$;
