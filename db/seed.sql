-- The workspace of `autopost demo` and an example for `autopost seed`: forty channels on two
-- platforms, a webhook and a feed. It is repeatable: existing rows stay. Before real use, replace the
-- secret of the endpoint, the credentials and the address of the feed.

insert into autopost.workspaces (workspace_id, name)
values ('demo', 'The demo')
on conflict do nothing;

-- Secrets are in the environment; the other form is "file:/path".
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
values
	('demo', 'telegram-news', 'telegram', 'env:DEMO_TELEGRAM_NEWS'),
	('demo', 'telegram-city', 'telegram', 'env:DEMO_TELEGRAM_CITY'),
	('demo', 'telegram-alerts', 'telegram', 'env:DEMO_TELEGRAM_ALERTS'),
	('demo', 'max-news', 'max', 'env:DEMO_MAX_NEWS'),
	('demo', 'max-shops', 'max', 'env:DEMO_MAX_SHOPS')
on conflict do nothing;

-- The push endpoint: Authorization: Bearer demo-secret. The table has only its SHA-256.
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps)
values ('demo', 'cms', 'webhook_push', encode(sha256('demo-secret'), 'hex'), 50)
on conflict do nothing;

-- A feed, polled every second. The first poll publishes its five newest items.
insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
values ('demo', 'feed', 'rss',
	'{"url": "http://127.0.0.1:9090/feeds/news.xml", "interval_seconds": 1, "backfill_items": 5, "template": "{title}\n\n{summary}\n\n{link}", "tags": ["feed"]}')
on conflict do nothing;
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
values ('demo', 'feed', 'pull_source', 'feed')
on conflict do nothing;

-- Messages per second for all channels of a credential together. An album costs its items.
-- null: no limit.
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps)
values
	('demo', 'telegram', 'telegram-news', 20),
	('demo', 'telegram', 'telegram-city', 8),
	('demo', 'telegram', 'telegram-alerts', null),
	('demo', 'max', 'max-news', 15),
	('demo', 'max', 'max-shops', 4)
on conflict do nothing;

-- Channels. rate_rps: messages per second; null: no limit. route_filter: accepted tags; null: all.
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, title, rate_rps,
	tags, route_filter)
select 'demo', k.name || '-' || to_char(n, 'FM00'), k.platform, (k.chat - n)::text, k.rate_group, k.rate_group,
	k.title || ' ' || n, k.rate_rps,
	k.tags, k.route_filter
from (
	values
		('tg-news', 'telegram', -1001000000100, 'telegram-news', 'Новости', 1.0, 9, array['news'], null::jsonb),
		('tg-sport', 'telegram', -1001000000200, 'telegram-news', 'Спорт', 0.5, 3, array['sport'],
			'{"include_any": ["sport"]}'),
		('tg-city', 'telegram', -1001000000300, 'telegram-city', 'Город', 1.0, 9, array['city'],
			'{"exclude": ["sport", "shop"]}'),
		('max-news', 'max', -71000000100, 'max-news', 'Лента', 2.0, 10, array['news'], null),
		('max-culture', 'max', -71000000200, 'max-news', 'Культура', 1.0, 2, array['culture'],
			'{"include_all": ["culture", "ru"]}'),
		('max-shop', 'max', -71000000300, 'max-shops', 'Магазин', 1.0, 3, array['shop'],
			'{"include_any": ["shop", "culture"], "exclude": ["feed"]}')
) k (name, platform, chat, rate_group, title, rate_rps, many, tags, route_filter)
cross join lateral generate_series(1, k.many) n
on conflict do nothing;

insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, title, send_mode,
	rate_rps, max_parallel, paused_until, route_filter)
values
	-- without a limit of its own and of its group
	('demo', 'tg-alerts', 'telegram', '-1001000000401', 'telegram-alerts', 'telegram-alerts', 'Тревоги', 'mixed', null,
		4, null, '{"include_any": ["alert"]}'),
	-- takes posts with media and skips others
	('demo', 'tg-photo', 'telegram', '-1001000000402', 'telegram-news', 'telegram-news', 'Фото', 'media', 1, 1, null,
		null),
	-- slower than the others
	('demo', 'max-digest', 'max', '-71000000401', 'max-shops', 'max-shops', 'Дайджест', 'text', 0.5, 1, null,
		'{"include_all": ["feed"]}'),
	-- paused: takes posts, sends nothing until an operator resumes it
	('demo', 'max-paused', 'max', '-71000000402', 'max-news', 'max-news', 'На паузе', 'mixed', 1, 1, 'infinity', null)
on conflict do nothing;

-- The shop bot of MAX with its example rules. Its updates come to /hooks/max; the table has only the SHA-256 of the
-- secret in the header X-Max-Bot-Api-Secret: demo-bot-secret.
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta)
values ('demo', 'shop-bot', 'bot_webhook', encode(sha256('demo-bot-secret'), 'hex'),
	'{"auth_ref": "max-shops", "bot": {"fallback": "clarify"}}')
on conflict do nothing;
select autopost.install_bot_examples('demo', 'seed', 'example rules');
