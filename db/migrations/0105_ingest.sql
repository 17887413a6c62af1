-- +goose Up
-- Ingest: sources, endpoints, runs, receipts, submissions, and updates of bots.

create table autopost.pull_sources (
	workspace_id text not null references autopost.workspaces (workspace_id),
	source_id    text not null check (source_id <> ''),
	kind         text not null check (kind in ('rss', 'api', 'db', 'filebus')),
	config_json  jsonb not null default '{}' check (jsonb_typeof(config_json) = 'object'),
	enabled      boolean not null default true,
	created_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	stopped      jsonb, -- {"code", "message", "at"}: why the engine disabled it; enabling clears it
	primary key (workspace_id, source_id)
);
create index pull_sources_stopped on autopost.pull_sources (workspace_id, source_id) where stopped is not null;

create table autopost.pull_cursors (
	workspace_id text not null,
	source_id    text not null,
	cursor_json  jsonb not null default '{}',
	next_poll_at timestamptz not null default now(), -- also the lease of the current poll
	failures     int not null default 0, -- in a row
	last_error   jsonb,
	updated_at   timestamptz not null default now(),
	last_poll_at timestamptz, -- end of the last poll, successful or not
	leased_by    text, -- run id of the daemon that polls now; its lease ends at leased_until
	leased_until timestamptz,
	primary key (workspace_id, source_id),
	foreign key (workspace_id, source_id) references autopost.pull_sources (workspace_id, source_id) on delete cascade
);
create index pull_cursors_leased on autopost.pull_cursors (workspace_id, source_id) where leased_by is not null;
create index pull_cursors_failing on autopost.pull_cursors (workspace_id, source_id) where failures > 0;

create table autopost.workspace_endpoints (
	workspace_id         text not null references autopost.workspaces (workspace_id),
	endpoint_id          text not null check (endpoint_id <> ''),
	kind                 text not null check (kind in ('webhook_push', 'bot_webhook', 'pull_source')),
	source_id            text,
	secret_hash          text check (secret_hash ~ '^[0-9a-f]{64}$'),
	signing_ref          text,
	enabled              boolean not null default true,
	ingress_rps          numeric not null default 5 check (ingress_rps > 0),
	max_payload_bytes    int not null default 262144 check (max_payload_bytes > 0),
	hash_drop_window_sec int not null default 10 check (hash_drop_window_sec >= 0),
	moderated            boolean not null default false,
	meta                 jsonb not null default '{}',
	admitted_until       timestamptz, -- rate limit: admitted items use ingress_rps up to this time
	created_at           timestamptz not null default now(),
	updated_at           timestamptz not null default now(),
	old_signing_ref      text, -- the key before signing_ref
	old_signing_until    timestamptz, -- the old key is valid until then
	rotated_from         text, -- the endpoint that this one replaces; its receipts count here too
	awaits_secret        boolean not null default false, -- becomes enabled when it gets a secret
	primary key (workspace_id, endpoint_id),
	foreign key (workspace_id, source_id) references autopost.pull_sources (workspace_id, source_id),
	constraint workspace_endpoints_check check ((kind = 'pull_source') = (source_id is not null)),
	-- A disabled endpoint may lack its secret: configuration files do not contain secrets.
	constraint workspace_endpoints_secret check (
		(kind = 'pull_source') = (secret_hash is null) or (kind = 'webhook_push' and signing_ref is not null)
			or (kind <> 'pull_source' and not enabled)),
	constraint workspace_endpoints_check2 check ((old_signing_ref is null) = (old_signing_until is null)),
	constraint workspace_endpoints_awaits check (not (awaits_secret and enabled))
);
create unique index workspace_endpoints_source on autopost.workspace_endpoints (workspace_id, source_id)
	where enabled and kind = 'pull_source';

-- An ingest run: one request or poll, and its result.
create table autopost.ingest_runs (
	workspace_id text not null references autopost.workspaces (workspace_id),
	run_id       uuid not null,
	kind         text not null check (kind in ('push', 'pull', 'api', 'command', 'event', 'file', 'page', 'recurrence')),
	endpoint_id  text,
	source_id    text,
	started_at   timestamptz not null default now(),
	finished_at  timestamptz,
	stats_json   jsonb not null default '{}',
	items        jsonb not null default '[]', -- the answers, in the order of the posts
	hints        jsonb not null default '[]', -- [{"trace_id", "routing", "tags"}]: routing that is not part of the post
	primary key (workspace_id, run_id)
);
create index ingest_runs_started on autopost.ingest_runs (workspace_id, started_at);
create index ingest_runs_kind on autopost.ingest_runs (workspace_id, kind, run_id);
create index ingest_runs_source on autopost.ingest_runs (workspace_id, source_id, run_id) where source_id is not null;

