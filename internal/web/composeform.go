package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost/internal/problem"
)

// composed is a post as the composer shows it. Its fields are those of the form.
type composed struct {
	Draft    string
	Version  int
	KeptAt   time.Time
	Endpoint string

	Text, Markup, Link, Tags, Comment string
	// NoPreview turns the preview of links off.
	NoPreview bool
	Variants  map[string]ownText
	Media     []composedMedium
	Buttons   []composedButton
	Thread    []composedPart
	// To is tags or these; Channels are then the only ones.
	To       string
	Channels []string
	When     when
	Remove   clock
	// Zone is the time zone of all times of the form.
	Zone string
	// rest are the fields of the payload that the form does not show.
	rest map[string]any
}

// ownText is what one platform gets in place of the text for all.
type ownText struct{ Text, Title string }

// composedMedium is a medium with all its fields; the form changes its alternative text alone.
type composedMedium struct {
	Fields map[string]any
	Alt    string
}

func (m composedMedium) field(name string) string {
	text, _ := m.Fields[name].(string)
	return text
}

// name is how the composer shows a medium.
func (m composedMedium) name() string {
	meta, _ := m.Fields["meta"].(map[string]any)
	if name, ok := meta["filename"].(string); ok && name != "" {
		return name
	}
	if address := m.field("url"); address != "" {
		return address
	}
	return m.field("type")
}

// isPicture reports whether the page can show the medium: a picture of the media store. Only those have pixels.
func (m composedMedium) isPicture() bool {
	meta, _ := m.Fields["meta"].(map[string]any)
	width := fmt.Sprint(meta["width"]) // a number of Go after an upload, of JSON in a form
	return m.field("type") == "image" && m.field("blob_ref") != "" && width != "<nil>" && width != "0"
}

func (m composedMedium) json() string { return encoded(m.Fields) }

// composedButton is a button; buttons with the same row are beside each other.
type composedButton struct{ Text, URL, Row string }

// composedPart is a later part of a thread. Media are numbers, separated by spaces.
type composedPart struct{ Text, Media string }

// clock is a local date and time; both are empty for none.
type clock struct{ Date, Time string }

func (c clock) isSet() bool { return c.Date != "" || c.Time != "" }

// local is the date and time as recurrences take it.
func (c clock) local() string { return c.Date + "T" + c.Time }

// in returns the instant in a zone. fault is a key of words: the clock is not complete, or the zone skips it.
func (c clock) in(zone *time.Location) (at time.Time, fault string) {
	at, err := time.ParseInLocation("2006-01-02T15:04", c.local(), zone)
	switch {
	case err != nil:
		return at, "compose.wrong.time"
	case at.Format("2006-01-02T15:04") != c.local():
		return at, "compose.wrong.skipped"
	}
	return at, ""
}

func clockOf(at time.Time) clock {
	return clock{Date: at.Format(time.DateOnly), Time: at.Format("15:04")}
}

// when is the time of a post.
type when struct {
	// Kind is now, at, slot or repeat.
	Kind string
	clock
	// Every is day, week or month, or rule for a rule of RFC 5545.
	Every string
	Days  []string
	Rule  string
}

// weekdays are the names of days in rules and forms, from Monday.
var weekdays = []string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}

// rule returns the rule of RFC 5545.
func (w when) rule() string {
	switch w.Every {
	case "day":
		return "FREQ=DAILY"
	case "week":
		if len(w.Days) == 0 {
			return "FREQ=WEEKLY"
		}
		return "FREQ=WEEKLY;BYDAY=" + strings.Join(w.Days, ",")
	case "month":
		return "FREQ=MONTHLY"
	}
	return strings.TrimSpace(w.Rule)
}

// setRule is the reverse of rule.
func (w *when) setRule(rule string) {
	w.Rule = rule
	days, weekly := strings.CutPrefix(rule, "FREQ=WEEKLY;BYDAY=")
	switch {
	case rule == "FREQ=DAILY":
		w.Every = "day"
	case rule == "FREQ=MONTHLY":
		w.Every = "month"
	case rule == "FREQ=WEEKLY":
		w.Every = "week"
	case weekly && !strings.ContainsAny(days, ";+-0123456789"):
		w.Every, w.Days = "week", strings.Split(days, ",")
	default:
		w.Every = "rule"
	}
}

// repeatField is the field of a draft with the schedule of a post that repeats. The API takes it apart from the post.
const repeatField = "repeat"

