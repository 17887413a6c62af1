package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// explainedAtOnce is how many deliveries the page of a post explains without a further click.
	explainedAtOnce = 10
	// actedAtOnce is the most deliveries that an address names.
	actedAtOnce = 50
	// mostChannelPages is how many pages of channels the page of a post reads for the state of its deliveries.
	mostChannelPages = 5
)

// cause is a block of the page of a post: deliveries that do not have it for the same reason. The first is explained, if
// one of them is.
type cause struct{ Rows []postRow }

func (c cause) first() postRow { return c.Rows[0] }

// title names the channels of a block.
func (c cause) title(v *view, d *postData) string {
	if len(c.Rows) > 3 {
		return v.n("post.cause.channels", len(c.Rows))
	}
	var names []string
	for _, r := range c.Rows {
		names = append(names, d.nameOf(r))
	}
	return strings.Join(names, ", ")
}

// sub is the line below the title: the platforms, and the attempts of a single channel.
func (c cause) sub(v *view) string {
	var names []string
	for _, r := range c.Rows {
		if name := platformName(r.Platform); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	text := strings.Join(names, ", ")
	if len(c.Rows) == 1 {
		return text + " · " + v.n("post.attempts", c.first().Attempt)
	}
	return text + " · " + v.n("post.cause.channels", len(c.Rows))
}

// ids are the deliveries of a block for an address.
func (c cause) ids() string {
	var ids []string
	for _, r := range c.Rows {
		ids = append(ids, r.DeliveryID)
	}
	return strings.Join(ids, ",")
}

// held are the wait reasons of a block. Where they end at different times, Last is the latest.
func (c cause) held() []wait {
	if c.first().Why == nil {
		return nil
	}
	all := slices.Clone(c.first().Why.Now.HeldBy)
	for i := range all {
		for _, r := range c.Rows[1:] {
			if r.Why == nil {
				continue
			}
			for _, w := range r.Why.Now.HeldBy {
				if w.Gate == all[i].Gate {
					all[i].extend(w.Until)
				}
			}
		}
	}
	return all
}

// extend widens the end of a wait to a span.
func (w *wait) extend(until *time.Time) {
	if until == nil || w.Until == nil {
		return
	}
	if w.Last == nil {
		w.Last = w.Until
	}
	if until.Before(*w.Until) {
		w.Until = until
	}
	if until.After(*w.Last) {
		w.Last = until
	}
}

// mend is the page on which a person ends the wait, with the word for it; "" if there is none.
func (c cause) mend(v *view, d *postData) (to, word string) {
	ch := d.channels[c.first().ChannelID]
	for _, w := range c.held() {
		switch {
		case (w.Gate == "auth_lost" || w.Gate == "credential_missing") && ch.AuthRef != "" && v.may("owner"):
			return openAlert{Subject: "credential:" + ch.AuthRef}.mend(), v.t("post.mend." + w.Gate)
		case (w.Gate == "channel_paused" || w.Gate == "channel_disabled") && len(c.Rows) == 1 && v.may("operator"):
			ask := map[string]string{"channel_paused": "resume", "channel_disabled": "enable"}[w.Gate]
			return "/channels/" + c.first().ChannelID + "?ask=" + ask, v.t("post.mend." + w.Gate)
		}
	}
	return "", ""
}

// stateOrder is the order of blocks: what needs a person first.
var stateOrder = []string{"unknown", "dead", "failed_permanent", "held", "sending", "claimed", "retry", "queued", "deduped"}

// alike are the visible reasons of a delivery: deliveries with equal ones are explained by one of them.
func (d *postData) alike(r postRow) string {
	ch, known := d.channels[r.ChannelID]
	key := fmt.Sprint(r.Status, "|", known, "|", r.LastError)
	if !isWaiting(r.Status) {
		return key
	}
	if !known {
		return key + r.DeliveryID
	}
	due := ""
	if r.DueAt != nil {
		due = r.DueAt.Truncate(time.Minute).String()
	}
	return fmt.Sprint(key, "|", due, "|", ch.Platform, ch.RateGroup, ch.AuthRef, ch.Enabled, ch.AuthHeld, "|", text(ch.RightsHeld), "|", ch.CredentialMissingAt != nil, ch.PausedUntil, ch.CooldownUntil)
}

// reason is the cause of an explained delivery. Waits that end at some time are alike, whenever they end.
func (d *postData) reason(r postRow) string {
	key := r.state()
	if isEnded(r.Status) && r.LastError != nil {
		return fmt.Sprint(key, "|", *r.LastError)
	}
	for _, w := range r.Why.Now.HeldBy {
		key += "|" + w.Gate
		if w.Gate == "auth_lost" || w.Gate == "credential_missing" {
			key += " " + d.channels[r.ChannelID].AuthRef
		}
	}
	return key
}

// readCauses explains the deliveries that matter most and puts deliveries with the same cause together. The delivery of
// the address is a block of its own.
func (v *view) readCauses(d *postData) error {
	rows := d.rows(false)
	seen := map[string]bool{}
	var first, rest []string
	for _, r := range rows {
		if r.Status == "deduped" {
			continue
		}
		if key := d.alike(r); !seen[key] {
			seen[key] = true
			first = append(first, r.DeliveryID)
		} else {
			rest = append(rest, r.DeliveryID)
		}
	}
	wanted := append(first, rest...)
	wanted = wanted[:min(len(wanted), explainedAtOnce)]
	if at := slices.IndexFunc(rows, func(r postRow) bool { return r.DeliveryID == d.Open && r.Status != "deduped" }); at >= 0 && !slices.Contains(wanted, d.Open) {
		wanted = append(wanted, d.Open)
	}
	for _, id := range wanted {
		if err := d.explain(v, id); err != nil {
			return err
		}
	}
	d.group()
	return nil
}

// group makes the blocks.
func (d *postData) group() {
	at := map[string]int{}
	explained := map[string]string{} // the cause of deliveries with equal visible reasons
	rows := d.rows(false)
	rows = append(slices.DeleteFunc(slices.Clone(rows), func(r postRow) bool { return r.Why == nil }),
		slices.DeleteFunc(slices.Clone(rows), func(r postRow) bool { return r.Why != nil })...)
	d.Causes = nil
	for _, r := range rows {
		key := r.Status
		switch {
		case r.DeliveryID == d.Open:
			key = r.DeliveryID
		case r.Status == "deduped":
		case r.Why != nil:
			key = d.reason(r)
			explained[d.alike(r)] = cmp.Or(explained[d.alike(r)], key)
		default:
			key = cmp.Or(explained[d.alike(r)], d.alike(r))
		}
		if _, known := at[key]; !known {
			at[key] = len(d.Causes)
			d.Causes = append(d.Causes, cause{})
		}
		d.Causes[at[key]].Rows = append(d.Causes[at[key]].Rows, r)
	}
	slices.SortStableFunc(d.Causes, func(a, b cause) int {
		return cmp.Compare(slices.Index(stateOrder, a.first().state()), slices.Index(stateOrder, b.first().state()))
	})
}

// segment is a part of the bar of a post.
type segment struct {
	State string
	N     int
	// X and Width are in percent.
	X, Width string
}

// segmentOrder are the states of the bar in its order; others belong to one of them.
var segmentOrder = []string{"sent", "sending", "waiting", "held", "unknown", "failed", "none"}

var segmentOf = map[string]string{"sent": "sent", "claimed": "sending", "sending": "sending", "queued": "waiting", "retry": "waiting",
	"held": "held", "unknown": "unknown", "dead": "failed", "failed_permanent": "failed", "deduped": "none"}

// segmentClass is the colour of a part of the bar and of its chip; segmentIcon is the icon.
var (
	segmentClass = map[string]string{"sent": "ok", "sending": "run", "waiting": "wait", "held": "held", "unknown": "unsure", "failed": "fail", "none": "none"}
	segmentIcon  = map[string]string{"sent": "check", "sending": "send", "waiting": "wait", "held": "hand", "unknown": "unsure", "failed": "cross", "none": "copy"}
)

// segments are the parts of the bar for numbers by status.
func segments(counts counted) (all []segment) {
	sums, total, x := map[string]int{}, counts.all(), 0.0
	for status, n := range counts {
		sums[segmentOf[status]] += n
	}
	for _, state := range segmentOrder {
		if n := sums[state]; n > 0 {
			width := 100 * float64(n) / float64(total)
			all = append(all, segment{State: state, N: n, X: fmt.Sprintf("%.2f", x), Width: fmt.Sprintf("%.2f", max(.6, width-.35))})
			x += width
		}
	}
	return all
}

// words name the parts of a bar.
func (v *view) segmentWords(all []segment) string {
	var words []string
	for _, s := range all {
		words = append(words, v.n("segment."+s.State, s.N))
	}
	return strings.Join(words, ", ")
}

// states are the deliveries by state: those that wait for a person are no longer among those that wait.
func (d *postData) states() counted {
	sums := counted{}
	for status, n := range d.counts() {
		sums[status] += n
	}
	for _, c := range d.Causes {
		if state, status := c.first().state(), c.first().Status; state != status {
			for _, r := range c.Rows {
				sums[r.Status]--
				sums[state]++
			}
		}
	}
	return sums
}

// needs are the deliveries that wait for a person, and goes those that go on automatically.
func (d *postData) needs() (needs, goes int) {
	for state, n := range d.states() {
		switch segmentOf[state] {
		case "held", "unknown", "failed":
			needs += n
		case "waiting", "sending":
			goes += n
		}
	}
	return needs, goes
}

// sentGroup are the channels of one platform that have the post.
type sentGroup struct {
	Platform string
	Rows     []postRow
}

// sentGroups are the channels that have the post, by platform.
func (d *postData) sentGroups() (all []sentGroup) {
	for _, r := range d.rows(true) {
		at := slices.IndexFunc(all, func(g sentGroup) bool { return g.Platform == r.Platform })
		if at < 0 {
			at, all = len(all), append(all, sentGroup{Platform: r.Platform})
		}
		all[at].Rows = append(all[at].Rows, r)
	}
	return all
}
