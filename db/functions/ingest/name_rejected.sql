create or replace function autopost.name_rejected(p_workspace_id text, p_run_id uuid) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: names the raw payload of the posts that a run rejected, in their events, if raw payloads
--          are kept. The caller then stores the payload under that name. Only the engine may call
--          it.
-- Returns: {"kept": whether raw payloads are kept, "payload_ref": null if the run has no such
--          event}.
-- Raises:  AP001 for a wrong argument.
-- Writes:  events (payload_ref).
declare
	v_ref text := autopost.new_payload_ref();
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('run_id', p_run_id is not null);
	if autopost.setting('raw_retention_days') = 0 then
		return '{"kept": false, "payload_ref": null}';
	end if;
	v_now := autopost.now_ts();
	update autopost.events e set payload_ref = v_ref
	where e.workspace_id = p_workspace_id and e.result = 'error' and e.ts >= v_now - interval '1 hour'
		and e.action = 'ingress_payload_rejected' and e.meta ->> 'run_id' = p_run_id::text and e.payload_ref is null;
	return jsonb_build_object('kept', true, 'payload_ref', case when found then v_ref end);
end
$$;
