-- +goose Up
-- Channels, their credentials and templates, and everything that limits a channel or a rate group.

-- Names where the secret of a credential is. The secret itself is never in this table.
create table autopost.credential_bindings (
	workspace_id text not null references autopost.workspaces (workspace_id),
	auth_ref     text not null,
	platform     text not null,
	secret_ref   text not null check (secret_ref ~ '^(env|file|sealed):.'),
	hosts        text[], -- "host" or "host:port": the addresses that get a secret of platform http
	rotated_at   timestamptz,
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, auth_ref),
	check ((platform = 'http') = (coalesce(hosts, '{}') <> '{}'))
);

-- Secrets sealed by AES-256-GCM over workspace, auth_ref and version. Each row has its own data key,
-- wrapped by the master key. The database never sees the master key.
create table autopost.sealed_secrets (
	workspace_id text not null,
	auth_ref     text not null,
	version      int not null check (version > 0),
	key_id       text not null check (key_id <> ''), -- of the master key
	wrapped_key  bytea not null,
	sealed       bytea not null,
	source       text not null, -- digest of the env: or file: secret that it was renewed from; '' if none
	created_at   timestamptz not null,
	retired_at   timestamptz, -- replaced by a newer version at this time
	primary key (workspace_id, auth_ref, version),
	foreign key (workspace_id, auth_ref) references autopost.credential_bindings (workspace_id, auth_ref)
		on delete cascade
);
create unique index sealed_secrets_in_force on autopost.sealed_secrets (workspace_id, auth_ref)
	where retired_at is null;

-- Accounts that a person connects: what the answer of the platform needs, by the SHA-256 of its state.
create table autopost.credential_links (
	workspace_id text not null references autopost.workspaces (workspace_id),
	state_hash   text not null check (state_hash ~ '^[0-9a-f]{64}$'),
	auth_ref     text not null,
	platform     text not null,
	redirect     text not null, -- the address that the platform answers to
	sealed       jsonb not null, -- the app and the verifier, sealed like a secret
	requeue      boolean not null, -- send again what failed by the old secret
	operator     text not null,
	reason       text not null,
	expires_at   timestamptz not null,
	primary key (workspace_id, state_hash)
);
create index credential_links_state on autopost.credential_links (state_hash);

-- State of each credential. A trigger on credential_bindings keeps one row per credential.
create table autopost.credential_health (
	workspace_id    text not null,
	auth_ref        text not null,
	last_version    int not null default 0, -- of sealed_secrets; never reused
	valid_until     timestamptz, -- of the current secret; null: unknown
	refreshed_at    timestamptz,
	next_refresh_at timestamptz, -- null: no automatic renewal
	failures        int not null default 0, -- failed renewals in a row
	lease_token     text, -- of the daemon that renews it now
	lease_until     timestamptz,
	leased_by       text, -- run id of that daemon
	checked_at      timestamptz,
	account         text, -- account name from the platform
	rights          jsonb not null default '[]', -- [{"target", "title", "may_post", "reason"}]
	error           jsonb, -- of the last check or renewal
	lost_at         timestamptz, -- the platform refused it at this time
	lost_version    int, -- the refused secret; 0: the env: or file: secret with the digest lost_source
	lost_source     text,
	warned_until    timestamptz, -- the valid_until of the last warning
	primary key (workspace_id, auth_ref),
	foreign key (workspace_id, auth_ref) references autopost.credential_bindings (workspace_id, auth_ref)
		on delete cascade
);
create index credential_health_due on autopost.credential_health (workspace_id, next_refresh_at)
	where next_refresh_at is not null and lost_at is null;
create index credential_health_leased on autopost.credential_health (workspace_id, auth_ref)
	where lease_token is not null;
create index credential_health_failing on autopost.credential_health (workspace_id, auth_ref)
	where failures > 0 and lost_at is null;
create index credential_health_expiring on autopost.credential_health (workspace_id, valid_until)
	where next_refresh_at is null and lost_at is null and valid_until is not null;

