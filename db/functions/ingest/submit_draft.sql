create or replace function autopost.submit_draft(p_workspace_id text, p_draft_id uuid, p_kind text, p_author text)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: publishes a draft once. A repeated submit gets the first answer. A rejected post stays a
--          draft. p_kind: api, command or page.
-- Returns: as submit_post, with "draft_id"; a repeat has "repeated": true. {"applied": false,
--          "reason": "unknown_draft"} if the person has no such draft.
-- Raises:  AP001 for a wrong argument.
-- Locks:   drafts; as submit_post.
-- Writes:  drafts; as submit_post.
declare
	v_draft autopost.drafts;
	v_answer jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_draft := autopost.own_draft(p_workspace_id, p_draft_id, p_author);
	if v_draft.draft_id is null then
		return '{"applied": false, "reason": "unknown_draft"}';
	elsif v_draft.submitted_at is not null then
		return v_draft.answer || '{"repeated": true}';
	end if;
	v_answer := autopost.submit_post(p_workspace_id, v_draft.endpoint_id, p_kind, v_draft.payload, p_author)
		|| jsonb_build_object('draft_id', p_draft_id);
	if v_answer ->> 'status' <> 'rejected' then
		v_now := autopost.now_ts();
		update autopost.drafts d
		set submitted_at = v_now, answer = v_answer
		where d.workspace_id = p_workspace_id and d.draft_id = p_draft_id;
	end if;
	return v_answer;
end
$$;
