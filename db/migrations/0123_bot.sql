-- +goose Up
-- The shop bot: rules answer customers in dialogs. A bot is a provider (telegram, max) and its credential.

-- Versions of the rules; of each at most one is enabled.
create table autopost.bot_rules (
	workspace_id      text not null references autopost.workspaces (workspace_id),
	rule_id           text not null check (rule_id <> ''),
	version           int not null check (version >= 1),
	enabled           boolean not null default true,
	intent            text not null default '',
	state             text check (state not in ('', 'operator')), -- applies in this state only; null: in any
	pattern           jsonb not null default '{"keywords": [], "mode": "contains"}'
		check (jsonb_typeof(pattern -> 'keywords') = 'array' and coalesce(pattern ->> 'mode', 'contains') = 'contains'),
	priority          int not null default 0, -- the higher one wins
	max_turns         int not null default 5 check (max_turns between 1 and 1000),
	response_template text not null check (response_template <> ''),
	buttons           jsonb check (jsonb_typeof(buttons) = 'array'), -- rows of {text, url} or {text, payload}
	next_state        text check (next_state <> ''), -- null: the state stays
	created_at        timestamptz not null default now(),
	primary key (workspace_id, rule_id, version)
);
create unique index bot_rules_enabled on autopost.bot_rules (workspace_id, rule_id) where enabled;

-- Messages of customers, once each. A received row waits for its answer.
create table autopost.bot_inbox (
	workspace_id        text not null references autopost.workspaces (workspace_id),
	provider            text not null,
	auth_ref            text not null default '',
	chat_id             text not null,
	provider_message_id text not null, -- of a message; callback:ID, start:TIME
	inbox_id            uuid not null,
	ts                  timestamptz not null,
	kind                text not null default 'message' check (kind in ('message', 'callback', 'start')),
	status              text not null default 'received' check (status in ('received', 'processed')),
	message             jsonb, -- what was said, until it is processed
	tries               int not null default 0 check (tries between 0 and 5), -- failures; the fifth is the last
	next_at             timestamptz not null, -- earliest next try
	error               jsonb, -- of the last failure
	trace_id            uuid not null,
	processed_at        timestamptz,
	primary key (workspace_id, provider, auth_ref, chat_id, provider_message_id),
	unique (workspace_id, inbox_id),
	constraint bot_inbox_processed check ((status = 'processed') = (processed_at is not null)),
	constraint bot_inbox_forgets check (status = 'received' or message is null)
);
create index bot_inbox_received on autopost.bot_inbox (workspace_id, next_at) where status = 'received' and tries < 5;
create index bot_inbox_chat on autopost.bot_inbox (workspace_id, provider, auth_ref, chat_id, ts, inbox_id)
	where status = 'received' and tries < 5;
create index bot_inbox_pace on autopost.bot_inbox (workspace_id, provider, auth_ref, chat_id, processed_at)
	where processed_at is not null;
create index bot_inbox_given_up on autopost.bot_inbox (workspace_id, next_at) where status = 'received' and tries = 5;
create index bot_inbox_age on autopost.bot_inbox (workspace_id, ts);

-- Messages of the bot. Each chat gets them one by one in the order of their ids.
create table autopost.bot_outbox (
	workspace_id                text not null references autopost.workspaces (workspace_id),
	provider                    text not null,
	auth_ref                    text not null default '',
	chat_id                     text not null, -- receives it
	inbound_provider_message_id text not null, -- what it answers; CHAT/ID for a message of another chat
	reply_id                    uuid not null,
	kind                        text not null default 'reply' check (kind in ('reply', 'relay')),
		-- relay: a person's words
	about_chat_id               text, -- the customer, in the operator's chat
	response_hash               text not null, -- SHA-256 of the rendered text
	rendered_text               text not null, -- masked after its end
	render_meta                 jsonb not null,
	callback_id                 text, -- the pressed button that it answers
	status                      text not null default 'pending'
		check (status in ('pending', 'sending', 'retry', 'sent', 'failed_permanent', 'dead')),
	attempt                     int not null default 0 check (attempt >= 0), -- claims that count
	next_at                     timestamptz not null, -- earliest claim; of a sending row: end of its lease
	claim_token                 text,
	claimed_by                  text,
	claimed_at                  timestamptz,
	send_at                     timestamptz, -- reserved slot
	started_at                  timestamptz, -- start of the call of this claim
	last_call_at                timestamptz, -- time of the last call, by its slot
	unknown_outcomes            int not null default 0 check (unknown_outcomes between 0 and 2),
	last_error                  jsonb,
	settled                     jsonb, -- token and answer of the last commit, for a repeated one
	provider_message_id         text,
	sent_at                     timestamptz,
	trace_id                    uuid not null,
	created_at                  timestamptz not null,
	finished_at                 timestamptz,
	primary key (workspace_id, reply_id),
	unique (workspace_id, provider, auth_ref, chat_id, inbound_provider_message_id),
	constraint bot_outbox_claimed check ((status = 'sending') = (claim_token is not null)),
	constraint bot_outbox_finished check ((status in ('sent', 'failed_permanent', 'dead')) = (finished_at is not null)),
	constraint bot_outbox_sent check ((status = 'sent') = (sent_at is not null))
);
create index bot_outbox_open on autopost.bot_outbox (workspace_id, provider, auth_ref, chat_id, reply_id)
	where status in ('pending', 'sending', 'retry');
