create or replace function autopost.get_draft(p_workspace_id text, p_draft_id uuid, p_author text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a draft of this person.
-- Returns: {"draft_id", "endpoint_id", "payload", "version", "created_at", "updated_at",
--          "submitted_at", "answer": of the submit}; null if the person has no such draft.
-- Reads:   drafts.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('draft_id', p_draft_id is not null);
	return (
		select to_jsonb(d) - '{workspace_id,author}'::text[] from autopost.drafts d
		where d.workspace_id = p_workspace_id and d.draft_id = p_draft_id and d.author = p_author);
end
$$;
