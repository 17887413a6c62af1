create or replace function autopost.confirm_message(p_target autopost.alert_targets, p_now timestamptz)
	returns autopost.alert_messages
language plpgsql
as $$
-- Purpose: a message with a code that proves that its reader wants alerts. Its body has "address",
--          "code" and "tries": the number of wrong codes.
declare
	v_message autopost.alert_messages;
	v_code text := left(encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex'), 10);
begin
	v_message.workspace_id := p_target.workspace_id;
	v_message.target_id := p_target.target_id;
	v_message.message_id := autopost.new_id();
	v_message.kind := 'confirm';
	v_message.created_at := p_now;
	v_message.attempt := 0;
	v_message.subject := format('[autopost %s] confirm this address', p_target.workspace_id);
	v_message.text := format(e'Alerts of autopost, workspace %s, are to come to this address. If you want them, run within a day:\n\n'
		'autopost alert target confirm %s --code %s --workspace %1$s --reason wanted\n\nIf not, do nothing: no alert comes.',
		p_target.workspace_id, p_target.target_id, v_code);
	v_message.body := jsonb_build_object('type', 'confirm', 'address', p_target.address, 'code', v_code, 'tries', 0);
	v_message.tells := '[]';
	return v_message;
end
$$;

create or replace function autopost.last_confirmation(p_target autopost.alert_targets) returns autopost.alert_messages
language plpgsql stable
as $$
-- Purpose: the last message with a code to the present address of a target; null if none was sent.
-- Reads:   alert_messages.
declare
	v_last autopost.alert_messages;
begin
	select m.* into v_last from autopost.alert_messages m
	where m.workspace_id = p_target.workspace_id and m.target_id = p_target.target_id and m.kind = 'confirm'
	and m.status in ('sending', 'sent', 'unknown') and m.body ->> 'address' = p_target.address
	order by m.created_at desc limit 1;
	return v_last;
end
$$;
