-- A medium may be an id of a platform. The id belongs to one credential, and only its channels send it.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(19);

insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10);
create function test.with(p_medium jsonb, p_text text default 'x') returns jsonb
language sql
as $$
-- Posts one medium; the answer.
select test.tick('1 second');
select test.post(jsonb_build_object('text', p_text, 'media', jsonb_build_array('{"type": "image"}' || p_medium)))
$$;
create function test.reasons(p_answer jsonb) returns text
language sql
as $$
select string_agg(concat_ws(' ', d.value ->> 'channel_id', d.value ->> 'status', d.value ->> 'reason'), '; '
	order by d.value ->> 'channel_id')
from jsonb_array_elements(p_answer -> 'deliveries') d
$$;

-- One credential needs no name.
select test.channel('tg');
select is(test.reasons(test.with('{"file_id": "AgAC"}')), 'tg queued');
select is((select m.payload -> 'media' -> 0 from autopost.messages m),
	'{"type": "image", "file_id": "AgAC", "fingerprint": "id:AgAC"}');
select is(test.reasons(test.with('{"attachment_token": "t"}')),
	'tg failed_permanent media[0]: telegram takes no attachment_token; give url or blob_ref');

-- Several do.
select test.channel('mx', p_platform => 'max', p_rate_group => 'max-bot'), test.channel('mx-2', p_platform => 'max',
	p_rate_group => 'max-2'), test.channel('yt', p_platform => 'youtube', p_rate_group => 'yt');
select is(test.with('{"file_id": "AgAC"}') #>> '{errors,0,field}', 'media[0].auth_ref');
select is(test.with('{"file_id": "AgAC"}') #>> '{errors,0,reason}',
	'is missing, and the channels have several credentials');
select is(test.with('{"file_id": "AgAC", "auth_ref": "none"}') #>> '{errors,0,reason}',
	'must be the credential of a channel, got none');
select is(test.reasons(test.with('{"attachment_token": "t", "auth_ref": "max-bot"}', 'token')),
	'mx queued; mx-2 failed_permanent media[0]: its id belongs to the credential max-bot, the channel has max-2; '
	|| 'tg failed_permanent media[0]: its id belongs to the credential max-bot, the channel has bot; '
	|| 'yt failed_permanent media: youtube needs a video; give one, or leave the channel out');
select is((select array_agg(distinct e.error ->> 'code') from autopost.events e where e.action = 'validation_failed'),
	'{validation_failed}');
select is(test.reasons(test.with('{"type": "video", "file_id": "v", "auth_ref": "yt"}', 'video')) like
	'%yt failed_permanent media[0]: youtube takes no file_id; give url or blob_ref', true);
select is(test.reasons(test.with('{"blob_ref": "sha256:1111111111111111111111111111111111111111111111111111111111111111"}',
	'stored')) like 'mx queued; mx-2 queued; tg queued;%', true, 'content is sent with each credential');

-- The form.
create function test.refused(p_medium jsonb) returns text
language sql
as $$
select string_agg((e.value ->> 'field') || ': ' || (e.value ->> 'reason'), '; ' order by e.ordinality)
from jsonb_array_elements(autopost.media_errors(jsonb_build_array('{"type": "image", "file_id": "1"}' || p_medium)))
	with ordinality e
$$;
select is(test.refused('{"auth_ref": "bot", "meta": {"filename": "price list.pdf", "width": 1, "height": 1, "duration": 0.5}}'), null);
select is(test.refused('{"meta": {"filename": "../x", "width": 1.5, "height": "1", "duration": -1}}'),
	'media[0].meta.duration: must be a number of seconds from 0 to 1000000; '
	|| 'media[0].meta.filename: must be a name of 1 to 255 characters without slashes; '
	|| 'media[0].meta.height: must be a whole number of pixels from 1 to 65535; '
	|| 'media[0].meta.width: must be a whole number of pixels from 1 to 65535');
select is(test.refused('{"meta": "price.pdf"}'), 'media[0].meta: must be an object');
select is(test.refused('{"attachment_token": ""}') like 'media[0]: %ids must not be empty', true);
select is((select autopost.media_errors('[{"type": "image", "url": "https://e.x/1", "auth_ref": "bot"}]') #>> '{0,field}'),
	'media[0].auth_ref', 'what is fetched belongs to no credential');
select is(autopost.post_warnings('w', '{"media": [{"type": "file", "meta": {"filename": "x", "pages": 3}, "name": "x"}]}'),
	'["media[0].meta.pages", "media[0].name"]');

-- Only the way with a fetch takes a URL.
select is(test.with('{"url": "https://e.x/1.png"}') #>> '{errors,0,reason}', 'must be fetched first');
select is(autopost.plan('w', '{"text": "p", "media": [{"type": "image", "url": "https://e.x/1.png"}]}', null) ->> 'status',
	'planned');
select is(autopost.submit_post('w', 'in', 'api', '{"media": [{"type": "image", "url": "https://e.x/1.png"}]}')
	->> 'status', 'accepted');

select * from finish();
rollback;
