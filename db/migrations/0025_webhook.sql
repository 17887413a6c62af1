-- +goose Up
-- The platform of those who have none: a signed webhook. Limits are ours, for a receiver states none; media are described, not sent.
insert into autopost.platforms
	(platform, dialect, text_limit, caption_limit, counts_markup, media_per_step, together, media_bytes, album_buttons, item_captions, buttons_per_row, button_rows,
	target_form, target_example)
values
	('webhook', 'max_html', 65536, 65536, false, 10, '[["image", "video", "audio", "file", "animation"]]',
		'{"image": 4294967296, "video": 4294967296, "audio": 4294967296, "file": 4294967296, "animation": 4294967296}', true, true, 8, 12,
		'^(?=(?:.{1,250}){1,8}$)https?://[A-Za-z0-9.:\[\]_-]+([/?][!-"$-~]*)?$', 'https://example.com/hooks/posts');
