package web

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// planMeta is the form of a delivery.
type planMeta struct {
	ParseMode      string   `json:"parse_mode"`
	DisablePreview bool     `json:"disable_preview"`
	Length         int      `json:"length"`
	LengthLimit    int      `json:"length_limit"`
	Truncated      bool     `json:"truncated"`
	Title          string   `json:"title"`
	Notes          []string `json:"notes"`
	Buttons        [][]struct {
		Text string `json:"text"`
	} `json:"buttons"`
	Video *struct {
		Privacy string `json:"privacy"`
	} `json:"video"`
	Steps []planStep `json:"steps"`
}

// planStep is one message of a delivery.
type planStep struct {
	Step     string    `json:"step"`
	Text     bool      `json:"text"`
	Body     *string   `json:"body"`
	Items    []int     `json:"items"`
	Captions []*string `json:"captions"`
}

// bubble is one message of a preview.
type bubble struct {
	Text  string
	HTML  bool
	Items []int
	// Comment means that it is the first comment.
	Comment bool
}

// preview is a post as one platform shows it.
type preview struct {
	Platform string
	Channel  string
	Meta     planMeta
	Bubbles  []bubble
	// text is the whole text.
	text string
	// forms are all forms that the post has on the platform.
	forms []string
}

// others is how many forms of the post are not shown.
func (p preview) others() int { return len(p.forms) - 1 }

// previewsOf returns the first form of the post on each platform.
func previewsOf(groups []planGroup) (all []preview) {
	for _, g := range groups {
		form := g.Text + "\n" + string(g.Meta)
		if n := slices.IndexFunc(all, func(p preview) bool { return p.Platform == g.Platform }); n >= 0 {
			if !slices.Contains(all[n].forms, form) {
				all[n].forms = append(all[n].forms, form)
			}
			continue
		}
		p := preview{Platform: g.Platform, Channel: g.ChannelID, text: g.Text, forms: []string{form}}
		if json.Unmarshal(g.Meta, &p.Meta) == nil {
			p.Bubbles = bubblesOf(g.Text, p.Meta)
		}
		all = append(all, p)
	}
	return all
}

func bubblesOf(text string, m planMeta) (all []bubble) {
	html := m.ParseMode == "HTML"
	for _, s := range m.Steps {
		b := bubble{Items: s.Items, HTML: html, Comment: s.Step == "comment"}
		switch {
		case s.Body != nil:
			b.Text = *s.Body
		case s.Text:
			b.Text = text
		case len(s.Captions) > 0 && s.Captions[0] != nil:
			b.Text = *s.Captions[0]
		}
		all = append(all, b)
	}
	if len(all) == 0 {
		all = []bubble{{Text: text, HTML: html}}
	}
	return all
}

// counters are the lengths of the post, one for each platform, as the plan measured them.
func (d *planView) counters() (all []preview) {
	for _, p := range d.Previews {
		if p.Meta.LengthLimit > 0 {
			all = append(all, p)
		}
	}
	return all
}

// isClose reports whether the text nearly has the length that the platform allows.
func (p preview) isClose() bool { return p.Meta.Length*10 > p.Meta.LengthLimit*9 }

// lastText is the message that has the buttons; -1 for none.
func (p preview) lastText() int {
	last := -1
	for i, b := range p.Bubbles {
		if !b.Comment && b.Text != "" {
			last = i
		}
	}
	if len(p.Meta.Buttons) == 0 {
		return -1
	}
	return max(last, 0)
}

func (g planGroup) meta() (m planMeta) {
	_ = json.Unmarshal(g.Meta, &m) // another form has no notes
	return m
}

// formWords says in words as what channels get the post.
func formWords(v *view, g planGroup) string {
	m := g.meta()
	media := 0
	for _, s := range m.Steps {
		media += len(s.Items)
	}
	var words []string
	switch {
	case m.Video != nil:
		words = append(words, v.t("plan.video"))
	case len(m.Steps) > 1:
		words = append(words, v.n("plan.messages", len(m.Steps)))
	case media > 1:
		words = append(words, v.n("plan.album", media))
	case media == 1:
		words = append(words, v.t("plan.one_medium"))
	default:
		words = append(words, v.t("plan.text"))
	}
	if len(m.Buttons) > 0 {
		words = append(words, v.t("plan.buttons"))
	}
	if m.Truncated {
		words = append(words, v.t("preview.truncated"))
	}
	return strings.Join(words, ", ")
}

func mediumWords(m composedMedium) string { return cmp.Or(strings.TrimSpace(m.Alt), m.name()) }

// initial is the first letter of a name.
func initial(name string) string {
	for _, r := range name {
		return strings.ToUpper(string(r))
	}
	return ""
}
