package web

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"autopost/internal/configfile"
)

const objectType = configfile.Object

// shown is the value in words.
func (f *formField) shown() string {
	for _, c := range f.Choices {
		if c.Value == f.Value && c.Value != "" {
			return c.Word
		}
	}
	return f.Value
}

// described reports whether the field has a hint or a fault.
func (f *formField) described() bool { return f.Hint != "" || f.Fault != "" || f.Now != "" }

// attributes are those of the input that depend on the field.
func (f *formField) attributes() templ.Attributes {
	all := templ.Attributes{}
	if f.described() {
		all["aria-describedby"] = f.Name + "-hint"
	}
	if f.Fault != "" {
		all["aria-invalid"] = "true"
	}
	if f.Rule.From != "" && f.Choices == nil {
		all["list"] = "list-" + f.Rule.From
	}
	if f.Rule.Bounded {
		all["inputmode"] = "decimal"
	}
	return all
}

func spelled(f *formField) string {
	if f.Type == objectType {
		return "false"
	}
	return "true"
}

func sortedLists(lists map[string][]choice) []string { return slices.Sorted(maps.Keys(lists)) }

func (v *view) rowTitle(d rowData) string {
	if d.Row == nil {
		return v.t(d.Of.word() + ".add")
	}
	return d.Of.name(d.Row)
}

// rowText is the state of a row in a sentence, or what a new one is for.
func (v *view) rowText(d rowData) string {
	if d.Row == nil {
		return v.t(d.Of.word() + ".text")
	}
	return strings.Trim(d.Of.sub(v, d.Row)+" · "+d.Of.why(v, d.Row), " ·")
}

func (v *view) formTitle(d rowData) string {
	if d.Row == nil {
		return v.t("setup.new")
	}
	return v.t("setup.change")
}

// shownOr is a value, or a word for no value.
func (v *view) shownOr(value string) string {
	if value == "" {
		return v.t("setup.nothing")
	}
	return value
}

// first are the fields that a form shows at once.
func (d rowData) first() []*formField {
	if d.Of.first == nil {
		return d.Form.Fields
	}
	var all []*formField
	for _, f := range d.Form.Fields {
		if slices.Contains(d.Of.first, f.Name) {
			all = append(all, f)
		}
	}
	return all
}

// further are the fields that a form folds.
func (d rowData) further() []*formField {
	if d.Of.first == nil {
		return nil
	}
	var all []*formField
	for _, f := range d.Form.Fields {
		if !slices.Contains(d.Of.first, f.Name) {
			all = append(all, f)
		}
	}
	return all
}

func anyFault(fields []*formField) bool {
	return slices.ContainsFunc(fields, func(f *formField) bool { return f.Fault != "" || f.Now != "" })
}

// platformOf is the name of the platform of a template.
func (v *view) platformOf(platform string) string {
	if platform == everyPlatform {
		return v.t("templates.every")
	}
	return platformName(platform)
}

func (v *view) shownTemplate(d templateData) string {
	if d.ID == "" {
		return v.t("templates.add")
	}
	return d.ID
}

func (v *view) previewID(d templateData) string {
	if d.ID == "" {
		return "new"
	}
	return pathOf(d.ID)
}

func switchedTo(enabled bool) string {
	if enabled {
		return "disable"
	}
	return "enable"
}

var stateOfSend = map[string]string{"pending": "queued", "sending": "sending", "delivered": "sent", "dead": "dead"}

func (d rowData) sends() []webhookSend {
	all, _ := d.Extra.([]webhookSend)
	return all
}

