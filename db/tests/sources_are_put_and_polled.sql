-- Functions create, change, stop and trigger a source. It has its own interval or the one that the
-- feed suggests.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(98);

create function test.put(p_source_id text, p_fields jsonb, p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.put_source('w', p_source_id, p_fields, 'ann', 'because', p_dry_run)
$$;
create function test.faults(p_kind text, p_config jsonb) returns text
language sql
as $$
-- Field errors of a config, or nothing.
select string_agg(substr(f.value ->> 'field', 13) || ' ' || (f.value ->> 'reason'), '; ')
from jsonb_array_elements(test.put('probe', jsonb_build_object('kind', p_kind, 'config_json', p_config),
	true) -> 'errors') f
$$;
create function test.waits(p_source_id text) returns interval
language sql
as $$
select c.next_poll_at - autopost.now_ts() from autopost.pull_cursors c where c.source_id = p_source_id
$$;

-- One act makes source and endpoint.
select is(test.put('feed', '{"kind": "rss", "config_json": {"url": "https://h.example/feed?token=abcdefgh"}}', true),
	'{"applied": true, "dry_run": true, "created": true, "before": {}, "after": {"kind": "rss",
		"config_json": {"url": "https://h.example/feed?token=[redacted]"}}}', 'a dry run says what would be');
select is((select count(*)::int from autopost.pull_sources), 0, 'and writes nothing');
select is(test.put('feed',
	'{"kind": "rss", "config_json": {"url": "https://h.example/feed?token=abcdefgh"}}') - 'before' - 'after',
	'{"applied": true, "dry_run": false, "created": true}');
select is((select kind || ' ' || source_id || ' ' || enabled from autopost.workspace_endpoints
	where endpoint_id = 'feed'), 'pull_source feed true');
select is((select count(*)::int from autopost.list_due_sources('w', 10) where endpoint_id = 'feed'), 1,
	'and it is polled');
select is((select action || ' ' || subject || ' ' || operator from autopost.admin_audit_log),
	'put_source source:feed ann');
select ok((select after::text !~ 'abcdefgh' from autopost.admin_audit_log), 'no key of a URL is in the audit log');
select is(test.put('feed', '{"kind": "rss", "config_json": {"url": "https://h.example/feed?token=abcdefgh"}}'),
	'{"applied": false, "dry_run": false, "reason": "unchanged"}');
select is(test.put('feed', '{"config_json": {"url": "https://h.example/feed?token=otherkey1"}}') ->> 'applied', 'true',
	'a key that changes is a change');

-- Only what is named changes.
select test.put('feed', '{"config_json": {"interval_seconds": 60, "tags": ["a"]}}');
select test.put('feed', '{"config_json": {"tags": null}}');
select is((select config_json from autopost.pull_sources),
	'{"url": "https://h.example/feed?token=otherkey1", "interval_seconds": 60}', 'key by key, null takes one away');
select is(test.put('feed', '{"kind": "db"}') ->> 'reason', 'invalid', 'another kind needs all fields');
select is(test.put('other',
	'{"kind": "rss", "config_json": {"url": "https://h.example"}, "endpoint_id": "other-in"}') -> 'after' ->>
	'endpoint_id', 'other-in');
select is(test.put(id, f, true) -> 'errors' -> 0 ->> 'field', e, f::text) from (values
	('third', '{"kind": "rss", "config_json": {"url": "https://h.example"}, "endpoint_id": "other-in"}'::jsonb,
		'endpoint_id'), ('other', '{"endpoint_id": "more"}', 'endpoint_id'),
	('third', '{}', 'kind'), ('feed', '{"kind": null}', 'kind'), ('third', '{"kind": "gopher"}', 'kind'), ('third',
		'{"kind": "mail"}', 'kind'), ('feed', '{"kind": "filebus"}', 'config_json.channels'), ('feed', '{"enabled": "yes"}', 'enabled'), ('feed', '{"config_json": []}',
		'config_json')) x (id, f, e);
select throws_ok($$select test.put('feed', '{"colour": 1}')$$, 'AP001',
	'argument fields: have the unknown field ''colour''');

-- Null is the default.
select test.put('spare',
	'{"kind": "rss", "config_json": {"url": "https://h.example"}, "enabled": false, "endpoint_id": "spare"}');
select is(test.put('spare', '{"enabled": null, "endpoint_id": null}') -> 'after', '{"enabled": true}');
select is(test.put('spare', '{"config_json": null}') -> 'errors' -> 0 ->> 'field', 'config_json.url',
	'of config_json it is nothing at all');
select is(test.put('other', '{"endpoint_id": null}') -> 'errors' -> 0 ->> 'remedy', 'write other-in',
	'the endpoint of a source stays');
select test.put('spare', '{"enabled": false}');

-- Sources made by plain SQL get what they lack.
insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
	values ('w', 'plain', 'rss', '{"url": "https://h.example"}');
