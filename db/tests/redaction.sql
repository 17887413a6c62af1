-- Values that must not reach an event, an error or an answer.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(40);

-- Inside JSON a line feed and a tab are written as escapes.
select is(autopost.redact(jsonb_build_object('message', 'Basic' || space || 'dXNlcjpwYXNz')) ->> 'message',
	'Basic [redacted]', 'credentials after white space')
from (values (e'\n'), (e'\t')) v (space);

select is(autopost.redact(t), e, t) from (values
	('bot 123456789:AAF3xN-abcdefghijklmnopqrstuvwxyz012 said', 'bot [redacted] said'),
	('https://api.telegram.org/bot123456789:AAF3xN-abcdefghijklmnopqrstuvwxyz012/sendMessage',
		'https://api.telegram.org/bot[redacted]/sendMessage'),
	('Authorization: Bearer eyJhbGciOi.J9.abc', 'Authorization: [redacted]'),
	('bearer abcdef123456', 'bearer [redacted]'),
	('Basic dXNlcjpwYXNz', 'Basic [redacted]'),
	('access_token=f9LHodD0cOLabcdef&chat_id=5', 'access_token=[redacted]&chat_id=5'),
	('{"api_key": "abcd1234"}', '{"api_key": "[redacted]"}'),
	('password: hunter22', 'password: [redacted]'),
	('client_secret=abcdefgh', 'client_secret=[redacted]'),
	('https://a.b/videos?uploadType=resumable&upload_id=AEnB2U-q&part=snippet',
		'https://a.b/videos?uploadType=resumable&upload_id=[redacted]&part=snippet'),
	('write to ivan.petrov+x@mail.example.ru now', 'write to [redacted] now'),
	('call +7 (916) 123-45-67 now', 'call [redacted] now'),
	('call +79161234567', 'call [redacted]'),
	('call 8 (916) 123-45-67 or 8-916-123-45-67', 'call [redacted] or [redacted]'),
	('call 89161234567, or (495) 123-45-67', 'call [redacted], or [redacted]'),
	('call (555) 123-4567', 'call [redacted]'),
	('post 1859161234567890123 of user 8916123456', 'post 1859161234567890123 of user 8916123456'),
	('order 4711 at 12:30, 2026-06-01', 'order 4711 at 12:30, 2026-06-01'),
	('the token was refused', 'the token was refused'),
	('chat -1001234567890 not found', 'chat -1001234567890 not found')) x (t, e);
select is(autopost.redact('{"a": "call 8 (916) 123-45-67"}'::jsonb), '{"a": "call [redacted]"}');
select is(autopost.redact(jsonb_build_object('a', 'call' || space || '8 (916) 123-45-67')) ->> 'a', 'call' || space || '[redacted]',
	'a phone number after white space that JSON escapes')
from (values (e'\n'), (e'\t'), (e'\r'), (e'\u000b')) v (space);
select is(autopost.redact('{"id": "01935f2e-7b8-8-123-89161234567"}'::jsonb), '{"id": "01935f2e-7b8-8-123-89161234567"}');
select is(autopost.redact(null::text), null);
select is(autopost.redact('{"at": "https://a.b/?upload_id=AEnB2U"}'::jsonb),
	'{"at": "https://a.b/?upload_id=[redacted]"}');
select is(autopost.redact('{"a": ["bearer abcdef123456", 1, null], "refresh_token": "x", "n": {"Authorization": "y"}, "claim_token": "kept"}'::jsonb),
	'{"a": ["bearer [redacted]", 1, null], "refresh_token": "[redacted]", "n": {"Authorization": "[redacted]"}, "claim_token": "kept"}');

-- A canary through every way an outsider's words get in.
select test.channel('a');
select test.say('x');
create temp table canary on commit drop as select '987654321:AAcanary_canary_canary_canary_canary'::text as secret;
create function test.leaky() returns jsonb
language sql
as $$
select jsonb_build_object('message', 'https://api.example/bot' || secret || '/send failed for ivan@example.org', 'raw',
	jsonb_build_object('url', 'https://api.example/bot' || secret, 'headers',
		jsonb_build_object('Authorization', 'Bearer ' || secret), 'body', repeat('long ', 500))) from canary
$$;
select test.round('a', test.failure('TRANSIENT', 'channel', 'http_500', test.leaky() || '{"retry_after_ms": 1000}'));
select test.tick('1 hour');
select test.round('a', test.failure('PERMANENT', 'channel', 'http_403', test.leaky()));
update autopost.channels set paused_until = null;
select test.tick('1 hour');
select test.say('y');
select test.round('a', test.failure('TRANSIENT', 'delivery', 'timeout', test.leaky() || '{"known": false}'));
select test.tick('1 hour');
select test.round('a', test.sent('1') || jsonb_build_object('raw', test.leaky()));
select autopost.fail_poll('w', 'feed', jsonb_build_object('code', 'x', 'message', test.leaky() ->> 'message'));
select autopost.resolve_unknown('w', (test.row('a')).delivery_id, 'absent', null, 'op', (select secret from canary));
select autopost.manual_requeue('w', array(select delivery_id from autopost.deliveries
	where status = 'failed_permanent'), 'op', (select 'because ' || secret from canary));

select cmp_ok(test.count_events('sent') + test.count_events('retry_scheduled') + test.count_events(
	'failed_permanent') + test.count_events('manual_requeue'), '>=', 5, 'the roads were taken');
select is((select count(*)::int from autopost.events e, canary where to_jsonb(e)::text like '%' || secret || '%'), 0,
	'no event');
select is((select count(*)::int from autopost.events e where to_jsonb(e)::text like '%ivan@%'), 0);
select is((select count(*)::int from autopost.deliveries d, canary where to_jsonb(d)::text like '%' || secret || '%'),
	0, 'no delivery');
select is((select max(length(d.last_error ->> 'raw')) from autopost.deliveries d), 512,
	'of a raw answer a snippet is kept');
select cmp_ok((select max(length(e.error::text)) from autopost.events e), '<', 1500);

-- Submissions keep their errors, too.
select autopost.receive_push('w', 'in', '[{"text": "p", "media": [{"type": "image", "url": "https://e.x/1.png"}]}]');
select autopost.commit_submission('w', c.submission_id, c.claim_token,
	test.failure('PERMANENT', 'delivery', 'http_401', test.leaky()))
from autopost.claim_submissions('w', 'r', 1) c;
select is((select count(*)::int from autopost.submissions s, canary where s.last_error::text like '%' || secret || '%'),
	0);
select is((select status from autopost.submissions), 'failed');
select is((select count(*)::int from autopost.events e, canary where to_jsonb(e)::text like '%' || secret || '%'), 0);

select * from finish();
rollback;
