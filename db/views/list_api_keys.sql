-- API keys without their secrets. Not for readers.
create or replace view autopost.list_api_keys with (security_invoker = true) as
select k.workspace_id, k.key_id, k.name, k.role, k.scopes, k.enabled, k.expires_at, k.last_used_at, k.replaced_by,
	k.created_at
from autopost.api_keys k;
