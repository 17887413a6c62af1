-- +goose Up
-- Templates, how long texts are measured, and two more platforms.

-- A version is a row and never changes, but for being enabled; the newest enabled one is used. A row of a platform goes before one of '*'.
-- The template named default is taken where neither the post nor the channel names one. Checked by a trigger, whoever writes.
create table autopost.templates (
	workspace_id text not null references autopost.workspaces (workspace_id),
	template_id  text not null,
	platform     text not null default '*',
	version      int not null check (version > 0),
	body         text not null, -- "{title}, {summary?}"; {text} and {link} are the post's own; {{ and }} are braces
	defaults     jsonb not null default '{}' check (jsonb_typeof(defaults) = 'object'),
	vars         text[], -- what the body and a post may name; null: what the body and the defaults name
	sanitize     text[] not null default '{}', -- vars whose values lose @mentions and control characters
	parse_mode   text not null default 'None' check (parse_mode in ('HTML', 'Markdown', 'None')), -- of the body
	max_length   int check (max_length > 0), -- in the platform's unit; null: the platform's template_limit
	enabled      boolean not null default true,
	created_at   timestamptz not null default now(),
	primary key (workspace_id, template_id, platform, version)
);
alter table autopost.templates enable row level security, force row level security;
create policy workspace on autopost.templates using (workspace_id = current_setting('autopost.workspace_id', true));
create policy owner_session on autopost.templates to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '');

alter table autopost.platforms
	add column length_unit text not null default 'utf16' check (length_unit in ('utf16', 'weighted', 'bytes')), -- what text_limit and caption_limit count
	add column template_limit int,                 -- what a template is cut to, where it does not say itself
	add column title_limit int,                    -- characters of a title; null: posts have none
	add column forbidden text not null default '', -- characters that the platform refuses; they are left out
	add column needs_media boolean not null default false,
	add column max_parts int not null default 20;   -- full messages beyond which a long text is not split

-- What came with posts to route them and is no part of them: [{"trace_id", "routing", "tags"}], in the order of the posts.
alter table autopost.ingest_runs add column hints jsonb not null default '[]';

-- What a channel says about texts: long_text, what becomes of one that is over a limit (without it the delivery fails); utm, parameters
-- that every http and https link there bears.
alter table autopost.channels
	add constraint channels_long_text check (coalesce(settings -> 'long_text', '"split"') in ('"truncate"', '"split"', '"caption_reply"')),
	add constraint channels_utm check (
		not settings @? '$.utm ? (@.type() != "object")'
		and not settings @? '$.utm.keyvalue() ? (!(@.key like_regex "^[A-Za-z0-9_]+$") || @.value.type() != "string")');

-- x takes 280 in its own weights: ten stay in reserve for what only its own count knows. youtube takes a video with title and description.
insert into autopost.platforms
	(platform, dialect, text_limit, caption_limit, counts_markup, media_per_step, together, media_bytes, album_buttons, item_captions, buttons_per_row, button_rows,
	length_unit, template_limit, title_limit, forbidden, needs_media)
values
	('x', 'plain', 270, 270, false, 4, '[["image"]]', '{"image": 5242880, "video": 536870912, "animation": 15728640}', false, false, 0, 0,
		'weighted', 260, null, U&'\FFFE\FEFF\FFFF', false),
	('youtube', 'plain', 5000, 5000, false, 1, '[]', '{"video": 274877906944}', false, false, 0, 0,
		'bytes', null, 100, '<>', true);
