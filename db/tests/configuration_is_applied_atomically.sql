-- A configuration is applied completely or not at all. A dry run shows the changes. Applying an
-- export changes nothing.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(61);
create function test.apply(p_items jsonb, p_workspace_id text default 'w', p_dry_run boolean default false)
	returns jsonb
language sql
as $$
select autopost.apply_config(p_workspace_id, p_items, 'olga', 'from a file', p_dry_run)
$$;
create function test.state() returns jsonb
language sql
as $$
select jsonb_build_array((select jsonb_agg(to_jsonb(w)) from autopost.workspaces w), (select jsonb_agg(to_jsonb(c))
	from autopost.channels c), (select jsonb_agg(to_jsonb(q)) from autopost.quotas q),
	(select jsonb_agg(to_jsonb(t)) from autopost.templates t), (select jsonb_agg(to_jsonb(l))
		from autopost.platform_limits l), (select jsonb_agg(to_jsonb(b)) from autopost.credential_bindings b),
	(select count(*) from autopost.admin_audit_log), (select count(*) from autopost.events))
$$;
create temp table file on commit drop as select '[
	{"kind": "workspace", "id": "news", "fields": {"name": "News", "status": "paused"}},
	{"kind": "credential", "id": "bot", "fields": {"platform": "telegram", "secret_ref": "env:BOT"}},
	{"kind": "group", "id": "telegram/bot", "fields": {"rate_rps": 20}},
	{"kind": "template", "id": "digest", "fields": {"body": "{title}"}},
	{"kind": "template", "id": "digest/telegram", "fields": {"body": "<b>{title}</b>", "parse_mode": "HTML"}},
	{"kind": "channel", "id": "Z", "fields": {"platform": "max", "target_id": "-1", "auth_ref": "m", "rate_rps": 0}},
	{"kind": "channel", "id": "a", "fields": {"platform": "telegram", "target_id": "@a", "auth_ref": "bot", "template_ref": "digest", "rate_rps": 0.50}},
	{"kind": "quota", "id": "channel:a/3600", "fields": {"max_sends": 8}},
	{"kind": "quota", "id": "group:telegram/bot/86400", "fields": {"max_sends": 30}}]'::jsonb as items;
create temp table before on commit drop as select test.state() as s;
create temp table dry on commit drop as select test.apply((select items from file), 'news', true) as answer;

select is(test.state(), (select s from before), 'a dry run changes nothing, though it makes a workspace');
select is((select answer - 'items' from dry), '{"applied": true, "dry_run": true, "unchanged": 0}');
select is((select answer -> 'items' -> 0 from dry), '{"kind": "workspace", "id": "news", "created": true, "before": {}, "after": {"name": "News", "status": "paused"}}');
select is((select answer -> 'items' -> 4 from dry), '{"kind": "template", "id": "digest/telegram", "created": true, "before": {},
	"after": {"body": "<b>{title}</b>", "parse_mode": "HTML", "defaults": {}, "sanitize": [], "enabled": true}}');
select is(test.apply((select items from file), 'news'), (select answer || '{"dry_run": false}' from dry),
	'it says what the act does');
select is(autopost.export_config('news'), (select items from file),
	'and what was applied is exported, without what is the default');
select is(test.apply((select items from file), 'news'), '{"applied": false, "dry_run": false, "reason": "unchanged"}',
	'applied again it changes nothing');
select is((select count(*)::int from autopost.admin_audit_log where workspace_id = 'news'), 9,
	'each thing is in the audit log');
select is((select array_agg(distinct l.operator || ': ' || l.reason) from autopost.admin_audit_log l
	where workspace_id = 'news'), '{"olga: from a file"}');

-- Into another workspace.
update file set items = jsonb_set(items, '{0,id}', '"copy"');
select is(test.apply(autopost.export_config('news'), 'copy') -> 'applied', 'true');
select is(autopost.export_config('copy'), (select items from file), 'it is the same there');

-- Changes, and null for what is the default.
update before set s = test.state();
select is(test.apply('[{"kind": "channel", "id": "a", "fields": {"rate_rps": null, "title": "A"}}, {"kind": "channel", "id": "Z", "fields": {}}]', 'news'),
	'{"applied": true, "dry_run": false, "unchanged": 1, "items": [{"kind": "channel", "id": "a", "created": false, "before": {"rate_rps": 0.5, "title": null}, "after": {"rate_rps": 1, "title": "A"}}]}');
select is(test.apply('[{"kind": "template", "id": "digest", "fields": {"body": "{title}!", "defaults": null}}]',
	'news') -> 'items' -> 0 -> 'before', '{"body": "{title}"}');
select is((select max(version) from autopost.templates where workspace_id = 'news' and platform = '*'), 2);

