-- An adapter that looks up a post with an unknown outcome gets the channel's other posts. Two posts
-- may be found as one.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(13);

select test.channel('tg', p_max_parallel => 5);
create function test.known(p_claimed autopost.claimed_delivery) returns jsonb
language sql
as $$
select (p_claimed).known_posts
$$;
create function test.album(p_ids jsonb) returns jsonb
language sql
as $$
-- Sent as one message of several ids.
select jsonb_build_object('ok', true, 'provider_message_id', p_ids ->> 0, 'raw',
	jsonb_build_object('ids', p_ids, 'steps', jsonb_build_object('text', p_ids)))
$$;
select test.say('long ago'), test.round('tg', test.album('["10", "11"]'));
select test.tick('1 hour');
select test.say('before'), test.round('tg', test.album('["12", "13"]'));
select test.tick('1 minute');

select test.say('doubtful');
select is((select c.known_posts from test.claim() c), null, 'without a doubt nothing is looked up');
select test.start('tg');
select test.commit('tg', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select test.tick('1 second');
select test.say('after'), test.round('tg', test.album('["15"]'));
select test.tick('1 minute');
create temp table again on commit drop as select test.known(c) as known from test.claim() c;
select is((select known -> 'before' from again), '["12", "13"]',
	'all ids of the newest that stood when the call began');
select set_eq($$select jsonb_array_elements_text(known -> 'others')
	from again$$, $$values ('12'), ('13'), ('15')$$, 'and of those since, but none of an hour ago');
select is((select known -> 'others_in_doubt' from again), 'false');

-- Another delivery in doubt, of which a step stands.
select test.say('another');
select test.claimed();
select test.start('tg');
select test.commit('tg', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
create function test.both() returns setof autopost.deliveries
language sql
as $$
select d.* from autopost.deliveries d where d.workspace_id = 'w' and d.unknown_outcomes > 0 order by d.delivery_id
$$;
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.failure('TRANSIENT', 'channel', 'x'))
	from test.both() d where d.status = 'sending';
update autopost.deliveries set render_meta = autopost.with_progress(render_meta, '{"text": ["14"]}')
	where delivery_id = (select delivery_id from test.both() limit 1);
select test.tick('10 minutes');
create temp table claims on commit drop as select c.*, test.known(c) as known from test.claim() c;
select is((select count(*) from claims)::int, 2);
select ok((select bool_and((known -> 'others_in_doubt')::boolean) from claims), 'either knows that it is not alone');

-- Both are looked for at the same time and found as one post: the first to say so has it.
select autopost.start_call('w', c.delivery_id, c.claim_token) from claims c;
create temp table answers on commit drop as
select row_number() over () as n, autopost.commit_outcome('w', c.delivery_id, c.claim_token,
	'{"ok": true, "provider_message_id": "16", "raw": {"steps": {"text": ["16"]}, "reconciled": true}}') as a
from (select * from claims order by delivery_id) c;
select is((select a ->> 'status' from answers where n = 1), 'sent');
select is((select a ->> 'status' from answers where n = 2), 'retry', 'the other is looked for again');
select is((select last_error ->> 'code' from test.both() d where status = 'retry'), 'found_as_another');
select is((select unknown_outcomes from test.both() d where status = 'retry'), 1, 'the outcome is not unknown again');
select test.tick('10 minutes');
create temp table last on commit drop as select c.delivery_id, c.claim_token, test.known(c) as known
	from test.claim() c;
select ok((select known -> 'others' ? '16' from last), 'the claim names the owner of the post');
select autopost.start_call('w', delivery_id, claim_token),
	autopost.commit_outcome('w', delivery_id, claim_token, test.album('["17"]')) from last;

-- A found post has a certain outcome. A resent post may exist twice, but only once under a known id.
create function test.lost(p_text text) returns uuid
language sql
as $$
select test.tick('1 second');
select test.say(p_text);
select test.claimed();
select test.start('tg');
select test.commit('tg', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select (test.row('tg')).delivery_id
$$;
create function test.ends(p_delivery_id uuid, p_outcome jsonb) returns void
language sql
as $$
select autopost.start_call('w', p_delivery_id, d.claim_token),
	autopost.commit_outcome('w', p_delivery_id, d.claim_token, p_outcome) from autopost.deliveries d
	where d.delivery_id = p_delivery_id
$$;
select test.tick('1 hour');
create temp table lost on commit drop as select n, test.lost('lost ' || n) as id from generate_series(1, 2) n;
select test.tick('1 minute');
select test.claimed();
select test.ends(id, '{"ok": true, "provider_message_id": "18", "raw": {"reconciled": true}}') from lost where n = 1;
select test.ends(id, test.failure('TRANSIENT', 'delivery', 'x')) from lost where n = 2;
select test.tick('1 minute');
select is((select test.known(c) -> 'others_in_doubt' from test.claim() c), 'false', 'found');
insert into lost values (3, test.lost('lost 3'));
select test.tick('1 minute');
select test.claimed();
select test.ends(id, test.album('["19"]')) from lost where n = 3;
select test.ends(id, test.failure('TRANSIENT', 'delivery', 'x')) from lost where n = 2;
select test.tick('1 minute');
select is((select test.known(c) -> 'others_in_doubt' from test.claim() c), 'true', 'sent again');

select * from finish();
rollback;