-- Receipts of posts: a repeated source_ref is a duplicate, and the repeated payload_hash of a push.
create table autopost.ingress_receipts (
	workspace_id  text not null,
	receipt_id    uuid not null,
	endpoint_id   text not null,
	endpoint_kind text not null check (endpoint_kind in ('webhook_push', 'bot_webhook', 'pull_source')),
	source_ref    text,
	payload_hash  text not null,
	received_at   timestamptz not null default now(),
	expires_at    timestamptz not null,
	run_id        uuid,
	answer        jsonb, -- of the first request
	primary key (workspace_id, receipt_id),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id)
);
create unique index ingress_receipts_source_ref on autopost.ingress_receipts (workspace_id, endpoint_id, source_ref)
	where source_ref is not null;
create index ingress_receipts_hash on autopost.ingress_receipts
	(workspace_id, endpoint_id, payload_hash, received_at desc);
create index ingress_receipts_expiry on autopost.ingress_receipts (expires_at);

-- Receipts of items of sources.
create table autopost.pull_receipts (
	workspace_id text not null,
	source_id    text not null,
	source_ref   text not null,
	run_id       uuid,
	received_at  timestamptz not null default now(),
	expires_at   timestamptz not null,
	primary key (workspace_id, source_id, source_ref),
	foreign key (workspace_id, source_id) references autopost.pull_sources (workspace_id, source_id) on delete cascade
);
create index pull_receipts_expiry on autopost.pull_receipts (expires_at);

-- Ids of accepted signed requests with the first answer. A repeated request gets the same answer.
create table autopost.signed_requests (
	workspace_id text not null,
	endpoint_id  text not null,
	webhook_id   text not null check (octet_length(webhook_id) between 1 and 256),
	received_at  timestamptz not null,
	expires_at   timestamptz not null,
	results      jsonb,
	primary key (workspace_id, endpoint_id, webhook_id),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id)
);
create index signed_requests_expiry on autopost.signed_requests (expires_at);

-- Drop counters: one row per endpoint and action. A few rejected requests per second have a run of their
-- own; all others share one run, whose event is written when the window ends.
create table autopost.ingress_floods (
	workspace_id text not null,
	endpoint_id  text not null,
	action       text not null check (action in ('ingress_rate_limited', 'ingress_payload_rejected',
		'ingress_dedup_dropped')),
	second       timestamptz not null default '-infinity', -- the second of recorded
	recorded     int not null default 0, -- requests of that second with a run of their own
	run_id       uuid, -- the shared run
	opened_at    timestamptz,
	meta         jsonb, -- of the first request of the shared run
	primary key (workspace_id, endpoint_id, action),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id)
		on delete cascade,
	check ((run_id is null) = (opened_at is null))
);

