create or replace function autopost.own_draft(p_workspace_id text, p_draft_id uuid, p_author text)
	returns autopost.drafts
language plpgsql
as $$
-- Purpose: locks and returns a draft of this person; null if the person has no such draft.
-- Raises:  AP001 without an id or an author.
-- Locks:   drafts.
declare
	v_draft autopost.drafts;
begin
	perform autopost.require_argument('draft_id', p_draft_id is not null);
	perform autopost.require_argument('author', p_author <> '');
	select d.* into v_draft from autopost.drafts d
	where d.workspace_id = p_workspace_id and d.draft_id = p_draft_id and d.author = p_author
	for update;
	return v_draft;
end
$$;

create or replace function autopost.draft_errors(p_fields jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of the fields of a draft: [{field, reason, remedy}]. The post may be
--          unfinished: only its size and its form as an object are checked.
begin
	return case
		when jsonb_typeof(p_fields -> 'payload') <> 'object'
			then autopost.field_error('payload', 'must be a JSON object', 'send {"text": "…"}')
		when octet_length((p_fields -> 'payload')::text) > 262144
			then autopost.field_error('payload', 'is longer than 262144 bytes', 'shorten the post') else '[]' end
	|| case when jsonb_typeof(p_fields -> 'endpoint_id') not in ('string', 'null')
		then autopost.field_error('endpoint_id', 'must be a text', 'pass the id of an endpoint, or null') else '[]' end
	|| case when jsonb_typeof(p_fields -> 'version') not in ('number', 'null')
		then autopost.field_error('version', 'must be a whole number', 'pass the version that you changed') else '[]' end;
end
$$;

create or replace function autopost.new_draft(p_workspace_id text, p_fields jsonb, p_author text) returns jsonb
language plpgsql
as $$
-- Purpose: stores a new draft. A person has at most 500.
-- Returns: as put_draft.
-- Writes:  drafts.
declare
	v_id uuid := autopost.new_id();
begin
	perform autopost.require_argument('author', p_author <> '');
	if (select count(*) from (select 1 from autopost.drafts d
		where d.workspace_id = p_workspace_id and d.author = p_author and d.submitted_at is null limit 500) d) = 500 then
		return '{"applied": false, "reason": "too_many_drafts"}';
	end if;
	insert into autopost.drafts (workspace_id, draft_id, author, endpoint_id, payload, created_at, updated_at)
	values (p_workspace_id, v_id, p_author, p_fields ->> 'endpoint_id', coalesce(p_fields -> 'payload', '{}'),
		autopost.now_ts(), autopost.now_ts());
	return jsonb_build_object('applied', true, 'draft_id', v_id, 'version', 1);
end
$$;
