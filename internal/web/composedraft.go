package web

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// storedPost is the part of a payload that the form shows.
type storedPost struct {
	Text           string           `json:"text"`
	Markup         string           `json:"parse_mode"`
	Link           string           `json:"link"`
	Tags           []string         `json:"tags"`
	Comment        string           `json:"first_comment"`
	DisablePreview bool             `json:"disable_preview"`
	Media          []map[string]any `json:"media"`
	Buttons        [][]struct {
		Text string `json:"text"`
		URL  string `json:"url"`
	} `json:"buttons"`
	Thread []struct {
		Text  string `json:"text"`
		Media []int  `json:"media"`
	} `json:"thread"`
	ScheduledFor string `json:"scheduled_for"`
	Slot         string `json:"slot"`
	RemoveAt     string `json:"remove_at"`
	Variants     map[string]struct {
		Text  string `json:"text"`
		Title string `json:"title"`
	} `json:"variants"`
	Routing struct {
		Include *[]string `json:"include_channels"`
	} `json:"routing"`
	Repeat *struct {
		Rule     string `json:"rule"`
		Zone     string `json:"zone"`
		StartsAt string `json:"starts_at"`
	} `json:"repeat"`
}

// blank is a post without content.
func (v *view) blank() composed {
	tomorrow := v.now.In(v.zone).AddDate(0, 0, 1)
	return composed{Markup: "Markdown", To: "tags", Zone: v.zone.String(), Variants: map[string]ownText{}, rest: map[string]any{},
		When: when{Kind: "now", clock: clock{tomorrow.Format(time.DateOnly), "10:00"}, Every: "week"}}
}

// composedFrom returns the form for a stored payload. raw is the same payload with all its fields.
func (v *view) composedFrom(p storedPost, raw map[string]any) composed {
	c := v.blank()
	c.Text, c.Markup, c.Link, c.Comment, c.NoPreview = p.Text, p.Markup, p.Link, p.Comment, p.DisablePreview
	c.Tags = strings.Join(p.Tags, " ")
	for platform, own := range p.Variants {
		c.Variants[platform] = ownText{own.Text, own.Title}
	}
	for _, fields := range p.Media {
		m := composedMedium{Fields: fields}
		m.Alt = m.field("alt")
		c.Media = append(c.Media, m)
	}
	for i, row := range p.Buttons {
		for _, b := range row {
			c.Buttons = append(c.Buttons, composedButton{b.Text, b.URL, "r" + num(i)})
		}
	}
	for _, part := range p.Thread {
		numbers := make([]string, len(part.Media))
		for i, n := range part.Media {
			numbers[i] = num(n)
		}
		c.Thread = append(c.Thread, composedPart{part.Text, strings.Join(numbers, " ")})
	}
	if p.Routing.Include != nil {
		c.To, c.Channels = "these", *p.Routing.Include
	}
	v.setWhen(&c, p)
	c.rest = maps.Clone(raw)
	maps.DeleteFunc(c.rest, func(name string, _ any) bool { return slices.Contains(shownFields, name) })
	return c
}

func (v *view) setWhen(c *composed, p storedPost) {
	switch {
	case p.Repeat != nil:
		c.When.Kind = "repeat"
		c.When.setRule(p.Repeat.Rule)
		c.When.Date, c.When.Time, _ = strings.Cut(p.Repeat.StartsAt, "T")
		if zone, err := time.LoadLocation(p.Repeat.Zone); err == nil && p.Repeat.Zone != "Local" {
			c.Zone = zone.String()
		}
	case p.ScheduledFor != "":
		if at, err := time.Parse(time.RFC3339, p.ScheduledFor); err == nil {
			c.When.Kind, c.When.clock = "at", clockOf(at.In(c.zone()))
		}
	case p.Slot != "":
		c.When.Kind = "slot"
	}
	if at, err := time.Parse(time.RFC3339, p.RemoveAt); err == nil {
		c.Remove = clockOf(at.In(c.zone()))
	}
}
