-- Functions write, list and remove limits of rate groups, quotas and credential bindings.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(59);
create function test.logged() returns text
language sql
as $$
select concat_ws(' ', l.action, l.subject, l.before, l.after) from autopost.admin_audit_log l order by l.seq desc
	limit 1
$$;
select test.channel('a', p_max_parallel => 10);

-- A group.
select is(autopost.put_rate_group('w', 'telegram', 'bot', '{"rate_rps": 20}', 'o', 'r', true),
	'{"applied": true, "dry_run": true, "created": true, "before": {"rate_rps": 0}, "after": {"rate_rps": 20}}');
select is((select count(*)::int from autopost.platform_limits), 0, 'a dry run writes nothing');
select is(autopost.put_rate_group('w', 'telegram', 'bot', '{"rate_rps": 0}', 'o', 'r', false) ->> 'reason', 'unchanged',
	'a group without a row has no limit');
select is((select count(*)::int from autopost.platform_limits), 0);
select is(autopost.put_rate_group('w', 'telegram', 'bot', '{"rate_rps": 20}', 'o', 'r', false) -> 'applied', 'true');
select is(test.logged(), 'put_rate_group group:telegram/bot {"rate_rps": 0} {"rate_rps": 20}');
select is((select rate_rps from autopost.platform_limits), 20::numeric);
select is(autopost.put_rate_group('w', 'telegram', 'bot', '{"rate_rps": 20}', 'o', 'r', false) ->> 'reason',
	'unchanged');
select is(autopost.put_rate_group('w', 'telegram', 'bot', '{"rate_rps": "many"}', 'o', 'r',
	false) -> 'errors' -> 0 ->> 'reason', 'must be a number');
update autopost.platform_limits set cooldown_until = autopost.now_ts() + interval '1 hour';
select test.publish();
select is(autopost.put_rate_group('w', 'telegram', 'bot', '{"rate_rps": null}', 'o', 'r', false) -> 'after',
	'{"rate_rps": 25}', 'null restores the limit of the platform');
select is((select row(l.rate_rps, l.cooldown_until)::text from autopost.platform_limits l),
	row(25, autopost.now_ts() + interval '1 hour')::text, 'a wait that the platform asked for stays');
update autopost.platform_limits set cooldown_until = null;
select autopost.put_rate_group('w', 'max', 'bot', '{"rate_rps": 3}', 'o', 'r', false);
select is((select array_agg(concat_ws(' ', g.platform, g.rate_group, g.rate_rps, g.channels, g.enabled_channels))
	from autopost.list_rate_groups('w', 10) g),
	'{max bot 3 0 0,telegram bot 25 1 1}', 'those with a limit, and those of channels');
select is((select count(*)::int from autopost.list_rate_groups('w', 1)), 1);

-- A quota of a channel.
select is(autopost.put_quota('w', 'channel:a', 3600, '{"max_sends": 2}', 'o', 'r', true) -> 'created', 'true');
select is((select count(*)::int from autopost.quotas), 0);
select is(autopost.put_quota('w', 'channel:a', 3600, '{"max_sends": 2}', 'o', 'r', false),
	'{"applied": true, "dry_run": false, "created": true, "before": {}, "after": {"max_sends": 2}}');
select is(test.logged(), 'put_quota quota:channel:a/3600 {} {"max_sends": 2}');
select is(autopost.put_quota('w', 'channel:a', 3600, '{"max_sends": 2}', 'o', 'r', false) ->> 'reason', 'unchanged');
select is(autopost.put_quota('w', 'channel:a', 3600, '{"max_sends": 0}', 'o', 'r', false) #>> '{errors,0,reason}',
	'0 is out of range');
