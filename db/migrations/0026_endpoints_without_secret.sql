-- +goose Up
-- A file of configuration names endpoints without their secrets: until it is given one, such an endpoint is disabled.

alter table autopost.workspace_endpoints
	add awaits_secret boolean not null default false, -- is enabled as soon as it has a secret
	drop constraint workspace_endpoints_check1,
	add constraint workspace_endpoints_secret check (
		(kind = 'pull_source') = (secret_hash is null) or (kind = 'webhook_push' and signing_ref is not null) or (kind <> 'pull_source' and not enabled)),
	add constraint workspace_endpoints_awaits check (not (awaits_secret and enabled));

create or replace view autopost.list_endpoints with (security_invoker = true) as
select e.workspace_id, e.endpoint_id, e.kind, e.source_id, e.enabled, e.secret_hash is not null as has_secret, e.signing_ref, e.old_signing_ref,
	e.old_signing_until, e.rotated_from, e.ingress_rps, e.max_payload_bytes, e.hash_drop_window_sec, e.moderated, e.meta, e.created_at, e.updated_at, e.awaits_secret
from autopost.workspace_endpoints e;