-- fillfactor: a claim moves next_allowed_at, which has no index, so the new version fits on the same page.
create table autopost.channels (
	workspace_id    text not null references autopost.workspaces (workspace_id),
	channel_id      text not null check (channel_id <> ''),
	platform        text not null references autopost.platforms (platform),
	target_id       text not null check (target_id <> ''), -- "chat" or "chat:thread"
	auth_ref        text not null,
	rate_group      text not null,
	enabled         boolean not null default true,
	title           text,
	send_mode       text not null default 'mixed' check (send_mode in ('text', 'media', 'mixed')),
	rate_rps        numeric default 1 check (rate_rps >= 0), -- null or 0: no limit
	max_parallel    int not null default 1 check (max_parallel > 0),
	next_allowed_at timestamptz,
	paused_until    timestamptz,
	timezone        text,
	window_mode     text not null default 'immediate' check (window_mode in ('immediate', 'windowed')),
	posting_window  jsonb,
	dedup_ttl_hours int default 168 check (dedup_ttl_hours >= 0 and dedup_ttl_hours <= 2160),
	error_streak    int not null default 0 check (error_streak >= 0),
	on_unknown      text not null default 'reconcile' check (on_unknown in ('reconcile', 'hold', 'resend')),
	on_auth_lost    text not null default 'hold' check (on_auth_lost in ('hold', 'fail')),
	settings        jsonb not null default '{}' check (jsonb_typeof(settings) = 'object'),
	tags            text[] not null default '{}',
	route_filter    jsonb check (route_filter is null or (
		jsonb_typeof(route_filter) = 'object'
		and jsonb_typeof(coalesce(route_filter -> 'include_any', '[]')) = 'array'
		and jsonb_typeof(coalesce(route_filter -> 'include_all', '[]')) = 'array'
		and jsonb_typeof(coalesce(route_filter -> 'exclude', '[]')) = 'array')),
	template_ref    text,
	cooldown_until  timestamptz, -- the platform asked for this wait
	last_limited_at timestamptz, -- last "too many requests" of the platform
	created_at      timestamptz not null default now(),
	updated_at      timestamptz not null default now(),
	auth_held       boolean not null default false, -- paused because its credential was refused
	auth_lost_at    timestamptz, -- time of the last refusal
	rights_held     text, -- why the bot may not post; the reason of the pause
	paused_before   timestamptz, -- paused_until before rights_held
	limited_rps     numeric check (limited_rps > 0), -- rate after the last limit of the platform; null: rate_rps applies
	limited_sends   int not null default 0, -- slots of the posts sent since then
	-- The rate that slots keep. It rises with each sent post, slowly at first.
	effective_rps   numeric generated always as (case when limited_rps is null then rate_rps
		else least(nullif(rate_rps, 0), round(limited_rps * exp(limited_sends * limited_sends / 400.0), 9)) end) stored,
	credential_missing_at timestamptz, -- its credential has no secret since then; null if it has
	credential_until timestamptz, -- the next claim, which looks for the secret again
	moderated       boolean not null default false, -- its posts wait for a decision
	held_until      timestamptz, -- infinity: the configuration of Global X holds it; else null
	primary key (workspace_id, channel_id),
	unique (workspace_id, platform, target_id),
	-- The strategy for a text over a limit; absent: the delivery fails.
	constraint channels_long_text check (
		coalesce(settings -> 'long_text', '"split"') in ('"truncate"', '"split"', '"caption_reply"')),
	-- Parameters that rendering adds to each http and https link.
	constraint channels_utm check (
		not settings @? '$.utm ? (@.type() != "object")'
		and not settings @? '$.utm.keyvalue() ? (!(@.key like_regex "^[A-Za-z0-9_]+$") || @.value.type() != "string")'),
	-- The smallest distance of two free slots.
	constraint channels_min_gap check (
		not settings @? '$.min_gap_seconds ? (@.type() != "number" || @ < 1 || @ > 2678400)'),
	-- Defaults for videos; a post may override them.
	constraint channels_youtube check (
		not settings @? '$.youtube ? (@.type() != "object")'
		and not settings @? '$.youtube.keyvalue() ? (!(@.key like_regex "^(privacy|tags|post_tags|category_id|language|license|embeddable|made_for_kids|synthetic_media|notify_subscribers|playlist_id|captions_language)$"))'
		and not settings @? '$.youtube.privacy ? (!(@ == "public" || @ == "unlisted" || @ == "private"))'
		and coalesce(jsonb_typeof(settings #> '{youtube,tags}'), 'array') = 'array'
			and not settings @? '$.youtube.tags[*] ? (@.type() != "string")'
		and not settings @? '$.youtube.category_id ? (!(@ like_regex "^[0-9]{1,3}$"))'
		and not settings @? '$.youtube.license ? (!(@ == "youtube" || @ == "creativeCommon"))'
		and not settings @? '$.youtube.playlist_id ? (!(@ like_regex "^[A-Za-z0-9_-]{2,64}$"))'
		and not settings @? '$.youtube.keyvalue() ? (@.key like_regex "^(made_for_kids|synthetic_media|embeddable|notify_subscribers|post_tags)$" && @.value.type() != "boolean")'
		and not settings @? '$.youtube.keyvalue() ? (@.key like_regex "language$" && !(@.value like_regex "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$"))')
) with (fillfactor = 70);
create index channels_enabled on autopost.channels (workspace_id, enabled);
create index channels_group on autopost.channels (workspace_id, platform, rate_group);
create index channels_moderated on autopost.channels (workspace_id, channel_id) where moderated;
create index channels_tags on autopost.channels using gin (tags);
-- For the monitor: channels that wait for a credential, for rights, or for the end of a pause.
create index channels_auth_held on autopost.channels (workspace_id, channel_id) where auth_held;
create index channels_credential_missing on autopost.channels (workspace_id, channel_id)
	where credential_missing_at is not null;
create index channels_rights_held on autopost.channels (workspace_id, channel_id) where rights_held is not null;
create index channels_paused on autopost.channels (workspace_id, paused_until) where paused_until is not null;

-- The current credential of a channel if rotation replaced channels.auth_ref.
create table autopost.channel_auth (
	workspace_id text not null,
	channel_id   text not null,
	auth_ref     text not null,
	rotated_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, channel_id),
	foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id) on delete cascade
);

