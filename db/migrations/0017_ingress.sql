-- +goose Up
-- What refused requests may write, signed requests, and keys that are exchanged without a gap.

insert into autopost.settings (key, value, meaning) values
	('ingress_drops_per_second', '5', 'dropped requests of an endpoint that are recorded one by one in a second; what comes above shares a run and an event'),
	('ingress_drop_window_seconds', '60', 'how long dropped requests share a run and an event'),
	('signature_tolerance_seconds', '300', 'how far the timestamp of a signed request may be from the clock of the database'),
	('signing_overlap_hours', '24', 'how long the previous signing key of an endpoint is good after it was exchanged');

-- One row an endpoint and kind of drop: how many were recorded one by one in the second that is counted, and the run that the others
-- share. The run says at any time how many; its event is written when the window is over.
create table autopost.ingress_floods (
	workspace_id text not null,
	endpoint_id  text not null,
	action       text not null check (action in ('ingress_rate_limited', 'ingress_payload_rejected', 'ingress_dedup_dropped')),
	second       timestamptz not null default '-infinity',
	recorded     int not null default 0,
	run_id       uuid,
	opened_at    timestamptz,
	meta         jsonb, -- of the first that shares the run
	primary key (workspace_id, endpoint_id, action),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id) on delete cascade,
	check ((run_id is null) = (opened_at is null))
);

-- The ids of signed requests that were taken, with what the first was told: a repeat is answered by it.
create table autopost.signed_requests (
	workspace_id text not null,
	endpoint_id  text not null,
	webhook_id   text not null check (octet_length(webhook_id) between 1 and 256),
	received_at  timestamptz not null,
	expires_at   timestamptz not null,
	results      jsonb,
	primary key (workspace_id, endpoint_id, webhook_id),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id)
);
create index signed_requests_expiry on autopost.signed_requests (expires_at);

alter table autopost.workspace_endpoints
	add old_signing_ref   text,        -- the key before signing_ref
	add old_signing_until timestamptz, -- good until then
	add rotated_from      text,        -- the endpoint whose secret this one's takes the place of, and whose receipts count here, too
	add check ((old_signing_ref is null) = (old_signing_until is null));

-- +goose StatementBegin
do $$
declare
	v_table regclass;
begin
	foreach v_table in array array['autopost.ingress_floods', 'autopost.signed_requests']::regclass[] loop
		execute format('alter table %s enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on %s using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on %s to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd

-- Endpoints without the hash of their secret.
create view autopost.list_endpoints with (security_invoker = true) as
select e.workspace_id, e.endpoint_id, e.kind, e.source_id, e.enabled, e.secret_hash is not null as has_secret, e.signing_ref, e.old_signing_ref,
	e.old_signing_until, e.rotated_from, e.ingress_rps, e.max_payload_bytes, e.hash_drop_window_sec, e.moderated, e.meta, e.created_at, e.updated_at
from autopost.workspace_endpoints e;
