create or replace function autopost.policy_code(p_error jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: the code that selects the retry policy of a normalised error. A moved chat has the code
--          chat_moved on every platform.
select case when p_error ? 'moved' then 'chat_moved' else p_error ->> 'code' end
$$;

create or replace function autopost.retry_policy(p_workspace_id text, p_platform text, p_code text)
	returns autopost.retry_policies
language plpgsql stable
as $$
-- Purpose: the most specific policy for a platform and an error code. For the same platform and
--          code, the policy of the workspace replaces that of the installation.
-- Reads:   retry_policies.
declare
	v_policy autopost.retry_policies;
begin
	select r.* into v_policy from autopost.retry_policies r
	where r.workspace_id in (p_workspace_id, '*') and r.platform in (p_platform, '*')
	and r.code in (p_code, '*')
	order by r.platform = '*', r.code = '*', r.workspace_id = '*'
	limit 1;
	return v_policy;
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
