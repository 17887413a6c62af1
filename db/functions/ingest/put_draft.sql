create or replace function autopost.put_draft(p_workspace_id text, p_draft_id uuid, p_fields jsonb, p_author text)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: stores a post that a person has not finished. p_draft_id null: a new draft. p_fields:
--          {"payload": the whole post so far, "endpoint_id", "version": the version that the person
--          changed}; what is missing stays. A change of another version is refused, so that two
--          open pages do not overwrite each other.
-- Returns: {"applied": true, "draft_id", "version"}, or {"applied": false, "reason"}: unknown_draft,
--          submitted, changed (with the "version" that is stored), too_many_drafts, or invalid with
--          "errors": [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   drafts.
-- Writes:  drafts.
declare
	v_draft autopost.drafts;
	v_errors jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	if jsonb_typeof(p_fields) is distinct from 'object' or p_fields - '{payload,endpoint_id,version}'::text[] <> '{}' then
		perform autopost.raise_argument('fields', 'must be an object with payload, endpoint_id and version',
			'pass {"payload": {"text": "…"}}');
	end if;
	v_errors := autopost.draft_errors(p_fields);
	if v_errors <> '[]' then
		return jsonb_build_object('applied', false, 'reason', 'invalid', 'errors', v_errors);
	elsif p_draft_id is null then
		return autopost.new_draft(p_workspace_id, p_fields, p_author);
	end if;
	v_draft := autopost.own_draft(p_workspace_id, p_draft_id, p_author);
	if v_draft.draft_id is null then
		return '{"applied": false, "reason": "unknown_draft"}';
	elsif v_draft.submitted_at is not null then
		return '{"applied": false, "reason": "submitted"}';
	elsif coalesce((p_fields ->> 'version')::numeric <> v_draft.version, false) then
		return jsonb_build_object('applied', false, 'reason', 'changed', 'version', v_draft.version);
	end if;
	v_now := autopost.now_ts();
	update autopost.drafts d
	set payload = coalesce(p_fields -> 'payload', d.payload), version = d.version + 1, updated_at = v_now,
		endpoint_id = case when p_fields ? 'endpoint_id' then p_fields ->> 'endpoint_id' else d.endpoint_id end
	where d.workspace_id = p_workspace_id and d.draft_id = p_draft_id;
	return jsonb_build_object('applied', true, 'draft_id', p_draft_id, 'version', v_draft.version + 1);
end
$$;
