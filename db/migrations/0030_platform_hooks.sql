-- +goose Up
-- What platforms tell by themselves: updates taken once, the chats that their bots are in, channels that wait for rights, and the subscriptions
-- by which all of that comes.

-- Updates as they came, each once: a platform repeats what it has no answer to.
create table autopost.bot_updates (
	workspace_id text not null references autopost.workspaces (workspace_id),
	auth_ref     text not null, -- the bot: its updates are known whatever endpoint they come in by
	update_key   text not null, -- what the platform tells repeats by
	endpoint_id  text not null,
	kind         text not null, -- my_chat_member, message_created, …
	chat_id      text,
	payload      jsonb, -- null: its chat was over bot_chat_updates_per_minute
	received_at  timestamptz not null,
	expires_at   timestamptz not null,
	primary key (workspace_id, auth_ref, update_key)
);
-- How much a chat brought in the last minute: receive_update.
create index bot_updates_chat on autopost.bot_updates (workspace_id, auth_ref, chat_id, received_at) where chat_id is not null;
create index bot_updates_expiry on autopost.bot_updates (expires_at);

-- The chats that bots are or were in, as far as their platforms told: what could become a channel.
create table autopost.discovered_chats (
	workspace_id text not null references autopost.workspaces (workspace_id),
	platform     text not null references autopost.platforms (platform),
	auth_ref     text not null,
	target_id    text not null, -- as channels.target_id, without a thread
	title        text not null default '',
	username     text, -- without the @
	kind         text not null default 'chat' check (kind in ('channel', 'chat', 'dialog')),
	may_post     boolean, -- null: nobody has said, the platform is to be asked
	reason       text, -- why it may not
	rights_at    timestamptz not null default '-infinity', -- when, by the platform's clock, it was as may_post says
	rights_seq   bigint not null default 0, -- which came first of those of one second
	migrated_to  text, -- the supergroup that took its place
	first_seen   timestamptz not null,
	last_seen    timestamptz not null,
	left_at      timestamptz, -- the bot is not in it any more
	ask_at       timestamptz not null default '-infinity', -- not asked before; also the lease of whoever asks now
	primary key (workspace_id, platform, auth_ref, target_id)
);

alter table autopost.channels
	add rights_held   text,        -- why its bot may not post; the pause is because of it
	add paused_before timestamptz; -- the pause that it had before
-- Who waits for rights: monitor.
create index channels_rights_held on autopost.channels (workspace_id, channel_id) where rights_held is not null;

-- By which a platform sends the updates of a bot to its endpoint.
create table autopost.bot_subscriptions (
	workspace_id  text not null,
	endpoint_id   text not null,
	next_check_at timestamptz not null default '-infinity', -- also the lease of whoever looks now
	next_hash     text check (next_hash ~ '^[0-9a-f]{64}$'), -- of the secret that the platform is being given
	given_hash    text check (given_hash ~ '^[0-9a-f]{64}$'), -- of the one that it has
	url           text,
	checked_at    timestamptz,
	subscribed_at timestamptz,
	why           text, -- the platform was subscribed anew the last time
	failures      int not null default 0, -- looks and subscriptions that failed in a row
	error         jsonb,
	primary key (workspace_id, endpoint_id),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id) on delete cascade
);

-- +goose StatementBegin
do $$
declare
	v_table regclass;
begin
	foreach v_table in array array['autopost.bot_updates', 'autopost.discovered_chats', 'autopost.bot_subscriptions']::regclass[] loop
		execute format('alter table %s enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on %s using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on %s to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd

insert into autopost.settings (key, value, default_value, meaning) values
	('bot_chat_updates_per_minute', '120', '120', 'updates of one chat whose content is kept in a minute; of those above it only that they came is kept'),
	('rights_hold_days', '365', '365', 'how long a channel waits for its bot to be given its rights again'),
	('subscription_check_seconds', '300', '300', 'how long between two looks at what a platform is subscribed to, and between two questions about the rights of a bot');

-- Chats with the channels that post to them by the same credential.
create view autopost.list_chats with (security_invoker = true) as
select h.workspace_id, h.platform, h.auth_ref, h.target_id, h.title, h.username, h.kind, h.may_post, h.reason, h.migrated_to, h.first_seen, h.last_seen, h.left_at,
	(select coalesce(array_agg(c.channel_id order by c.channel_id), '{}') from autopost.channels c
		left join autopost.channel_auth a on a.workspace_id = c.workspace_id and a.channel_id = c.channel_id
		where c.workspace_id = h.workspace_id and c.platform = h.platform and coalesce(a.auth_ref, c.auth_ref) = h.auth_ref
		and lower(split_part(c.target_id, ':', 1)) in (h.target_id, '@' || lower(h.username))) as channel_ids
from autopost.discovered_chats h;
