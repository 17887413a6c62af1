-- Lists: the newest first, a page continues after the last row of the previous one, and each filter applies.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(37);

select test.channel('a'), test.channel('b', p_platform => 'max');
select test.say('one'), test.tick('1 second');
select test.say('two'), test.tick('1 second');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url)
	values ('w', 'sha256:' || repeat('1', 64), 'file:///1');
select test.post('{"text": "three", "media": [{"type": "image", "blob_ref": "sha256:1111111111111111111111111111111111111111111111111111111111111111"}], "routing": {"include_channels": ["a"]}}'), test.tick('1 second');
select test.post('{"text": "four", "routing": {"include_channels": ["b"]}}');
select autopost.skip_deliveries('w', array(select d.delivery_id from autopost.deliveries d
	join autopost.messages m using (workspace_id, message_id) where m.payload ->> 'text' = 'two'), 'ann', 'no', false);
select autopost.pause_channel('w', 'a', 60, 'bob', 'quiet', false);

create function test.texts(p_filter jsonb, p_limit int default 10) returns text
language sql
as $$
select string_agg(l.excerpt, ' ' order by l.message_id desc) from autopost.list_messages('w', p_filter, p_limit) l
$$;
create function test.message(p_text text) returns uuid
language sql
as $$
select m.message_id from autopost.messages m where m.payload ->> 'text' = p_text
$$;
select is(test.texts('{}'), 'four three two one');
select is(test.texts('{}', 2), 'four three');
select is(test.texts(jsonb_build_object('before_id', test.message('three'))), 'two one', 'the next page');
select is(test.texts('{"status": "dead"}'), 'two');
select is(test.texts('{"channel_id": "a"}'), 'three two one');
select is(test.texts('{"channel_id": "b", "status": "queued"}'), 'four one');
select is(test.texts(jsonb_build_object('since', to_jsonb(clock_timestamp() - interval '1 minute'))),
	'four three two one');
select is(test.texts(jsonb_build_object('until', to_jsonb(clock_timestamp() - interval '1 minute'))), null);

-- A platform narrows each list to messages with a delivery there.
select is(test.texts('{"platform": "max"}'), 'four two one');
select is(test.texts('{"platform": "telegram"}', 2), 'three two');
select is(test.texts('{"platform": "x"}'), null);
select is(test.texts('{"platform": "max", "status": "queued"}'), 'four one', 'in that status');
select is(test.texts('{"platform": "max", "channel_id": "a"}'), null, 'one delivery has both');
select is(test.texts('{"platform": "max", "text": "tw"}'), 'two');
select is(test.texts(jsonb_build_object('platform', 'max', 'before_id', test.message('three'))), 'two one');

create function test.sent_to(p_filter jsonb, p_limit int default 10) returns text
language sql
as $$
select string_agg(l.channel_id || ':' || l.status, ' ' order by l.delivery_id desc)
	from autopost.list_deliveries('w', p_filter, p_limit) l
$$;
select is(test.sent_to('{"status": "dead"}'), 'b:dead a:dead');
select is(test.sent_to('{"channel_id": "a"}'), 'a:queued a:dead a:queued');
select is(test.sent_to('{"channel_id": "a"}', 2), 'a:queued a:dead',
	'of those that wait and those that are over, the newest');
select is(test.sent_to(jsonb_build_object('channel_id', 'a',
	'before_id', (select d.delivery_id from autopost.deliveries d where d.channel_id = 'a' and d.status = 'dead'))),
	'a:queued');
select is(test.sent_to('{"error_code": "manual_skip"}'), 'b:dead a:dead');
select is(test.sent_to('{"error_code": "manual_skip", "channel_id": "b"}'), 'b:dead');
select is(test.sent_to(jsonb_build_object('message_id', test.message('four'))), 'b:queued');
select is(test.sent_to('{"since": "2026-06-01T12:00:03Z"}'), 'b:queued', 'made at that instant or later');
select is(test.sent_to('{"until": "2026-06-01T12:00:01Z"}'), 'b:queued a:queued', 'made before that instant');

select is((select string_agg(l.kind, ' ') from autopost.list_runs('w', '{}', 2) l), 'api api');
select is((select count(*)::int
	from autopost.list_runs('w',
	jsonb_build_object('before_id', (select l.run_id from autopost.list_runs('w', '{}', 1) l)), 10)), 3);
select is((select count(*)::int from autopost.list_runs('w', '{"kind": "pull"}', 10)), 0);
select is((select count(*)::int from autopost.list_runs('w', '{"source_id": "s"}', 10)), 0);

select is((select string_agg(l.action, ' ' order by l.seq desc) from autopost.list_audit('w', '{}', 10) l),
	'pause_channel skip_deliveries');
select is((select string_agg(l.action, ' ')
	from autopost.list_audit('w',
	jsonb_build_object('before_id', (select x.id from autopost.list_audit('w', '{}', 1) x)), 10) l), 'skip_deliveries');
select is((select l.reason from autopost.list_audit('w', '{"subject": "channel:a"}', 10) l), 'quiet');
select is((select l.subject from autopost.list_audit('w', '{"operator": "ann"}', 10) l), 'deliveries');

-- Events of one instant are parted by their ids.
create temp table newest on commit drop as select l.ts, l.id from autopost.list_events('w', '{}', 1) l;
select is((select count(*)
	from autopost.list_events('w', (select jsonb_build_object('before_ts', to_jsonb(n.ts), 'before_id', n.id)
	from newest n), 100)) + 1,
	(select count(*) from autopost.list_events('w', '{}', 100)));
select is((select count(*)::int from autopost.list_events('w', '{"until": "2026-06-01T12:00:00Z"}', 100)), 0);

select autopost.put_template('w', t, null, '{"body": "{title}"}', 'ann', 'test') from unnest('{one,two}'::text[]) t;
select is((select string_agg(l.template_id, ' ')
	from autopost.list_templates('w', (select jsonb_build_object('after',
	jsonb_build_object('template_id', t.template_id, 'platform', t.platform,
	'version', t.version)) from autopost.list_templates('w', '{}', 1) t), 1) l),
	(select min(t.template_id) from autopost.list_templates('w', '{}', 2) with ordinality t where t.ordinality = 2),
		'templates too');
select throws_ok($$select autopost.list_messages('w', '{"before_id": "x"}', 1)$$, 'AP001', null);
select throws_ok($$select autopost.list_runs('w', '{"since": "2026-06-01"}', 1)$$, 'AP001', null);

select * from finish();
rollback;
