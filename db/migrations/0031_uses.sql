-- +goose Up
-- Uses of a platform that have a price of their own are charged beside posts.

-- What a use costs, in millionths of a dollar, by the name that the adapter reports; one that is not here costs nothing.
create table autopost.use_prices (
	platform text not null references autopost.platforms (platform),
	use      text not null,
	micros   bigint not null check (micros >= 0),
	primary key (platform, use)
);
insert into autopost.use_prices (platform, use, micros) values
	('x', 'media_metadata', 5000), -- an alternative text
	('x', 'owned_read', 5000); -- a post of the account that was read; 1000 where the account owns the app

alter table autopost.charges
	add column use text not null default 'post', -- post: what the claim reckoned; else one of use_prices
	drop constraint charges_pkey,
	add primary key (workspace_id, delivery_id, attempt, use);
comment on column autopost.charges.delivery_id is 'of a use without a delivery, an id of its own';

-- What a channel says about its videos, where a post does not: five more fields, and whether the post's tags are the video's too.
alter table autopost.channels
	drop constraint channels_youtube,
	add constraint channels_youtube check (
		not settings @? '$.youtube ? (@.type() != "object")'
		and not settings @? '$.youtube.keyvalue() ? (!(@.key like_regex "^(privacy|tags|post_tags|category_id|language|license|embeddable|made_for_kids|synthetic_media|notify_subscribers|playlist_id|captions_language)$"))'
		and not settings @? '$.youtube.privacy ? (!(@ == "public" || @ == "unlisted" || @ == "private"))'
		and coalesce(jsonb_typeof(settings #> '{youtube,tags}'), 'array') = 'array' and not settings @? '$.youtube.tags[*] ? (@.type() != "string")'
		and not settings @? '$.youtube.category_id ? (!(@ like_regex "^[0-9]{1,3}$"))'
		and not settings @? '$.youtube.license ? (!(@ == "youtube" || @ == "creativeCommon"))'
		and not settings @? '$.youtube.playlist_id ? (!(@ like_regex "^[A-Za-z0-9_-]{2,64}$"))'
		and not settings @? '$.youtube.keyvalue() ? (@.key like_regex "^(made_for_kids|synthetic_media|embeddable|notify_subscribers|post_tags)$" && @.value.type() != "boolean")'
		and not settings @? '$.youtube.keyvalue() ? (@.key like_regex "language$" && !(@.value like_regex "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$"))');

update autopost.platforms set target_form = '^([0-9]{1,19}|@?[A-Za-z0-9_]{1,15})$', target_example = 'the id or the name of the account: 783214 or @name' where platform = 'x';
update autopost.platforms set target_form = '^UC[A-Za-z0-9_-]{4,22}$', target_example = 'the id of the channel: UC and what follows' where platform = 'youtube';

-- What a post may say of itself there by its variant, besides what it may say anywhere.
alter table autopost.platforms add column post_fields text[] not null default '{}';
update autopost.platforms set post_fields = '{made_with_ai,paid_partnership,reply_settings}' where platform = 'x';
