package configfile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// FieldType is the type of the values of a field.
type FieldType int

// The types of fields.
const (
	Text FieldType = iota
	Number
	Boolean
	// List is a list of texts.
	List
	// Object is an object or any other JSON value.
	Object
)

// Field is one field of a resource.
type Field struct {
	Name string
	Type FieldType
	// Help is the help text of the flag.
	Help string
}

// Resource is a kind of row that can be configured. Name is its name in apply_config.
type Resource struct {
	Name string
	// Section is the key of these rows in a workspace; empty for the workspace itself.
	Section string
	Fields  []Field
}

// Kinds lists all resources. A resource refers only to earlier ones. The fields have the
// order of the file and the names of the database function of the resource.
var Kinds = []Resource{
	{"workspace", "", []Field{
		{"name", Text, "display name"},
		{"status", Text, "active; paused: accepts posts and sends nothing; disabled: rejects posts"},
		{"approvals_needed", Number, "number of people, at most 2, who must approve a moderated post (default: 1)"},
	}},
	{"credential", "credentials", []Field{
		{"platform", Text, "platform: telegram, max, x, youtube, webhook, smtp, http or postgres; cannot be changed later"},
		{"secret_ref", Text, "where the secret is stored: env:NAME, file:/path or sealed:NAME"},
		{"hosts", List, "hosts that get a secret of platform http, like [\"api.example.com\"]"},
	}},
	{"group", "groups", []Field{
		{"rate_rps", Number, "messages per second of all its channels together; 0: no limit"},
	}},
	{"template", "templates", []Field{
		{"body", Text, "text with placeholders, like \"{title}, {summary?}\""},
		{"defaults", Object, "default values of placeholders, as JSON"},
		{"vars", List, "placeholders that a post may set"},
		{"sanitize", List, "placeholders whose @mentions are removed"},
		{"parse_mode", Text, "HTML, Markdown or None"},
		{"max_length", Number, "largest length of the text in characters; a longer text is cut"},
	}},
	{"channel", "channels", []Field{
		{"platform", Text, "telegram, max, x, youtube or webhook; cannot be changed later"},
		{"target_id", Text, "target: @name, chat id, chat id:thread or an https URL"},
		{"auth_ref", Text, "credential name"},
		{"rate_group", Text, "rate group: its channels share a limit (default: the credential name)"},
		{"enabled", Boolean, "whether the channel gets posts (default: true)"},
		{"title", Text, "display name"},
		{"send_mode", Text, "text, media or mixed (default: mixed)"},
		{"rate_rps", Number, "messages per second; 0: no limit (default: 1)"},
		{"max_parallel", Number, "largest number of concurrent calls (default: 1)"},
		{"timezone", Text, "time zone of the posting window, like Europe/Moscow"},
		{"window_mode", Text, "immediate, or windowed: only in the posting window (default: immediate)"},
		{"posting_window", Object, `posting window as JSON, like {"mon": [["09:00","18:00"]]}`},
		{"dedup_ttl_hours", Number, "dedup window in hours: the same content is not sent again (default: 168)"},
		{"on_unknown", Text, "what follows an unknown outcome: reconcile, hold or resend (default: reconcile)"},
		{"on_auth_lost", Text, "what happens to waiting deliveries while the credential is refused: hold or fail (default: hold)"},
		{"moderated", Boolean, "whether a person decides about its posts (default: false)"},
		{"settings", Object, `settings of texts and platform as JSON, like {"long_text": "split"}`},
		{"tags", List, "tags of the channel"},
		{"route_filter", Object, `filter of the posts as JSON, like {"include_any": ["news"]} (default: all posts)`},
		{"template_ref", Text, "template name for its posts"},
	}},
	{"quota", "quotas", []Field{
		{"max_sends", Number, "largest number of posts or calls in the window"},
		{"counts", Text, "posts: those that the platform has or may have; calls: every call that began"},
	}},
	{"budget", "budgets", []Field{
		{"month_usd", Number, "budget of a calendar month (UTC) in US dollars"},
	}},
	{"retry_policy", "retry_policies", []Field{
		{"kind", Text, "exponential: base_ms times factor per attempt, up to cap_ms; or ladder: ladder_ms"},
		{"base_ms", Number, "first wait of kind exponential in milliseconds"},
		{"factor", Number, "growth of the wait per attempt, 1 to 100"},
		{"cap_ms", Number, "longest wait of kind exponential in milliseconds"},
		{"ladder_ms", Object, "waits of kind ladder in milliseconds as JSON, like [60000, 300000]; the last repeats"},
		{"jitter", Number, "random part of a wait, 0 to 0.9"},
		{"max_attempts", Number, "largest number of calls (default: the setting max_attempts)"},
		{"costs_attempt", Boolean, "whether a failure uses an attempt; if not, max_attempts bounds such failures"},
	}},
	{"source", "sources", []Field{
		{"kind", Text, "rss, api or db"},
		{"config_json", Object, "complete configuration as JSON, like {\"url\": \"https://…\", \"interval_seconds\": 600}"},
		{"enabled", Boolean, "whether the source is polled (default: true)"},
		{"endpoint_id", Text, "endpoint that its posts are recorded for (default: the source id); cannot be changed later"},
	}},
	{"endpoint", "endpoints", []Field{
		{"kind", Text, "webhook_push, bot_webhook or pull_source; cannot be changed later"},
		{"source_id", Text, "source id of a pull_source; cannot be changed later"},
		{"signing_ref", Text, "name of the credential of platform webhook that signs requests"},
		{"enabled", Boolean, "whether the endpoint accepts posts, if it has a secret (default: true)"},
		{"ingress_rps", Number, "accepted posts per second (default: 5)"},
		{"max_payload_bytes", Number, "largest accepted body in bytes (default: 262144)"},
		{"hash_drop_window_sec", Number, "time in seconds in which the same body without source_ref is a duplicate (default: 10)"},
		{"moderated", Boolean, "whether a person decides about its posts (default: false)"},
		{"meta", Object, "notes as JSON, without secrets"},
	}},
	{"webhook", "webhooks", []Field{
		{"url", Text, "https URL that gets the events"},
		{"signing_ref", Text, "name of the credential of platform webhook that signs the requests"},
		{"event_types", List, "reported events: names, groups like post.*, or * for all (default: *)"},
		{"channel_ids", List, "reported channels, for events with a channel (default: all)"},
		{"tags", List, "tags of reported channels, for events with a channel (default: all)"},
		{"enabled", Boolean, "whether events are sent (default: true)"},
		{"rps", Number, "largest rate in calls per second (default: 20)"},
		{"max_parallel", Number, "largest number of concurrent calls, 1 to 100 (default: 4)"},
		{"timeout_seconds", Number, "timeout of one call in seconds, 1 to 60 (default: 15)"},
	}},
	{"recurrence", "recurrences", []Field{
		{"endpoint_id", Text, "endpoint that its posts are recorded for"},
		{"rule", Text, "rule of RFC 5545, like FREQ=WEEKLY;BYDAY=MO,FR"},
		{"zone", Text, "time zone of the rule, like Europe/Moscow (default: UTC)"},
		{"starts_at", Text, "first local time, like 2026-12-01T10:00"},
		{"payloads", Object, `posts as JSON, taken in turn, like [{"text": "Hello"}]`},
		{"enabled", Boolean, "whether it makes posts (default: true)"},
	}},
	{"alert_target", "alert_targets", []Field{
		{"kind", Text, "telegram, max, email or webhook; cannot be changed later"},
		{"address", Text, "chat id, mail address or https URL"},
		{"auth_ref", Text, "credential name: of the bot, of platform smtp for mail, or of platform webhook to sign"},
		{"enabled", Boolean, "whether the target gets alerts (default: true)"},
		{"min_severity", Text, "lowest severity: warning, error or critical (default: warning)"},
		{"kinds", List, "kinds of alerts (default: all)"},
		{"quiet_hours", Text, "daily hours without messages, like 22:00-07:30 (default: none)"},
		{"timezone", Text, "time zone of the hours, like Europe/Moscow (default: UTC)"},
		{"quiet_critical", Boolean, "whether critical alerts are sent in quiet hours (default: true)"},
		{"digest_minutes", Number, "time in minutes between messages that collect all but critical alerts; 0: at once (default: 0)"},
		{"daily_limit", Number, "largest number of messages in 24 hours (default: 50)"},
		{"health_at", Text, "daily time of the health snapshot, like 09:00 (default: never)"},
		{"health_on_alert", Boolean, "whether new alerts include the health snapshot (default: false)"},
	}},
	{"moderation_chat", "moderation_chats", []Field{
		{"auth_ref", Text, "credential name of the bot, of platform telegram or max"},
		{"target_id", Text, "chat in which people decide: @name, chat id or chat id:thread"},
		{"users", List, "numeric ids of the people who may decide (default: any member)"},
		{"enabled", Boolean, "whether the chat is asked (default: true)"},
	}},
	{"bot_rule", "bot_rules", []Field{
		{"enabled", Boolean, "whether this version answers; false stores a draft (default: true)"},
		{"intent", Text, "topic of the rule, like delivery"},
		{"state", Text, "state in which the rule applies (default: any)"},
		{"keywords", List, "words of which a message contains one"},
		{"priority", Number, "the higher one wins (default: 0)"},
		{"max_turns", Number, "messages after which the scenario ends (default: 5)"},
		{"response_template", Text, "answer; {name} is the customer, {text} the message"},
		{"buttons", Object, `rows of buttons as JSON, like [[{"text": "Returns", "payload": "return"}]]`},
		{"next_state", Text, "state after the answer (default: it stays)"},
	}},
}