select is((select endpoint_id from autopost.list_sources('w', 10) where source_id = 'plain'), null);
select is(autopost.poll_source_now('w', 'plain', 'ann', 'r', false) ->> 'reason', 'no_endpoint');
select is(test.put('plain', '{"enabled": true}') -> 'after' ->> 'endpoint_id', 'plain');

-- config_json is judged by kind: the field, the reason, the remedy.
select is(test.put('probe', '{"kind": "rss", "config_json": {"url": "ftp://h"}}') -> 'errors',
	'[{"field": "config_json.url", "reason": "is not of its form", "remedy": "write the whole http or https URL"}]');
select is((select count(*)::int from autopost.pull_sources where source_id = 'probe'), 0);
select is(test.faults('rss', '{}'), 'url is missing');
select is(test.faults('rss', '{"url": "https://h.example/x", "interval_seconds": 1, "backfill_items": 0, "template": "{title} {x y} {link}", "media": "none", "include": ["a", "/b+/"], "exclude": [], "tags": ["t"]}'), null);
select is(test.faults('rss', '{"url": "https://h.example", "query": "select 1"}'), 'query is unknown to kind rss');
select is(test.faults('rss', jsonb_build_object('url', 'https://h.example') || c), f)
from (values ('{"interval_seconds": 0}'::jsonb, 'interval_seconds is not of its form'), ('{"interval_seconds": 1.5}',
	'interval_seconds is not of its form'),
	('{"backfill_items": 1001}', 'backfill_items is not of its form'), ('{"template": " "}',
		'template is not of its form'),
	('{"template": "{titel}"}', 'template is not of its form'), ('{"media": "all"}', 'media is not of its form'),
		('{"tags": "a"}', 'tags is not of its form'),
	('{"include": [""]}', 'include is not of its form'), ('{"exclude": [1]}', 'exclude is not of its form'),
		('{"url": 5}', 'url is not of its form'),
	('{"url": "https:// h"}', 'url is not of its form')) x (c, f);
select is(test.faults('api', '{"url": "https://h.example", "items": "/data/items", "map": {"id": "/id", "text": "/a~1b"}, "auth_ref": "k", "auth_header": "X-Key", "auth_prefix": "", "order": "oldest_first"}'), null);

-- A credential goes to its own hosts only.
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref, hosts)
	values ('w', 'shop', 'http', 'env:SHOP', '{api.example,api.example:8443}');
select is(test.faults('api', jsonb_build_object('url', u, 'map', '{"id": "/id"}'::jsonb, 'auth_ref', 'shop')), f)
from (values ('https://api.example/items', null), ('https://API.example:8443?x=1', null),
	('https://api.example@evil.example/', 'auth_ref shop must not be sent to evil.example'),
	('https://api.example:444/', 'auth_ref shop must not be sent to api.example:444'),
	('https://evil.example/api.example', 'auth_ref shop must not be sent to evil.example')) x (u, f);
select is(test.faults('rss', '{"url": "https://evil.example/"}'), null, 'a source without it has any address');
select is(test.faults('api', '{"url": "https://h.example"}'), 'map is missing');
select is(test.faults('api', jsonb_build_object('url', 'https://h.example', 'map', '{"id": "/id"}'::jsonb) || c), f)
from (values ('{"map": {"id": "id"}}'::jsonb, 'map is not of its form'), ('{"map": {"uid": "/id"}}',
	'map is not of its form'), ('{"items": "data"}', 'items is not of its form'),
	('{"items": "/a~2"}', 'items is not of its form'), ('{"auth_header": "X Key"}', 'auth_header is not of its form'),
		('{"auth_prefix": "a\nb"}', 'auth_prefix is not of its form'),
	('{"paging": {"by": "pointer", "pointer": "/next", "max_pages": 5}}', null), ('{"paging": {"by": "link_header"}}',
		null),
	('{"paging": {"by": "page", "parameter": "page", "first": 0}}', null),
		('{"paging": {"by": "cursor", "parameter": "after", "pointer": "/next"}}', null),
	('{"paging": {"by": "cursor", "parameter": "after"}}', 'paging is not of its form'), ('{"paging": {"by": "page"}}',
		'paging is not of its form'),
	('{"paging": {"by": "luck"}}', 'paging is not of its form'), ('{"paging": {"by": "link_header", "pointer": "/x"}}',
		'paging is not of its form'),
	('{"paging": []}', 'paging is not of its form'), ('{"paging": {"by": "link_header", "colour": 1}}',
		'paging is not of its form'),
	('{"order": "random"}', 'order is not of its form')) x (c, f);
select is(test.faults('db', '{"auth_ref": "crm", "query": "select id, text from posts where id > $1 or $1 is null", "cursor_column": "id", "map": {"text": "text"}, "timeout_seconds": 5}'), null);
select is(test.faults('db', '{"auth_ref": "crm", "query": "delete from posts; select $1", "cursor_column": ""}'),
	'cursor_column is not of its form; query is not of its form');

