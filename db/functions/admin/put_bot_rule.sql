create or replace function autopost.bot_rule_fields() returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the fields of a rule of the bot, for put_row.
select '{
	"enabled": {"is": "boolean", "required": true, "default": true},
	"intent": {"is": "text", "default": ""},
	"state": {"is": "text"},
	"keywords": {"is": "list", "default": [], "remedy": "write words that a message contains, as in [\"delivery\"]"},
	"priority": {"is": "integer", "required": true, "default": 0, "min": -1000000, "max": 1000000},
	"max_turns": {"is": "integer", "required": true, "default": 5, "min": 1, "max": 1000},
	"response_template": {"is": "string", "required": true, "remedy": "write the answer; {state} shows what was said in that state"},
	"buttons": {"is": "array", "remedy": "write rows of buttons, as in [[{\"text\": \"Delivery\", \"payload\": \"delivery\"}]]"},
	"next_state": {"is": "text"}
}'::jsonb
$$;

create or replace function autopost.bot_rule_row(p_rule autopost.bot_rules) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the fields of a stored rule, as put_bot_rule takes them.
select autopost.row_fields(to_jsonb(p_rule) || jsonb_build_object('keywords', p_rule.pattern -> 'keywords'),
	autopost.bot_rule_fields())
$$;

create or replace function autopost.bot_rule_given(p_fields jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: given fields of a rule as they are stored: no buttons are null.
select case when p_fields -> 'buttons' = '[]' then p_fields || '{"buttons": null}' else p_fields end
$$;

create or replace function autopost.bot_button_errors(p_buttons jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors of the buttons of a rule: rows of {"text", "url"} or {"text", "payload"}. A payload
--          has at most 64 bytes, is matched as text, and does not begin with the mark of another button.
begin
	if p_buttons in ('null', '[]') or p_buttons is null then
		return '[]';
	elsif exists (select 1 from jsonb_array_elements(p_buttons) r
		where jsonb_typeof(r.value) <> 'array' or jsonb_array_length(r.value) not between 1 and 3)
		or jsonb_array_length(p_buttons) > 12 then
		return autopost.field_error('buttons', 'must be up to 12 rows of 1 to 3 buttons',
			'write [[{"text": "Delivery", "payload": "delivery"}]]');
	elsif exists (
		select 1 from jsonb_array_elements(p_buttons) r, jsonb_array_elements(r.value) b
		where jsonb_typeof(b.value) <> 'object'
		or coalesce(length(b.value ->> 'text') not between 1 and 64, true)
		or (b.value ? 'url') = (b.value ? 'payload') or b.value - '{text,url,payload}'::text[] <> '{}'
		or b.value ->> 'url' !~ '^https?://[^\s]+$' or length(b.value ->> 'url') > 2000
		or octet_length(b.value ->> 'payload') not between 1 and 64 or b.value ->> 'payload' ~ '^[mb]:') then
		return autopost.field_error('buttons', 'must have a text of up to 64 characters and either url or payload',
			'write a payload of up to 64 bytes that is not marked m: or b:, or an http address');
	end if;
	return '[]';
end
$$;

create or replace function autopost.bot_rule_errors(p_fields jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: checks a rule beyond the form of its fields: its states, keywords, text and buttons.
-- Returns: an array of {field, reason, remedy}.
declare
	v_name text;
	v_errors jsonb := '[]';
begin
	foreach v_name in array '{state,next_state}'::text[] loop
		if p_fields ->> v_name is not null and (p_fields ->> v_name !~ '^[\w-]{1,64}$'
			or p_fields ->> v_name in ('turns', 'rule_id', 'max_turns', 'name', 'text')
			or v_name = 'state' and p_fields ->> v_name = 'operator') then
			v_errors := v_errors || autopost.field_error(v_name, format('must be the name of a state, got %s',
				p_fields -> v_name), 'use letters, digits, - and _; turns, rule_id, max_turns, name, text are taken, '
				|| 'and in state operator the bot is silent');
		end if;
	end loop;
	if p_fields ->> 'state' is null and p_fields -> 'keywords' = '[]' then
		v_errors := v_errors || autopost.field_error('keywords', 'is missing: a rule of any state needs one',
			'write keywords, or a state in which any text matches');
	end if;
	if exists (select 1 from jsonb_array_elements_text(p_fields -> 'keywords') k
		where autopost.bot_fold(k.value) = '' or length(k.value) > 200) then
		v_errors := v_errors || autopost.field_error('keywords', 'must hold texts of 1 to 200 characters',
			'write words that a message contains');
	end if;
	if length(p_fields ->> 'response_template') > 3500 then
		v_errors := v_errors || autopost.field_error('response_template', 'is longer than 3500 characters',
			'shorten it');
	end if;
	return v_errors || autopost.bot_button_errors(p_fields -> 'buttons');
end
$$;

create or replace function autopost.put_bot_rule(p_workspace_id text, p_rule_id text, p_fields jsonb,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: writes the next version of a rule of the bot. p_fields has changed fields: enabled, intent,
--          state (null: any), keywords, priority, max_turns, response_template, buttons, next_state;
--          null restores the default; missing ones stay as in the newest version. An enabled version
--          replaces the enabled one; a version with enabled false is a draft beside it. The next
--          message is decided by it.
-- Returns: {"applied": true, "dry_run", "created", "before", "after", "version"}, or {"applied": false,
--          "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   workspaces, bot_rules, audit_heads.
-- Writes:  bot_rules, admin_audit_log.
declare
	v_act jsonb;
	v_fields jsonb := autopost.bot_rule_fields();
	v_old autopost.bot_rules;
	v_put jsonb;
	v_answer jsonb;
	v_new autopost.bot_rules;
	v_version int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('rule_id', p_rule_id <> '');
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	select r.* into v_old from autopost.bot_rules r
	where r.workspace_id = p_workspace_id and r.rule_id = p_rule_id order by r.version desc limit 1;
	perform autopost.check_new_id('rule_id', p_rule_id) where v_old.rule_id is null;
	v_put := autopost.put_row(autopost.bot_rule_given(p_fields), v_fields,
		case when v_old.rule_id is not null then autopost.bot_rule_row(v_old) end);
	v_answer := autopost.put_answer(v_put, case when v_put -> 'errors' = '[]'
		then autopost.bot_rule_errors(v_put -> 'after') end, p_dry_run);
	if v_answer -> 'applied' = 'false' then
		return v_answer;
	end if;
	v_version := coalesce(v_old.version, 0) + 1;
	if not p_dry_run then
		v_new := jsonb_populate_record(null::autopost.bot_rules, jsonb_strip_nulls(v_put -> 'after'));
		update autopost.bot_rules r set enabled = false
		where r.workspace_id = p_workspace_id and r.rule_id = p_rule_id and r.enabled and v_new.enabled;
		insert into autopost.bot_rules (workspace_id, rule_id, version, enabled, intent, state, pattern, priority,
			max_turns, response_template, buttons, next_state, created_at)
		values (p_workspace_id, p_rule_id, v_version, v_new.enabled, coalesce(v_new.intent, ''), v_new.state,
			jsonb_build_object('keywords', v_put -> 'after' -> 'keywords', 'mode', 'contains'), v_new.priority,
			v_new.max_turns, v_new.response_template, v_new.buttons, v_new.next_state, autopost.now_ts());
		perform autopost.audit(p_workspace_id, 'put_bot_rule', 'bot_rule:' || p_rule_id, v_act, v_answer -> 'before',
			v_answer -> 'after' || jsonb_build_object('version', v_version));
	end if;
	return v_answer || jsonb_build_object('version', v_version);
end
$$;