-- Accepted posts that wait for media or for a decision.
create table autopost.submissions (
	workspace_id  text not null references autopost.workspaces (workspace_id),
	submission_id uuid not null,
	endpoint_id   text not null,
	kind          text not null check (kind in ('push', 'pull', 'api', 'command', 'event', 'file', 'page', 'recurrence')),
	status        text not null check (status in ('new', 'fetching', 'pending', 'skipped', 'enqueued', 'rejected',
		'expired', 'failed')),
	raw_payload   jsonb not null,
	route_tags    text[] not null default '{}',
	source_ref    text,
	run_id        uuid not null,
	trace_id      uuid not null,
	attempt       int not null default 0,
	next_attempt_at timestamptz not null default now(),
	claim_token   text,
	claimed_by    text, -- run id of the daemon that has the lease
	lease_until   timestamptz,
	last_error    jsonb,
	message_id    uuid,
	answer        jsonb, -- of the enqueue
	created_at    timestamptz not null default now(),
	updated_at    timestamptz not null default now(),
	moderated     boolean not null default false, -- a person decides about it
	channels      text[], -- only these channels of its message; null: all that routing gives
	replaces      uuid, -- the message whose channels and times it takes
	plan          jsonb, -- what a decision is about: {"renderings": [{"key", "platform", "text", …}], "media"}
	digest        text check (digest ~ '^[0-9a-f]{64}$'), -- of the plan
	author        text, -- identity of the person that submitted it
	edited_by     text, -- identity of the last editor
	decision      text check (decision in ('approve', 'reject')),
	decided_by    text,
	decided_at    timestamptz,
	decision_source text,
	decision_reason text,
	expires_at    timestamptz, -- a pending one expires then
	event         jsonb, -- the domain event as received: {"event", "payload", "source_ref"}
	event_type    text, -- image, video, combat, or the name of an own event type
	event_facts   jsonb, -- what follows from the event: see event_facts
	hash          text check (hash ~ '^[0-9a-f]{64}$'), -- of the event; see event_hashes
	duplicate_of  uuid, -- the submission that has the hash
	primary key (workspace_id, submission_id),
	constraint submissions_decision check ((decision is null) = (decided_at is null)),
	constraint submissions_pending check (status <> 'pending' or (moderated and digest is not null and decision is null)),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id),
	check ((claim_token is null) = (lease_until is null)),
	check ((status = 'enqueued') = (answer is not null)),
	constraint submissions_event check ((kind = 'event') = (event is not null)
		and (event is null) = (event_type is null) and (event is null) = (event_facts is null)
		and (event is null) = (hash is null))
);
create index submissions_events on autopost.submissions (workspace_id, submission_id desc) where kind = 'event';
create index submissions_due on autopost.submissions (workspace_id, next_attempt_at) where status = 'fetching';
create index submissions_claimed on autopost.submissions (workspace_id, submission_id) where claim_token is not null;
create index submissions_run on autopost.submissions (workspace_id, run_id);
create index submissions_updated on autopost.submissions (workspace_id, updated_at);
-- Their media must stay.
create index submissions_open on autopost.submissions (workspace_id, submission_id)
	where status in ('new', 'fetching', 'pending');
-- For lists, counts and alerts by status.
create index submissions_status on autopost.submissions (workspace_id, status, submission_id desc);

-- For expire_submissions.
create index submissions_expiry on autopost.submissions (workspace_id, expires_at) where status = 'pending';
-- Parts of a message that wait for a decision.
create index submissions_parts on autopost.submissions (workspace_id, message_id) where status = 'pending';

-- Approvals and rejections, from every way to decide. Each nonce of a source counts once.
create table autopost.approvals (
	workspace_id text not null references autopost.workspaces (workspace_id),
	approval_id  uuid not null,
	subject      text not null check (subject ~ '^(submission|job):.'),
	platform     text not null default '*',
	nonce        text not null check (nonce <> '' and length(nonce) <= 200),
	source       text not null check (source <> ''), -- api, page, command, telegram, max, file:SOURCE
	approver     text not null check (approver <> ''), -- identity of the person
	decision     text not null check (decision in ('approve', 'reject')),
	digest       text, -- of the plan that it is about
	reason       text,
	voided_at    timestamptz, -- the plan changed before the decision
	decided_at   timestamptz not null,
	payload_digest text, -- of the payload file that it names; null: of the first complete one
	file_digest  text, -- of the approval file
	stated_by    text, -- approved_by of the file; shown, no identity
	expires_at   timestamptz, -- until then it may wait for its job
	primary key (workspace_id, approval_id),
	unique (workspace_id, subject, platform, nonce)
);

-- Chats whose members decide about posts.
create table autopost.moderation_chats (
	workspace_id text not null references autopost.workspaces (workspace_id),
	chat_id      text not null check (chat_id <> ''), -- name of this row
	auth_ref     text not null check (auth_ref <> ''), -- the bot; its platform is that of the chat
	target_id    text not null check (target_id <> ''), -- as channels.target_id
	users        text[] not null default '{}', -- ids of the people who may decide; empty: any member
	enabled      boolean not null default true,
	next_at      timestamptz not null default '-infinity', -- no message to the chat before
	paid_until   timestamptz not null default '-infinity', -- the rate of the chat is used up to this time
	sent_at      timestamptz, -- last message
	failures     int not null default 0, -- in a row
	last_error   jsonb,
	created_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, chat_id),
	unique (workspace_id, auth_ref, target_id)
);

