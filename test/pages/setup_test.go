package pages

import (
	"slices"
	"strings"
)

// furnish adds a row of every kind of configuration.
func (s *site) furnish() {
	for _, sql := range []string{
		`select autopost.put_channel('news', 'city', '{"title": "Город <script>alert(2)</script>", "timezone": "Europe/Moscow", "window_mode": "windowed", "posting_window": {"mon": [["09:00", "12:00"], ["14:00", "24:00"]]},
			"settings": {"long_text": "split", "utm": {"utm_source": "a"}}}', 'ann', 'r', false)`,
		`select autopost.put_source('news', 'blog', '{"kind": "rss", "config_json": {"url": "https://feeds.example/rss?api_key=topsecret", "interval_seconds": 600}, "enabled": false}', 'ann', 'r', false)`,
		`select autopost.put_webhook('news', 'crm', '{"url": "https://crm.example/hooks", "signing_ref": "bot", "enabled": false}', 'ann', 'r', false)`,
		`select autopost.test_webhook('news', 'crm', 'ann', 'r')`,
		`select autopost.put_alert_target('news', 'ops', '{"kind": "email", "address": "ops@example.org", "enabled": false}', 'ann', 'r', false)`,
		`select autopost.put_moderation_chat('news', 'mods', '{"auth_ref": "bot", "target_id": "-1002", "enabled": false}', 'ann', 'r', false)`,
		`select autopost.put_quota('news', 'channel:city', 3600, '{"max_sends": 8}', 'ann', 'r', false)`,
		`select autopost.put_budget('news', 'bot', '{"month_usd": 25}', 'ann', 'r', false)`,
		`select autopost.put_template('news', 'digest', '*', '{"body": "{title}: {summary?} {link}"}', 'ann', 'r')`,
		`select autopost.put_event_type('news', 'shop.offer', '{"template_id": "digest"}', 'ann', 'r', false)`,
		`select autopost.put_avatar('news', '657ab0c1', '{"name": "Nyx"}', 'ann', 'r', false)`,
		`insert into autopost.discovered_chats (workspace_id, platform, auth_ref, target_id, title, first_seen, last_seen) values ('news', 'telegram', 'bot', '-100777', 'Найденный чат', now(), now())`,
	} {
		s.Exec(sql)
	}
}

func (s *site) setupPaths() []string {
	return []string{
		"/channels/city", "/channels/night?ask=remove", "/channels?add=1", "/setup/groups/telegram%2Fbot", "/setup/groups/telegram%2Fbot?ask=pause", "/setup/limits",
		"/setup/quotas/channel:city%2F3600", "/setup/quotas?add=1", "/setup/budgets/bot", "/setup/retry-policies", "/setup/retry-policies/x%2F%2A", "/setup/sources", "/setup/sources/blog",
		"/setup/sources?add=1", "/setup/endpoints", "/setup/endpoints/editors", "/setup/endpoints?add=1", "/setup/webhooks", "/setup/webhooks/crm", "/setup/webhooks/crm?ask=replay",
		"/setup/templates", "/setup/templates/digest", "/setup/templates?add=1", "/setup/event-types", "/setup/event-types/shop.offer", "/setup/avatars", "/setup/avatars/657ab0c1",
		"/setup/alert-targets", "/setup/alert-targets/ops?ask=confirm", "/setup/moderation-chats", "/setup/moderation-chats/mods", "/setup/settings", "/setup/settings?key=max_attempts",
		"/setup/config", "/setup/config?format=feeds",
	}
}

// mayOpen reports whether the API lets the role of a person read what is on a page.
func (p *person) mayOpen(path string) bool {
	needs := map[string][]string{"owner": {"/setup/people", "/setup/keys", "/setup/config"}, "operator": {"/setup/alert-targets", "/setup/moderation-chats"}}
	for role, prefixes := range needs {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) && (role != "operator" || p.role != "operator") {
			return false
		}
	}
	return true
}