-- One that is wrong undoes all.
update before set s = test.state();
select is(test.apply('[{"kind": "group", "id": "telegram/bot", "fields": {"rate_rps": 1}}, {"kind": "channel", "id": "a", "fields": {"timezone": "MSK"}},
	{"kind": "quota", "id": "nonsense", "fields": {}}]', 'news') - 'errors', '{"applied": false, "dry_run": false, "reason": "invalid", "item": 1}', 'the first error is returned');
select is(test.state(), (select s from before), 'and nothing was changed');
select is(test.apply(jsonb_build_array(i), 'news') -> 'errors' -> 0 ->> 'field', f, i::text) from (values
	('{"kind": "channel", "id": "a", "fields": {"colour": 1}}'::jsonb, 'fields'),
		('{"kind": "channel", "id": "", "fields": {}}', 'channel_id'),
	('{"kind": "channel", "id": "a"}', 'fields'), ('{"kind": "quota", "id": "nonsense", "fields": {"max_sends": 1}}',
		'subject'),
	('{"kind": "quota", "id": "channel:a/soon", "fields": {"max_sends": 1}}', 'window_seconds'),
		('{"kind": "group", "id": "telegram", "fields": {}}', 'rate_group'),
	('{"kind": "template", "id": "digest", "fields": {"body": "{"}}', 'body'),
		('{"kind": "template", "id": "digest/pigeon", "fields": {"body": "x"}}', 'platform'),
	('{"kind": "pigeon", "id": "x", "fields": {}}', 'items'), ('{"id": "x"}', 'items')) c (i, f);
select is(test.state(), (select s from before));
select is(test.apply('[]', 'news') ->> 'reason', 'unchanged');
select throws_ok($$select test.apply('[]', 'nowhere')$$, 'AP003');
select throws_ok($$select test.apply('[{"kind": "channel", "id": "a", "fields": {}}]', 'nowhere')$$, 'AP003');

-- Retired objects are disabled and kept.
select test.publish();
select is(test.apply('[{"kind": "channel", "id": "Z", "retire": true}, {"kind": "group", "id": "telegram/bot", "retire": true}, {"kind": "template", "id": "digest", "retire": true},
	{"kind": "quota", "id": "channel:a/3600", "retire": true}, {"kind": "credential", "id": "bot", "retire": true}]', 'news'),
	'{"applied": true, "dry_run": false, "unchanged": 2, "items": [
	{"kind": "channel", "id": "Z", "created": false, "before": {"enabled": true}, "after": {"enabled": false}},
	{"kind": "group", "id": "telegram/bot", "created": false, "before": {"rate_rps": 20}, "after": {"rate_rps": 25}},
	{"kind": "template", "id": "digest", "created": false, "before": {"enabled": true}, "after": {"enabled": false}}]}');
select is((select count(*)::int from autopost.templates where workspace_id = 'news' and platform = '*' and enabled), 0,
	'no older version takes its place');
select is((select string_agg(i.value ->> 'id', ' ' order by i.ordinality)
	from jsonb_array_elements(autopost.export_config('news')) with ordinality i),
	'news bot digest/telegram Z a channel:a/3600 group:telegram/bot/86400',
		'what is out of use is exported as such, or not at all');
select is(test.apply('[{"kind": "template", "id": "digest", "fields": {"body": "{title}!"}}]',
	'news') -> 'items' -> 0 -> 'created', 'true', 'a template that was out of use comes back');
update autopost.channels set template_ref = null where workspace_id = 'news';

-- Sources and endpoints: the export has no source state and no secret. Objects without a secret wait for it.
truncate file;
insert into file values ('[
	{"kind": "workspace", "id": "wire", "fields": {}},
	{"kind": "source", "id": "feed", "fields": {"kind": "rss", "config_json": {"url": "https://h.example/feed?key=12345", "tags": ["a"]}}},
	{"kind": "source", "id": "other", "fields": {"kind": "rss", "config_json": {"url": "https://h.example"}, "enabled": false, "endpoint_id": "other-in"}},
	{"kind": "endpoint", "id": "bot", "fields": {"kind": "bot_webhook", "meta": {"auth_ref": "bot"}}},
	{"kind": "endpoint", "id": "off", "fields": {"kind": "webhook_push", "enabled": false}},
	{"kind": "endpoint", "id": "other-in", "fields": {"kind": "pull_source", "source_id": "other", "ingress_rps": 3}},
	{"kind": "endpoint", "id": "signed", "fields": {"kind": "webhook_push", "signing_ref": "key", "ingress_rps": 2}}]');
create temp table wired on commit drop as select test.apply((select items from file), 'wire', true) as dry;
select is(test.apply((select items from file), 'wire'), (select dry || '{"dry_run": false}' from wired),
	'a dry run knows endpoints of sources that are not there yet');
select is((select dry -> 'items' -> 3 from wired), '{"kind": "endpoint", "id": "bot", "created": true, "before": {}, "after": {"kind": "bot_webhook", "enabled": false, "meta": {"auth_ref": "bot"}},
	"note": "it has no secret, and is disabled until it has: autopost endpoint rotate bot makes one"}');
