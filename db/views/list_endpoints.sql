-- Endpoints without the hashes of their secrets.
create or replace view autopost.list_endpoints_rows as
select e.workspace_id, e.endpoint_id, e.kind, e.source_id, e.enabled, e.secret_hash is not null as has_secret,
	e.signing_ref, e.old_signing_ref,
	e.old_signing_until, e.rotated_from, e.ingress_rps, e.max_payload_bytes, e.hash_drop_window_sec, e.moderated,
		e.meta, e.created_at, e.updated_at, e.awaits_secret
from autopost.workspace_endpoints e;

create or replace view autopost.list_endpoints with (security_barrier = true) as
select v.workspace_id, v.endpoint_id, v.kind, v.source_id, v.enabled, v.has_secret, v.signing_ref, v.old_signing_ref,
	v.old_signing_until, v.rotated_from, v.ingress_rps, v.max_payload_bytes, v.hash_drop_window_sec, v.moderated,
	v.meta, v.created_at, v.updated_at, v.awaits_secret
from autopost.list_endpoints_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
