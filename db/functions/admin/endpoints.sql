create or replace function autopost.endpoint_json(p_endpoint autopost.workspace_endpoints) returns jsonb
language sql stable
as $$
-- Purpose: an endpoint for display: has_secret instead of the hash.
select to_jsonb(p_endpoint) - '{workspace_id,secret_hash,admitted_until,created_at,updated_at}'::text[]
	|| jsonb_build_object('has_secret', p_endpoint.secret_hash is not null)
$$;

create or replace function autopost.endpoint_rules() returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the fields of an endpoint without its secret.
select '{
	"kind": {"is": "text", "required": true, "fixed": true, "in": ["webhook_push", "bot_webhook", "pull_source"]},
	"source_id": {"is": "text", "fixed": true},
	"signing_ref": {"is": "text"},
	"enabled": {"is": "boolean", "default": true},
	"ingress_rps": {"is": "number", "default": 5, "min": 0, "max": 1000000, "remedy": "write posts a second, above 0 and up to 1000000"},
	"max_payload_bytes": {"is": "integer", "default": 262144, "min": 1, "max": 16777216},
	"hash_drop_window_sec": {"is": "integer", "default": 10, "min": 0, "max": 86400},
	"moderated": {"is": "boolean", "default": false},
	"meta": {"is": "object", "default": {}, "remedy": "write an object without secrets"}}'::jsonb
$$;

create or replace function autopost.endpoint_fields(p_endpoint autopost.workspace_endpoints) returns jsonb
language sql stable
as $$
-- Purpose: the fields of a stored endpoint; null without an endpoint. One that awaits its secret
--          counts as enabled.
select case when p_endpoint.endpoint_id is not null then
	autopost.row_fields(to_jsonb(p_endpoint), autopost.endpoint_rules()) || jsonb_build_object('enabled',
		p_endpoint.enabled or p_endpoint.awaits_secret) end
$$;

