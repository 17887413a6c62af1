package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"autopost/internal/table"
)

// waitReason is a reason why a delivery does not start yet.
type waitReason struct {
	Gate  string
	Until *time.Time
	Lifts string
	// Ahead is the number of deliveries before it in the queue.
	Ahead int
}

func (w waitReason) String() string {
	text := strings.ReplaceAll(w.Gate, "_", " ")
	if w.Gate == "queue" {
		text = fmt.Sprintf("%d before it", w.Ahead)
	}
	if w.Until != nil {
		text += " until " + table.Time(*w.Until)
	}
	return text
}

func waitReasonsText(reasons []waitReason) string {
	texts := make([]string, 0, len(reasons))
	for _, r := range reasons {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, ", ")
}

// plannedChannel is what one channel would do with a post.
type plannedChannel struct {
	ChannelID string       `json:"channel_id"`
	SendAt    *time.Time   `json:"send_at"`
	HeldBy    []waitReason `json:"held_by"`
	Platform  string
	Verdict   string
	Reason    string
	Text      string
	Meta      struct {
		Steps []plannedStep
	}
}

// plannedStep is a call of a planned delivery.
type plannedStep struct {
	Body    string
	Part    int
	Comment bool
}

// later returns what follows part 1 of the post, "" if nothing does.
func (c plannedChannel) later() string {
	var texts []string
	for _, step := range c.Meta.Steps {
		switch {
		case step.Comment:
			texts = append(texts, "comment: "+step.Body)
		case step.Part > 0:
			texts = append(texts, fmt.Sprintf("%d: %s", step.Part, cmp.Or(step.Body, "media")))
		}
	}
	return strings.Join(texts, " / ")
}

// why returns the reason of the verdict, without the time, which differs between equal channels.
func (c plannedChannel) why() string {
	if c.Verdict != "queued" {
		return c.Reason
	}
	gates := make([]string, 0, len(c.HeldBy))
	for _, r := range c.HeldBy {
		gates = append(gates, waitReason{Gate: r.Gate, Ahead: r.Ahead}.String())
	}
	return strings.Join(gates, ", ")
}

// plannedGroup is channels with the same platform, verdict, reason and texts.
type plannedGroup struct {
	first       plannedChannel
	channels    []string
	from, until *time.Time
}

// groupChannels joins channels that differ only in their name and time, those that would get the post first.
func groupChannels(channels []plannedChannel) []*plannedGroup {
	var groups []*plannedGroup
	known := map[[5]string]*plannedGroup{}
	for _, c := range channels {
		key := [5]string{c.Platform, c.Verdict, c.why(), c.Text, c.later()}
		g, ok := known[key]
		if !ok {
			g = &plannedGroup{first: c}
			known[key], groups = g, append(groups, g)
		}
		g.channels = append(g.channels, c.ChannelID)
		if c.SendAt != nil && (g.from == nil || c.SendAt.Before(*g.from)) {
			g.from = c.SendAt
		}
		if c.SendAt != nil && (g.until == nil || c.SendAt.After(*g.until)) {
			g.until = c.SendAt
		}
	}
	slices.SortStableFunc(groups, func(a, b *plannedGroup) int {
		waits := func(g *plannedGroup) int { return map[bool]int{true: 0, false: 1}[g.first.Verdict == "queued"] }
		return waits(a) - waits(b)
	})
	return groups
}

func (g *plannedGroup) row() []any {
	channels := table.Word(g.channels[0])
	if more := len(g.channels) - 1; more > 0 {
		channels += table.Word(fmt.Sprintf(" and %d more", more))
	}
	why := g.first.why()
	if len(g.channels) == 1 && g.first.Verdict == "queued" {
		why = waitReasonsText(g.first.HeldBy)
	}
	var until *time.Time
	if g.until != nil && g.until.Sub(*g.from) >= time.Second {
		until = g.until
	}
	return []any{table.Word(strings.ReplaceAll(g.first.Verdict, "_", " ")), channels, g.from, why, table.Excerpt(g.first.Text), g.first.Platform, until, g.first.later()}
}

func (o output) printPlan(raw json.RawMessage) error {
	var p struct {
		verdict

		Counts struct {
			Channels, Queued, Deduped, Invalid, Skipped, Disabled int
			NotRouted                                             int `json:"not_routed"`
		}
		FirstAt  *time.Time `json:"first_at"`
		LastAt   *time.Time `json:"last_at"`
		Notes    []string
		Channels []plannedChannel
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("decode the plan: %w", err)
	}
	if o.asJSON {
		if err := printJSON(raw); err != nil {
			return err
		}
		return p.check()
	}
	if err := p.check(); err != nil {
		return err
	}
	rows := [][]any{}
	for _, g := range groupChannels(p.Channels) {
		rows = append(rows, g.row())
	}
	err := o.rows(nil, table.Table{
		Columns: []string{"verdict", "channel", "when", "why", "text", "platform", "last", "then"}, Details: []string{"platform", "last"}, Optional: []string{"then"}, Rows: rows,
		Empty: "No channel: run autopost channel add.",
	})
	if err != nil {
		return err
	}
	if p.Counts.Channels > len(p.Channels) {
		say("the first %d of %s", len(p.Channels), counted(p.Counts.Channels, "channel"))
	}
	sentence := fmt.Sprintf("%d of %s would get it", p.Counts.Queued, counted(p.Counts.Channels, "channel"))
	if p.FirstAt != nil {
		if first, last := table.Time(*p.FirstAt), table.Time(*p.LastAt); first == last {
			sentence += " at " + first
		} else {
			sentence += ", from " + first + " to " + last
		}
	}
	for _, other := range []struct {
		n    int
		noun string
	}{
		{p.Counts.Deduped, "has it already"}, {p.Counts.Invalid, "cannot show it"}, {p.Counts.Skipped, "skipped"},
		{p.Counts.NotRouted, "not routed"}, {p.Counts.Disabled, "disabled"},
	} {
		if other.n > 0 {
			sentence += fmt.Sprintf("; %d %s", other.n, other.noun)
		}
	}
	say("%s", sentence)
	for _, remark := range p.Notes {
		note("%s", remark)
	}
	return nil
}