-- Messages that ask for a decision. Each is about one plan; its buttons have one nonce each.
create table autopost.moderation_messages (
	workspace_id  text not null,
	message_id    uuid not null,
	chat_id       text not null,
	submission_id uuid not null,
	digest        text not null, -- of the plan that it shows
	approve_nonce text not null check (approve_nonce ~ '^[A-Za-z0-9_-]{22}$'),
	reject_nonce  text not null check (reject_nonce ~ '^[A-Za-z0-9_-]{22}$'),
	platform      text not null,
	auth_ref      text not null,
	target_id     text not null,
	text          text not null,
	-- pending -> sending -> open -> closing -> closed; failed: the platform refuses the message itself
	status        text not null check (status in ('pending', 'sending', 'open', 'closing', 'closed', 'failed')),
	provider_ids  text[] not null default '{}', -- several after an unknown outcome
	attempt       int not null default 0, -- of the present step
	unknowns      int not null default 0, -- sends with an unknown outcome
	claim_token   text,
	lease_until   timestamptz,
	error         jsonb,
	created_at    timestamptz not null,
	sent_at       timestamptz,
	closed_at     timestamptz,
	primary key (workspace_id, message_id),
	foreign key (workspace_id, chat_id) references autopost.moderation_chats (workspace_id, chat_id) on delete cascade,
	foreign key (workspace_id, submission_id) references autopost.submissions (workspace_id, submission_id)
		on delete cascade,
	check ((claim_token is null) = (lease_until is null))
);
create unique index moderation_messages_asked on autopost.moderation_messages
	(workspace_id, chat_id, submission_id, digest, auth_ref, target_id) where status <> 'closed';
create unique index moderation_messages_approve on autopost.moderation_messages (workspace_id, approve_nonce);
create unique index moderation_messages_reject on autopost.moderation_messages (workspace_id, reject_nonce);
create index moderation_messages_live on autopost.moderation_messages (workspace_id, chat_id, created_at)
	where status in ('pending', 'sending', 'open', 'closing');
create index moderation_messages_submission on autopost.moderation_messages (workspace_id, submission_id);

-- Pressed buttons, with the answer to the person.
create table autopost.moderation_presses (
	workspace_id  text not null references autopost.workspaces (workspace_id),
	press_id      uuid not null,
	message_id    uuid, -- null: the button is not known, or no longer
	submission_id uuid,
	platform      text not null,
	auth_ref      text not null,
	callback_id   text not null, -- identifies the press on the platform
	approver      text not null, -- identity of the person
	name          text, -- of the person, by the platform
	decision      text check (decision in ('approve', 'reject')),
	result        text not null,
	answer        text not null,
	status        text not null check (status in ('pending', 'sending', 'answered', 'failed')),
	attempt       int not null default 0,
	due_at        timestamptz not null,
	claim_token   text,
	lease_until   timestamptz,
	error         jsonb,
	pressed_at    timestamptz not null,
	answered_at   timestamptz,
	primary key (workspace_id, press_id),
	foreign key (workspace_id, submission_id) references autopost.submissions (workspace_id, submission_id)
		on delete cascade,
	check ((status = 'sending') = (claim_token is not null and lease_until is not null))
);
create index moderation_presses_due on autopost.moderation_presses (workspace_id, due_at)
	where status in ('pending', 'sending');
create index moderation_presses_person on autopost.moderation_presses (workspace_id, approver, pressed_at);
create index moderation_presses_submission on autopost.moderation_presses (workspace_id, submission_id);
create index moderation_presses_stray on autopost.moderation_presses (workspace_id, pressed_at)
	where submission_id is null;

-- Domain events. The hash ledger: one submission has the hash of an event until it ends without a post.
create table autopost.event_hashes (
	workspace_id  text not null references autopost.workspaces (workspace_id),
	event_type    text not null,
	hash          text not null,
	submission_id uuid not null,
	expires_at    timestamptz not null,
	primary key (workspace_id, event_type, hash)
);
create index event_hashes_expiry on autopost.event_hashes (workspace_id, expires_at);

