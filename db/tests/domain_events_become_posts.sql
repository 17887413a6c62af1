-- A domain event becomes one post of the X channel, by a template. A duplicate, a disabled type and
-- the mode shadow skip it.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(64);

create function test.event(p_payload jsonb, p_event text default 'MEDIA.IMAGE.GENERATED', p_more jsonb default '{}') returns jsonb
language sql
as $$
select autopost.receive_event('w', 'in', jsonb_build_object('event', p_event, 'payload', p_payload) || p_more)
$$;
create function test.combat(p_id text, p_more jsonb default '{}') returns jsonb
language sql
as $$
select test.event('{"type": "combat", "winner": {"id": "a1", "name": "Nyx"}, "loser": {"id": "b2", "name": "Helion"},
	"summaryText": "Nyx won", "rounds": 7, "createdAt": "2026-06-01T14:00:00Z"}'::jsonb
	|| jsonb_build_object('encounterId', p_id) || p_more, 'COMBAT.SUMMARY.GENERATED')
$$;
create function test.put(p_fields jsonb) returns jsonb
language sql
as $$
select autopost.put_x_post_config('w', p_fields, 'olga', 'test', false)
$$;
create function test.last() returns autopost.x_post_events
language sql
as $$
select p from autopost.list_x_posts('w', '{}', 1) p
$$;
create function test.retry(p_id uuid) returns jsonb
language sql
as $$
select autopost.retry_submission('w', p_id, 'olga', 'again', false)
$$;

-- Without an X channel an event fails.
select is(test.combat('e0') ->> 'status', 'failed');
select is((test.last()).status, 'failed');
select matches((test.last())."lastError", 'must have one X channel');

