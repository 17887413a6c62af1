create or replace function autopost.policy_code(p_error jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: the code that selects the retry policy of a normalised error. A moved chat has the code
--          chat_moved on every platform.
select case when p_error ? 'moved' then 'chat_moved' else p_error ->> 'code' end
$$;

create or replace function autopost.retry_policy(p_workspace_id text, p_platform text, p_code text,
	p_inherited boolean default false) returns autopost.retry_policies
language plpgsql stable
as $$
-- Purpose: the most specific policy for a platform and an error code. For the same platform and
--          code, the policy of the workspace replaces that of the installation. p_inherited: the policy
--          that applies while the workspace has none for exactly this platform and code.
-- Reads:   retry_policies, own_retry_policies.
declare
	v_own autopost.retry_policies;
	v_policy autopost.retry_policies;
begin
	select o.platform, o.code, o.kind, o.base_ms, o.factor, o.cap_ms, o.ladder_ms,
		o.jitter, o.max_attempts, o.costs_attempt
	into v_own
	from autopost.own_retry_policies o
	where o.workspace_id = p_workspace_id and o.platform in (p_platform, '*') and o.code in (p_code, '*')
	and (not p_inherited or (o.platform, o.code) <> (p_platform, p_code))
	order by o.platform = '*', o.code = '*'
	limit 1;
	select r.* into v_policy from autopost.retry_policies r
	where r.platform in (p_platform, '*') and r.code in (p_code, '*')
	order by r.platform = '*', r.code = '*'
	limit 1;
	if (v_own.platform = '*', v_own.code = '*') <= (v_policy.platform = '*', v_policy.code = '*') then
		return v_own;
	end if;
	return v_policy;
end
$$;

create or replace function autopost.policies_of(p_workspace_id text)
	returns table (own boolean, version xid, platform text, code text, kind text, base_ms bigint, factor numeric,
	cap_ms bigint, ladder_ms bigint[], jitter numeric, max_attempts int, costs_attempt boolean)
language plpgsql stable
as $$
-- Purpose: the policies of a workspace and of the installation, with the transaction that wrote them.
-- Reads:   retry_policies, own_retry_policies.
begin
	return query
	select true, o.xmin, o.platform, o.code, o.kind, o.base_ms, o.factor, o.cap_ms,
		o.ladder_ms, o.jitter, o.max_attempts, o.costs_attempt
	from autopost.own_retry_policies o where o.workspace_id = p_workspace_id;
	return query
	select false, r.xmin, r.platform, r.code, r.kind, r.base_ms, r.factor, r.cap_ms,
		r.ladder_ms, r.jitter, r.max_attempts, r.costs_attempt
	from autopost.retry_policies r;
end
$$;

create or replace function autopost.max_attempts(p_policy autopost.retry_policies,
	p_delivery autopost.deliveries) returns int
language plpgsql stable
as $$
-- Purpose: how many calls a delivery may start: the policy's number, else the setting, plus granted
--          attempts. The number of a policy that costs no attempt limits only its own failures
--          (settle_transient).
begin
	return (
		select coalesce(case when p_policy.costs_attempt
			then p_policy.max_attempts end, autopost.setting('max_attempts')::int) + p_delivery.granted_attempts);
end
$$;

create or replace function autopost.retry_delay(p_policy autopost.retry_policies, p_attempt int,
	p_retry_after_ms numeric, p_luck numeric) returns interval
language sql immutable parallel safe
as $$
-- Purpose: the wait after attempt p_attempt. p_luck is the random number of the jitter, 0 to 1. A
--          stated wait of the platform is a minimum: jitter is only added. Our own waits vary in
--          both directions.
select interval '1 millisecond' * case
	when p_retry_after_ms > 0 then p_retry_after_ms * (1 + p_luck * p_policy.jitter)
	else (1 + (2 * p_luck - 1) * p_policy.jitter) * case p_policy.kind
		when 'ladder' then p_policy.ladder_ms[least(greatest(p_attempt, 1), cardinality(p_policy.ladder_ms))]
		else least(p_policy.cap_ms, p_policy.base_ms * p_policy.factor ^ least(greatest(p_attempt, 1) - 1, 60)) end
	end
$$;