// joinedList names at most twenty things.
func joinedList(all []string) string {
	if len(all) > 20 {
		return strings.Join(all[:20], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}

func tagsText(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	return "#" + strings.Join(tags, " #")
}

func feedAddress(feed string) string {
	return "/setup/sources?" + url.Values{"add": {"1"}, "config_json.url": {feed}}.Encode()
}

func (v *view) trialTitle(t sourceTrial) string {
	if !t.OK {
		return v.t("sources.failed")
	}
	return v.n("sources.found", t.Total) + " " + v.n("sources.publish", t.Publish)
}

// kindName is a kind of configuration in words.
func (v *view) kindName(kind string) string { return v.or("kind."+kind, kind) }

func (v *view) waitingTitle(w waitingRow) string {
	if w.Text == "" {
		return w.DeliveryID
	}
	return line(w.Text)
}

// meaningOf is what a setting does, and the language of that text. The database has it in English.
func (v *view) meaningOf(s setting) (text, lang string) {
	key, name := s.Key, ""
	if platform, is := strings.CutPrefix(key, policyPrefix); is {
		key, name = policyPrefix, platformName(platform)
	}
	if text, known := settingTexts[v.words.code][key]; known {
		return strings.ReplaceAll(text, "{name}", name), v.words.code
	}
	return sentenceOf(s.Meaning), "en"
}

// setupSection is a page of the set-up with its state: what is configured, and whether it works.
type setupSection struct{ Path, Word, Icon, State, Says string }

type sectionGroup struct {
	Word     string
	Sections []setupSection
}

// setupSections are the pages of the set-up that the person may open.
func (v *view) setupSections() []sectionGroup {
	in := []setupSection{{"/channels", "channels", "channels", "", ""}, {"/setup/sources", "sources", "globe", "", ""}, {"/setup/endpoints", "endpoints", "send", "", ""},
		{"/setup/templates", "templates", "quote", "", ""}, {"/setup/credentials", "credentials", "key", "", ""}}
	in = slices.DeleteFunc(in, func(s setupSection) bool { return v.or(s.Word+".title", "") == "" })
	out := []setupSection{{"/setup/webhooks", "webhooks", "out", "", ""}, {"/setup/limits", "limits", "clock", "", ""}, {"/setup/retry-policies", "retry-policies", "retry", "", ""},
		{"/setup/event-types", "event-types", "tag", "", ""}, {"/setup/avatars", "avatars", "user", "", ""}}
	if v.may("operator") {
		out = append(out, setupSection{"/setup/alert-targets", "alert-targets", "warn", "", ""}, setupSection{"/setup/moderation-chats", "moderation-chats", "decisions", "", ""})
	}
	rest := []setupSection{{"/setup/settings", "settings", "setup", "", ""}}
	if v.may("owner") {
		rest = append([]setupSection{{"/setup/people", "people", "user", "", ""}, {"/setup/keys", "keys", "key", "", ""}, {"/setup/config", "config", "posts", "", ""}}, rest...)
	}
	for _, group := range [][]setupSection{in, out} {
		for i := range group {
			v.judge(&group[i])
		}
	}
	return []sectionGroup{{"in", in}, {"out", out}, {"rest", rest}}
}

// judge says how many rows a section has, and how many of them do not work.
func (v *view) judge(s *setupSection) {
	at := slices.IndexFunc(resources, func(o *resource) bool { return o.section == s.Path })
	if at < 0 || !slices.Contains([]string{"channels", "sources", "endpoints", "webhooks", "alert-targets", "moderation-chats"}, s.Word) {
		return
	}
	list, err := v.rows(resources[at])
	if err != nil || len(list.Rows) == 0 {
		return
	}
	bad, works := 0, 0
	for _, r := range list.Rows {
		switch list.Of.state(v, r) {
		case "failing", "held":
			bad++
		case "open", "cooldown":
			works++
		}
	}
	s.State, s.Says = "open", v.n("setup.count", works)
	if works == 0 {
		s.State, s.Says = "disabled", v.t("setup.state.disabled")
	}
	if list.Next != "" {
		s.Says = v.t("setup.many", works)
	}
	if bad > 0 {
		s.State, s.Says = "held", v.n("setup.bad", bad)
	}
}

// actWord is the word for an act on a row.
func (v *view) actWord(o *resource, act string) string {
	return v.t(v.known("act."+o.word()+"."+act, "act."+act))
}
