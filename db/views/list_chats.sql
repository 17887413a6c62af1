-- Chats with the channels that use the same credential.
create or replace view autopost.list_chats_rows as
select h.workspace_id, h.platform, h.auth_ref, h.target_id, h.title, h.username, h.kind, h.may_post, h.reason,
	h.migrated_to, h.first_seen, h.last_seen, h.left_at,
	(select coalesce(array_agg(c.channel_id order by c.channel_id), '{}') from autopost.channels c
		left join autopost.channel_auth a on a.workspace_id = c.workspace_id and a.channel_id = c.channel_id
		where c.workspace_id = h.workspace_id and c.platform = h.platform
			and coalesce(a.auth_ref, c.auth_ref) = h.auth_ref
		and lower(split_part(c.target_id, ':', 1)) in (h.target_id, '@' || lower(h.username))) as channel_ids
from autopost.discovered_chats h;

create or replace view autopost.list_chats with (security_barrier = true) as
select v.workspace_id, v.platform, v.auth_ref, v.target_id, v.title, v.username, v.kind, v.may_post, v.reason,
	v.migrated_to, v.first_seen, v.last_seen, v.left_at, v.channel_ids
from autopost.list_chats_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
