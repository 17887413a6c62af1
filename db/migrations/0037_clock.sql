-- +goose Up
-- Whether the database's clock goes as time does: what daemons with a clock of their own have told, and what is to be
-- put right where it jumped.
create table autopost.clock_observers (
	observer     text primary key,
	seen_at      timestamptz not null, -- the database's clock at the last observation
	trusted_from timestamptz not null  -- from when on it bears witness for others: at once where it agreed with them
);

create table autopost.clock_jumps (
	jump_id     uuid primary key,
	observed_at timestamptz not null, -- by the clock after the jump
	jump        interval not null,
	observer    text not null
);

-- What of a workspace is still to follow a jump.
create table autopost.clock_debts (
	workspace_id text not null references autopost.workspaces on delete cascade,
	jump_id      uuid not null,
	jump         interval not null,
	primary key (workspace_id, jump_id)
);

alter table autopost.clock_debts enable row level security;
alter table autopost.clock_debts force row level security;
create policy workspace on autopost.clock_debts using (workspace_id = current_setting('autopost.workspace_id', true));
create policy owner_session on autopost.clock_debts to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '');

insert into autopost.settings (key, value, default_value, meaning) values
	('clock_jump_ms', '5000', '5000', 'by how much more or less time must have gone by for the database than for a daemon for its clock to have jumped'),
	('clock_trust_seconds', '120', '120', 'how old an observation of the database''s clock may be for leases to be ended by it'),
	('clock_slack_seconds', '60', '60', 'how far ahead a time may be, after the clock was put back, to be left as it is');
