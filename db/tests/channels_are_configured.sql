-- Functions add, change, show and remove a channel. They validate each value as the rest of the installation does.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(96);
select test.bind();
create function test.logged() returns autopost.admin_audit_log
language sql
as $$
select l from autopost.admin_audit_log l order by l.seq desc limit 1
$$;
create function test.put(p_fields jsonb, p_channel_id text default 'a', p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.put_channel('w', p_channel_id, p_fields, 'olga', 'drill', p_dry_run)
$$;
create function test.wrong(p_fields jsonb, p_channel_id text default 'a') returns text
language sql
as $$
-- The field errors: "field reason; …", each with a remedy.
select string_agg((e.value ->> 'field') || ' ' || (e.value ->> 'reason') || case
	when e.value ->> 'remedy' = '' then ' NO REMEDY' else '' end, '; ' order by e.ordinality)
from jsonb_array_elements(test.put(p_fields, p_channel_id) -> 'errors') with ordinality e
$$;

-- A new one.
select is(test.put('{}'), '{"applied": false, "dry_run": false, "reason": "invalid", "errors": [
	{"field": "auth_ref", "reason": "is missing", "remedy": "write the name of a credential", "code": "missing"}, {"field": "platform", "reason": "is missing", "remedy": "write a text", "code": "missing"},
	{"field": "rate_group", "reason": "is missing", "remedy": "write a text", "code": "missing"}, {"field": "target_id", "reason": "is missing", "remedy": "write where the posts go", "code": "missing"}]}');
select is(
	test.put(
	'{"max_parallel": 1.5}') -> 'errors' @>
	'[{"field": "max_parallel", "reason": "must be a whole number", "remedy": "write a whole number from 1 to 10000"}]',
	true);
create temp table dry on commit drop as
	select test.put('{"platform": "telegram", "target_id": "@a", "auth_ref": "bot", "tags": ["ru"]}',
	p_dry_run => true) as answer;
select is((select count(*)::int from autopost.channels), 0, 'a dry run adds nothing');
select is(test.put('{"platform": "telegram", "target_id": "@a", "auth_ref": "bot", "tags": ["ru"]}'),
	(select answer || '{"dry_run": false}' from dry), 'and answers what the act does');
select is((select answer from dry), '{"applied": true, "dry_run": true, "created": true, "before": {},
	"after": {"platform": "telegram", "target_id": "@a", "auth_ref": "bot", "tags": ["ru"]}}', 'only what is not the default');
select is((select row(c.platform, c.target_id, c.auth_ref, c.rate_group, c.enabled, c.send_mode, c.rate_rps,
	c.max_parallel, c.dedup_ttl_hours, c.on_unknown, c.tags, c.route_filter, c.created_at)::text
	from autopost.channels c where c.channel_id = 'a'),
	row('telegram', '@a', 'bot', 'bot', true, 'mixed', 1, 1, 168, 'reconcile', '{ru}'::text[], null,
		autopost.now_ts())::text, 'its rate group is that of its credential');
select is((test.gate('a')).rate_group, 'bot', 'it has its gate');
select is((test.logged()).action || ' ' || (test.logged()).subject, 'put_channel channel:a');
select is((test.logged()).after, (select answer -> 'after' from dry));
select is(test.put('{"target_id": "@a", "rate_rps": 1.0, "title": null}'),
	'{"applied": false, "dry_run": false, "reason": "unchanged"}');

-- A change.
select test.tick('1 minute');
select is(test.put('{"title": "News", "rate_rps": 0.5, "settings": {"long_text": "split", "utm": {"utm_source": "tg"}, "protect_content": true},
	"window_mode": "windowed", "timezone": "Europe/Moscow", "posting_window": {"mon": [["09:00", "12:00"]]}, "route_filter": {"include_any": ["ru"]}, "max_parallel": 3}'),
	'{"applied": true, "dry_run": false, "created": false,
	"before": {"title": null, "rate_rps": 1, "settings": {}, "window_mode": "immediate", "timezone": null, "posting_window": null, "route_filter": null, "max_parallel": 1},
	"after": {"title": "News", "rate_rps": 0.5, "settings": {"long_text": "split", "utm": {"utm_source": "tg"}, "protect_content": true},
		"window_mode": "windowed", "timezone": "Europe/Moscow", "posting_window": {"mon": [["09:00", "12:00"]]}, "route_filter": {"include_any": ["ru"]}, "max_parallel": 3}}');
