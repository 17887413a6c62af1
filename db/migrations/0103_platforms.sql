-- +goose Up
-- Platforms: limits for preflight and rendering, retry policies, prices.

-- One row per adapter.
create table autopost.platforms (
	platform         text not null primary key,
	dialect          text not null check (dialect in ('telegram_html', 'max_html', 'plain')),
	text_limit       int not null, -- of one message, in length_unit
	caption_limit    int not null, -- of a text with media, in length_unit
	counts_markup    boolean not null, -- the limits count markup too
	media_per_step   int not null, -- items of one message
	together         jsonb not null, -- sets of media types that one message may mix; other types go alone
	media_bytes      jsonb not null, -- media type -> largest size; a missing type is not supported
	album_buttons    boolean not null, -- several media in one message may have buttons
	item_captions    boolean not null, -- each medium of a message may have its own caption
	buttons_per_row  int not null,
	button_rows      int not null,
	created_at       timestamptz not null default now(),
	length_unit      text not null default 'utf16' check (length_unit in ('utf16', 'weighted', 'bytes')),
	template_limit   int, -- cut length of a template without max_length
	title_limit      int, -- characters of a title; null: posts have no title
	forbidden        text not null default '', -- characters that the platform refuses; rendering drops them
	needs_media      boolean not null default false,
	max_parts        int not null default 20, -- a longer text is not split
	target_form      text, -- regular expression for channels.target_id; null: any text
	target_example   text, -- for the error message
	-- a new post may stay invisible this long; no resend before
	settle_seconds   int not null default 0 check (settle_seconds >= 0),
	threads          boolean not null default false, -- each message of a delivery replies to the one before
	replies          boolean not null default true, -- a message can reply to an earlier one of its delivery
	comment_limit    int, -- characters of a comment on a video; null: it has no comments
	post_micros      bigint not null default 0 check (post_micros >= 0), -- price of a message in millionths of a dollar
	link_post_micros bigint not null default 0 check (link_post_micros >= 0), -- price of a message with a link
	takes            text not null default 'messages' check (takes in ('messages', 'videos')),
	resumes          boolean not null default false, -- the adapter continues an interrupted call; no unknown outcome
	acts             text[] not null default '{}' check (acts <@ '{edit,delete,pin,unpin}'), -- supported post changes
	idempotent       boolean not null default false, -- a repeated call has the same key and takes effect once
	post_fields      text[] not null default '{}', -- extra fields of the platform's variant of a post
	setting_keys     text[], -- keys of channels.settings that the adapter reads; null: unknown
	group_rps        numeric check (group_rps > 0), -- default limit of a rate group; null: none is published
	group_chat_rps   numeric check (group_chat_rps > 0), -- default limit of a channel that is a group chat; null: 1
	id_fields        text[] not null default '{}' -- fields of a medium whose platform id the adapter sends
		check (id_fields <@ '{file_id,attachment_token}'),
	-- Media type -> upload_required, or url_allowed: the platform fetches the source URL itself while it is
	-- known. MAX fetches images only; no other adapter sends URLs. "other" is an animation.
	upload_policy    jsonb not null default '{"image": "upload_required", "video": "upload_required",
		"file": "upload_required", "audio": "upload_required", "other": "upload_required"}'
		check (upload_policy ?& '{image,video,file,audio,other}'
			and upload_policy - '{image,video,file,audio,other}'::text[] = '{}'
			and not upload_policy - 'image' @? '$.* ? (@ != "upload_required")'
			and (upload_policy -> 'image' = '"upload_required"'
				or platform = 'max' and upload_policy -> 'image' = '"url_allowed"'))
);
-- x: 280 weighted characters, of which 10 stay in reserve for differences between its count and ours.
-- webhook: the limits are ours; media are described, not sent.
insert into autopost.platforms
	(platform, dialect, text_limit, caption_limit, counts_markup, media_per_step, together, media_bytes,
	album_buttons, item_captions, buttons_per_row, button_rows, length_unit, template_limit, title_limit,
	forbidden, needs_media,
	target_form, target_example,
	settle_seconds, threads, post_micros, link_post_micros, takes, resumes, acts, idempotent, post_fields, setting_keys)
