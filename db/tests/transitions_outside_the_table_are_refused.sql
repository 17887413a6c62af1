-- Each pair of statuses, written directly as the owner: an allowed transition or AP004.
begin;
\ir fake_clock.sql
\ir world.sql
create temp table moves on commit drop as
select f.status as from_status, t.status as to_status, false as allowed
from unnest('{queued,claimed,sending,sent,retry,deduped,failed_permanent,dead}'::text[]) f (status),
	unnest('{queued,claimed,sending,sent,retry,deduped,failed_permanent,dead}'::text[]) t (status)
where f.status <> t.status;
update moves set allowed = true where (from_status, to_status) in (
	('queued', 'claimed'), ('queued', 'deduped'), ('queued', 'failed_permanent'), ('queued', 'dead'),
	('retry', 'claimed'), ('retry', 'deduped'), ('retry', 'failed_permanent'), ('retry', 'dead'),
	('claimed', 'sending'), ('claimed', 'queued'), ('claimed', 'retry'),
	('sending', 'sent'), ('sending', 'retry'), ('sending', 'failed_permanent'), ('sending', 'dead'));
select plan(56 + 8 + 8 + 4);

create function test.put(p_status text) returns uuid
language plpgsql
as $$
-- A delivery in a status, brought there past the guards.
declare
	v_id uuid := autopost.new_id();
begin
	set local session_replication_role = replica;
	insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash,
		status)
	select 'w', v_id, m.message_id, 'a', 1, v_id::text, 'queued' from autopost.messages m limit 1;
	perform test.dress(v_id, p_status);
	set local session_replication_role = origin;
	return v_id;
end
$$;
create function test.dress(p_id uuid, p_status text) returns void
language sql
as $$
-- The status with the columns that the constraints want of it.
update autopost.deliveries
set status = p_status,
	claim_token = case when p_status in ('claimed', 'sending') then 't' end,
	sending_lease_until = case when p_status = 'sending' then autopost.now_ts() end,
	sent_at = case when p_status = 'sent' then autopost.now_ts() end,
	provider_message_id = case when p_status = 'sent' then '1' end,
	next_retry_at = case when p_status = 'retry' then autopost.now_ts() end
where delivery_id = p_id
$$;
create function test.try(p_from text, p_to text) returns text
language plpgsql
as $$
-- 'allowed', or the SQLSTATE of the refusal.
declare
	v_id uuid := test.put(p_from);
begin
	perform test.dress(v_id, p_to);
	return 'allowed';
exception when others then
	return sqlstate;
end
$$;

create function test.begins(p_status text) returns text
language plpgsql
as $$
-- 'allowed', or the SQLSTATE of the refusal, for a delivery that is inserted in a status.
begin
	insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash,
		status, claim_token,
		sending_lease_until, sent_at, provider_message_id, next_retry_at)
	select 'w', autopost.new_id(), m.message_id, 'a', 1, 'begins as ' || p_status, p_status, case
		when p_status in ('claimed', 'sending') then 't' end,
		case when p_status = 'sending' then autopost.now_ts() end, case
			when p_status = 'sent' then autopost.now_ts() end,
		case when p_status = 'sent' then '1' end, case when p_status = 'retry' then autopost.now_ts() end
	from autopost.messages m limit 1;
	return 'allowed';
exception when others then
	return sqlstate;
end
$$;

select test.channel('a');
select test.say('x');

select is(test.try(from_status, to_status), case when allowed then 'allowed' else 'AP004' end,
	from_status || ' -> ' || to_status)
from moves order by from_status, to_status;

-- An unchanged status is not a transition.
select is(test.try(s, s), 'allowed', s || ' stays')
	from unnest('{queued,claimed,sending,sent,retry,deduped,failed_permanent,dead}'::text[]) s;

-- How a delivery may begin. sent: what was posted before, taken over with its time.
select is((
	select case when s.status in ('queued', 'deduped', 'failed_permanent', 'sent') then 'allowed' else 'AP004' end),
	test.begins(s.status), 'begins as ' || s.status)
from unnest('{queued,claimed,sending,sent,retry,deduped,failed_permanent,dead}'::text[]) s (status);

-- The claim's shortcut must issue an attempt and a token.
create temp table q on commit drop as select test.put('queued') as id;
select throws_ok(format($$update autopost.deliveries set status = 'sending', claim_token = 't',
	sending_lease_until = now() where delivery_id = %L$$, (select id from q)),
	'AP004', null, 'queued -> sending without a new attempt');
select lives_ok(format($$update autopost.deliveries set status = 'sending', attempt = 1, claim_token = 't',
	sending_lease_until = now() where delivery_id = %L$$, (select id from q)),
	'queued -> sending as a claim does it');
select throws_ok($$update autopost.deliveries set status = 'unheard of'
	where status = 'queued'$$, '23514', null, 'no other status exists');
select throws_ok(format($$update autopost.deliveries set claim_token = null
	where delivery_id = %L$$, (select id from q)),
	'23514', null, 'a delivery in flight has a token');

select * from finish();
rollback;