-- The pace: the source's own interval; without one, what it hints at.
select autopost.set_pull_cursor('w', 'feed', '{"wait_seconds": 7200}');
select is(test.waits('feed'), interval '60 seconds', 'interval_seconds is the last word');
select autopost.list_due_sources('w', 10);
select autopost.set_pull_cursor('w', 'other', '{"wait_seconds": 7200}');
select is(test.waits('other'), interval '2 hours');
select autopost.set_pull_cursor('w', 'other', '{}');
select is(test.waits('other'), interval '5 minutes', 'without either, five minutes');
select autopost.set_pull_cursor('w', 'other', '{"more": true, "wait_seconds": 9000}');
select is(test.waits('other'), interval '120 seconds', 'between two chunks nobody else polls it');
select autopost.set_pull_cursor('w', 'other', '{"wait_seconds": 10}');
select is(test.waits('other'), interval '5 minutes', 'no hint makes it faster');
select autopost.set_pull_cursor('w', 'other', '{"wait_seconds": 1e9}');
select is(test.waits('other'), interval '1 day', 'nor slower than a day');
select autopost.fail_poll('w', 'feed', '{"code": "pull_http_429", "message": "m", "retry_after_seconds": 600}');
select is(test.waits('feed'), interval '10 minutes', 'who asks to be left alone is left alone');
select is((autopost.poll_source_now('w', 'feed', 'ann', 'r', true) - 'before' - 'after')
	|| to_jsonb(test.waits('feed') > '0'::interval), '[{"applied": true, "dry_run": true}, true]');
select autopost.poll_source_now('w', 'feed', 'ann', 'r', false);
select is(test.waits('feed'), interval '0', 'until a person wants it now');
select is(autopost.poll_source_now('w', 'nowhere', 'ann', 'r', false) ->> 'reason', 'unknown_source');

-- A moved address is reported once, without possible keys.
select autopost.set_pull_cursor('w', 'other', '{"moved_to": "https://new.example/feed?key=12345"}');
select autopost.set_pull_cursor('w', 'other', '{"moved_to": "https://new.example/feed?key=12345"}');
select is((select array_agg(e.meta ->> 'moved_to') from autopost.events e where e.error ->> 'code' = 'pull_moved'),
	'{https://new.example/feed}');

-- Gone for good: it is stopped, and a person may start it again.
select is(autopost.fail_poll('w', 'other', '{"code": "pull_http_410", "message": "h answered 410", "gone": true}'),
	'{"applied": true, "stopped": true}');
select is((select enabled::text || ' ' || (stopped ->> 'code') || ' ' || (stopped ->> 'message')
	from autopost.list_sources('w', 10) where source_id = 'other'),
	'false pull_http_410 h answered 410');
select is((select count(*)::int from autopost.events e where e.action = 'ingress_config_error'
	and e.meta -> 'stopped' = 'true'), 1);
select is(autopost.poll_source_now('w', 'other', 'ann', 'r', false) ->> 'reason', 'disabled');
select is((test.put('other', '{"enabled": true}') -> 'after') ? 'stopped', false);
select is(autopost.fail_poll('w', 'nowhere', '{"code": "c"}'), '{"applied": false}');

-- The public view of a source.
select autopost.ingest_pull_chunk('w', 'feed', 'feed',
	'[{"source_ref": "1", "payload": {"text": "x"}}, {"source_ref": "2", "skip": true, "skip_reason": "exclude"}]');
select is((select items_seen from autopost.list_sources('w', 10) where source_id = 'feed'), 2::bigint);
select is((select stats_json ->> 'seen_exclude' from autopost.ingest_runs where source_id = 'feed'), '1',
	'what was skipped is counted by its reason');
select ok((select config_json ->> 'url' !~ 'otherkey1' from autopost.list_sources('w', 10) where source_id = 'feed'));
select is(autopost.masked_config(
	'{"url": "https://ann:p!w@h.example/a?format=rss&key=12345&x_sig=9#f", "tags": ["a"]}'),
	'{"url": "https://[redacted]@h.example/a?format=rss&key=[redacted]&x_sig=[redacted]#f", "tags": ["a"]}',
		'nor anything that may be a key or a password');
select is(autopost.masked_config('{"query": "select 1"}'), '{"query": "select 1"}');
select is(autopost.get_source('w', 'feed') -> 'config_json' ->> 'url', 'https://h.example/feed?token=otherkey1',
	'the engine sees all');
select is(autopost.get_source('w', 'nowhere'), null);
select test.put('feed', '{"enabled": false}');
select is((select next_poll_at from autopost.list_sources('w', 10) where source_id = 'feed'), null,
	'a disabled source has no next poll');
update autopost.pull_sources set config_json = '{"nonsense": 1}' where source_id = 'plain';
select is(test.put('plain', '{"enabled": false}') ->> 'applied', 'true', 'what is wrong can be disabled');
select is(test.put('plain', '{"enabled": true}') ->> 'reason', 'invalid', 'and not enabled');

select * from finish();
rollback;
