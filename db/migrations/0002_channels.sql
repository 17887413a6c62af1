-- +goose Up
-- Platforms, channels, their credentials, and the gates that decide when they may be served.

-- One row per adapter that exists, with what preflight must know of the platform.
create table autopost.platforms (
	platform         text not null primary key,
	dialect          text not null check (dialect in ('telegram_html', 'max_html', 'plain')),
	text_limit       int not null,   -- of one message
	caption_limit    int not null,   -- of text that goes with media
	counts_markup    boolean not null, -- whether the limit counts the markup too
	media_per_step   int not null,   -- items that one message can carry
	together         jsonb not null, -- sets of media types that one message may mix; any other type goes alone
	media_bytes      jsonb not null, -- media type -> largest size; a type that is missing is not supported
	album_buttons    boolean not null, -- whether several media in one message leave room for buttons
	item_captions    boolean not null, -- whether each medium of a message may have its own caption
	buttons_per_row  int not null,
	button_rows      int not null,
	created_at       timestamptz not null default now()
);
insert into autopost.platforms
	(platform, dialect, text_limit, caption_limit, counts_markup, media_per_step, together, media_bytes, album_buttons, item_captions, buttons_per_row, button_rows)
values
	('telegram', 'telegram_html', 4096, 1024, false, 10, '[["image", "video"], ["audio"], ["file"]]',
		'{"image": 10485760, "video": 52428800, "audio": 52428800, "file": 52428800, "animation": 52428800}', false, true, 8, 12),
	('max', 'max_html', 4000, 4000, true, 11, '[["image", "video"]]',
		'{"image": 52428800, "video": 262144000, "audio": 268435456, "file": 4294967296, "animation": 52428800}', true, false, 3, 30);

-- How long to wait after a transient failure. The most specific row wins: (platform, code), (platform, *), (*, code), (*, *).
create table autopost.retry_policies (
	platform     text not null,
	code         text not null,
	kind         text not null check (kind in ('exponential', 'ladder')),
	base_ms      bigint not null default 2000 check (base_ms > 0),
	factor       numeric not null default 2 check (factor >= 1),
	cap_ms       bigint not null default 600000 check (cap_ms >= base_ms),
	ladder_ms    bigint[] not null default '{}',
	jitter       numeric not null default 0.2 check (jitter >= 0 and jitter < 1),
	max_attempts int check (max_attempts > 0), -- null: the setting max_attempts
	primary key (platform, code),
	check (kind = 'exponential' or cardinality(ladder_ms) > 0)
);
insert into autopost.retry_policies (platform, code, kind, ladder_ms, max_attempts) values
	('*', '*', 'exponential', '{}', null),
	('max', 'attachment.not.ready', 'ladder', '{1000,2000,4000,8000,15000,30000}', 12);

create table autopost.channels (
	workspace_id     text not null references autopost.workspaces (workspace_id),
	channel_id       text not null check (channel_id <> ''),
	platform         text not null references autopost.platforms (platform),
	target_id        text not null check (target_id <> ''), -- "chat" or "chat:thread"
	auth_ref         text not null,
	rate_group       text not null,
	enabled          boolean not null default true,
	title            text,
	send_mode        text not null default 'mixed' check (send_mode in ('text', 'media', 'mixed')),
	rate_rps         numeric default 1 check (rate_rps >= 0), -- null or 0: no limit
	max_parallel     int not null default 1 check (max_parallel > 0),
	next_allowed_at  timestamptz,
	paused_until     timestamptz,
	timezone         text,
	window_mode      text not null default 'immediate' check (window_mode in ('immediate', 'windowed')),
	posting_window   jsonb,
	dedup_ttl_hours  int default 168 check (dedup_ttl_hours >= 0 and dedup_ttl_hours <= 2160),
	error_streak     int not null default 0 check (error_streak >= 0),
	on_unknown       text not null default 'reconcile' check (on_unknown in ('reconcile', 'hold', 'resend')),
	on_auth_lost     text not null default 'hold' check (on_auth_lost in ('hold', 'fail')),
	settings         jsonb not null default '{}' check (jsonb_typeof(settings) = 'object'),
	tags             text[] not null default '{}',
	route_filter     jsonb check (route_filter is null or (
		jsonb_typeof(route_filter) = 'object'
		and jsonb_typeof(coalesce(route_filter -> 'include_any', '[]')) = 'array'
		and jsonb_typeof(coalesce(route_filter -> 'include_all', '[]')) = 'array'
		and jsonb_typeof(coalesce(route_filter -> 'exclude', '[]')) = 'array')),
	template_ref     text,
	cooldown_until   timestamptz, -- the platform asked this channel to wait
	last_limited_at  timestamptz, -- when the platform last answered "too many requests" for this channel
	created_at       timestamptz not null default now(),
	updated_at       timestamptz not null default now(),
	primary key (workspace_id, channel_id),
	unique (workspace_id, platform, target_id)
);
create index channels_enabled on autopost.channels (workspace_id, enabled);
create index channels_group on autopost.channels (workspace_id, platform, rate_group);
create index channels_tags on autopost.channels using gin (tags);

-- The shared ceiling of a rate group and its cooldown. A group without a row is not limited.
create table autopost.platform_limits (
	workspace_id    text not null references autopost.workspaces (workspace_id),
	platform        text not null references autopost.platforms (platform),
	rate_group      text not null,
	rate_rps        numeric check (rate_rps >= 0), -- null or 0: no limit
	next_allowed_at timestamptz,
	cooldown_until  timestamptz,
	updated_at      timestamptz not null default now(),
	primary key (workspace_id, platform, rate_group)
);

-- When a channel is worth visiting. Narrow and apart from channels, because a claim moves it.
-- ready_at: 'infinity' = nothing to do, or full, or disabled. Kept by enqueue, claim, commit and the triggers on channels.
create table autopost.channel_gates (
	workspace_id text not null,
	channel_id   text not null,
	platform     text not null,
	rate_group   text not null,
	ready_at     timestamptz not null default 'infinity',
	inflight     int not null default 0 check (inflight >= 0),
	last_provider_message_id text, -- the newest post known to stand in the channel
	primary key (workspace_id, channel_id),
	foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id) on delete cascade
) with (fillfactor = 50);
create index channel_gates_ready on autopost.channel_gates (workspace_id, platform, rate_group, ready_at);

-- The current credential of a channel, where it was rotated away from channels.auth_ref.
create table autopost.channel_auth (
	workspace_id text not null,
	channel_id   text not null,
	auth_ref     text not null,
	rotated_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, channel_id),
	foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id) on delete cascade
);

-- Logical credential -> where its secret is kept. The secret itself is never here.
create table autopost.credential_bindings (
	workspace_id text not null references autopost.workspaces (workspace_id),
	auth_ref     text not null,
	platform     text not null,
	secret_ref   text not null check (secret_ref ~ '^(env|file|sealed):.'),
	rotated_at   timestamptz,
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, auth_ref)
);
