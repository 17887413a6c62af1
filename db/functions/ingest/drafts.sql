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
	update autopost.drafts d
	set payload = coalesce(p_fields -> 'payload', d.payload), version = d.version + 1, updated_at = autopost.now_ts(),
		endpoint_id = case when p_fields ? 'endpoint_id' then p_fields ->> 'endpoint_id' else d.endpoint_id end
	where d.workspace_id = p_workspace_id and d.draft_id = p_draft_id;
	return jsonb_build_object('applied', true, 'draft_id', p_draft_id, 'version', v_draft.version + 1);
end
$$;