-- Names of avatars, for {avatar_name} of an event without one.
create table autopost.avatars (
	workspace_id text not null references autopost.workspaces (workspace_id),
	avatar_id    text not null check (avatar_id <> ''),
	name         text not null check (name <> ''),
	primary key (workspace_id, avatar_id)
);

-- Own types of domain events. The three of Global X are built in.
create table autopost.event_types (
	workspace_id text not null references autopost.workspaces (workspace_id),
	event        text not null check (event <> ''),
	template_id  text not null,
	enabled      boolean not null default true,
	moderated    boolean not null default false,
	media_path   text, -- JSON path to the URL of a medium in the payload; null: no medium
	tags         text[] not null default '{}',
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, event)
);

-- Configuration of Global X: only the fields that were set.
create table autopost.x_post_config (
	workspace_id text not null references autopost.workspaces (workspace_id),
	key          text not null default 'global' check (key = 'global'),
	config       jsonb not null default '{}' check (jsonb_typeof(config) = 'object'),
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, key)
);

-- Row of claim_submissions. Attributes may be appended, never changed.
create type autopost.claimed_submission as (
	workspace_id  text,
	submission_id uuid,
	endpoint_id   text,
	kind          text,
	attempt       int,
	claim_token   text,
	lease_until   timestamptz,
	raw_payload   jsonb,
	trace_id      uuid
);

-- Row of list_due_sources. Attributes may be appended, never changed.
create type autopost.due_source as (
	workspace_id text,
	source_id    text,
	endpoint_id  text,
	kind         text,
	config_json  jsonb,
	cursor_json  jsonb
);

-- Updates of bots as they came, each once: a platform repeats an update without an answer.
create table autopost.bot_updates (
	workspace_id text not null references autopost.workspaces (workspace_id),
	auth_ref     text not null, -- the bot; its updates count once across endpoints
	update_key   text not null, -- identifies a repeated update
	endpoint_id  text not null,
	kind         text not null, -- my_chat_member, message_created, …
	chat_id      text,
	payload      jsonb, -- null: the chat exceeded its updates per minute
	received_at  timestamptz not null,
	expires_at   timestamptz not null,
	primary key (workspace_id, auth_ref, update_key)
);
-- For receive_update: updates of a chat in the last minute.
create index bot_updates_chat on autopost.bot_updates (workspace_id, auth_ref, chat_id, received_at)
	where chat_id is not null;
create index bot_updates_expiry on autopost.bot_updates (expires_at);

-- Chats that bots are or were in, from updates of the platforms: candidates for channels.
create table autopost.discovered_chats (
	workspace_id text not null references autopost.workspaces (workspace_id),
	platform     text not null references autopost.platforms (platform),
	auth_ref     text not null,
	target_id    text not null, -- as channels.target_id, without a thread
	title        text not null default '',
	username     text, -- without @
	kind         text not null default 'chat' check (kind in ('channel', 'chat', 'dialog')),
	may_post     boolean, -- null: unknown, the platform must be asked
	reason       text, -- why the bot may not post
	rights_at    timestamptz not null default '-infinity', -- time of may_post by the clock of the platform
	rights_seq   bigint not null default 0, -- order of updates within one second
	migrated_to  text, -- the supergroup that replaced it
	first_seen   timestamptz not null,
	last_seen    timestamptz not null,
	left_at      timestamptz, -- the bot left the chat
	ask_at       timestamptz not null default '-infinity', -- earliest time of the next question; also its lease
	primary key (workspace_id, platform, auth_ref, target_id)
);

-- Webhook subscriptions of bots: how a platform sends updates to an endpoint.
create table autopost.bot_subscriptions (
	workspace_id  text not null,
	endpoint_id   text not null,
	next_check_at timestamptz not null default '-infinity', -- also the lease of the current check
	next_hash     text check (next_hash ~ '^[0-9a-f]{64}$'), -- of the secret that the platform gets now
	given_hash    text check (given_hash ~ '^[0-9a-f]{64}$'), -- of the secret that the platform has
	url           text,
	checked_at    timestamptz,
	subscribed_at timestamptz,
	why           text, -- reason of the last subscription
	failures      int not null default 0, -- failed checks and subscriptions in a row
	error         jsonb,
	primary key (workspace_id, endpoint_id),
	foreign key (workspace_id, endpoint_id) references autopost.workspace_endpoints (workspace_id, endpoint_id)
		on delete cascade
);