-- Limits, cooldown and circuit breaker of a rate group. A group without a row belongs to no
-- channel, or its platform publishes no limit.
create table autopost.platform_limits (
	workspace_id      text not null references autopost.workspaces (workspace_id),
	platform          text not null references autopost.platforms (platform),
	rate_group        text not null,
	rate_rps          numeric check (rate_rps >= 0), -- null or 0: no limit
	next_allowed_at   timestamptz,
	cooldown_until    timestamptz,
	updated_at        timestamptz not null default now(),
	quota_until       timestamptz, -- the quota of the group is used up until then
	-- channels whose calls failed at the platform since its last success
	failing_channels  text[] not null default '{}',
	breaker_opened_at timestamptz, -- the breaker is open since then: one probe at a time
	probe_id          uuid, -- the delivery of the current or last probe
	probe_at          timestamptz, -- earliest time of the next probe
	probes            int not null default 0,
	primary key (workspace_id, platform, rate_group)
) with (fillfactor = 50);
-- For commits: whether a success ends a series of failures.
create index platform_limits_failing on autopost.platform_limits (workspace_id) where failing_channels <> '{}';
create index platform_limits_broken on autopost.platform_limits (workspace_id, platform, rate_group)
	where breaker_opened_at is not null;

-- When a claim next visits a channel. Apart from channels and narrow, because each claim updates it.
-- ready_at: 'infinity' = nothing due, or at max_parallel, or disabled. Enqueue, claim, commit and the
-- triggers on channels keep it.
create table autopost.channel_gates (
	workspace_id text not null,
	channel_id   text not null,
	platform     text not null,
	rate_group   text not null,
	ready_at     timestamptz not null default 'infinity',
	inflight     int not null default 0 check (inflight >= 0),
	last_provider_message_id text, -- the newest known post of the channel
	late         boolean not null default false, -- open, but far behind; set by rearm_gates for alerts
	listed       boolean not null default false, -- it is in channels_in_flight
	primary key (workspace_id, channel_id),
	foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id) on delete cascade,
	check (listed or inflight = 0)
) with (fillfactor = 50);
-- Holds armed gates only. A query by ready_at must say "ready_at < 'infinity'" to use it.
create index channel_gates_armed on autopost.channel_gates (workspace_id, platform, rate_group, ready_at)
	where ready_at < 'infinity';
create index channel_gates_late on autopost.channel_gates (workspace_id, channel_id) where late;

