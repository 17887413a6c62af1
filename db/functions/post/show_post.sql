create or replace function autopost.show_post(
	p_workspace_id text, p_payload jsonb, p_tags jsonb, p_renderings jsonb,
	out verdicts text[], out errors jsonb[], out texts text[], out metas jsonb[], out templates text[]
)
language plpgsql stable
as $$
-- Purpose: renders a post with these tags once per rendering of route_post, in the same order: the
--          status of its deliveries, error, text, meta and version of the template.
-- Reads:   platforms, media_origin.
declare
	v_sizes jsonb;
	v_shown jsonb;
begin
	select coalesce(jsonb_object_agg(o.blob_ref, o.size_bytes), '{}') into v_sizes
	from autopost.media_origin o
	where o.workspace_id = p_workspace_id
	and o.blob_ref in (select m.value ->> 'blob_ref' from jsonb_array_elements(coalesce(p_payload -> 'media', '[]')) m);
	for v_n in 1 .. coalesce(jsonb_array_length(p_renderings), 0) loop
		select autopost.render(p_payload || jsonb_strip_nulls(jsonb_build_object('tags', p_tags)),
			row(p.*)::autopost.platforms,
			autopost.with_template(p_workspace_id, p_payload, p_renderings -> v_n - 1), v_sizes) into v_shown
		from autopost.platforms p where p.platform = p_renderings -> v_n - 1 ->> 'platform';
		verdicts[v_n] := v_shown ->> 'verdict';
		errors[v_n] := case when v_shown ? 'reason'
			then jsonb_build_object('category', 'PERMANENT', 'scope', 'delivery',
			'code', 'validation_failed', 'known', true, 'message', v_shown ->> 'reason') end;
		texts[v_n] := coalesce(v_shown ->> 'text', '');
		metas[v_n] := coalesce(v_shown -> 'meta', '{}');
		templates[v_n] := coalesce(v_shown ->> 'template_version', 'text-1');
	end loop;
end
$$;
