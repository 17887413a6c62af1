-- Moderators decide in chats: one message per chat and plan, a press counts once, and each chat shows what
-- was decided.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(91);

select test.channel('a');
select test.channel('b', p_platform => 'max', p_rate_group => 'maxbot');
select test.bind('tg'), test.bind('mx', 'max');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, moderated, meta) values
	('w', 'mod', 'webhook_push', repeat('b', 64), true, '{}'),
	('w', 'tg', 'bot_webhook', repeat('c', 64), false, '{"auth_ref": "tg"}');
insert into autopost.discovered_chats (workspace_id, platform, auth_ref, target_id, kind, first_seen, last_seen)
values ('w', 'telegram', 'tg', '-1001', 'channel', autopost.now_ts(), autopost.now_ts());

create function test.put(p_chat_id text, p_fields jsonb, p_dry boolean default false) returns jsonb language sql as $$
select autopost.put_moderation_chat('w', p_chat_id, p_fields, 'olga', 'a test', p_dry) $$;
create function test.push(p_text text) returns uuid language sql as $$
select (autopost.receive_push('w', 'mod', jsonb_build_array(jsonb_build_object('text', p_text)))
	#>> '{results,0,submission_id}')::uuid $$;
create temp table calls (n serial, c jsonb);
create function test.calls() returns text language plpgsql as $$
-- Claims all calls and returns them as "kind chat".
begin
	delete from calls;
	insert into calls (c) select autopost.claim_moderation('w', 10);
	return coalesce((select string_agg(concat_ws(' ', x.c ->> 'kind', x.c ->> 'chat_id'), ', ' order by x.n)
		from calls x), '');
end $$;
create function test.finished(p_outcome jsonb default '{"ok": true}') returns text language sql as $$
select string_agg(autopost.finish_moderation('w', x.c ->> 'kind', (x.c ->> 'id')::uuid, x.c ->> 'token', p_outcome
	|| jsonb_build_object('provider_message_id', (x.n + 100)::text)) ->> 'status', ', ' order by x.n) from calls x $$;
create function test.through(p_step interval default '1 second') returns text language plpgsql as $$
-- Makes all calls, one pass each second, and returns their kinds and chats.
declare v_calls text := ''; v_one text; v_idle int := 0;
begin
	while v_idle < 6 loop
		v_one := test.calls();
		v_idle := case v_one when '' then v_idle + 1 else 0 end;
		v_calls := concat_ws(', ', nullif(v_calls, ''), nullif(v_one, ''));
		perform test.finished();
		perform test.tick(p_step);
	end loop;
	return v_calls;
end $$;
create function test.nonce(p_chat_id text, p_decision text, p_submission_id uuid) returns text language sql as $$
select case p_decision when 'approve' then m.approve_nonce else m.reject_nonce end from autopost.moderation_messages m
where m.chat_id = p_chat_id and m.submission_id = p_submission_id order by m.created_at desc,
	m.message_id desc limit 1 $$;
create sequence test.update_ids;
create function test.press(p_nonce text, p_user bigint default 5001, p_chat bigint default -1001,
	p_id bigint default null, p_message bigint default null) returns text language sql as $$
select autopost.receive_update('w', 'tg', jsonb_build_object('update_id', coalesce(p_id, nextval('test.update_ids')),
	'callback_query', jsonb_build_object('id', 'cb' || coalesce(p_id, currval('test.update_ids')), 'data',
		'm:' || p_nonce,
	'from', jsonb_build_object('id', p_user, 'first_name', 'Olga'), 'message', jsonb_build_object('message_id',
		coalesce(p_message,
	(select m.provider_ids[1]::bigint from autopost.moderation_messages m where p_nonce in (m.approve_nonce,
		m.reject_nonce)), 1),
	'chat', jsonb_build_object('id', p_chat, 'type', 'channel'))))) ->> 'status' $$;
create function test.answer() returns text language sql as $$
select p.answer from autopost.moderation_presses p order by p.pressed_at desc, p.press_id desc limit 1 $$;
create function test.status(p_id uuid) returns text language sql as $$
select s.status from autopost.submissions s where s.submission_id = p_id $$;

-- Configuration.
select is(test.put('mods', '{"auth_ref": "no", "target_id": "-1001"}') #>> '{errors,0,field}', 'auth_ref');
select is(test.put('mods', '{"auth_ref": "tg", "target_id": "nowhere"}') #>> '{errors,0,field}', 'target_id');
select is(test.put('mods', '{"auth_ref": "tg", "target_id": "-1001", "users": ["olga"]}') #>> '{errors,0,field}',
	'users');
select is(test.put('mods', '{"auth_ref": "tg", "target_id": "-1001"}') - 'after',
	'{"applied": true, "dry_run": false, "created": true, "before": {}}');
select is(test.put('two', '{"auth_ref": "tg", "target_id": "-1001"}') #>> '{errors,0,field}', 'target_id',
	'one row for a chat');
select matches(test.put('max', '{"auth_ref": "mx", "target_id": "-7"}') ->> 'note',
	'autopost endpoint add NAME --kind max');
select matches((select l.fault from autopost.list_moderation_chats('w', 10) l where l.chat_id = 'max'),
	'no endpoint gets the updates');
select matches((select l.fault from autopost.list_moderation_chats('w', 10) l where l.chat_id = 'mods'),
	'not yet asked');
select is((select array_agg(i.value ->> 'id') from jsonb_array_elements(autopost.export_config('w')) i
	where i.value ->> 'kind' = 'moderation_chat'), '{max,mods}');
select is((select array_agg(c ->> 'chat_id') from autopost.list_configuration('w', 'moderation_chat', '{}', 10) c),
	'{max,mods}');

-- Each chat is asked once about a post.
create temp table posts as select test.push('Hello **you**') as one;
select is((select array_agg(w) from autopost.ready_moderation_workspaces(10) w), '{w}');
select is(array(select autopost.due_stages(0)), '{moderation}');
select is(test.calls(), 'ask max, ask mods');
select is(test.calls(), '', 'a claim has a lease');
select is((select array_agg(w) from autopost.ready_moderation_workspaces(10) w), null);
delete from calls;
insert into calls (c) select autopost.moderation_call(m, 'ask') || jsonb_build_object('text', m.text, 'buttons',
	m.approve_nonce)
	from autopost.moderation_messages m order by m.chat_id;
select matches((select c.c ->> 'text' from calls c where c.c ->> 'chat_id' = 'mods'),
	'Author: .*mod\nChannels: .*a.*\nExpires: 2\d{3}-.* UTC\n\n.*Hello \*\*you\*\*');
select is(test.finished(), 'open, open');
select matches(autopost.why('w', p.one) #>> '{now,sentence}', '^waits for a decision until .* UTC, asked in max, mods$') from posts p;
select test.tick('1 second');
select is(test.through(), '', 'nothing more to say');

-- A press decides once.
select is(test.press(test.nonce('mods', 'approve', p.one), p_id => 900), 'stored') from posts p;
select is(test.press(test.nonce('mods', 'approve', p.one), p_id => 900), 'duplicate') from posts p;
select is(test.status(p.one), 'enqueued') from posts p;
select is(test.answer(), 'Approved.');
select is((select count(*)::int from autopost.moderation_presses), 1);
select is((select array[a.approver, a.source, a.decision, (a.digest = m.digest)::text] from autopost.approvals a
	join autopost.moderation_messages m on m.chat_id = 'mods'), '{telegram:user:5001,telegram,approve,true}');
select is((select array[l.action, l.operator, l.reason] from autopost.list_audit('w', '{}', 1) l),
	'{approve_submission,telegram:user:5001,"pressed Approve in chat mods"}');
select matches(autopost.decision_text(jsonb_populate_record(s,
	'{"status": "failed", "last_error": {"message": "no channel"}}')), 'telegram\)\. It could not be queued: no channel$')
from autopost.submissions s join posts p on p.one = s.submission_id;
select is(test.calls(), 'answer, close max, close mods');
select matches(c.c ->> 'text', '^Approved by Olga \(telegram:user:5001\) on .* UTC \(telegram\)\.\n\nA post of')
	from calls c
	where c.c ->> 'kind' = 'close';
select is(array(select c.c -> 'provider_ids' from calls c where c.c ->> 'chat_id' = 'mods'), array['["104"]'::jsonb]);
select is(test.finished(), 'answered, closed, closed');
select test.press(test.nonce('mods', 'reject', p.one), 6002) from posts p;
select matches(test.answer(), '^Approved by Olga \(telegram:user:5001\) on', 'the second person learns who decided');
select is((select l.action from autopost.list_audit('w', '{}', 1) l), 'press_refused');
select is(test.through(), 'answer');

-- Who may decide.
select is(test.put('mods', '{"users": ["5001"]}') -> 'applied', 'true');
update posts set one = test.push('Second');
select is(test.through(), 'ask max, ask mods');
select test.press(test.nonce('mods', 'approve', p.one), 6002) from posts p;
select matches(test.answer(), 'You may not decide here.* id 6002');
select test.press(test.nonce('mods', 'approve', p.one), 6002) from posts p;
select is((select count(*)::int from autopost.admin_audit_log l where l.action = 'press_refused'), 2,
	'the same press is audited once');
select test.press(test.nonce('mods', 'approve', p.one), 5001, -1002) from posts p;
select matches(test.answer(), 'no longer known', 'a button of another chat');
select test.press(repeat('x', 22), 5001);
select matches(test.answer(), 'no longer known');
select is(test.press('not-a-nonce'), 'stored', 'no button of ours');
select is((select count(*)::int from autopost.moderation_presses), 6);
select is(test.status(p.one), 'pending') from posts p;

-- An edit makes the buttons void, and asks again.
create temp table old as select test.nonce('mods', 'approve', p.one) as nonce from posts p;
select is(autopost.edit_submission('w', p.one, '{"text": "Third"}', 'user:ivan', 'nicer', false) -> 'applied', 'true')
	from posts p;
select test.press(o.nonce) from old o;
select matches(test.answer(), 'changed since');
select is(test.status(p.one), 'pending') from posts p;
select is(test.through(), 'answer, answer, answer, answer, answer, close max, close mods, ask max, ask mods');
select matches((select m.text from autopost.moderation_messages m where m.chat_id = 'mods' and m.status = 'open'),
	'Edited by: user:ivan.*Third');

-- Two people.
update autopost.workspaces set approvals_needed = 2 where workspace_id = 'w';
select test.put('mods', '{"users": []}');
select test.press(test.nonce('mods', 'approve', p.one)) from posts p;
select is(test.answer(), 'You approved it. 1 more approval is needed.');
select test.press(test.nonce('mods', 'approve', p.one)) from posts p;
select is(test.answer(), 'You approved it already. One more approval is needed.');
select test.press(test.nonce('mods', 'reject', p.one)) from posts p;
select is(test.answer(), 'Rejected.', 'the same person may still reject');
select is(test.status(p.one), 'rejected') from posts p;
update autopost.workspaces set approvals_needed = 1 where workspace_id = 'w';

-- Other ways of a decision, and the expiry.
select test.through();
update posts set one = test.push('Fourth');
select is(test.through(), 'ask max, ask mods');
select is(autopost.decide_submission('w', p.one, 'reject', '{"source": "api"}', 'key:k', 'off topic') ->> 'status',
	'rejected') from posts p;
select is(test.calls(), 'close max, close mods');
select matches((select c.c ->> 'text' from calls c limit 1), '^Rejected by key:k on .* \(api\)\. Reason: off topic');
select test.finished();
update posts set one = test.push('Fifth');
select test.tick('1 second');
select test.through();
select test.tick('73 hours');
select autopost.expire_submissions('w');
select test.press(test.nonce('mods', 'approve', p.one)) from posts p;
select matches(test.answer(), '^Expired on .* without a decision');
select is(test.calls(), 'answer, close max, close mods');
select matches((select c.c ->> 'text' from calls c where c.c ->> 'kind' = 'close' limit 1), '^Expired on');
select test.finished();

-- Failures: a wait of the platform, an unknown outcome, a dead daemon.
select test.put('max', '{"enabled": false}');
update posts set one = test.push('Sixth');
select test.tick('1 second');
select is(test.calls(), 'ask mods');
select is(test.finished(jsonb_build_object('ok', false, 'error', test.failure('TRANSIENT', 'channel',
	'tg_429') -> 'error'
	|| '{"retry_after_ms": 40000}')), 'pending');
select test.tick('39 seconds');
select is(test.calls(), '', 'the wait of the platform is kept');
select test.tick('1 second');
select is(test.calls(), 'ask mods');
select test.tick('121 seconds');
select is(test.calls(), 'ask mods', 'the daemon died: sent once more');
select is(test.finished(jsonb_build_object('ok', false, 'error', test.failure('TRANSIENT', 'delivery',
	'unknown_outcome')
	-> 'error' || '{"known": false}')), 'open', 'then it counts as sent');
select test.press(test.nonce('mods', 'approve', p.one), p_message => 777) from posts p;
select is((select m.provider_ids from autopost.moderation_messages m join posts p on p.one = m.submission_id), '{777}',
	'a press brings its id');
select is(test.status(p.one), 'enqueued') from posts p;
select test.tick('1 minute');
select test.through();
update posts set one = test.push('Seventh');
select test.calls();
select is(test.finished(jsonb_build_object('ok', false, 'error', test.failure('PERMANENT', 'channel', 'tg_forbidden')
	-> 'error')), 'pending');
select is((select a.subject from autopost.alerts a where a.kind = 'moderation_chat_failing' and a.ended_at is null),
	'moderation_chat:mods');
select test.tick('1 minute');
select is(test.through(), 'ask mods', 'it is repeated');
select is((select count(*)::int from autopost.alerts a where a.kind = 'moderation_chat_failing'
	and a.ended_at is null), 0);

-- A group became a supergroup: its new id is used, and what waits is asked there again.
update posts set one = test.push('Eighth');
select test.calls();
select is(test.finished(jsonb_build_object('ok', false, 'error', test.failure('TRANSIENT', 'channel', 'tg_chat_migrated')
	-> 'error' || '{"moved": {"from": "-1001", "to": "-1003"}}')), 'pending');
select is((select c.target_id from autopost.moderation_chats c where c.chat_id = 'mods'), '-1003');
select is((select l.action from autopost.list_audit('w', '{}', 1) l), 'move_moderation_chat');
select test.tick('2 seconds');
select is(test.through(), 'close mods, ask mods, ask mods');
select is((select array_agg(m.target_id || m.status order by m.created_at) from autopost.moderation_messages m
	where m.chat_id = 'mods' and m.text ~ 'Seventh'), '{-1001closed,-1003open}');

-- The same holds for a chat that an owner replaces: the old one no longer decides.
create temp table replaced as select test.nonce('mods', 'approve', p.one) as nonce from posts p;
select test.put('mods', '{"target_id": "-1004"}');
select test.press(r.nonce, p_chat => -1003) from replaced r;
select is(test.answer(), 'This chat no longer decides about posts.');
select is(test.through(), 'answer, close mods, close mods, ask mods, ask mods');
select test.put('mods', '{"target_id": "-1003"}');
select is(test.through(), 'close mods, close mods, ask mods, ask mods');

-- A disabled chat loses its buttons. A removed one is not known.
select test.put('mods', '{"enabled": false}');
select test.press(test.nonce('mods', 'approve', p.one)) from posts p;
select matches(test.answer(), 'no longer known', 'of the chat before');
select test.press(test.nonce('mods', 'approve', p.one), p_chat => -1003) from posts p;
select matches(test.answer(), 'no longer decides');
select is(test.through(), 'answer, answer, close mods, close mods');
select is(autopost.remove_moderation_chat('w', 'mods', 'olga', 'gone', false) -> 'applied', 'true');
select is(autopost.remove_moderation_chat('w', 'mods', 'olga', 'gone', false) ->> 'reason', 'unknown_chat');

-- A long text is cut, and a group of Telegram gets at most 20 messages in any minute.
select test.put('group', '{"auth_ref": "tg", "target_id": "-50"}');
select test.push(case when n > 3 then 'Post ' else repeat('🙂 word ', 497) end || n) from generate_series(1, 50) n;
create temp table sends (at timestamptz);
do $$
begin
	for i in 1 .. 210 loop
		insert into sends select autopost.now_ts() where test.calls() <> '';
		perform test.finished();
		perform test.tick('1 second');
	end loop;
end
$$;
select is((select count(*)::int from autopost.moderation_messages m where m.chat_id = 'group' and m.status = 'open'),
	52);
select ok((select max(c.n) <= 20 from (select count(*) over (order by s.at range between current row
	and '60 seconds' following) as n from sends s) c));
select ok((select bool_and(autopost.utf16_length(m.text) <= 4096 and autopost.utf16_length(m.text) > 3900
	and m.text ~ '…$')
	from autopost.moderation_messages m where m.chat_id = 'group' and m.text ~ '🙂'));
select is((select count(*)::int from autopost.verify('w')  v where v.violations > 0), 0, 'the invariants hold');


-- Messages and presses go with their posts.
select test.tick('80 hours');
select autopost.expire_submissions('w');
select test.tick('400 days');
select autopost.purge_receipts('w'), autopost.purge_submissions('w');
select is((select count(*)::int from autopost.moderation_messages), 0);
select is((select count(*)::int from autopost.moderation_presses), 0);

select * from finish();
rollback;