-- Leases: the channels that may have deliveries in flight. A claim adds its channels, and rearm_gates removes those
-- without any. No index has the count itself, so a commit changes its gate in place (HOT).
create table autopost.channels_in_flight (
	workspace_id text not null,
	channel_id   text not null,
	primary key (workspace_id, channel_id),
	foreign key (workspace_id, channel_id) references autopost.channel_gates (workspace_id, channel_id) on delete cascade
);

-- At most max_sends posts or calls start in any window_seconds, for a channel or for all channels of a rate group.
-- A subject may have several windows, as an hour and a day.
create table autopost.quotas (
	workspace_id   text not null references autopost.workspaces (workspace_id),
	subject        text not null generated always as (
		case when channel_id is not null then 'channel:' || channel_id
			else 'group:' || platform || '/' || rate_group end) stored,
	window_seconds int not null check (window_seconds between 1 and 2678400),
	max_sends      int not null check (max_sends > 0),
	counts         text not null default 'posts' check (counts in ('posts', 'calls')),
	channel_id     text,
	platform       text references autopost.platforms (platform),
	rate_group     text,
	created_at     timestamptz not null default now(),
	updated_at     timestamptz not null default now(),
	global_x       boolean not null default false, -- a cap of Global X, which ends with it
	primary key (workspace_id, subject, window_seconds),
	foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id) on delete cascade,
	check (case when channel_id is not null then platform is null and rate_group is null
		else platform is not null and rate_group is not null end)
);

-- Uses of quotas: open claims, and calls from their start. A released claim is not a use.
create table autopost.quota_uses (
	workspace_id text not null,
	delivery_id  uuid not null,
	attempt      int not null,
	subject      text not null,
	used_at      timestamptz not null, -- 'infinity' while the claim is open
	posts        int not null default 1 check (posts >= 0), -- reserved; later those that the platform has or may have
	primary key (workspace_id, delivery_id, attempt, subject)
);
create index quota_uses_subject on autopost.quota_uses (workspace_id, subject, used_at);

-- Money that a credential may spend in a calendar month (UTC). No row: no limit and no charges.
create table autopost.budgets (
	workspace_id text not null references autopost.workspaces (workspace_id),
	auth_ref     text not null check (auth_ref <> ''),
	month_micros bigint not null check (month_micros >= 0), -- in millionths of a dollar
	created_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, auth_ref)
);

-- Charges against budgets from the claim on. A claim without a post is paid back.
create table autopost.charges (
	workspace_id text not null,
	delivery_id  uuid not null, -- a use without a delivery has an id of its own
	attempt      int not null,
	auth_ref     text not null,
	charged_at   timestamptz not null,
	micros       bigint not null,
	use          text not null default 'post', -- post: charged by the claim; else a row of use_prices
	primary key (workspace_id, delivery_id, attempt, use)
);
create index charges_month on autopost.charges (workspace_id, auth_ref, charged_at);

-- A version of a template. Only enabled changes later. The newest enabled version applies; a row for a
-- platform wins over '*'. Without a name in post or channel the template "default" applies. A trigger
-- checks each row.
create table autopost.templates (
	workspace_id text not null references autopost.workspaces (workspace_id),
	template_id  text not null,
	platform     text not null default '*',
	version      int not null check (version > 0),
	body         text not null, -- "{title}, {summary?}"; {text} and {link} are the post's own; {{ and }} are braces
	defaults     jsonb not null default '{}' check (jsonb_typeof(defaults) = 'object'),
	vars         text[], -- allowed variables; null: those of body and defaults
	sanitize     text[] not null default '{}', -- variables whose values lose @mentions and control characters
	parse_mode   text not null default 'None' check (parse_mode in ('HTML', 'Markdown', 'None')), -- of the body
	max_length   int check (max_length > 0), -- in the platform's unit; null: platforms.template_limit
	enabled      boolean not null default true,
	created_at   timestamptz not null default now(),
	primary key (workspace_id, template_id, platform, version)
);

-- No statistics of workspaces on hot tables: the planner then assumes a two-hundredth of the table for
-- each workspace. With statistics, it assumes one row for a new workspace and picks a full scan.
alter table autopost.channels alter column workspace_id set statistics 0;
alter table autopost.channel_gates alter column workspace_id set statistics 0;
alter table autopost.channels_in_flight alter column workspace_id set statistics 0;
alter table autopost.channel_auth alter column workspace_id set statistics 0;
alter table autopost.platform_limits alter column workspace_id set statistics 0;
