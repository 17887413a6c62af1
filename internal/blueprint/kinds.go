package blueprint

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// Form is how a value of a field is written.
type Form int

// The forms of values.
const (
	Text Form = iota
	Number
	Boolean
	List   // of texts
	Object // or any other JSON
)

// Field is one that a kind of thing has.
type Field struct {
	Name string
	Form Form
	Help string
}

// Kind is a kind of thing that can be configured, named as apply_config names it.
type Kind struct {
	Name string
	// Section is the key under which a workspace lists things of the kind; empty for the workspace itself.
	Section string
	Fields  []Field
}

// Kinds are all there are, in an order in which each refers to earlier ones only.
// The fields are those that the function of the kind takes, in the order in which a
// file shows them.
var Kinds = []Kind{
	{"workspace", "", []Field{
		{"name", Text, "what it is called"},
		{"status", Text, "active; paused: takes posts in, sends nothing; disabled: refuses posts"},
	}},
	{"credential", "credentials", []Field{
		{"platform", Text, "platform that it is for; stays as it was added"},
		{"secret_ref", Text, "where the secret is kept: env:NAME, file:/path or sealed:NAME"},
	}},
	{"group", "groups", []Field{
		{"rate_rps", Number, "messages a second of all its channels together; 0 for no limit"},
	}},
	{"template", "templates", []Field{
		{"body", Text, "text with placeholders: \"{title}, {summary?}\""},
		{"defaults", Object, "values of placeholders where a post gives none, as JSON"},
		{"vars", List, "placeholders that a post may give"},
		{"sanitize", List, "placeholders whose values lose @mentions"},
		{"parse_mode", Text, "HTML, Markdown or None"},
		{"max_length", Number, "length that the text is cut to"},
	}},
	{"channel", "channels", []Field{
		{"platform", Text, "telegram, max, x, youtube, webhook; stays as it was added"},
		{"target_id", Text, "where the posts go: @name, chat, chat:thread or an https address"},
		{"auth_ref", Text, "name of its credential"},
		{"rate_group", Text, "channels that share a limit (default that of its credential)"},
		{"enabled", Boolean, "whether posts are routed to it (default true)"},
		{"title", Text, "what it is called"},
		{"send_mode", Text, "text, media or mixed (default mixed)"},
		{"rate_rps", Number, "messages a second; 0 for no limit (default 1)"},
		{"max_parallel", Number, "calls at a time (default 1)"},
		{"timezone", Text, "zone of its posting window, as in Europe/Moscow"},
		{"window_mode", Text, "immediate or windowed (default immediate)"},
		{"posting_window", Object, `when it may post, as JSON: {"mon": [["09:00","18:00"]]}`},
		{"dedup_ttl_hours", Number, "how long the same content is not sent again (default 168)"},
		{"on_unknown", Text, "after a call without an answer: reconcile, hold or resend (default reconcile)"},
		{"on_auth_lost", Text, "what waits while its credential is refused: hold or fail (default hold)"},
		{"settings", Object, `of its texts and its platform, as JSON: {"long_text": "split"}`},
		{"tags", List, "tags of the channel itself"},
		{"route_filter", Object, `which posts it gets, as JSON: {"include_any": ["news"]}`},
		{"template_ref", Text, "template of its posts"},
	}},
	{"quota", "quotas", []Field{
		{"max_sends", Number, "calls that may begin in the window"},
	}},
	{"budget", "budgets", []Field{
		{"month_usd", Number, "dollars that may be spent in a calendar month (UTC)"},
	}},
	{"source", "sources", []Field{
		{"kind", Text, "rss, api or db"},
		{"config_json", Object, "what is asked, and how often, as JSON: {\"url\": \"https://…\"}; whole"},
		{"enabled", Boolean, "whether it is polled (default true)"},
		{"endpoint_id", Text, "endpoint that its posts are booked on (default the id of the source); stays as it was added"},
	}},
	{"endpoint", "endpoints", []Field{
		{"kind", Text, "webhook_push, bot_webhook or pull_source; stays as it was added"},
		{"source_id", Text, "source of a pull_source; stays as it was added"},
		{"signing_ref", Text, "credential of platform webhook by which requests are signed"},
		{"enabled", Boolean, "whether it takes posts, as soon as it has a secret (default true)"},
		{"ingress_rps", Number, "posts a second that it takes (default 5)"},
		{"max_payload_bytes", Number, "largest body, in bytes (default 262144)"},
		{"hash_drop_window_sec", Number, "seconds for which the same body without a source_ref is a repeat (default 10)"},
		{"moderated", Boolean, "false: posts cannot wait for a decision yet"},
		{"meta", Object, "notes about it as JSON, without secrets"},
	}},
	{"webhook", "webhooks", []Field{
		{"url", Text, "https address that is told what becomes of posts"},
		{"signing_ref", Text, "credential of platform webhook that signs"},
		{"event_types", List, "what it is told: names, families (post.*) or * (default)"},
		{"channel_ids", List, "of what has a channel, only of these (default all)"},
		{"tags", List, "of what has a channel, only of channels with one of these tags (default all)"},
		{"enabled", Boolean, "whether it is told anything (default true)"},
		{"rps", Number, "calls a second (default 20)"},
		{"max_parallel", Number, "calls at a time, 1 to 100 (default 4)"},
		{"timeout_seconds", Number, "how long one call may take, 1 to 60 (default 15)"},
	}},
	{"alert_target", "alert_targets", []Field{
		{"kind", Text, "telegram, max, email or webhook; stays as it was added"},
		{"address", Text, "chat, mail address or https address"},
		{"auth_ref", Text, "credential: the bot's, of platform smtp for mail, of platform webhook to sign with"},
		{"enabled", Boolean, "whether it is told (default true)"},
		{"min_severity", Text, "the least that it is told: warning, error or critical (default warning)"},
		{"kinds", List, "alerts of these kinds only (default all)"},
		{"quiet_hours", Text, "when it is left alone, every day, as in 22:00-07:30"},
		{"timezone", Text, "zone of its clock, as in Europe/Moscow (default UTC)"},
		{"quiet_critical", Boolean, "whether critical alerts come in quiet hours too (default true)"},
		{"digest_minutes", Number, "all but critical ones come together, at most so often (default 0)"},
		{"daily_limit", Number, "messages in any 24 hours (default 50)"},
		{"health_at", Text, "when the health snapshot comes, every day, as in 09:00"},
		{"health_on_alert", Boolean, "whether it comes along with new alerts (default false)"},
	}},
}

// KindOf returns the kind of a name; it must be one of Kinds.
func KindOf(name string) Kind {
	return Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })]
}

// Field finds a field of a kind by its name.
func (k Kind) Field(name string) (Field, bool) {
	i := slices.IndexFunc(k.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return k.Fields[i], true
}

// Names are those of its fields.
func (k Kind) Names() []string {
	names := make([]string, 0, len(k.Fields))
	for _, f := range k.Fields {
		names = append(names, f.Name)
	}
	return names
}

// Ordered are the names of the values of both sides, those of its fields first and in their order.
func (k Kind) Ordered(sides ...map[string]json.RawMessage) []string {
	all := map[string]json.RawMessage{}
	for _, side := range sides {
		maps.Copy(all, side)
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(k.place(a), k.place(b)), cmp.Compare(a, b))
	})
}

// place is the number of a field, behind all of them for any other name.
func (k Kind) place(name string) int {
	if at := slices.Index(k.Names(), name); at >= 0 {
		return at
	}
	return len(k.Fields)
}

// nearest is the name most like what was written, empty when none is like it.
func nearest(written string, names []string) string {
	best, least := "", len(written)/2+1
	for _, name := range names {
		if d := distance(written, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to put in, take out or change to make b of a.
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