select test.channel('x1', p_platform => 'x', p_rate_group => 'xg');
select test.channel('news');
select is(test.put('{"channel_id": "news"}') #>> '{errors,0,reason}', 'must be an X channel, got news');
select is(test.put('{"channel_id": "x1"}') -> 'after', '{"channel_id": "x1"}');
select is(array(select format('%s/%s/%s', q.subject, q.window_seconds, q.max_sends) from autopost.quotas q order by 1),
	'{channel:x1/3600/8,channel:x1/86400/30}'::text[], 'the caps of 004');

-- Text only: enqueued at once, only in the X channel.
select is(test.combat('e1') - '{run_id,submission_id,message_id}'::text[], '{"status": "approved"}');
select is(array(select d.channel_id || ': ' || d.rendered_text from autopost.deliveries d where d.status = 'queued'),
	'{"x1: Nyx defeated Helion in 7 rounds!"}'::text[]);
select is((test.last()).status, 'approved');
select is((test.last())."eventType", 'combat');
select is((test.last())."avatarIds", '{a1,b2}');
select is((test.last())."encounterId", 'e1');
select is((test.last())."mediaType", 'none');
select is((test.last())."templateKey", 'combat');
select is((test.last()).meta, '{"prompt": null, "summaryText": "Nyx won", "rounds": 7, "title": null, "truncated": false}');

-- A duplicate names the first one. createdAt does not count.
select is(test.combat('e1', '{"createdAt": "2026-06-01T15:00:00Z"}') - 'run_id',
	jsonb_build_object('status', 'skipped', 'reason', 'duplicate', 'submission_id', (select p."_id"
		from autopost.list_x_posts('w', '{"status": "approved"}', 1) p)));
select is((test.last()).status || ' ' || (test.last())."lastError", 'skipped duplicate');
select is(test.retry((test.last())."_id") ->> 'reason', 'duplicate');
select is(test.event('{}', 'MEDIA.AUDIO') #>> '{errors,0,field}', 'event');
select is(test.event('{"type": "image"}') -> 'errors' -> 0 ->> 'field', 'payload.avatarId');
select is(test.event('{"type": "video", "avatarId": "a", "imageUrl": "https://e.x/1.png", "prompt": "P",
	"createdAt": "2026-06-01T14:00:00Z"}') #>> '{errors,0,reason}', 'must be image, got video');

-- A repeated source_ref.
select is(test.event('{"type": "image", "avatarId": "avatar-0001", "imageUrl": "https://E.x/1.png?utm_source=a", "prompt": "A ranger @bob",
	"createdAt": "2026-06-01T14:00:00Z"}', p_more => '{"source_ref": "s1"}') ->> 'status', 'approved');
select is(test.event('{"type": "image", "avatarId": "avatar-0001", "imageUrl": "https://E.x/1.png", "prompt": "A ranger",
	"createdAt": "2026-06-01T14:00:00Z"}', p_more => '{"source_ref": "s1"}') ->> 'status', 'duplicate');
select is((test.last())."resolvedContent", 'avatar-0: A ranger', 'sanitized, with the short id');
select is((test.last()).hash, encode(sha256('https://e.x/1.png'), 'hex'), 'the hash of the URL');
insert into autopost.avatars (workspace_id, avatar_id, name) values ('w', 'avatar-0001', 'Nyx');
select is(test.event('{"type": "image", "avatarId": "avatar-0001", "imageUrl": "https://e.x/1.png", "prompt": "Again",
	"createdAt": "2026-06-01T14:00:00Z"}') ->> 'reason', 'duplicate', 'the same medium');
select is((test.last())."resolvedContent", 'Nyx: Again');

-- Its media fail: another event may have the hash.
select autopost.commit_submission('w', c.submission_id, c.claim_token,
	'{"ok": false, "error": {"category": "PERMANENT", "code": "media_fetch_403"}}')
from autopost.claim_submissions('w', 'r', 10) c;
select is(test.event(jsonb_build_object('type', 'image', 'avatarId', 'a', 'imageUrl', 'https://e.x/1.png',
	'prompt', repeat('word ', 100), 'createdAt', '2026-06-01T14:00:00Z')) ->> 'status', 'approved');
select ok((test.last()).meta @> '{"truncated": true}', 'the flag of a cut text');
select is(right((test.last())."resolvedContent", 5), 'word…');
select ok(autopost.weighted_length((test.last())."resolvedContent") <= 260);

-- Moderation by the configuration, and by the setting.
select is(test.put('{"moderation": {"enabled": true}}') #> '{effective,moderation}', '{"enabled": true}');
select is(test.combat('e2', '{"summaryText": "Two"}') ->> 'status', 'pending');
select is(autopost.decide_submission('w', (test.last())."_id", 'approve', '{}', 'user:olga', 'fine') ->> 'status', 'duplicate',
	'the channel has the same text');
select is((test.last()).status || ' ' || (test.last())."lastError", 'skipped duplicate');
select is(test.combat('e3', '{"rounds": 9}') ->> 'status', 'pending');
select is(autopost.decide_submission('w', (test.last())."_id", 'approve', '{}', 'user:olga', 'fine') ->> 'status', 'enqueued');
select is((test.last()).status, 'approved');
select test.put('{"moderation": {"enabled": false}}');
select test.set('global_x_moderation_enabled', 'true');
select is(test.combat('e4', '{"rounds": 10}') ->> 'status', 'pending');
select test.set('global_x_moderation_enabled', 'false');

-- The mode shadow, and a retry that goes out.
select test.put('{"mode": "shadow", "enableCombat": true}');
select is(test.combat('e5', '{"rounds": 11}') ->> 'reason', 'shadow_mode');
select is(test.retry((test.last())."_id") ->> 'applied', 'true');
select autopost.commit_submission('w', c.submission_id, c.claim_token, '{"ok": true, "media": []}')
from autopost.claim_submissions('w', 'r', 10) c where c.submission_id = (test.last())."_id";
select is((test.last()).status, 'approved');
select test.put('{"mode": "live", "enableCombat": false}');
select is(test.combat('e6', '{"rounds": 12}') ->> 'reason', 'disabled');

-- Held: no call of the channel, ordinary posts too.
select test.bind('xg', 'x');
select test.put('{"mode": "hold"}');
select is(test.claimed(), '{}');
select test.put('{"mode": "live"}');
select test.set('global_x_posting_enabled', 'false');
select is(test.claimed(), '{}');
select test.set('global_x_posting_enabled', 'true');
select is(test.claimed(1), '{x1}');

-- Posted.
create temp table flying as select d.delivery_id, d.claim_token from autopost.deliveries d where d.claim_token is not null;
select is((select autopost.start_call('w', f.delivery_id, f.claim_token) -> 'applied' from flying f), 'true');
select is((select autopost.commit_outcome('w', f.delivery_id, f.claim_token, test.sent('1001')) -> 'applied' from flying f), 'true');
select is((select p."tweetUrl" from autopost.list_x_posts('w', '{"status": "posted"}', 1) p), 'https://x.com/i/status/1001');
select is(autopost.x_post_stats('w') #> '{counts,posted}', '1');
select is(autopost.x_post_stats('w') -> 'successRate' < '1', true);
select is((select m.events from autopost.x_post_metrics() m where m.status = 'posted'), 1::bigint);
select is((select cardinality(m.buckets) from autopost.x_post_metrics() m where m.status = 'posted'), 9);

-- Posts from before count for duplicates, and nothing is called.
select is(autopost.backfill_x_posts('w', 'in', '[{"event": "COMBAT.SUMMARY.GENERATED", "payload": {}, "tweet_id": "7",
	"posted_at": "2026-06-01T10:00:00Z"}]', 'olga', 'move', false) #>> '{errors,0,line}', '1');
select is(autopost.backfill_x_posts('w', 'in', '[{"event": "MEDIA.VIDEO.GENERATED", "payload": {"type": "video", "videoUrl": "https://e.x/v.mp4",
	"title": "Old", "createdAt": "2026-06-01T10:00:00Z"}, "tweet_id": "7", "posted_at": "2026-06-01T10:00:00Z"}]', 'olga', 'move',
	false) -> 'recorded', '1');
select is((select p."postedAt" from autopost.list_x_posts('w', '{"type": "video"}', 1) p), '2026-06-01 10:00:00+00'::timestamptz);
select is(test.event('{"type": "video", "videoUrl": "https://e.x/v.mp4", "title": "Old", "createdAt": "2026-06-01T11:00:00Z"}',
	'MEDIA.VIDEO.GENERATED') ->> 'reason', 'duplicate');

-- Ceilings.
select test.set('global_x_posting_rate_per_hour', '6');
select is((select q.max_sends from autopost.quotas q where q.window_seconds = 3600), 6);
select is(test.put('{"rate": {"perHour": 20}}') #> '{effective,rate,perHour}', '6');
select is(autopost.get_x_post_config('w') #> '{stored,rate,perHour}', '20');

-- Without a configured channel, the channel of the avatar has the caps.
select test.put('{"channel_id": null}');
select is((select count(*)::int from autopost.quotas q), 0, 'the caps end with the channel');
select test.set('global_x_account_avatar_id', '"nyx"');
update autopost.channels c set settings = '{"avatar_id": "nyx"}' where c.channel_id = 'x1';
select is((select count(*)::int from autopost.quotas q where q.channel_id = 'x1'), 2);
update autopost.channels c set settings = '{}' where c.channel_id = 'x1';
select is((select count(*)::int from autopost.quotas q), 0);

select is((select jsonb_agg(v) from autopost.verify('w') v where v.violations > 0), null, 'the invariants hold');

select * from finish();
rollback;