create index bot_outbox_due on autopost.bot_outbox (workspace_id, next_at) where status in ('pending', 'sending',
	'retry');
create index bot_outbox_pace on autopost.bot_outbox (workspace_id, provider, auth_ref, chat_id, last_call_at)
	where last_call_at is not null;
create index bot_outbox_sent on autopost.bot_outbox (workspace_id, provider, auth_ref, chat_id, provider_message_id)
	where provider_message_id is not null;
create index bot_outbox_about on autopost.bot_outbox (workspace_id, provider, auth_ref, about_chat_id)
	where about_chat_id is not null;
create index bot_outbox_failed on autopost.bot_outbox (workspace_id, finished_at)
	where status in ('failed_permanent', 'dead');
create index bot_outbox_age on autopost.bot_outbox (workspace_id, finished_at) where finished_at is not null;

-- The state of each dialog.
create table autopost.bot_state (
	workspace_id text not null references autopost.workspaces (workspace_id),
	provider     text not null,
	auth_ref     text not null default '',
	chat_id      text not null,
	state        text not null default 'default' check (state <> ''),
	context      jsonb not null default '{}', -- turns, the owner of the state, texts by the name of their state
	expires_at   timestamptz, -- then it is default again; null: never
	updated_at   timestamptz not null,
	primary key (workspace_id, provider, auth_ref, chat_id)
);
create index bot_state_expiry on autopost.bot_state (workspace_id, (coalesce(expires_at, updated_at)));

-- Messages and decisions, with personal data masked.
create table autopost.bot_logs (
	workspace_id                text not null references autopost.workspaces (workspace_id),
	id                          uuid not null,
	ts                          timestamptz not null,
	provider                    text not null,
	auth_ref                    text not null default '',
	chat_id                     text not null,
	kind                        text not null check (kind in
		('matched', 'fallback', 'guarded', 'escalated', 'relayed', 'operator', 'handed_back', 'edited')),
	inbound_provider_message_id text not null,
	message_text                text,
	matched_rule_id             text,
	rule_version                int,
	state_before                text,
	state_after                 text,
	response_preview            text,
	meta                        jsonb not null default '{}', -- trace_id, idempotency_key (the reply), language, adapter
	primary key (workspace_id, id),
	constraint bot_logs_rule check ((matched_rule_id is null and rule_version is null)
		or (matched_rule_id is not null and rule_version is not null))
);
create index bot_logs_chat on autopost.bot_logs (workspace_id, provider, auth_ref, chat_id, ts, id);
create index bot_logs_ts on autopost.bot_logs (workspace_id, ts, id);
create index bot_logs_unmatched on autopost.bot_logs (workspace_id, ts)
	where kind = 'fallback' or kind = 'escalated' and matched_rule_id is null;
create unique index bot_logs_edits on autopost.bot_logs (workspace_id, provider, auth_ref, chat_id,
	inbound_provider_message_id) where kind = 'edited';

-- A claimed message of the bot, in the words of claimed_delivery.
create type autopost.claimed_reply as (
	workspace_id                text,
	reply_id                    uuid,
	inbound_provider_message_id text, -- what it answers
	platform                    text,
	target_id                   text, -- the chat
	auth_ref                    text,
	rate_group                  text,
	attempt                     int, -- number of this attempt, from 1
	claim_token                 text,
	lease_until                 timestamptz,
	send_at                     timestamptz, -- reserved slot; null without a rate limit
	rendered_text               text, -- send it verbatim
	render_meta                 jsonb, -- its one step, parse mode, buttons
	payload                     jsonb, -- an empty post
	settings                    jsonb, -- empty
	trace_id                    uuid,
	on_unknown                  text, -- reconcile
	unknown_outcomes            int,
	last_call_at                timestamptz, -- start of the last call; null before the first
	last_provider_message_id    text, -- newest known message of the bot in the chat
	known_posts                 jsonb, -- as in claimed_delivery; null without an unknown outcome
	callback_id                 text -- the pressed button to answer; null without one
);

-- +goose StatementBegin
do $$
declare
	v_table text;
begin
	foreach v_table in array array['bot_rules', 'bot_inbox', 'bot_outbox', 'bot_state', 'bot_logs'] loop
		execute format('alter table autopost.%I enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on autopost.%I
			using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on autopost.%I to autopost_owner
			using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd
