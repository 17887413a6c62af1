create or replace function autopost.refuse_file(p_workspace_id text, p_source_id text, p_file jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: reports a file that a source of kind filebus refuses: {"path", "digest": of its content, "code", "message",
--          "approval": true for an approval file}. Each content is reported once. Only the engine may call it.
-- Returns: {"applied": true at the first time}.
-- Raises:  AP001 for a wrong argument.
-- Reads:   pull_sources.
-- Writes:  file_refusals, events (approval_refused, filebus_refused).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('file', p_file ->> 'path' <> '' and p_file ->> 'code' <> '');
	return jsonb_build_object('applied', autopost.refuse_once(autopost.file_source(p_workspace_id, p_source_id), case
		when p_file -> 'approval' = 'true' then 'approval_refused' else 'filebus_refused' end, p_file, p_file ->>
			'code',
		jsonb_build_object('message', left(p_file ->> 'message', 500))));
end
$$;