// KindOf returns the resource of a name. It panics if the name is not in Kinds.
func KindOf(name string) Resource {
	return Kinds[slices.IndexFunc(Kinds, func(k Resource) bool { return k.Name == name })]
}

// Field returns a field by its name.
func (k Resource) Field(name string) (Field, bool) {
	i := slices.IndexFunc(k.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return k.Fields[i], true
}

// Names returns the field names.
func (k Resource) Names() []string {
	names := make([]string, 0, len(k.Fields))
	for _, f := range k.Fields {
		names = append(names, f.Name)
	}
	return names
}

// Ordered returns the names of all values of the sides: fields first, in their order.
func (k Resource) Ordered(sides ...map[string]json.RawMessage) []string {
	all := map[string]json.RawMessage{}
	for _, side := range sides {
		maps.Copy(all, side)
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(k.place(a), k.place(b)), cmp.Compare(a, b))
	})
}

// place returns the index of a field. Other names come after all fields.
func (k Resource) place(name string) int {
	if at := slices.Index(k.Names(), name); at >= 0 {
		return at
	}
	return len(k.Fields)
}

// nearest returns the most similar name, or the empty text if no name is similar.
func nearest(written string, names []string) string {
	best, least := "", len(written)/2+1
	for _, name := range names {
		if d := distance(written, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two names in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