select is(autopost.put_quota('w', 'channel:a', 60, '{}', 'o', 'r', false) #>> '{errors,0,reason}', 'is missing');
select is(autopost.put_quota('w', 'channel:nobody', 60, '{"max_sends": 1}', 'o', 'r', false) -> 'errors',
	'[{"field": "subject", "reason": "must be an existing channel, got nobody", "remedy": "add the channel first"}]');
select test.posts('post', 5);
select is(test.claimed(), '{a,a}', 'it acts on the next claim');
select is((select concat_ws(' ', q.subject, q.window_seconds, q.max_sends, q.used, q.free_at > autopost.now_ts())
	from autopost.list_quotas('w', 10) q), 'channel:a 3600 2 2 t');
select is(autopost.put_quota('w', 'channel:a', 3600, '{"counts": "words"}', 'o', 'r', false) #>> '{errors,0,remedy}',
	'use posts, calls');
select is(autopost.put_quota('w', 'channel:a', 3600, '{"counts": "calls"}', 'o', 'r', false) -> 'before',
	'{"counts": "posts"}');
select is((select i.value -> 'fields' from jsonb_array_elements(autopost.export_config('w')) i
	where i.value ->> 'kind' = 'quota'), '{"counts": "calls", "max_sends": 2}');
select is(autopost.put_quota('w', 'channel:a', 3600, '{"counts": null}', 'o', 'r', false) -> 'after',
	'{"counts": "posts"}');
select is(autopost.put_quota('w', 'channel:a', 3600, '{"max_sends": 3}', 'o', 'r', false) -> 'before',
	'{"max_sends": 2}');
select is(test.claimed(), '{a}', 'more of it at once');
select is(autopost.delete_quota('w', 'channel:a', 60, 'o', 'r', false),
	'{"applied": false, "dry_run": false, "reason": "unknown_quota"}');
select is(autopost.delete_quota('w', 'channel:a', 3600, 'o', 'r', true),
	'{"applied": true, "dry_run": true, "before": {"max_sends": 3}, "after": {}}');
select is((select count(*)::int from autopost.quotas), 1);
select is(autopost.delete_quota('w', 'channel:a', 3600, 'o', 'r', false) -> 'applied', 'true');
select is(test.logged(), 'delete_quota quota:channel:a/3600 {"max_sends": 3} {}');
select is(test.claimed(), '{a,a}', 'what it held goes on');

-- Quotas of a group: several windows, and a name with a slash.
select autopost.put_quota('w', 'group:telegram/bot/two', n, '{"max_sends": 5}', 'o', 'r', false)
	from unnest('{60,3600}'::int[]) n;
select is((select array_agg(concat_ws(' ', q.subject, q.platform, q.rate_group, q.window_seconds)
	order by q.window_seconds) from autopost.quotas q),
	'{group:telegram/bot/two telegram bot/two 60,group:telegram/bot/two telegram bot/two 3600}');
select is((select array_agg(q.window_seconds || ' ' || q.used || coalesce(' ' || q.free_at, ''))
	from autopost.list_quotas('w', 10) q), '{60 0,3600 0}');

-- The location of a secret.
select is(autopost.put_credential_binding('w', 'bot', '{"platform": "telegram", "secret_ref": "env:BOT_TOKEN"}', 'o',
	'r', true) -> 'created', 'true');
select is((select count(*)::int from autopost.credential_bindings), 0);
select is(autopost.put_credential_binding('w', 'bot', '{"platform": "telegram", "secret_ref": "env:BOT_TOKEN"}', 'o',
	'r', false) -> 'after', '{"platform": "telegram", "secret_ref": "env:BOT_TOKEN"}');
select is(test.logged(),
	'put_credential_binding credential:bot {} {"platform": "telegram", "secret_ref": "env:BOT_TOKEN"}');
select is(autopost.get_credential('w', 'bot') - 'stale' - 'last_version',
	'{"platform": "telegram", "secret_ref": "env:BOT_TOKEN"}');
select is(autopost.put_credential_binding('w', 'bot', '{"secret_ref": "env:BOT_TOKEN"}', 'o', 'r', false) ->> 'reason',
	'unchanged');
select is(autopost.put_credential_binding('w', 'bot', '{"secret_ref": "file:/run/secrets/bot"}', 'o', 'r',
	false) -> 'before', '{"secret_ref": "env:BOT_TOKEN"}');
select is(autopost.put_credential_binding('w', 'bot', '{"platform": "max"}', 'o', 'r', false) #>> '{errors,0,reason}',
	'cannot be changed');
select is(autopost.put_credential_binding('w', 'hook', '{"platform": "webhook", "secret_ref": "sealed:hook"}', 'o', 'r',
	false) -> 'applied', 'true', 'what signs posts is bound too');
select is(autopost.put_credential_binding('w', 'of-' || p, jsonb_build_object('platform', p, 'secret_ref', 'env:X'),
	'o', 'r', true) -> 'applied', 'true', 'and what sources ask by, and mail goes by: ' || p)
from unnest('{postgres,smtp}'::text[]) p;

-- A secret for addresses that callers choose goes to named hosts only.
select is(autopost.put_credential_binding('w', 'shop', '{"platform": "http", "secret_ref": "env:X"}'::jsonb || f, 'o', 'r',
	false) #>> '{errors,0,reason}', r)
from (values ('{}'::jsonb, 'must name the hosts that get the secret'), ('{"hosts": []}',
	'must name the hosts that get the secret'), ('{"hosts": ["https://api.example"]}',
	'must be hosts in lower case, without scheme and path'), ('{"hosts": ["API.example"]}',
	'must be hosts in lower case, without scheme and path')) x (f, r);
select is(autopost.put_credential_binding('w', 'bot', '{"hosts": ["api.example"]}', 'o', 'r', false) #>>
	'{errors,0,reason}', 'must be empty for platform telegram');
select is(autopost.put_credential_binding('w', 'shop', '{"platform": "http", "secret_ref": "env:X",
	"hosts": ["api.example", "api.example:8443", "[::1]:80"]}', 'o', 'r', false) -> 'applied', 'true');
select is(autopost.get_credential('w', 'shop') -> 'hosts', '["api.example", "api.example:8443", "[::1]:80"]');
select throws_ok($$update autopost.credential_bindings set hosts = null$$, '23514');
select throws_ok($$update autopost.credential_bindings set hosts = '{a}'$$, '23514');
delete from autopost.credential_bindings where auth_ref = 'shop';
select is(autopost.put_credential_binding('w', 'x', '{"platform": "pigeon", "secret_ref": "7001001:AAcanaryTelegramToken"}', 'o', 'r', false) -> 'errors', '[
	{"field": "platform", "reason": "\"pigeon\" is unknown", "remedy": "use http, max, postgres, smtp, telegram, webhook, x, youtube"},
	{"field": "secret_ref", "reason": "must be a reference to a secret", "remedy": "write env:NAME, file:/path or sealed:NAME, never the secret itself"}]', 'a secret that stands there by mistake is not shown');
select is((select array_agg(b.auth_ref || ' ' || b.secret_ref order by b.auth_ref) from autopost.credential_bindings b),
	'{bot file:/run/secrets/bot,hook sealed:hook}');

rollback;
