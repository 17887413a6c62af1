-- Rules of the shop bot as pure functions. A message, a replay and a test chat are decided by bot_decide alone.

create or replace function autopost.bot_match(p_rules jsonb, p_state text, p_text text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the rule that answers a text in a state: of those whose state is this or null, and of
--          whose keywords one is contained in the text, the one with the highest priority. At equal
--          priority a rule of the state goes before one of any state, then the lower rule_id. In a
--          rule with a state, empty keywords match any text.
-- Returns: an element of p_rules; null without a match.
declare
	v_text text := autopost.bot_fold(coalesce(p_text, ''));
begin
	return (
		select r.value
		from jsonb_array_elements(p_rules) r
		where coalesce(r.value ->> 'state', p_state) = p_state
		and (coalesce(r.value #> '{pattern,keywords}', '[]') = '[]' and r.value ->> 'state' is not null
			or exists (
				select 1 from jsonb_array_elements_text(coalesce(r.value #> '{pattern,keywords}', '[]')) k
				where strpos(v_text, autopost.bot_fold(k.value)) > 0 and autopost.bot_fold(k.value) <> ''))
		order by coalesce((r.value ->> 'priority')::int, 0) desc, r.value ->> 'state' is null,
			r.value ->> 'rule_id' collate "C"
		limit 1);
end
$$;

create or replace function autopost.bot_fill(p_template text, p_values jsonb) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: a template in which each {name} is the text of that name in p_values, empty if it is
--          missing. A value is not searched for names.
begin
	return (
		select coalesce(string_agg(case when t.part ~ '^\{[\w-]{1,64}\}$'
			then coalesce(p_values ->> substr(t.part, 2, length(t.part) - 2), '') else t.part end, '' order by t.n), '')
		from regexp_split_to_table(p_template, '(?=\{[\w-]{1,64}\})|(?<=\})') with ordinality t (part, n));
end
$$;

create or replace function autopost.bot_language(p_language text, p_text text) returns text
language sql immutable parallel safe
as $$
-- Purpose: ru or en: the language of a customer by the platform, else by the letters of a text.
select case when p_language ~* '^(ru|be|uk|kk)' or coalesce(p_language, '') = '' and p_text ~ '[А-Яа-яЁё]' then 'ru'
	else 'en' end
$$;

create or replace function autopost.bot_phrase(p_name text, p_language text) returns text
language sql immutable parallel safe
as $$
-- Purpose: a built-in text of the bot in ru or en.
select ('{
	"clarify": {"ru": "Я не понял вопрос. Напишите, пожалуйста, другими словами.",
		"en": "I did not understand that. Please say it in other words."},
	"escalate": {"ru": "Передаю вопрос оператору. Он ответит здесь.",
		"en": "I am passing this on to an operator, who will answer here."},
	"returned": {"ru": "Снова отвечает бот. Чем помочь?", "en": "The bot answers again. How can I help?"},
	"hand_back": {"ru": "Вернуть боту", "en": "Hand back"},
	"no_text": {"ru": "[сообщение без текста]", "en": "[a message without text]"},
	"how": {"ru": "Ответьте на это сообщение: бот передаст ответ.",
		"en": "Reply to this message: the bot passes it on."}
}'::jsonb) -> p_name ->> p_language
$$;

create or replace function autopost.bot_next_context(p_rule jsonb, p_state text, p_context jsonb, p_turns int,
	p_text text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the context after a rule: the turns, the text under the name of the rule's state, and the
--          owner of the state, which is the rule that set it.
select p_context || jsonb_build_object('turns', p_turns)
	|| case when p_rule ->> 'state' is not null then jsonb_build_object(p_state, left(p_text, 500)) else '{}' end
	|| case when p_rule ->> 'next_state' is not null then jsonb_build_object('rule_id', p_rule -> 'rule_id',
		'max_turns', coalesce(p_rule -> 'max_turns', '5')) else '{}' end
$$;

create or replace function autopost.bot_give_up(p_rules jsonb, p_config jsonb, p_language text, p_guard boolean)
	returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the answer without a rule: an operator if the configuration says so, or if the turn guard
--          ends a scenario and there is an operator. Else the turn guard gives the contacts of the
--          customer's language, and anything else the fallback text.
-- Returns: {"kind", "text", "buttons", "rule_id", "version"}.
declare
	v_contacts jsonb;
begin
	if nullif(p_config ->> 'operator_chat_id', '') is not null
		and (p_guard or p_config ->> 'fallback' = 'escalate') then
		return jsonb_build_object('kind', 'escalated', 'text', autopost.bot_phrase('escalate', p_language));
	end if;
	if p_guard then
		select r.value into v_contacts from jsonb_array_elements(p_rules) r
		where r.value ->> 'intent' = 'contacts' and r.value ->> 'state' is null
		and autopost.bot_language(null, r.value ->> 'response_template') = p_language
		order by coalesce((r.value ->> 'priority')::int, 0) desc, r.value ->> 'rule_id' collate "C"
		limit 1;
		if v_contacts is not null then
			return jsonb_build_object('kind', 'guarded', 'text', autopost.bot_fill(v_contacts ->> 'response_template',
				'{}'),
				'buttons', v_contacts -> 'buttons', 'rule_id', v_contacts -> 'rule_id', 'version',
					v_contacts -> 'version');
		end if;
	end if;
	return jsonb_build_object('kind', case when p_guard then 'guarded' else 'fallback' end, 'text',
		coalesce(nullif(p_config ->> 'fallback_text', ''), autopost.bot_phrase('clarify', p_language)));
end
$$;

create or replace function autopost.bot_decide(p_rules jsonb, p_config jsonb, p_state jsonb, p_message jsonb)
	returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the answer of the bot to one message: the only place where rules, states and the turn
--          guard act. p_rules: rows of bot_rules as JSON. p_config: meta.bot of the endpoint.
--          p_state: {"state", "context", "expired"}; an expired state is default. p_message:
--          {"text", "name", "language"}. Turns count outside default, from the message that left it;
--          at max_turns of the rule that owns the state the guard ends it. In state operator the bot
--          is silent. A rule that leads to operator where none is configured leads to default.
-- Returns: {"kind": matched | fallback | guarded | escalated | relayed, "rule_id", "version",
--          "intent", "text", "buttons", "state", "context", "language", "guard": true if it ended the
--          state}; without text for relayed.
declare
	v_reset boolean := coalesce((p_state ->> 'expired')::boolean, false);
	v_state text := case when v_reset then 'default' else coalesce(p_state ->> 'state', 'default') end;
	v_context jsonb := case when v_reset then '{}' else coalesce(nullif(p_state -> 'context', 'null'), '{}') end;
	v_text text := coalesce(p_message ->> 'text', '');
	v_language text := autopost.bot_language(p_message ->> 'language', v_text);
	v_operator boolean := nullif(p_config ->> 'operator_chat_id', '') is not null;
	v_turns int := case when v_state = 'default' then 1 else coalesce((v_context ->> 'turns')::int, 1) + 1 end;
	v_rule jsonb;
	v_next text;
	v_answer jsonb;
begin
	if v_state = 'operator' then
		return jsonb_build_object('kind', 'relayed', 'state', v_state, 'context', v_context, 'language', v_language);
	end if;
	if v_state <> 'default' and v_turns >= coalesce((v_context ->> 'max_turns')::int, 5) then
		v_answer := autopost.bot_give_up(p_rules, p_config, v_language, true);
		return v_answer || jsonb_build_object('language', v_language, 'context', '{}'::jsonb, 'guard', true,
			'state', case v_answer ->> 'kind' when 'escalated' then 'operator' else 'default' end);
	end if;
	v_rule := autopost.bot_match(p_rules, v_state, v_text);
	if v_rule is null then
		v_answer := autopost.bot_give_up(p_rules, p_config, v_language, false);
		return v_answer || jsonb_build_object('language', v_language, 'state',
			case v_answer ->> 'kind' when 'escalated' then 'operator' else v_state end, 'context',
			case when v_answer ->> 'kind' = 'escalated' or v_state = 'default' then '{}'
				else v_context || jsonb_build_object('turns', v_turns) end);
	end if;
	v_next := coalesce(v_rule ->> 'next_state', v_state);
	v_next := case when v_next = 'operator' and not v_operator then 'default' else v_next end;
	v_context := autopost.bot_next_context(v_rule, v_state, v_context, v_turns, v_text);
	return jsonb_build_object('kind', case v_next when 'operator' then 'escalated' else 'matched' end,
		'rule_id', v_rule -> 'rule_id', 'version', v_rule -> 'version', 'intent', v_rule -> 'intent',
		'text', coalesce(nullif(btrim(autopost.bot_fill(v_rule ->> 'response_template', v_context
			|| jsonb_build_object('name', coalesce(p_message ->> 'name', ''), 'text', v_text)), E' \n\t'), ''),
			autopost.bot_phrase('clarify', v_language)),
		'buttons', v_rule -> 'buttons', 'state', v_next, 'language', v_language,
		'context', case when v_next in ('default', 'operator') then '{}' else v_context end);
end
$$;
