package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"autopost/internal/api"
)

// health is what the first page shows of the health of a workspace.
type health struct {
	At          time.Time      `json:"at"`
	Queue       counted        `json:"queue"`
	OldestDueAt *time.Time     `json:"oldest_due_at"`
	Submissions map[string]int `json:"submissions"`
	Failed24h   int            `json:"failed_24h"`
	Credentials []struct {
		AuthRef    string     `json:"auth_ref"`
		ValidUntil *time.Time `json:"valid_until"`
		LostAt     *time.Time `json:"lost_at"`
	} `json:"credentials"`
}

// platformFlow are the calls of a platform by minute, the oldest first.
type platformFlow struct {
	Platform string `json:"platform"`
	Sent     []int  `json:"sent"`
	Failed   []int  `json:"failed"`
}

// overviewData is the content of the first page.
type overviewData struct {
	// Status is that of the workspace.
	Status string         `json:"status"`
	Health health         `json:"health"`
	Alerts []openAlert    `json:"alerts"`
	Flow   []platformFlow `json:"flow"`
	Latest []api.MessageRow
}

// needs is how many things wait for a person.
func (d overviewData) needs() int {
	n := len(d.Alerts)
	if d.Health.Submissions["pending"] > 0 {
		n++
	}
	return n
}

// title answers the question of the page.
func (d overviewData) title(v *view) string {
	flow := v.t("overview.idle")
	switch {
	case d.Status != "active":
		flow = v.t("overview.paused")
	case d.Health.OldestDueAt != nil && v.now.Sub(*d.Health.OldestDueAt) > 15*time.Minute:
		flow = v.t("overview.late")
	case d.Health.Queue.of("queued", "retry", "claimed", "sending") > 0:
		flow = v.t("overview.flows")
	}
	if d.needs() == 0 {
		return flow + " " + v.t("overview.needs_nothing")
	}
	return flow + " " + v.n("overview.needs", d.needs())
}

func (s *server) overview(v *view) {
	switch v.r.Header.Get("HX-Target") {
	case "waits":
		s.waits(v)
		return
	case "next":
		s.next(v)
		return
	}
	var d overviewData
	var latest page[api.MessageRow]
	for target, into := range map[string]any{"/overview": &d, "/posts?limit=5": &latest} {
		if err := v.get(target, into); err != nil {
			v.fail(err)
			return
		}
	}
	d.Latest = latest.Items
	v.render(http.StatusOK, overviewPage(v, d))
}

// group is a rate group with a queue.
type group struct {
	Platform  string     `json:"platform"`
	RateGroup string     `json:"rate_group"`
	Channels  int        `json:"channels"`
	Waiting   int        `json:"waiting"`
	DrainsAt  *time.Time `json:"drains_at"`
	LimitedBy string     `json:"limited_by"`

	OldestDueAt *time.Time `json:"oldest_due_at"`
}

// forecast is when the queue is empty.
type forecast struct {
	Waiting  int        `json:"waiting"`
	Held     int        `json:"held"`
	DrainsAt *time.Time `json:"drains_at"`
	Groups   []group    `json:"groups"`
}

// waits answers with the panel of what waits and why. It is loaded after the page, because a long queue takes time.
func (s *server) waits(v *view) {
	var f forecast
	if err := v.get("/queue/forecast", &f); err != nil {
		v.fail(err)
		return
	}
	slices.SortStableFunc(f.Groups, func(a, b group) int { return b.Waiting - a.Waiting })
	f.Groups = f.Groups[:min(len(f.Groups), 20)]
	v.render(http.StatusOK, waitsPanel(v, &f))
}

// next answers with the panel of the next 24 hours.
func (s *server) next(v *view) {
	from := v.now.Truncate(time.Hour)
	var list struct {
		Items []struct {
			At       time.Time `json:"at"`
			Kind     string    `json:"kind"`
			Channels int       `json:"channels"`
		} `json:"items"`
		More bool `json:"more"`
	}
	target := "/calendar?" + url.Values{"from": {from.Format(time.RFC3339)}, "until": {from.Add(24 * time.Hour).Format(time.RFC3339)}}.Encode()
	if err := v.get(target, &list); err != nil {
		v.fail(err)
		return
	}
	n := nextHours{From: from, More: list.More}
	for _, i := range list.Items {
		if hour := int(i.At.Sub(from) / time.Hour); i.Kind != "sent" && hour >= 0 && hour < len(n.Hours) {
			n.Hours[hour] += i.Channels
		}
	}
	v.render(http.StatusOK, nextPanel(v, &n))
}

// nextHours are the deliveries that are planned per hour.
type nextHours struct {
	From  time.Time
	Hours [24]int
	// More means that there are more than the API lists.
	More bool
}

func (n *nextHours) all() (sum int) {
	for _, h := range n.Hours {
		sum += h
	}
	return sum
}

// label says what the chart shows.
func (n *nextHours) label(v *view) string {
	most := 0
	for hour, count := range n.Hours {
		if count > n.Hours[most] {
			most = hour
		}
	}
	return v.t("overview.next.label", v.instant(n.From.Add(time.Duration(most)*time.Hour)), v.n("deliveries", n.Hours[most]))
}

// bar is one bar of a chart: a rectangle in the units of its view box.
type bar struct{ X, Y, Width, Height, Class string }

// bars draws numbers as bars of a chart of this height; step is the width of one with its gap.
func bars(numbers []int, step, height float64) (all []bar) {
	most := 1
	for _, n := range numbers {
		most = max(most, n)
	}
	for i, n := range numbers {
		b := bar{X: unit(float64(i) * step), Width: unit(step * .8), Class: "low"}
		tall := 1.2
		if n > 0 {
			tall, b.Class = max(2, float64(n)/float64(most)*height), ""
		}
		b.Y, b.Height = unit(height-tall), unit(tall)
		all = append(all, b)
	}
	return all
}

func unit(f float64) string { return fmt.Sprintf("%.1f", f) }

// bars are those of a platform: red where calls failed.
func (f platformFlow) bars() []bar {
	sum := make([]int, len(f.Sent))
	for i := range f.Sent {
		sum[i] = f.Sent[i] + f.Failed[i]
	}
	all := bars(sum, 4, 28)
	for i := range all {
		if f.Failed[i] > 0 {
			all[i].Class = "bad"
		}
	}
	return all
}

func sumOf(numbers []int) (sum int) {
	for _, n := range numbers {
		sum += n
	}
	return sum
}
