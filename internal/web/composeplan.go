package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"autopost/internal/problem"
)

// previewed are the platforms with a text of their own and a preview, in the order of the page.
var previewed = []string{"telegram", "max", "x", "youtube"}

// planChannel is what the plan says about one channel.
type planChannel struct {
	ChannelID string          `json:"channel_id"`
	Platform  string          `json:"platform"`
	Verdict   string          `json:"verdict"`
	Reason    string          `json:"reason"`
	Text      string          `json:"text"`
	Meta      json.RawMessage `json:"meta"`
	SendAt    *time.Time      `json:"send_at"`
	HeldBy    []wait          `json:"held_by"`
}

func (c planChannel) goes() bool { return c.Verdict == "queued" || c.Verdict == "pending" }

// planGroup are channels with the same result.
type planGroup struct {
	planChannel

	Names []string
	// First and Last are the times of its channels.
	First, Last *time.Time
	// Held are the wait reasons that time alone does not end, or that end after the time of the post.
	Held []wait
}

// count is a number of channels in words.
func (g planGroup) listed() string {
	if len(g.Names) > 4 {
		return strings.Join(g.Names[:4], ", ") + ", …"
	}
	return strings.Join(g.Names, ", ")
}

// planView is the dry run as the composer shows it.
type planView struct {
	// Empty means that there is nothing to plan yet.
	Empty bool
	Post  composed
	// At is the time of the dry run.
	At         time.Time
	All, Goes  int
	First      *time.Time
	Last       *time.Time
	Groups     []planGroup
	Not        []planGroup
	NotRouted  []string
	Faults     faults
	Notes      []string
	Moderated  bool
	Previews   []preview
	MorePlaces bool
}

// planOf asks for the plan of a post. Errors of the post are part of the answer.
func (v *view) planOf(c composed, moderated bool) (*planView, error) {
	d := &planView{Post: c, At: v.now, Moderated: moderated, Faults: faults{}}
	if c.isEmpty() {
		d.Empty = true
		return d, nil
	}
	var plan struct {
		Counts   map[string]int `json:"counts"`
		FirstAt  *time.Time     `json:"first_at"`
		LastAt   *time.Time     `json:"last_at"`
		Channels []planChannel  `json:"channels"`
		Notes    []string       `json:"notes"`
		Warnings []string       `json:"warnings"`
	}
	payload := c.payload()
	delete(payload, repeatField)
	err := v.call(http.MethodPost, "/plan", payload, &plan)
	if p := (*problem.Problem)(nil); errors.As(err, &p) && p.Status == http.StatusUnprocessableEntity {
		d.Faults.addProblem(v, p.Errors)
		if len(p.Errors) == 0 {
			d.Faults.add("", p.Detail)
		}
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	d.All, d.Goes, d.First, d.Last = plan.Counts["channels"], plan.Counts["queued"]+plan.Counts["pending"], plan.FirstAt, plan.LastAt
	d.Notes = append(plan.Notes, plan.Warnings...)
	d.MorePlaces = d.All > len(plan.Channels)
	d.group(v, plan.Channels)
	d.Previews = previewsOf(d.Groups)
	return d, nil
}

// group puts channels with the same result together: those that get the post, then the others by their cause.
func (d *planView) group(v *view, all []planChannel) {
	at := map[string]int{}
	for _, c := range all {
		if c.Verdict == "not_routed" {
			d.NotRouted = append(d.NotRouted, c.ChannelID)
			continue
		}
		groups, key := &d.Not, c.Verdict+"\n"+c.Reason
		if c.goes() {
			groups, key = &d.Groups, strings.Join([]string{c.Verdict, c.Platform, c.Text, string(c.Meta), heldKey(c.HeldBy)}, "\n")
		}
		n, known := at[key]
		if !known {
			n = len(*groups)
			at[key] = n
			*groups = append(*groups, planGroup{planChannel: c, Held: v.worthSaying(c.HeldBy)})
		}
		g := &(*groups)[n]
		g.Names = append(g.Names, c.ChannelID)
		if c.SendAt != nil && (g.First == nil || c.SendAt.Before(*g.First)) {
			g.First = c.SendAt
		}
		if c.SendAt != nil && (g.Last == nil || c.SendAt.After(*g.Last)) {
			g.Last = c.SendAt
		}
	}
	slices.SortStableFunc(d.Groups, func(a, b planGroup) int {
		return cmp.Compare(slices.Index(previewed, a.Platform), slices.Index(previewed, b.Platform))
	})
}

// quietGates are wait reasons that only say when the turn of a delivery comes.
var quietGates = []string{"not_before", "scheduled_for", "queue", "channel_rate", "group_rate", "max_parallel", "gate"}

func heldKey(all []wait) string {
	var gates []string
	for _, w := range all {
		if !slices.Contains(quietGates, w.Gate) {
			gates = append(gates, w.Gate)
		}
	}
	return strings.Join(gates, ",")
}

func (v *view) worthSaying(all []wait) []wait {
	return slices.DeleteFunc(slices.Clone(all), func(w wait) bool { return slices.Contains(quietGates, w.Gate) })
}

// showPlan answers with the dry run alone.
func (v *view) showPlan(d composeData) {
	all, err := v.pushEndpoints()
	if err != nil {
		v.fail(err)
		return
	}
	d.Endpoints = all
	plan, err := v.planOf(d.composed, d.isModerated())
	if err != nil {
		v.fail(err)
		return
	}
	for section, all := range d.check(v) {
		for _, text := range all {
			plan.Faults.add(section, text)
		}
	}
	v.render(http.StatusOK, planAnswer(v, plan))
}
