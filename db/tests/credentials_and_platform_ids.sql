begin;
\ir fake_clock.sql
\ir world.sql
select plan(17);

select test.channel('a');
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'bot', 'telegram', 'env:BOT');
select is(autopost.get_credential('w', 'bot') - 'stale' - 'last_version',
	'{"platform": "telegram", "secret_ref": "env:BOT"}');
select is(autopost.get_credential('w', 'other'), null);
select throws_ok($$insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'x', 'telegram', '12345:secret')$$, '23514', null, 'a secret itself is refused');

-- The channel's present credential.
select test.say('x');
select is((select auth_ref from test.claim()), 'bot');
insert into autopost.channel_auth (workspace_id, channel_id, auth_ref) values ('w', 'a', 'bot-2');
select test.commit('a', test.sent('1'));
select test.tick('1 second');
select test.say('y');
select is((select auth_ref from test.claim()), 'bot-2', 'a rotated one acts on the next claim');
select is((select rate_group from test.channel_row('a')), 'bot', 'and leaves the rate group alone');

-- A platform's id of a content belongs to a credential and a kind.
create function test.blob(p_auth_ref text, p_kind text) returns text
language sql
as $$
select autopost.get_media_blob('w', 'sha256:1', 'telegram', p_auth_ref, p_kind) ->> 'file_id'
$$;
select is(autopost.put_media_blob('w', 'sha256:1', 'telegram', 'bot', 'image', 'AgAC', null), '{"applied": true}');
select is(test.blob('bot', 'image'), 'AgAC');
select is(test.blob('bot-2', 'image'), null, 'another bot has another id');
select is(test.blob('bot', 'file'), null, 'and another kind, too');
select autopost.put_media_blob('w', 'sha256:1', 'telegram', 'bot', 'image', 'AgAD',
	autopost.now_ts() + interval '1 hour');
select is(test.blob('bot', 'image'), 'AgAD', 'the newest counts');
select test.tick('1 hour');
select is(test.blob('bot', 'image'), null, 'until it expires');
select autopost.put_media_blob('w', 'sha256:1', 'telegram', 'bot', 'image', 'AgAE', null);
select autopost.put_media_blob('w', 'sha256:1', 'telegram', 'bot', 'image', null, null);
select is(test.blob('bot', 'image'), null, 'or is refused and forgotten');

-- The origin: content by its hash, seen again.
select autopost.put_media_origin('w', 'sha256:' || repeat('1', 64), 'file:///1', 'image/png', 10, 'image', 4, 3);
select test.tick('1 day');
select autopost.put_media_origin('w', 'sha256:' || repeat('1', 64), 'file:///new', 'image/png', 10, 'image', 4, 3);
select is((select origin_url || ' ' || sha256 from autopost.media_origin), 'file:///new ' || repeat('1', 64));
select is((select last_seen_at from autopost.media_origin), autopost.now_ts());
update autopost.media_origin set deleted_at = autopost.now_ts();
select autopost.put_media_origin('w', 'sha256:' || repeat('1', 64), 'file:///new', 'image/png', 10, 'image', 4, 3);
select is((select deleted_at from autopost.media_origin), null, 'what was swept may come back');
select is((select row(kind, width, height, size_bytes)::text from autopost.media_origin), '(image,4,3,10)');

select * from finish();
rollback;