// shownFields are the fields of a payload that the form shows.
var shownFields = []string{"text", "parse_mode", "link", "tags", "first_comment", "disable_preview", "media", "buttons", "thread", "scheduled_for", "slot", "remove_at", repeatField}

func encoded(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return "{}"
	}
	return string(raw)
}

// composedOf reads a form.
func composedOf(form url.Values) composed {
	get := func(name string) string { return strings.ReplaceAll(form.Get(name), "\r\n", "\n") }
	c := composed{
		Draft: get("draft"), Endpoint: get("endpoint"), Text: get("text"), Markup: get("markup"), Link: strings.TrimSpace(get("link")), Tags: get("tags"),
		Comment: get("comment"), NoPreview: get("no_preview") != "", To: get("to"), Channels: form["channel"], Zone: get("zone"),
		When:   when{Kind: get("when"), clock: clock{get("date"), get("time")}, Every: get("every"), Days: form["day"], Rule: get("rule")},
		Remove: clock{get("remove_date"), get("remove_time")}, Variants: map[string]ownText{},
	}
	c.Version, _ = strconv.Atoi(get("version"))
	if json.Unmarshal([]byte(form.Get("rest")), &c.rest) != nil || c.rest == nil {
		c.rest = map[string]any{}
	}
	for _, p := range previewed {
		c.Variants[p] = ownText{Text: get("text-" + p), Title: strings.TrimSpace(get("title-" + p))}
	}
	for i, raw := range form["medium"] {
		m := composedMedium{Alt: at(form["alt"], i)}
		if json.Unmarshal([]byte(raw), &m.Fields) == nil && form.Get("drop") != num(i) {
			c.Media = append(c.Media, m)
		}
	}
	for i, label := range form["button_text"] {
		b := composedButton{Text: strings.TrimSpace(label), URL: strings.TrimSpace(at(form["button_url"], i)), Row: at(form["button_row"], i)}
		if b.Text != "" || b.URL != "" {
			c.Buttons = append(c.Buttons, b)
		}
	}
	for i, part := range form["part"] {
		p := composedPart{Text: strings.ReplaceAll(part, "\r\n", "\n"), Media: at(form["part_media"], i)}
		if strings.TrimSpace(p.Text+p.Media) != "" {
			c.Thread = append(c.Thread, p)
		}
	}
	return c
}

func at(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return ""
}

// zone returns the time zone of the form.
func (c composed) zone() *time.Location {
	if zone, err := time.LoadLocation(c.Zone); err == nil && c.Zone != "" && c.Zone != "Local" {
		return zone
	}
	return time.UTC
}