select is((select dry #>> '{items,6,note}' from wired),
	'its signing_ref names no credential of platform webhook: nothing signed is taken until it does');
select is((select dry #>> '{items,1,after,config_json,url}' from wired), 'https://h.example/feed?key=[redacted]',
	'what is shown is masked');
select is(autopost.export_config('wire'), (select items from file));
select is(test.apply((select items from file), 'wire') ->> 'reason', 'unchanged');
select is((select array_agg(e.endpoint_id || ' ' || e.enabled || ' ' || e.awaits_secret order by e.endpoint_id)
	from autopost.workspace_endpoints e where e.workspace_id = 'wire'),
	'{"bot false true","feed true false","off false false","other-in true false","signed true false"}');
select autopost.put_endpoint('wire', 'bot', jsonb_build_object('secret_hash', repeat('b', 64)), 'olga', 'the secret',
	false);
select is(autopost.export_config('wire'), (select items from file), 'a secret is not seen');
select is(test.apply((select items from file), 'wire') ->> 'reason', 'unchanged', 'and a file takes none away');
select is(test.apply('[{"kind": "source", "id": "feed", "fields": {"kind": "rss", "config_json": {"url": "https://h.example/feed?key=12345"}, "enabled": null, "endpoint_id": null}}]', 'wire') #> '{items,0,before,config_json,tags}',
	'["a"]', 'a key of config_json that the file leaves out goes');
select is((select config_json from autopost.pull_sources where workspace_id = 'wire' and source_id = 'feed'),
	'{"url": "https://h.example/feed?key=12345"}');
select is(test.apply('[{"kind": "endpoint", "id": "signed", "fields": {"kind": "webhook_push", "signing_ref": "key", "ingress_rps": null}}]', 'wire') #> '{items,0}' #- '{note}',
	'{"kind": "endpoint", "id": "signed", "created": false, "before": {"ingress_rps": 2}, "after": {"ingress_rps": 5}}');
select is(test.apply(jsonb_build_array(i), 'wire') -> 'errors' -> 0 ->> 'field', f, i::text) from (values
	('{"kind": "source", "id": "new", "fields": {"kind": "rss"}}'::jsonb, 'config_json.url'),
		('{"kind": "source", "id": "new", "fields": {"kind": null}}', 'kind'),
	('{"kind": "source", "id": "other", "fields": {"endpoint_id": null}}', 'endpoint_id'),
		('{"kind": "endpoint", "id": "signed", "fields": {"signing_ref": null}}', 'signing_ref'),
	('{"kind": "endpoint", "id": "again", "fields": {"kind": "pull_source", "source_id": "feed"}}', 'source_id'),
		('{"kind": "endpoint", "id": "feed", "fields": {"kind": "webhook_push"}}', 'kind')) c (i, f);
select autopost.put_endpoint('w', 'taken', jsonb_build_object('kind', 'bot_webhook', 'secret_hash', repeat('c', 64)),
	'olga', 'r', false),
	autopost.put_endpoint('wire', 'twin', jsonb_build_object('kind', 'bot_webhook', 'secret_hash', repeat('c', 64),
		'enabled', false), 'olga', 'r', false);
select is(test.apply('[{"kind": "endpoint", "id": "twin", "fields": {"kind": "bot_webhook", "enabled": null}}]',
	'wire') #>> '{errors,0,field}', 'enabled', 'a secret that another has');
select autopost.put_endpoint('wire', 'feed', '{"ingress_rps": 4}', 'olga', 'r', false);
select is((select array_agg((i.value ->> 'id') || ' ' || (i.value ->> 'after')) from jsonb_array_elements(test.apply('[{"kind": "source", "id": "other", "retire": true}, {"kind": "endpoint", "id": "bot", "retire": true},
	{"kind": "endpoint", "id": "feed", "retire": true}, {"kind": "endpoint", "id": "other-in", "retire": true}, {"kind": "endpoint", "id": "signed", "retire": true}]', 'wire') -> 'items') i),
	'{"bot {\"enabled\": false}","feed {\"ingress_rps\": 5}","other-in {\"ingress_rps\": 5}","signed {\"enabled\": false}"}', 'the endpoint of a source is as the source made it');

-- Settings, together.
select is(autopost.apply_settings('{"max_attempts": 7, "event_retention_days": 100, "delivery_retention_days": 120}',
	'olga', 'r', true),
	'{"applied": true, "dry_run": true, "changes": [{"key": "delivery_retention_days", "before": 90, "after": 120}, {"key": "event_retention_days", "before": 30, "after": 100},
		{"key": "max_attempts", "before": 5, "after": 7}]}', 'judged when all have changed');
select is(autopost.setting('max_attempts'), 5::numeric);
select is(autopost.apply_settings('{"max_attempts": 7}', 'olga', 'r', false) -> 'applied', 'true');
select is(autopost.apply_settings('{"max_attempts": 7}', 'olga', 'r', false),
	'{"applied": false, "dry_run": false, "reason": "unchanged"}');
select is((select row(s.value, s.default_value)::text from autopost.list_settings() s where s.key = 'max_attempts'),
	row('7'::jsonb, '5'::jsonb)::text);
select is((select count(*)::int from autopost.list_settings() s where s.default_value is null), 0,
	'every setting has a default');
select is(autopost.apply_settings('{"max_attempts": null}', 'olga', 'r', false) -> 'changes',
	'[{"key": "max_attempts", "before": 7, "after": 5}]', 'null is the default');

select * from finish();
rollback;
