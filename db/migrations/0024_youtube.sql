-- +goose Up
-- What YouTube takes: a video, told of in fields of its own, with a thumbnail and captions.

alter table autopost.platforms
	add column takes   text not null default 'messages' check (takes in ('messages', 'videos')), -- what a post is there
	add column resumes boolean not null default false; -- whether an adapter asks what the platform has before it does anything again, so that a call that was cut off is no unknown outcome
update autopost.platforms
set takes = 'videos', resumes = true, media_bytes = '{"video": 274877906944, "image": 52428800, "file": 104857600}'
where platform = 'youtube';

-- What a channel says about its videos, where a post does not.
alter table autopost.channels
	add constraint channels_youtube check (
		not settings @? '$.youtube ? (@.type() != "object")'
		and not settings @? '$.youtube.keyvalue() ? (!(@.key like_regex "^(privacy|tags|category_id|made_for_kids|synthetic_media|captions_language)$"))'
		and not settings @? '$.youtube.privacy ? (!(@ == "public" || @ == "unlisted" || @ == "private"))'
		and coalesce(jsonb_typeof(settings #> '{youtube,tags}'), 'array') = 'array' and not settings @? '$.youtube.tags[*] ? (@.type() != "string")'
		and not settings @? '$.youtube.category_id ? (!(@ like_regex "^[0-9]{1,3}$"))'
		and not settings @? '$.youtube.made_for_kids ? (@.type() != "boolean")'
		and not settings @? '$.youtube.synthetic_media ? (@.type() != "boolean")'
		and not settings @? '$.youtube.captions_language ? (!(@ like_regex "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$"))');

-- A quota lasts to the end of its day, to the minute, and may do so for days; an upload that is cut off goes on from where it was.
insert into autopost.retry_policies (platform, code, kind, ladder_ms, jitter, max_attempts) values
	('youtube', 'yt_usage_capped', 'exponential', '{}', 0.005, 30),
	('youtube', 'yt_upload_limit_exceeded', 'exponential', '{}', 0.005, 30),
	('youtube', 'yt_interrupted', 'exponential', '{}', 0.2, 20),
	('youtube', 'lease_expired', 'exponential', '{}', 0.2, 20),
	('youtube', 'yt_video_not_found', 'ladder', '{5000,15000,30000}', 0.2, 12);

-- The list of uploads shows a video a while after it was taken.
update autopost.platforms set settle_seconds = 30 where platform = 'youtube';