// tags returns the tags without # and commas.
func (c composed) tags() []string {
	return strings.FieldsFunc(strings.ReplaceAll(c.Tags, "#", " "), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
}

// isEmpty reports whether there is nothing to publish yet.
func (c composed) isEmpty() bool {
	own := slices.ContainsFunc(previewed, func(p string) bool { return strings.TrimSpace(c.Variants[p].Text) != "" })
	return strings.TrimSpace(c.Text) == "" && c.Link == "" && len(c.Media) == 0 && c.rest["template"] == nil && !own
}

// payload returns the post so far as the API takes it.
func (c composed) payload() map[string]any {
	p := maps.Clone(c.rest)
	set := func(name string, value any, given bool) {
		if given {
			p[name] = value
		}
	}
	set("text", c.Text, c.Text != "")
	set("parse_mode", c.Markup, c.Markup != "")
	set("link", c.Link, c.Link != "")
	set("tags", c.tags(), len(c.tags()) > 0)
	set("first_comment", c.Comment, strings.TrimSpace(c.Comment) != "")
	set("disable_preview", true, c.NoPreview)
	set("media", c.media(), len(c.Media) > 0)
	set("buttons", c.buttons(), len(c.Buttons) > 0)
	set("thread", c.thread(), len(c.Thread) > 0)
	c.setVariants(p)
	c.setRouting(p)
	c.setTimes(p)
	return p
}

func (c composed) setTimes(p map[string]any) {
	switch c.When.Kind {
	case "at":
		if at, fault := c.When.in(c.zone()); fault == "" {
			p["scheduled_for"] = at.Format(time.RFC3339)
		}
	case "slot":
		p["slot"] = "next_free"
	case "repeat":
		p[repeatField] = map[string]any{"rule": c.When.rule(), "zone": c.zone().String(), "starts_at": c.When.local()}
	}
	if at, fault := c.Remove.in(c.zone()); c.Remove.isSet() && fault == "" {
		p["remove_at"] = at.Format(time.RFC3339)
	}
}

func (c composed) setRouting(p map[string]any) {
	routing, _ := p["routing"].(map[string]any)
	routing = maps.Clone(routing)
	if routing == nil {
		routing = map[string]any{}
	}
	delete(routing, "include_channels")
	if c.To == "these" {
		routing["include_channels"] = append([]string{}, c.Channels...)
	}
	delete(p, "routing")
	if len(routing) > 0 {
		p["routing"] = routing
	}
}

func (c composed) setVariants(p map[string]any) {
	variants, _ := p["variants"].(map[string]any)
	variants = maps.Clone(variants)
	if variants == nil {
		variants = map[string]any{}
	}
	for _, platform := range previewed {
		v, _ := variants[platform].(map[string]any)
		if v = maps.Clone(v); v == nil {
			v = map[string]any{}
		}
		for name, value := range map[string]string{"text": c.Variants[platform].Text, "title": c.Variants[platform].Title} {
			if delete(v, name); strings.TrimSpace(value) != "" {
				v[name] = value
			}
		}
		if delete(variants, platform); len(v) > 0 {
			variants[platform] = v
		}
	}
	delete(p, "variants")
	if len(variants) > 0 {
		p["variants"] = variants
	}
}

func (c composed) media() (all []map[string]any) {
	for _, m := range c.Media {
		fields := maps.Clone(m.Fields)
		if delete(fields, "alt"); strings.TrimSpace(m.Alt) != "" {
			fields["alt"] = strings.TrimSpace(m.Alt)
		}
		all = append(all, fields)
	}
	return all
}

// buttons returns rows; a button without a row has one of its own.
func (c composed) buttons() (rows [][]map[string]any) {
	before := ""
	for _, b := range c.Buttons {
		one := map[string]any{"text": b.Text, "url": b.URL}
		if b.Row != "" && b.Row == before {
			rows[len(rows)-1] = append(rows[len(rows)-1], one)
		} else {
			rows = append(rows, []map[string]any{one})
		}
		before = b.Row
	}
	return rows
}

func (c composed) thread() (all []map[string]any) {
	for _, part := range c.Thread {
		one := map[string]any{}
		if strings.TrimSpace(part.Text) != "" {
			one["text"] = part.Text
		}
		var media []int
		for _, n := range strings.Fields(strings.ReplaceAll(part.Media, ",", " ")) {
			number, _ := strconv.Atoi(n) // 0 is refused by the API
			media = append(media, number)
		}
		if len(media) > 0 {
			one["media"] = media
		}
		all = append(all, one)
	}
	return all
}

// faults are what is wrong with a post, by the section of the form that shows it. "" is the whole post.
type faults map[string][]string

// check returns what the form itself knows to be wrong.
func (c composed) check(v *view) faults {
	f := faults{}
	if c.When.Kind == "at" || c.When.Kind == "repeat" {
		if _, wrong := c.When.in(c.zone()); wrong != "" {
			f.add("when", v.t(wrong))
		}
	}
	if _, wrong := c.Remove.in(c.zone()); c.Remove.isSet() && wrong != "" {
		f.add("remove", v.t(wrong))
	}
	if c.To == "these" && len(c.Channels) == 0 {
		f.add("to", v.t("compose.wrong.channels"))
	}
	return f
}

func (f faults) add(section, text string) { f[section] = append(f[section], text) }

// formSections are the parts of the form by the first part of the name of a field.
var formSections = map[string]string{
	"text": "text", "parse_mode": "text", "template": "text", "variants": "text", "media": "media", "tags": "to", "routing": "to", "scheduled_for": "when", "slot": "when",
	"rule": "when", "zone": "when", "starts_at": "when", "occurrence": "when", "buttons": "buttons", "thread": "thread", "first_comment": "thread", "link": "link",
	"links": "link", "remove_at": "remove", "endpoint_id": "endpoint", "query": "endpoint",
}

// addProblem adds the errors of a refusal to their sections.
func (f faults) addProblem(v *view, errors []problem.Fault) {
	for _, e := range errors {
		name := strings.TrimPrefix(strings.TrimPrefix(e.Field, "body."), "payloads[0].")
		first, _, _ := strings.Cut(name, ".")
		first, _, _ = strings.Cut(first, "[")
		section := formSections[first]
		f.add(section, v.or("compose.wrong."+section, v.t("compose.wrong"))+" "+v.sentence(name, e))
	}
}
