-- Credentials without their secrets.
create or replace view autopost.list_credentials_rows as
select b.workspace_id, b.auth_ref, b.platform, split_part(b.secret_ref, ':', 1) as kept, s.version,
	s.key_id as master_key_id,
	h.valid_until, h.refreshed_at, h.next_refresh_at, h.failures, h.checked_at, h.account, h.rights, h.error, h.lost_at,
		b.rotated_at, b.updated_at,
	(select count(*) from autopost.channels c
		left join autopost.channel_auth a on a.workspace_id = c.workspace_id and a.channel_id = c.channel_id
		where c.workspace_id = b.workspace_id and c.platform = b.platform
			and coalesce(a.auth_ref, c.auth_ref) = b.auth_ref) as channels
from autopost.credential_bindings b
left join autopost.credential_health h on h.workspace_id = b.workspace_id and h.auth_ref = b.auth_ref
left join autopost.sealed_secrets s on s.workspace_id = b.workspace_id and s.auth_ref = b.auth_ref
	and s.retired_at is null;

create or replace view autopost.list_credentials with (security_barrier = true) as
select v.workspace_id, v.auth_ref, v.platform, v.kept, v.version, v.master_key_id, v.valid_until, v.refreshed_at,
	v.next_refresh_at, v.failures, v.checked_at, v.account, v.rights, v.error, v.lost_at, v.rotated_at,
	v.updated_at, v.channels
from autopost.list_credentials_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