create or replace function autopost.endpoint_errors(p_workspace_id text, p_old autopost.workspace_endpoints,
	p_after jsonb, p_secret jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: checks the fields of an endpoint together, and its secret_hash (null: not given).
-- Returns: an array of {field, reason, remedy}.
-- Reads:   pull_sources.
declare
	v_kind text := p_after ->> 'kind';
	v_signing text := p_after ->> 'signing_ref';
begin
	return case when (v_kind = 'pull_source') <> (p_after ->> 'source_id' is not null)
		then autopost.field_error('source_id', 'does not fit kind ' || v_kind,
			'an endpoint of kind pull_source, and no other, has a source_id') else '[]' end
	|| case when v_kind = 'pull_source' and p_after ->> 'source_id' is not null and not exists (
			select 1 from autopost.pull_sources s where s.workspace_id = p_workspace_id
				and s.source_id = p_after ->> 'source_id')
		then autopost.field_error('source_id', format('must be an existing source, got %s', p_after ->> 'source_id'),
			'add the source first') else '[]' end
	|| case when p_after -> 'ingress_rps' = '0' and p_old.ingress_rps is distinct from 0
		then autopost.field_error('ingress_rps', '0 is out of range',
			autopost.endpoint_rules() -> 'ingress_rps' ->> 'remedy') else '[]' end
	|| case when p_after -> 'moderated' = 'true' and v_kind = 'bot_webhook'
		then autopost.field_error('moderated', 'must be false for kind bot_webhook, got true',
			'leave it out: updates of bots are not posts') else '[]' end
	|| case
		when v_kind <> 'webhook_push' and v_signing is not null
			then autopost.field_error('signing_ref', format('must be absent for kind %s', v_kind), 'omit it')
		when v_signing = ''
			then autopost.field_error('signing_ref', 'is empty',
				'write the auth_ref of a credential of platform webhook, or leave it out')
		when p_old.signing_ref <> v_signing
			then autopost.field_error('signing_ref', 'must be its present key',
				'use rotate_endpoint, which leaves no gap')
		when p_old.signing_ref is not null and v_signing is null and p_old.secret_hash is null
			then autopost.field_error('signing_ref', 'must stay: it is the only secret',
				'keep it, or disable the endpoint')
		else '[]' end
	|| case
		when p_secret is null then '[]'
		when v_kind = 'pull_source'
			then autopost.field_error('secret_hash', 'must be absent for kind pull_source', 'omit it')
		when coalesce(p_secret #>> '{}', '') !~ '^[0-9a-f]{64}$'
			then autopost.field_error('secret_hash', 'must be a SHA-256',
				'pass that of the secret as 64 lower-case hexadecimal digits')
		when p_old.secret_hash <> p_secret #>> '{}'
			then autopost.field_error('secret_hash', 'must be its present secret',
				'use rotate_endpoint, which leaves no gap')
		else '[]' end;
end
$$;

create or replace function autopost.check_rotation(p_fields jsonb) returns void
language plpgsql stable
as $$
-- Purpose: checks the fields of rotate_endpoint.
-- Raises:  AP001 for unknown fields, malformed values and fields that exclude each other.
declare
	v_known constant text[] := '{secret_hash,new_endpoint_id,signing_ref,keep_seconds}';
	v_field text;
	v_remedy text;
begin
	if jsonb_typeof(p_fields) is distinct from 'object' then
		perform autopost.raise_argument('fields', 'must be a JSON object', 'pass the new secret');
	end if;
	select k.key into v_field from jsonb_object_keys(p_fields) k (key) where k.key <> all (v_known) order by k.key
		limit 1;
	if v_field is not null then
		perform autopost.raise_argument('fields', format('has the unknown field %L', v_field),
			'use ' || array_to_string(v_known, ', '));
	end if;
	select f.field, f.remedy into v_field, v_remedy from (values
		('secret_hash', p_fields ->> 'secret_hash' ~ '^[0-9a-f]{64}$',
			'pass the SHA-256 of the secret as 64 lower-case hexadecimal digits'),
		('signing_ref', p_fields ->> 'signing_ref' <> '', 'pass the auth_ref of a credential of platform webhook'),
		('new_endpoint_id', p_fields ->> 'new_endpoint_id' <> '', 'pass the id of the endpoint that takes over'),
		('keep_seconds',
			p_fields @? '$.keep_seconds ? (@.type() == "number" && @ >= 0 && @ <= 2592000 && @.floor() == @)',
			'pass whole seconds from 0 to 2592000, 30 days')
	) f (field, fine, remedy)
	where p_fields ? f.field and f.fine is not true
	limit 1;
	if v_field is not null then
		perform autopost.raise_argument('fields', format('has a wrong value for %s', v_field), v_remedy);
	elsif (p_fields ->> 'secret_hash' is null) = (p_fields ->> 'signing_ref' is null) then
		perform autopost.raise_argument('fields', 'must have one secret', 'pass either secret_hash or signing_ref');
	elsif p_fields ?& '{secret_hash,keep_seconds}' or p_fields ?& '{signing_ref,new_endpoint_id}' then
		perform autopost.raise_argument('fields', 'must not mix both forms',
			'pass new_endpoint_id only with secret_hash, keep_seconds only with signing_ref');
	end if;
end
$$;

create or replace function autopost.check_rotated(p_endpoint autopost.workspace_endpoints) returns void
language plpgsql immutable
as $$
-- Purpose: checks that an endpoint of this kind can have the new secret.
-- Raises:  AP001 if it cannot.
begin
	if p_endpoint.kind = 'pull_source' then
		perform autopost.raise_argument('fields', 'an endpoint of kind pull_source has no secret',
			'there is nothing to rotate');
	elsif p_endpoint.kind = 'bot_webhook' and p_endpoint.signing_ref is not null then
		perform autopost.raise_argument('fields', 'an endpoint of kind bot_webhook takes no signatures',
			'pass secret_hash');
	end if;
end
$$;

create or replace function autopost.write_endpoint(p_endpoint autopost.workspace_endpoints, p_dry_run boolean)
	returns text
language plpgsql
as $$
-- Purpose: writes the row of an endpoint. A dry run writes it too and rolls back.
-- Returns: null, or the conflict: secret_in_use (by an enabled endpoint of this kind in any
--          workspace) or source_in_use.
-- Locks:   workspace_endpoints.
-- Writes:  workspace_endpoints, secret_lookup.
declare
	v_constraint text;
begin
	insert into autopost.workspace_endpoints as e (workspace_id, endpoint_id, kind, source_id, secret_hash, signing_ref,
		rotated_from, enabled, awaits_secret, ingress_rps,
		max_payload_bytes, hash_drop_window_sec, moderated, meta, created_at, updated_at)
	values (p_endpoint.workspace_id, p_endpoint.endpoint_id, p_endpoint.kind, p_endpoint.source_id,
		p_endpoint.secret_hash, p_endpoint.signing_ref, p_endpoint.rotated_from,
		p_endpoint.enabled, p_endpoint.awaits_secret, p_endpoint.ingress_rps, p_endpoint.max_payload_bytes,
			p_endpoint.hash_drop_window_sec, p_endpoint.moderated, p_endpoint.meta,
		autopost.now_ts(), autopost.now_ts())
	on conflict (workspace_id, endpoint_id) do update
	set source_id = excluded.source_id, secret_hash = excluded.secret_hash, signing_ref = excluded.signing_ref,
		enabled = excluded.enabled, awaits_secret = excluded.awaits_secret,
		old_signing_ref = p_endpoint.old_signing_ref, old_signing_until = p_endpoint.old_signing_until,
		ingress_rps = excluded.ingress_rps, max_payload_bytes = excluded.max_payload_bytes,
		hash_drop_window_sec = excluded.hash_drop_window_sec, moderated = excluded.moderated, meta = excluded.meta,
			updated_at = excluded.updated_at;
	if p_dry_run then
		raise exception 'planned' using errcode = 'AP900';
	end if;
	return null;
exception
	when sqlstate 'AP900' then
		return null; -- the write is rolled back
	when unique_violation then
		get stacked diagnostics v_constraint = constraint_name;
		return case when v_constraint = 'workspace_endpoints_source' then 'source_in_use' else 'secret_in_use' end;
end
$$;

create or replace function autopost.change_endpoint(p_old autopost.workspace_endpoints,
	p_new autopost.workspace_endpoints, p_act jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: adds or changes an endpoint and records it. p_act: {"function", "meta", "dry_run"}.
--          p_old is null for a new endpoint. The caller holds the lock of the workspace.
-- Returns: {"applied", "dry_run", "endpoint_id", "created", "before", "after"} or {"applied":
--          false, "dry_run", "reason": unchanged | secret_in_use | source_in_use}, with "bound" and
--          "note" where put_endpoint has them.
-- Writes:  workspace_endpoints, secret_lookup, admin_audit_log.
declare
	v_before jsonb := coalesce(autopost.endpoint_json(p_old), '{}');
	v_after jsonb := autopost.endpoint_json(p_new);
	v_answer jsonb := jsonb_build_object('dry_run', p_act -> 'dry_run');
	v_reason text;
begin
	if p_new.awaits_secret then
		v_answer := v_answer || jsonb_build_object('note',
			format('it has no secret, and is disabled until it has: autopost endpoint rotate %s makes one',
				p_new.endpoint_id));
	end if;
	if p_old.endpoint_id is null then
		v_before := '{}';
	elsif p_old.secret_hash is not distinct from p_new.secret_hash and v_before = v_after then
		return v_answer || '{"applied": false, "reason": "unchanged"}';
	end if;
	v_reason := autopost.write_endpoint(p_new, (p_act -> 'dry_run')::boolean);
	if v_reason is not null then
		return v_answer || jsonb_build_object('applied', false, 'reason', v_reason);
	end if;
	if not (p_act -> 'dry_run')::boolean then
		perform autopost.audit(p_new.workspace_id, p_act ->> 'function', 'endpoint:' || p_new.endpoint_id,
			p_act -> 'meta', v_before, v_after);
	end if;
	return v_answer || jsonb_build_object('applied', true, 'endpoint_id', p_new.endpoint_id, 'created',
		p_old.endpoint_id is null, 'before', v_before, 'after', v_after)
		|| case when p_new.signing_ref is null then '{}' else jsonb_build_object('bound', exists (
			select 1 from autopost.credential_bindings b
			where b.workspace_id = p_new.workspace_id and b.auth_ref = p_new.signing_ref
				and b.platform = 'webhook')) end;
end
$$;

create or replace function autopost.endpoint_to_change(p_workspace_id text, p_endpoint_id text, p_dry_run boolean)
	returns autopost.workspace_endpoints
language plpgsql
as $$
-- Purpose: the stored endpoint, or all fields null. The lock allows one change of endpoints of a
--          workspace at a time.
-- Locks:   workspaces, except for a dry run.
declare
	v_endpoint autopost.workspace_endpoints;
begin
	perform autopost.require_argument('endpoint_id', p_endpoint_id <> '');
	perform 1 from autopost.workspaces w where w.workspace_id = p_workspace_id and not p_dry_run for no key update of w;
	select e.* into v_endpoint from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id;
	return v_endpoint;
end
$$;

create or replace function autopost.next_endpoint_id(p_workspace_id text, p_endpoint_id text) returns text
language plpgsql stable
as $$
-- Purpose: the first free id among "site-2", "site-3", … for "site" or one of them.
-- Reads:   workspace_endpoints.
begin
	return (select i.id
	from generate_series(2, 10000) n
	cross join lateral (select regexp_replace(p_endpoint_id, '-\d+$', '') || '-' || n as id) i
	where not exists (select 1 from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.endpoint_id = i.id)
	order by n
	limit 1);
end
$$;
