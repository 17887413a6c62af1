-- +goose Up
-- What an adapter reads of a channel's settings, besides its platform's name and what texts are made by; null where it does not say.
alter table autopost.platforms add column setting_keys text[];
update autopost.platforms p
set setting_keys = v.keys
from (values
	('telegram', '{disable_notification,protect_content,has_spoiler,show_caption_above_media,link_preview_options,service_chat_id}'::text[]),
	('max', '{disable_notification}'),
	('x', '{made_with_ai,paid_partnership,for_super_followers_only,share_with_followers,community_id,reply_settings,max_weighted_length,avatar_id}'),
	('youtube', '{}'),
	('webhook', '{inline_media_bytes}')) v (platform, keys)
where p.platform = v.platform;
