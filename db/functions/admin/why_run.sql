create or replace function autopost.why_run(p_workspace_id text, p_run_id uuid) returns jsonb
language plpgsql stable
as $$
-- Purpose: the result of an ingest run, with each rejected post; null for another id.
--          Rejected posts that share a run are only counted.
-- Reads:   ingest_runs.
declare
	v_run autopost.ingest_runs;
	v_rejected text[];
begin
	select r.* into v_run from autopost.ingest_runs r where r.workspace_id = p_workspace_id and r.run_id = p_run_id;
	if v_run.run_id is null then
		return null;
	end if;
	v_rejected := array(
		select coalesce(i.value ->> 'source_ref', 'a post') || ': ' || (
			select string_agg(concat_ws(' ', nullif(e.value ->> 'field', ''), e.value ->> 'reason'), ', ' order by e.ordinality)
			from jsonb_array_elements(i.value -> 'errors') with ordinality e)
		from jsonb_array_elements(v_run.items) with ordinality i
		where i.value -> 'status' = '"rejected"'
		order by i.ordinality
		limit 20);
	return jsonb_build_object('status', 'run', 'now', jsonb_build_object('held_by', '[]'::jsonb, 'send_at', null,
		'sentence', format('the %s run of %s took %s posts, dropped %s duplicates and rejected %s', v_run.kind,
			coalesce('source ' || v_run.source_id, v_run.endpoint_id), coalesce(v_run.stats_json ->> 'accepted', '0'),
			coalesce(v_run.stats_json ->> 'dedup_dropped', '0'), coalesce((v_run.stats_json ->> 'rejected')::bigint, 0)
				+ coalesce((v_run.stats_json ->> 'payload_rejected')::bigint, 0))
			|| coalesce('; ' || nullif(array_to_string(v_rejected, '; '), ''), ''))
		|| case when v_rejected <> '{}' then '{"lifts": "correct the post and send it again"}' else '{}' end::jsonb);
end
$$;
