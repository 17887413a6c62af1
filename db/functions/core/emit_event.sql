create or replace function autopost.emit_event(
	p_workspace_id text, p_action text, p_result text, p_delivery autopost.deliveries, p_error jsonb, p_meta jsonb
) returns void
language plpgsql volatile
as $$
-- Purpose: writes the event of a transition of a delivery, with its current attempt. payload_ref of
--          p_error (named_raw) becomes that of the event; so in emit_note.
-- Writes:  events.
begin
	insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result,
		error, payload_ref, meta)
	values (p_workspace_id, autopost.new_id(), p_delivery.delivery_id, p_delivery.message_id, p_delivery.channel_id,
		autopost.now_ts(), p_action, p_delivery.attempt, p_result,
		autopost.redact(p_error - 'payload_ref'), p_error ->> 'payload_ref',
		autopost.redact(jsonb_strip_nulls(coalesce(p_meta, '{}') || jsonb_build_object('trace_id',
			p_delivery.trace_id))));
end
$$;

create or replace function autopost.emit_note(
	p_workspace_id text, p_action text, p_result text, p_channel_id text, p_message_id uuid, p_error jsonb, p_meta jsonb
) returns void
language plpgsql volatile
as $$
-- Purpose: writes an event without a delivery: of a channel, message, rate group or endpoint. Its
--          attempt is 0.
-- Writes:  events.
begin
	insert into autopost.events (workspace_id, id, message_id, channel_id, ts, action, attempt, result, error,
		payload_ref, meta)
	values (p_workspace_id, autopost.new_id(), p_message_id, p_channel_id, autopost.now_ts(), p_action, 0, p_result,
		autopost.redact(p_error - 'payload_ref'), p_error ->> 'payload_ref',
		autopost.redact(jsonb_strip_nulls(coalesce(p_meta, '{}'))));
end
$$;
