-- +goose Up
-- What X needs: an outcome that is looked up, threads, failures that cost a post no attempt, and a limit to what is spent.

alter table autopost.platforms
	add column settle_seconds int not null default 0 check (settle_seconds >= 0), -- how long after a call the platform may not show what it made: nothing is sent again before
	add column threads boolean not null default false; -- whether each message of a delivery answers the one before
alter table autopost.platforms
	add column post_micros bigint not null default 0 check (post_micros >= 0), -- what a message costs, in millionths of a dollar
	add column link_post_micros bigint not null default 0 check (link_post_micros >= 0); -- and one with a link
update autopost.platforms set settle_seconds = 60, threads = true, post_micros = 15000, link_post_micros = 200000 where platform = 'x';

alter table autopost.retry_policies
	add column costs_attempt boolean not null default true; -- false: what failed says nothing about the post, and the attempt is granted again
insert into autopost.retry_policies (platform, code, kind, base_ms, cap_ms, costs_attempt) values
	('x', 'x_no_credits', 'exponential', 3600000, 3600000, false),
	('x', 'x_usage_capped', 'exponential', 21600000, 21600000, false);

-- What may be spent with a credential in a calendar month (UTC). Without a row there is no limit, and nothing is reckoned.
create table autopost.budgets (
	workspace_id text not null references autopost.workspaces (workspace_id),
	auth_ref     text not null check (auth_ref <> ''),
	month_micros bigint not null check (month_micros >= 0), -- in millionths of a dollar
	created_at   timestamptz not null default now(),
	updated_at   timestamptz not null default now(),
	primary key (workspace_id, auth_ref)
);

-- What claims under a budget cost by the platforms' prices: from the claim on; paid back where certainly nothing was posted.
create table autopost.charges (
	workspace_id text not null,
	delivery_id  uuid not null,
	attempt      int not null,
	auth_ref     text not null,
	charged_at   timestamptz not null,
	micros       bigint not null,
	primary key (workspace_id, delivery_id, attempt)
);
-- What a month has cost: claim, why, plan.
create index charges_month on autopost.charges (workspace_id, auth_ref, charged_at);

-- +goose StatementBegin
do $$
declare
	v_table regclass;
begin
	foreach v_table in array array['autopost.budgets', 'autopost.charges']::regclass[] loop
		execute format('alter table %s enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on %s using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on %s to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd
