package configfile

import "math"

// Rule is what a form knows about the values of a field. The database checks them; a test compares both.
type Rule struct {
	// Required means that the field must have a value and has no default.
	Required bool
	// Fixed means that the field cannot change later.
	Fixed bool
	// In lists all allowed values; nil allows others.
	In []string
	// Least and Most bound a number if Bounded is true. Most may be infinite.
	Least, Most float64
	Bounded     bool
	// Unit is the unit of a number, such as seconds.
	Unit string
	// From is the list of the API that has the possible values, such as credentials.
	From string
	// Lines means that the text may have several lines.
	Lines bool
}

func bounds(unit string, least, most float64) Rule {
	return Rule{Bounded: true, Least: least, Most: most, Unit: unit}
}

func oneOf(values ...string) Rule { return Rule{In: values} }

func from(list string) Rule { return Rule{From: list} }

// needed returns the rule of a field that must have a value.
func needed(r Rule) Rule {
	r.Required = true
	return r
}

// fixed returns the rule of a field that cannot change later.
func fixed(r Rule) Rule {
	r.Fixed = true
	return r
}

// rules are those of the fields of Kinds, by KIND.FIELD or KIND.FIELD.KEY. A field without a rule takes any value of its type.
var rules = map[string]Rule{
	"workspace.status":           oneOf("active", "paused", "disabled"),
	"workspace.approvals_needed": bounds("people", 1, 2),

	"group.rate_rps": bounds("per_second", 0, 1_000_000),

	"template.body":       needed(Rule{Lines: true}),
	"template.parse_mode": oneOf("HTML", "Markdown", "None"),
	"template.max_length": bounds("characters", 1, math.Inf(1)),

	"channel.platform":                 fixed(needed(oneOf("telegram", "max", "x", "youtube", "webhook"))),
	"channel.target_id":                needed(from("chats")),
	"channel.auth_ref":                 needed(from("credentials")),
	"channel.rate_group":               from("groups"),
	"channel.send_mode":                oneOf("text", "media", "mixed"),
	"channel.rate_rps":                 bounds("per_second", 0, 1_000_000),
	"channel.max_parallel":             bounds("calls", 1, 10_000),
	"channel.timezone":                 from("zones"),
	"channel.window_mode":              oneOf("immediate", "windowed"),
	"channel.dedup_ttl_hours":          bounds("hours", 0, 2160),
	"channel.on_unknown":               oneOf("reconcile", "hold", "resend"),
	"channel.on_auth_lost":             oneOf("hold", "fail"),
	"channel.template_ref":             from("templates"),
	"channel.settings.long_text":       oneOf("truncate", "split", "caption_reply"),
	"channel.settings.parse_mode":      oneOf("HTML", "Markdown", "None"),
	"channel.settings.min_gap_seconds": bounds("seconds", 1, 2_678_400),

	"quota.max_sends":  needed(bounds("", 1, math.MaxInt32)),
	"quota.counts":     oneOf("posts", "calls"),
	"budget.month_usd": bounds("dollars", 0, 1_000_000),

	"retry_policy.kind":         oneOf("exponential", "ladder"),
	"retry_policy.base_ms":      bounds("milliseconds", 1, 2_678_400_000),
	"retry_policy.factor":       bounds("", 1, 100),
	"retry_policy.cap_ms":       bounds("milliseconds", 1, 2_678_400_000),
	"retry_policy.jitter":       bounds("", 0, 0.9),
	"retry_policy.max_attempts": bounds("calls", 1, 1000),

	"source.kind":                         needed(oneOf("rss", "api", "db", "filebus")),
	"source.config_json.interval_seconds": bounds("seconds", 1, 604_800),
	"source.config_json.backfill_items":   bounds("items", 0, 1000),
	"source.config_json.template":         {Lines: true},
	"source.config_json.media":            oneOf("enclosures", "none"),
	"source.endpoint_id":                  fixed(Rule{}),

	"endpoint.kind":                 fixed(needed(oneOf("webhook_push", "bot_webhook", "pull_source"))),
	"endpoint.source_id":            fixed(from("sources")),
	"endpoint.signing_ref":          from("credentials"),
	"endpoint.ingress_rps":          bounds("per_second", 0, 1_000_000),
	"endpoint.max_payload_bytes":    bounds("bytes", 1, 16_777_216),
	"endpoint.hash_drop_window_sec": bounds("seconds", 0, 86_400),

	"webhook.url":             needed(Rule{}),
	"webhook.signing_ref":     needed(from("credentials")),
	"webhook.channel_ids":     from("channels"),
	"webhook.rps":             bounds("per_second", 0.001, 1000),
	"webhook.max_parallel":    bounds("calls", 1, 100),
	"webhook.timeout_seconds": bounds("seconds", 1, 60),

	"alert_target.kind":           fixed(needed(oneOf("telegram", "max", "email", "webhook"))),
	"alert_target.address":        needed(Rule{}),
	"alert_target.auth_ref":       from("credentials"),
	"alert_target.min_severity":   oneOf("warning", "error", "critical"),
	"alert_target.timezone":       from("zones"),
	"alert_target.digest_minutes": bounds("minutes", 0, 1440),
	"alert_target.daily_limit":    bounds("messages", 1, 1000),

	"moderation_chat.auth_ref":  needed(from("credentials")),
	"moderation_chat.target_id": needed(from("chats")),

	"bot_rule.priority":          bounds("", -1_000_000, 1_000_000),
	"bot_rule.max_turns":         bounds("messages", 1, 1000),
	"bot_rule.response_template": needed(Rule{Lines: true}),
}

// Rule returns the rule of a field, or of a key of an object ("settings.long_text").
func (k Resource) Rule(field string) Rule { return rules[k.Name+"."+field] }

// parts are the keys of objects that have a field of their own in a form.
var parts = map[string][]Field{
	"channel.settings": {
		{"long_text", Text, "what happens to a text over the limit: truncate, split or caption_reply"},
		{"parse_mode", Text, "markup of texts: HTML, Markdown or None"},
		{"disable_preview", Boolean, "whether links have no preview"},
		{"min_gap_seconds", Number, "shortest time between two posts in seconds"},
	},
	"channel.route_filter": {
		{"include_any", List, "a post needs one of these tags"},
		{"include_all", List, "a post needs all of these tags"},
		{"exclude", List, "a post must not have these tags"},
	},
	"source.config_json": {
		{"url", Text, "address of the feed or API"},
		{"interval_seconds", Number, "time between two polls in seconds (default: 300, or a longer hint of the source)"},
		{"backfill_items", Number, "newest items that the first poll publishes (default: 0)"},
		{"template", Text, "text of a post, like {title} and {link}"},
		{"tags", List, "tags that each post gets"},
		{"include", List, "keywords or /regular expressions/ of which an item needs one"},
		{"exclude", List, "keywords or /regular expressions/ that an item must not have"},
		{"media", Text, "enclosures, or none for posts without media"},
	},
}

// Parts returns the keys of an object field that have a field of their own in a form.
func (k Resource) Parts(field string) []Field { return parts[k.Name+"."+field] }