select is((test.logged()).before -> 'rate_rps', '1');
select is((test.channel_row('a')).updated_at, autopost.now_ts());
select is(test.put('{"title": null, "rate_rps": null, "settings": null, "window_mode": null, "timezone": null, "posting_window": null, "route_filter": null, "max_parallel": null, "tags": null}') -> 'after',
	'{"title": null, "rate_rps": 1, "settings": {}, "window_mode": "immediate", "timezone": null, "posting_window": null, "route_filter": null, "max_parallel": 1, "tags": []}', 'null is the default');
select is((select row(c.title, c.posting_window is null, c.route_filter is null, c.settings)::text
	from test.channel_row('a') c), row(null, true, true, '{}'::jsonb)::text, 'and empties what has none');
update autopost.channels set rate_rps = null, dedup_ttl_hours = null where channel_id = 'a';
select is(autopost.get_channel('w', 'a') #> '{fields,rate_rps}', '0', 'no limit is 0');
select is(test.put('{"dedup_ttl_hours": 168, "rate_rps": 0}') ->> 'reason', 'unchanged');
select is(test.put('{"rate_rps": null}') -> 'after', '{"rate_rps": 1}');

-- Errors of values.
select is(test.wrong(p), w, p::text) from (values
	('{"platform": "max"}'::jsonb, 'platform cannot be changed'),
	('{"target_id": "news"}', 'target_id must be a target of telegram, got "news"'),
	('{"target_id": "-100:x"}', 'target_id must be a target of telegram, got "-100:x"'),
	('{"target_id": ""}', 'target_id is missing'),
	('{"auth_ref": null}', 'auth_ref is missing'),
	('{"enabled": "yes"}', 'enabled must be a boolean'),
	('{"title": "a\u0007b"}', 'title must not have control characters'),
	('{"send_mode": "loud"}', 'send_mode "loud" is unknown'),
	('{"rate_rps": -1}', 'rate_rps -1 is out of range'),
	('{"rate_rps": "fast"}', 'rate_rps must be a number'),
	('{"max_parallel": 0}', 'max_parallel 0 is out of range'),
	('{"max_parallel": 1.5}', 'max_parallel must be a whole number'),
	('{"timezone": "MSK"}', 'timezone must be a known time zone, got "MSK"'),
	('{"posting_window": {"mon": [["9", "12:00"]]}}',
		'posting_window has ["9", "12:00"] for mon, which is not a pair of times'),
	('{"posting_window": []}', 'posting_window must be an object'),
	('{"window_mode": "windowed"}', 'posting_window is missing though window_mode is windowed'),
	('{"dedup_ttl_hours": 2161}', 'dedup_ttl_hours 2161 is out of range'),
	('{"on_unknown": "guess"}', 'on_unknown "guess" is unknown'),
	('{"on_auth_lost": "cry"}', 'on_auth_lost "cry" is unknown'),
	('{"settings": {"long_text": "shorten", "utm": {"a-b": "c"}, "parse_mode": "html", "disable_preview": 1}}',
		'settings.parse_mode "html" is unknown; settings.long_text "shorten" is unknown; settings.disable_preview must be a boolean; settings.utm must be an object of parameters'),
	('{"settings": {"utm": []}}', 'settings.utm must be an object of parameters'),
	('{"tags": ["a", 7]}', 'tags must hold texts only'),
	('{"tags": "a"}', 'tags must be a list'),
	('{"route_filter": {"include": ["a"]}}', 'route_filter has ''include'', which is not a condition'),
	('{"route_filter": {"exclude": "a"}}', 'route_filter has no list of tags for exclude'),
	('{"route_filter": {"include_all": ["A"]}}', 'route_filter must have only tags in lower case for include_all'),
	('{"route_filter": {"include_all": [""]}}', 'route_filter must have only tags in lower case for include_all'),
	('{"template_ref": "digest"}', 'template_ref must be a template for this platform, got "digest"')) c (p, w);
select is(autopost.route_filter_error('[]'), 'must be an object of conditions');
select is(test.wrong('{"platform": "pigeon", "target_id": "@b", "auth_ref": "bot"}', 'b'),
	'platform "pigeon" is unknown');
select is(test.wrong('{"platform": "max", "target_id": "@b", "auth_ref": "bot"}', 'b'),
	'target_id must be a target of max, got "@b"');
select is(test.wrong('{"platform": "telegram", "target_id": "@a", "auth_ref": "bot"}', 'b'),
	'target_id is the target of channel a already');
select is(test.put('{"platform": "x", "target_id": "anything at all", "auth_ref": "x"}', 'x',
	true) #>> '{errors,0,remedy}', 'write the id or the name of the account: 783214 or @name');
select is(test.put('{"platform": "youtube", "target_id": "@demo", "auth_ref": "x"}', 'x', true) #>> '{errors,0,field}',
	'target_id');
select is(test.put('{"platform": "x", "target_id": "@nyx", "auth_ref": "x"}', 'x', true) -> 'applied', 'true');
select is(test.put(jsonb_build_object('platform', 'telegram', 'target_id', t, 'auth_ref', 'bot'), t, true) -> 'applied',
	'true', t)
from unnest('{@news,-1001234567890,-1001234567890:42,@news:7}'::text[]) t;
select is((select count(*)::int from autopost.channels), 1, 'what is refused leaves nothing');
update autopost.settings set value = '10' where key = 'delivery_retention_days';
select is(test.wrong('{"dedup_ttl_hours": 241}'), 'dedup_ttl_hours 241 is longer than deliveries are kept');
select autopost.put_template('w', 'digest', null, '{"body": "{text}"}', 'o', 'r');
select is(test.put('{"template_ref": "digest"}') -> 'after', '{"template_ref": "digest"}');

-- Old values that became invalid by plain edits do not block another change.
alter table autopost.channels disable trigger check_routing; -- as a row from before
update autopost.channels set target_id = 'odd', title = e'a\u0007b', route_filter = '{"include_any": ["RU"]}'
	where channel_id = 'a';
alter table autopost.channels enable trigger check_routing;
select is(test.put('{"max_parallel": 2}') -> 'applied', 'true');
select is(test.put(autopost.get_channel('w', 'a') -> 'fields') ->> 'reason', 'unchanged',
	'nor is what is written as it is');
select is(test.put('{"title": "Odd"}') -> 'applied', 'true');
select is(test.wrong('{"route_filter": {"include_any": ["EN"]}}'),
	'route_filter must have only tags in lower case for include_any');
update autopost.channels set target_id = '@a', route_filter = null where channel_id = 'a';

-- Enabled and disabled: an event, and no failures to begin with.
update autopost.channels set error_streak = 2 where channel_id = 'a';
select is(test.put('{"enabled": false}') -> 'after', '{"enabled": false}');
select is(test.count_events('channel_disabled', 'a'), 1);
select is((select e.meta from autopost.events e where e.action = 'channel_disabled'),
	'{"manual": true, "operator": "olga", "reason": "drill"}');
select is(test.put('{"enabled": true}') -> 'after', '{"enabled": true}');
select is(test.count_events('channel_enabled', 'a'), 1);
select is((test.channel_row('a')).error_streak, 0);

-- Another credential: not while something is being sent.
select test.say('x');
select test.tick('1 millisecond');
select test.claimed();
select is(test.wrong('{"auth_ref": "bot2"}'), 'auth_ref must not change while a call is in flight');
select is(test.put('{"title": "Meanwhile"}') -> 'applied', 'true', 'all else may change');
select test.start('a');
select test.commit('a', test.sent('1'));
select is(test.put('{"auth_ref": "bot2"}') -> 'after', '{"auth_ref": "bot2", "rate_group": "bot2"}',
	'the rate group of the credential follows it');
select is((select row(c.auth_ref, c.rate_group, a.auth_ref)::text from autopost.channels c
	join autopost.channel_auth a on a.channel_id = c.channel_id
	where c.channel_id = 'a'), row('bot2', 'bot2', 'bot2')::text);
select is(test.count_events('auth_rotated', 'a'), 1);
update autopost.channel_auth set auth_ref = 'bot3' where channel_id = 'a';
select is(autopost.get_channel('w', 'a') #>> '{fields,auth_ref}', 'bot3', 'the one that is used counts');
select is(test.put('{"rate_group": null}') -> 'after', '{"rate_group": "bot3"}',
	'by default the group is that of the credential');
select is((test.gate('a')).rate_group, 'bot3', 'and the gate follows');

-- Shown.
select is(autopost.get_channel('w', 'a') -> 'state' -> 'waiting', '0');
select is(autopost.get_channel('w', 'nobody'), null);

-- Taken away, when nothing is left of it.
create function test.remove(p_channel_id text, p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.remove_channel('w', p_channel_id, 'olga', 'drill', p_dry_run)
$$;
select test.put('{"platform": "x", "target_id": "@nyx", "auth_ref": "x"}', 'x');
select is(test.remove('nobody'), '{"applied": false, "dry_run": false, "reason": "unknown_channel"}');
select is(test.remove('x'), '{"applied": false, "dry_run": false, "reason": "enabled"}');
select test.put('{"enabled": false}'), test.put('{"enabled": false}', 'x');
select is(test.remove('a'),
	'{"applied": false, "dry_run": false, "reason": "referred_to", "references": {"deliveries": 1}}');
select is(test.remove('x', true) -> 'applied', 'true');
select is((select count(*)::int from autopost.channels), 2, 'a dry run takes nothing away');
select autopost.put_quota('w', 'channel:x', 60, '{"max_sends": 1}', 'o', 'r', false);
select is(test.remove('x') -> 'references', '{"quotas": 1}');
select autopost.delete_quota('w', 'channel:x', 60, 'o', 'r', false);
select is(test.remove('x') -> 'before' -> 'target_id', '"@nyx"');
select is((select count(*)::int from autopost.channels), 1);

-- Settings that nobody reads are named, and one that promises what is not there is refused.
select is(
	test.put(
	'{"settings": {"long_text": "split", "bogus": true, "protect_content": true, "avatar_id": "7", "telegram": {}}}')
	->> 'note',
	'platform telegram reads no settings.avatar_id and no settings.bogus');
select is(test.put('{"title": "Later"}') -> 'note', null, 'once');
update autopost.platforms set setting_keys = null where platform = 'telegram';
select is(test.put('{"settings": {"bogus": true, "more": 1}}') -> 'note', null,
	'an adapter that does not say what it reads may read anything');
select is(test.put('{"settings": {}, "posting_window": {"mon": [["09:00", "12:00"]]}, "window_mode": "immediate"}') ->> 'note',
	'posting_window has no effect while window_mode is immediate');
select is(test.put('{"window_mode": "windowed"}') -> 'note', null);
select is(test.wrong('{"settings": {"moderated": true}}'),
	'settings.moderated must be absent');

-- Only a new id is judged: what has another is changed and taken away as ever.
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
	values ('w', E' a\tb ', 'telegram', '@old', 'bot', 'bot');
select is(test.put('{"enabled": false}', E' a\tb ') -> 'applied', 'true');
select is(test.remove(E' a\tb ') -> 'applied', 'true');

select * from finish();
rollback;
