-- Helpers for contracts: a small data set and short functions that call the public functions.
-- Included after fake_clock.sql.
-- Workspace w with the endpoint in. Tests create channels; more rows are written as an operator would.
insert into autopost.workspaces (workspace_id) values ('w');
-- Groups have no limit but the one that a test gives them.
create table test.published as select p.platform, p.group_rps from autopost.platforms p;
update autopost.platforms set group_rps = null;
create function test.publish() returns void
language sql
as $$
-- The platforms publish their limits of rate groups again.
update autopost.platforms p set group_rps = t.group_rps from test.published t where t.platform = p.platform
$$;
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps)
values ('w', 'in', 'webhook_push', repeat('a', 64), 1000);

create function test.channel(
	p_channel_id text, p_rate_rps numeric default null, p_max_parallel int default 1,
		p_platform text default 'telegram', p_rate_group text default 'bot'
) returns void
language sql
as $$
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps,
	max_parallel)
values ('w', p_channel_id, p_platform, '@' || p_channel_id, p_rate_group, p_rate_group, p_rate_rps, p_max_parallel)
$$;

create function test.bind(p_auth_ref text default 'bot', p_platform text default 'telegram') returns void
language sql
as $$
-- Binds a credential to a variable.
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
values ('w', p_auth_ref, p_platform, 'env:SECRET')
$$;

create function test.set(p_key text, p_value jsonb) returns jsonb
language sql
as $$
-- Changes a setting.
select autopost.apply_settings(jsonb_build_object(p_key, p_value), 'test', 'test', false)
$$;

create function test.post(p_raw jsonb) returns jsonb
language sql
as $$
-- Enqueues a raw payload; its answer.
select autopost.enqueue_messages_and_deliveries('w', 'in', 'api', p_raw)
$$;

create function test.say(p_text text) returns jsonb
language sql
as $$
select test.post(jsonb_build_object('text', p_text))
$$;

create function test.posts(p_text text, p_count int, p_routing jsonb default '{}') returns void
language sql
as $$
-- Enqueues "text 1", "text 2", … in one batch, so that their order is certain, and lets a
-- millisecond pass: all are due.
select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api', jsonb_agg(
	jsonb_build_object('text', p_text || ' ' || n, 'routing', p_routing) order by n))
from generate_series(1, p_count) n;
select test.tick('1 millisecond')
$$;

create function test.claim(p_limit int default 100, p_run_id text default 'run-1')
	returns setof autopost.claimed_delivery
language sql
as $$
select c.* from autopost.claim_deliveries('w', p_run_id, p_limit) c
$$;

create function test.claimed(p_limit int default 100, p_run_id text default 'run-1') returns text[]
language sql
as $$
-- Claims, and names the channels that got something, in the order of the answer.
select coalesce(array_agg(c.channel_id), '{}') from test.claim(p_limit, p_run_id) c
$$;

create function test.ready_workspaces(p_after text, p_limit int) returns text[]
language sql
as $$
-- Workspaces with work, after the one that was served last.
select array(select jsonb_array_elements_text(autopost.ready_work(p_after, p_limit, '[]') -> 'workspaces'))
$$;

create function test.next_wake() returns bigint
language sql
as $$
-- Milliseconds until there is something to claim: null when nothing waits.
select (autopost.ready_work('', 1, '[]') ->> 'next_wake_ms')::bigint
$$;

create function test.row(p_channel_id text) returns autopost.deliveries
language sql
as $$
-- The newest delivery of a channel: of those enqueued at different instants.
select d from autopost.deliveries d
where d.workspace_id = 'w' and d.channel_id = p_channel_id
order by d.delivery_id desc limit 1
$$;

create function test.channel_row(p_channel_id text) returns autopost.channels
language sql
as $$
select c from autopost.channels c where c.workspace_id = 'w' and c.channel_id = p_channel_id
$$;

create function test.gate(p_channel_id text) returns autopost.channel_gates
language sql
as $$
select g from autopost.channel_gates g where g.workspace_id = 'w' and g.channel_id = p_channel_id
$$;

create function test.start(p_channel_id text) returns jsonb
language sql
as $$
-- Begins the call of the channel's newest delivery under its present claim.
select autopost.start_call('w', r.delivery_id, r.claim_token) from test.row(p_channel_id) r
$$;

create function test.commit(p_channel_id text, p_outcome jsonb) returns jsonb
language sql
as $$
-- Commits an outcome for the channel's newest delivery under its present claim.
select autopost.commit_outcome('w', r.delivery_id, r.claim_token, p_outcome) from test.row(p_channel_id) r
$$;

create function test.sent(p_provider_message_id text) returns jsonb
language sql
as $$
select jsonb_build_object('ok', true, 'provider_message_id', p_provider_message_id)
$$;

create function test.failure(p_category text, p_scope text, p_code text, p_more jsonb default '{}') returns jsonb
language sql
as $$
-- The outcome of a failed call.
select jsonb_build_object('ok', false, 'error', jsonb_build_object('category', p_category, 'scope', p_scope, 'code',
	p_code, 'known', true) || p_more)
$$;

create function test.round(p_channel_id text, p_outcome jsonb) returns jsonb
language sql
as $$
-- Claims everything, begins the channel's call and commits its outcome: the answer of the commit.
select test.claimed();
select test.start(p_channel_id);
select test.commit(p_channel_id, p_outcome)
$$;

create function test.actions(p_channel_id text) returns text[]
language sql
as $$
-- Event actions of the channel's newest delivery, in the order of writing if the clock stands still.
select coalesce(array_agg(e.action order by e.ts, e.cmin::text::int, e.ctid), '{}')
	from autopost.events e, test.row(p_channel_id) r
where e.workspace_id = 'w' and e.delivery_id = r.delivery_id
$$;

create function test.count_events(p_action text, p_channel_id text default null) returns int
language sql
as $$
select count(*)::int from autopost.events e
where e.workspace_id = 'w' and e.action = p_action and (p_channel_id is null or e.channel_id = p_channel_id)
$$;