values
	('telegram', 'telegram_html', 4096, 1024, false, 10, '[["image", "video"], ["audio"], ["file"]]',
		'{"image": 10485760, "video": 52428800, "audio": 52428800, "file": 52428800, "animation": 52428800}',
		false, true, 8, 12, 'utf16', null, null, '', false,
		'^(-?[0-9]{1,19}|@[A-Za-z0-9_]{1,32})(:[0-9]{1,10})?$',
		'@name or -1001234567890, with :thread behind it for a topic of a forum',
		0, false, 0, 0, 'messages', false, '{edit,delete,pin,unpin}', false, '{}',
		'{disable_notification,protect_content,has_spoiler,show_caption_above_media,link_preview_options,service_chat_id}'),
	('max', 'max_html', 4000, 4000, true, 11, '[["image", "video"]]',
		'{"image": 52428800, "video": 262144000, "audio": 268435456, "file": 4294967296, "animation": 52428800}',
		true, false, 3, 30, 'utf16', null, null, '', false,
		'^-?[0-9]{1,19}$', '-68123456789',
		10, false, 0, 0, 'messages', false, '{edit,delete,pin,unpin}', false, '{}', '{disable_notification}'),
	('x', 'plain', 270, 270, false, 4, '[["image"]]',
		'{"image": 5242880, "video": 536870912, "animation": 15728640}',
		false, false, 0, 0, 'weighted', 260, null, U&'\FFFE\FEFF\FFFF', false,
		'^([0-9]{1,19}|@?[A-Za-z0-9_]{1,15})$', 'the id or the name of the account: 783214 or @name',
		60, true, 15000, 200000, 'messages', false, '{delete}', false, '{made_with_ai,paid_partnership,reply_settings}',
		'{made_with_ai,paid_partnership,for_super_followers_only,share_with_followers,community_id,reply_settings,max_weighted_length,avatar_id}'),
	('youtube', 'plain', 5000, 5000, false, 1, '[]',
		'{"video": 274877906944, "image": 52428800, "file": 104857600}',
		false, false, 0, 0, 'bytes', null, 100, '<>', true,
		'^UC[A-Za-z0-9_-]{4,22}$', 'the id of the channel: UC and what follows',
		30, false, 0, 0, 'videos', true, '{edit,delete}', false, '{}', '{}'),
	('webhook', 'max_html', 65536, 65536, false, 10, '[["image", "video", "audio", "file", "animation"]]',
		'{"image": 4294967296, "video": 4294967296, "audio": 4294967296, "file": 4294967296, "animation": 4294967296}',
		true, true, 8, 12, 'utf16', null, null, '', false,
		'^(?=(?:.{1,250}){1,8}$)https?://[A-Za-z0-9.:\[\]_-]+([/?][!-"$-~]*)?$', 'https://example.com/hooks/posts',
		0, false, 0, 0, 'messages', false, '{}', true, '{}', '{inline_media_bytes}');
-- Telegram: about 30 messages a second for a bot, 20 a minute for a group. MAX: 30 requests a second for a
-- bot. X: 100 posts in 15 minutes for an account. The rates of bots leave room for other calls.
update autopost.platforms p set group_rps = r.group_rps, group_chat_rps = r.group_chat_rps
from (values ('telegram', 25, 0.33), ('max', 25, null), ('x', 0.11, null)) r (platform, group_rps, group_chat_rps)
where p.platform = r.platform;
update autopost.platforms p set id_fields = r.id_fields
from (values ('telegram', '{file_id}'::text[]), ('max', '{file_id,attachment_token}'), ('x', '{file_id}')) r (platform, id_fields)
where p.platform = r.platform;

update autopost.platforms p set replies = false, comment_limit = 10000 where p.platform = 'youtube';

-- Waits after transient failures. The most specific row wins: (platform, code), (platform, *), (*, code), (*, *).
-- A row of a workspace replaces that of the installation.
create table autopost.retry_policies (
	platform      text not null,
	code          text not null,
	kind          text not null check (kind in ('exponential', 'ladder')),
	base_ms       bigint not null default 2000 check (base_ms > 0),
	factor        numeric not null default 2 check (factor >= 1),
	cap_ms        bigint not null default 600000 check (cap_ms >= base_ms),
	ladder_ms     bigint[] not null default '{}',
	jitter        numeric not null default 0.2 check (jitter >= 0 and jitter < 1),
	max_attempts  int check (max_attempts > 0), -- null: the setting max_attempts
	costs_attempt boolean not null default true, -- false: the attempt is granted again, at most max_attempts times
	primary key (platform, code),
	check (kind = 'exponential' or cardinality(ladder_ms) > 0)
);
create table autopost.own_retry_policies (
	workspace_id  text not null references autopost.workspaces,
	platform      text not null,
	code          text not null,
	kind          text not null check (kind in ('exponential', 'ladder')),
	base_ms       bigint not null check (base_ms > 0),
	factor        numeric not null check (factor >= 1),
	cap_ms        bigint not null check (cap_ms >= base_ms),
	ladder_ms     bigint[] not null,
	jitter        numeric not null check (jitter >= 0 and jitter < 1),
	max_attempts  int check (max_attempts > 0),
	costs_attempt boolean not null,
	primary key (workspace_id, platform, code),
	check (kind = 'exponential' or cardinality(ladder_ms) > 0)
);
insert into autopost.retry_policies (platform, code, kind, base_ms, cap_ms, ladder_ms, jitter, max_attempts,
	costs_attempt) values
	('*', '*', 'exponential', 2000, 600000, '{}', 0.2, null, true),
	-- The retry uses the new target of the channel.
	('*', 'chat_moved', 'ladder', 2000, 600000, '{1}', 0, 12, false),
	-- The daemon had no time for the call, or the database did not answer it: the platform was not called.
	('*', 'not_started', 'exponential', 5000, 60000, '{}', 0.2, null, false),
	('*', 'not_called', 'exponential', 5000, 60000, '{}', 0.2, null, false),
	-- A full disk is not the fault of the post. Each try may fetch the medium again.
	-- The secret is missing or cannot be read: that is not the fault of the post.
	('*', 'credential_missing', 'exponential', 30000, 30000, '{}', 0.2, null, false),
	('*', 'credential_unavailable', 'exponential', 30000, 600000, '{}', 0.2, null, false),
	('*', 'media_no_room', 'exponential', 30000, 30000, '{}', 0.2, null, false),
	('max', 'attachment.not.ready', 'ladder', 2000, 600000, '{1000,2000,4000,8000,15000,30000}', 0.2, 12, false),
	-- MAX may refuse tokens that it has just issued, for hours (".not.owner"). The medium is not bad.
	('max', 'media_expired', 'ladder', 600000, 3600000, '{600000,3600000}', 0.2, 12, false),
	-- MAX does not state a wait.
	('max', 'max_429', 'exponential', 1000, 600000, '{}', 0.2, null, true),
	-- A call of X may be paid for, so its failures are retried slowly (RTY-09): each of the five waits is used once.
	('x', '*', 'ladder', 60000, 21600000, '{60000,300000,1800000,7200000,21600000}', 0.2, 6, true),
	('x', 'unknown_outcome', 'exponential', 2000, 600000, '{}', 0.2, null, true),
	('x', 'not_started', 'exponential', 5000, 60000, '{}', 0.2, null, false),
	('x', 'not_called', 'exponential', 5000, 60000, '{}', 0.2, null, false),
	('x', 'credential_missing', 'exponential', 30000, 30000, '{}', 0.2, null, false),
	('x', 'credential_unavailable', 'exponential', 30000, 600000, '{}', 0.2, null, false),
	('x', 'media_no_room', 'exponential', 30000, 30000, '{}', 0.2, null, false),
	-- A spending limit of X ends on a stated day, which may be weeks away.
	('x', 'x_no_credits', 'exponential', 3600000, 3600000, '{}', 0.01, null, false),
	('x', 'x_usage_capped', 'exponential', 21600000, 21600000, '{}', 0.2, null, false),
	('x', 'x_daily_limit', 'exponential', 10800000, 21600000, '{}', 0.2, 20, false),
	('x', 'x_automated', 'exponential', 7200000, 21600000, '{}', 0.2, 20, false),
	-- YouTube states no wait for its rates.
	('youtube', 'yt_rate_limited', 'exponential', 1000, 600000, '{}', 0.2, 100, false),
	('youtube', 'yt_serving_rate_limited', 'exponential', 10000, 600000, '{}', 0.2, 100, false),
	('youtube', 'yt_aborted', 'exponential', 2000, 30000, '{}', 0.2, null, true),
	-- A quota of YouTube ends exactly at its midnight, which may be days away.
	('youtube', 'yt_usage_capped', 'exponential', 2000, 600000, '{}', 0.005, 30, false),
	('youtube', 'yt_upload_limit_exceeded', 'exponential', 2000, 600000, '{}', 0.005, 30, true),
	-- An interrupted upload continues where it stopped.
	('youtube', 'yt_interrupted', 'exponential', 2000, 600000, '{}', 0.2, 20, true),
	('youtube', 'lease_expired', 'exponential', 2000, 600000, '{}', 0.2, 20, true),
	('youtube', 'yt_video_not_found', 'ladder', 2000, 600000, '{5000,15000,30000}', 0.2, 12, true),
	-- The schedule that Standard Webhooks recommends: a little over three days.
	('result_webhook', '*', 'ladder', 2000, 600000,
		'{5000,300000,1800000,7200000,18000000,36000000,50400000,72000000,86400000}', 0.2, 10, true);

-- Prices of other paid operations in millionths of a dollar, by the name that the adapter reports. No row: free.
create table autopost.use_prices (
	platform text not null references autopost.platforms (platform),
	use      text not null,
	micros   bigint not null check (micros >= 0),
	primary key (platform, use)
);
insert into autopost.use_prices (platform, use, micros) values
	('x', 'media_metadata', 5000), -- an alternative text
	('x', 'owned_read', 5000); -- a read of the account's own post; 1000 if the account owns the app
