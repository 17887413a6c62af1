create or replace function autopost.list_unknown_media(p_blob_refs text[]) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the object names of the media store, out of the given ones, that no workspace has a row
--          of. Works across workspaces.
-- Raises:  AP001 for more than 1000 names.
-- Reads:   media_origin.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('blob_refs', cardinality(p_blob_refs) <= 1000);
	return (
		select coalesce(jsonb_agg(x.blob_ref order by x.blob_ref), '[]')
		from (
			select r.blob_ref from unnest(p_blob_refs) r (blob_ref)
			except
			select o.blob_ref from autopost.workspaces w
			join autopost.media_origin o on o.workspace_id = w.workspace_id and o.blob_ref = any (p_blob_refs)) x);
end
$$;
