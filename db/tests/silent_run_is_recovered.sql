begin;
\ir fake_clock.sql
\ir world.sql
select plan(22);

select test.channel(c) from unnest('{a,b,c}'::text[]) c;
select test.say('x');
select autopost.touch_run('daemon'), autopost.touch_run('other');
select test.claimed(1, 'daemon'), test.claimed(1, 'other'), test.claimed(1, 'n8n');
select is((select array_agg(claimed_by order by claimed_by) from autopost.deliveries), '{daemon,n8n,other}');

select test.tick('44.9 seconds');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '0', 'a heartbeat may be late');
select autopost.touch_run('other');
select test.tick('0.1 seconds');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '1', 'after 45 seconds of silence its leases are over');
select is((select array_agg(claimed_by order by claimed_by) from autopost.deliveries where status = 'sending'),
	'{n8n,other}',
	'those of a run that is heard are not, nor those of one that never had a heartbeat');
select is((select array_agg(e.action order by e.ts, e.cmin::text::int, e.ctid) from autopost.events e
	where e.action in ('sending_lease_expired', 'retry_scheduled')),
	'{sending_lease_expired,retry_scheduled}');
select is((select e.meta ->> 'run_id' from autopost.events e where e.action = 'sending_lease_expired'), 'daemon');
select test.tick('254.9 seconds');
select autopost.touch_run('other');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '0');
select test.tick('0.1 seconds');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '2', 'a full lease is a full lease for both');

-- Its other leases: of sources, submissions and post changes.
insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
select 'w', s, 'rss', '{"url": "https://example.com/feed", "interval_seconds": 3600}' from unnest('{feed,own,done,more}'::text[]) s;
select autopost.touch_run('daemon'), autopost.touch_run('other');
update autopost.pull_cursors set next_poll_at = 'infinity';
create function test.polled() returns text[]
language sql
as $$
select coalesce(array_agg(s.source_id order by s.source_id), '{}') from autopost.claim_sources('w', 'other', 10) s
$$;
select autopost.claim_sources('w', 'daemon', 4);
update autopost.pull_cursors set leased_by = null where source_id = 'own';
select autopost.set_pull_cursor('w', 'done', '{}'), autopost.set_pull_cursor('w', 'more', '{"more": true}');
select autopost.receive_push('w', 'in', '[{"text": "picture", "source_ref": "1", "media": [{"type": "image", "url": "https://example.com/a.jpg"}]}]');
select is((select count(*)::int from autopost.claim_submissions('w', 'daemon', 1)), 1);
select test.channel('sent');
select test.post('{"text": "to change", "routing": {"include_channels": ["sent"]}}');
select test.claimed(100, 'other');
select test.start('sent'), test.commit('sent', test.sent('7'));
select autopost.request_acts('w', 'pin', null, array[(test.row('sent')).delivery_id], null, null, 'ann', 'test', false);
select is((select count(*)::int from autopost.claim_acts('w', 'daemon', 10)), 1);
select test.tick('45 seconds');
select autopost.touch_run('other');
select is(test.polled(), '{}', 'the leases go on');
select is((select array_agg(w) from autopost.lapsed_workspaces(autopost.now_ts(), 10) w), '{w}', 'the monitor has work');
select autopost.recover_sending_leases('w');
select is((select array_agg(w) from autopost.lapsed_workspaces(autopost.now_ts(), 10) w), null);
select is(test.polled(), '{feed,more}', 'a poll in progress, whatever came after it; not one that ended, nor that of a caller without a run');
select is((select count(*)::int from autopost.claim_submissions('w', 'other', 1)), 1);
select is((select count(*)::int from autopost.claim_acts('w', 'other', 10)), 1);
select autopost.touch_run('other'), autopost.recover_sending_leases('w');
select is((select count(*)::int from autopost.pull_cursors where next_poll_at <= autopost.now_ts()), 0,
	'a daemon that lives keeps its leases');

-- The renewal of a credential, and the message of an alert.
select test.bind();
select autopost.put_alert_target('w', 'ops', '{"kind": "telegram", "address": "-100", "auth_ref": "bot"}', 'o', 'r', false);
create function test.renewal(p_run_id text) returns text
language sql
as $$
select a ->> 'granted' || coalesce(' ' || (a ->> 'reason'), '') from autopost.begin_refresh('w', 'bot', 0, '', null, p_run_id) a
$$;
create function test.messages(p_run_id text) returns int
language sql
as $$
select count(*)::int from autopost.claim_notices('w', 10, p_run_id)
$$;
select autopost.touch_run('dead'), autopost.raise_alert('w', 'duty_failing', 'x', null, '{}');
select is(array[test.renewal('dead'), test.messages('dead')::text], '{true,1}');
select test.tick('44 seconds');
select autopost.recover_sending_leases('w');
select is(array[test.renewal('other'), test.messages('other')::text], '{false leased,0}', 'the leases go on');
select test.tick('1 second');
select is((select array_agg(w) from autopost.lapsed_workspaces(autopost.now_ts(), 10) w), '{w}');
select autopost.touch_run('other'), autopost.recover_sending_leases('w');
select is(array[test.renewal('other'), test.messages('other')::text], '{true,1}', 'another daemon takes both over');
select autopost.touch_run('other'), autopost.recover_sending_leases('w');
select is(array[test.renewal('dead'), test.messages('dead')::text], '{false leased,0}', 'and keeps them');

select * from finish();
rollback;
