-- The monthly budget of a credential is put, removed, listed, exported and applied like other configuration.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(24);
create function test.logged() returns text
language sql
as $$
select concat_ws(' ', l.action, l.subject, l.before, l.after) from autopost.admin_audit_log l order by l.seq desc
	limit 1
$$;
create function test.put(p_fields jsonb, p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.put_budget('w', 'purse', p_fields, 'o', 'r', p_dry_run)
$$;
select test.channel('x', p_platform => 'x', p_rate_group => 'purse', p_max_parallel => 10);

select is(test.put('{"month_usd": 25}') -> 'errors', '[{"field": "auth_ref", "reason": "must be an existing credential, got purse", "remedy": "add the credential first"}]');
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'purse', 'x', 'env:PURSE');
select is(test.put('{"month_usd": 25}', true),
	'{"applied": true, "dry_run": true, "created": true, "before": {"month_usd": null}, "after": {"month_usd": 25}}');
select is((select count(*)::int from autopost.budgets), 0, 'a dry run writes nothing');
select is(test.put('{}') ->> 'reason', 'unchanged', 'a missing budget is unchanged');
select is(test.put('{"month_usd": 0.015}') -> 'applied', 'true');
select is((select month_micros from autopost.budgets), 15000::bigint);
select is(test.logged(), 'put_budget budget:purse {"month_usd": null} {"month_usd": 0.015}');
select is(test.put('{"month_usd": 0.0150000}') ->> 'reason', 'unchanged');
select is(test.put('{"month_usd": 0.0000015}') #>> '{errors,0,reason}', 'must have at most six decimals');
select is(test.put('{"month_usd": "much"}') #>> '{errors,0,reason}', 'must be a number');
select is(test.put('{"month_usd": -1}') #>> '{errors,0,reason}', '-1 is out of range');
select is((select month_micros from autopost.budgets), 15000::bigint, 'what is refused changes nothing');

-- It acts on the next claim, either way.
select test.posts('post', 3);
select is(test.claimed(), '{x}');
select is((select row(b.auth_ref, b.month_usd, b.spent_usd, b.uses, b.ends_at)::text
	from autopost.list_budgets('w', 10) b),
	row('purse', 0.015, 0.015, '{"post": 0.015}'::jsonb,
		autopost.month_begin(autopost.now_ts()) + interval '1 month')::text);
select is(test.put('{"month_usd": 0.03}') -> 'created', 'false');
select is(test.claimed(), '{x}', 'more of it at once');
select is(test.put('{"month_usd": null}') -> 'after', '{"month_usd": null}');
select is((select count(*)::int from autopost.budgets), 0, 'lifted');
select is(test.claimed(), '{x}');
select is((select count(*)::int from autopost.list_budgets('w', 10)), 0);

-- As a part of the whole configuration, and for the API.
select is(autopost.apply_config('w', '[{"kind": "budget", "id": "purse", "fields": {"month_usd": 25.5}}]', 'o', 'r',
	false) -> 'items',
	'[{"kind": "budget", "id": "purse", "created": true, "before": {"month_usd": null}, "after": {"month_usd": 25.5}}]');
select is(jsonb_path_query_array(autopost.export_config('w'), '$[*] ? (@.kind == "budget")'),
	'[{"id": "purse", "kind": "budget", "fields": {"month_usd": 25.5}}]');
select is(autopost.apply_config('w', '[{"kind": "budget", "id": "purse", "retire": true}]', 'o', 'r',
	false) ->> 'reason', 'unchanged', 'what is not in a file goes on being a bound');
select is((select b - 'ends_at' from autopost.list_configuration('w', 'budget', '{"id": "purse"}', 1) b),
	'{"auth_ref": "purse", "month_usd": 25.5, "spent_usd": 0.03, "uses": {"post": 0.03}}');

select * from finish();
rollback;
