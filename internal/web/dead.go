package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost/internal/problem"
)

const (
	// mostActed is how many deliveries one act changes: the limit of the operation.
	mostActed = 1000
	// mostUntyped is how many channels an act may reach without a typed count.
	mostUntyped = 10
)

// deadView is a view of the list: deliveries in a status, and the act that fits them.
type deadView struct{ name, status, act string }

var deadViews = []deadView{{"dead", "dead", "retry"}, {"failed", "failed_permanent", "retry"}, {"retrying", "retry", "skip"}}

// deadFilter is the filter of the list, as its address has it.
type deadFilter struct{ View, Channel, Code, From, Until, Cursor string }

func (f deadFilter) view() deadView {
	at := slices.IndexFunc(deadViews, func(d deadView) bool { return d.name == f.View })
	return deadViews[max(0, at)]
}

func (f deadFilter) isEmpty() bool {
	return f.Channel == "" && f.Code == "" && f.From == "" && f.Until == ""
}

// target returns the address of this list with further parameters, which replace those of the filter.
func (f deadFilter) target(pairs ...string) string {
	all := append([]string{"view", f.View, "channel", f.Channel, "code", f.Code, "from", f.From, "until", f.Until}, pairs...)
	return addressOf("/operations/dead", all...)
}

// deadRow is a delivery that failed or waits after a failure.
type deadRow struct {
	DeliveryID   string     `json:"delivery_id"`
	MessageID    string     `json:"message_id"`
	ChannelID    string     `json:"channel_id"`
	Platform     string     `json:"platform"`
	Attempt      int        `json:"attempt"`
	LastError    *failure   `json:"last_error"`
	RenderedText string     `json:"rendered_text"`
	CreatedAt    time.Time  `json:"created_at"`
	FinishedAt   *time.Time `json:"finished_at"`
	NextRetryAt  *time.Time `json:"next_retry_at"`
}

func (r deadRow) title() string { return cmp.Or(strings.TrimSpace(r.RenderedText), r.MessageID) }

// deadList is a page of the list.
type deadList struct {
	Filter   deadFilter
	Rows     page[deadRow]
	Channels []channel
	Fault    string
	Ask      *deadQuestion
}

// deadQuestion is what an act would do, as its dry run says.
type deadQuestion struct {
	Act string
	// Chosen are the deliveries that the act changes.
	Chosen chosen
	// Stay counts the deliveries that it does not change, by the reason.
	Stay []countOf
	// More means that more deliveries match the filter.
	More          bool
	Back          string
	Reason, Fault string
}

// chosen are ids of deliveries by their channel.
type chosen map[string][]string

// chosenOf reads values of a form: the channel, a colon, and ids of its deliveries.
func chosenOf(values []string) chosen {
	all, n := chosen{}, 0
	for _, value := range values {
		name, ids, _ := strings.Cut(value, ":")
		channel, _ := url.QueryUnescape(name) // a wrong one is a name that no channel has
		for _, id := range strings.Fields(ids) {
			if n++; n <= mostActed {
				all[channel] = append(all[channel], id)
			}
		}
	}
	return all
}

// chosenValue is the value of a form that chosenOf reads.
func chosenValue(channel string, ids ...string) string {
	return url.QueryEscape(channel) + ":" + strings.Join(ids, " ")
}

func (c chosen) ids() []string { return slices.Concat(slices.Collect(maps.Values(c))...) }

func (c chosen) count() int { return len(c.ids()) }

// counts are the numbers of deliveries by channel, largest first.
func (c chosen) counts() []countOf {
	of := map[string]int{}
	for channel, ids := range c {
		of[channel] = len(ids)
	}
	return counts(of)
}

// countOf is a number of something.
type countOf struct {
	Name  string
	Count int
}

// typed reports whether the person must type the count.
func (q deadQuestion) typed() bool { return len(q.Chosen) > mostUntyped }

func deadFilterOf(q url.Values) deadFilter {
	f := deadFilter{View: q.Get("view"), Channel: q.Get("channel"), Code: strings.TrimSpace(q.Get("code")), From: q.Get("from"), Until: q.Get("until"), Cursor: q.Get("cursor")}
	f.View = f.view().name
	return f
}

// query returns the parameters of the operation.
func (f deadFilter) query(v *view, limit int) (q url.Values, fault string) {
	q = url.Values{"limit": {num(limit)}, "status": {f.view().status}}
	for name, value := range map[string]string{"channel_id": f.Channel, "error_code": f.Code, "cursor": f.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q, v.days(q, f.From, f.Until)
}

func (s *server) dead(v *view) {
	q := v.r.URL.Query()
	list := deadList{Filter: deadFilterOf(q)}
	if !v.readDead(&list) {
		return
	}
	if act := list.Filter.view().act; list.Fault == "" && q.Get("ask") == act && v.may("operator") {
		those, more, err := v.chosen(list.Filter, q["id"])
		if err == nil && len(those) > 0 {
			list.Ask, err = v.askDead(act, those, list.Filter.target())
		}
		if err != nil {
			v.fail(err)
			return
		}
		if list.Ask != nil {
			list.Ask.More = more
		}
	}
	v.showDead(http.StatusOK, list)
}

func (v *view) showDead(status int, list deadList) {
	if list.Fault != "" || list.Ask != nil && list.Ask.Fault != "" {
		status = http.StatusUnprocessableEntity
	}
	v.show(status, "dead", deadPage(v, list), deadPanel(v, list))
}

// readDead reads a page of the list. It answers and returns false if it fails.
func (v *view) readDead(list *deadList) bool {
	query, wrong := list.Filter.query(v, 50)
	list.Fault = wrong
	var channels page[channel]
	err := v.get(channelNames, &channels)
	list.Channels = channels.Items
	if err == nil && wrong == "" {
		err = v.get("/deliveries?"+query.Encode(), &list.Rows)
		if wrong = v.fault(err); wrong != "" {
			list.Fault, err = wrong, nil
		}
	}
	if err != nil {
		v.fail(err)
	}
	return err == nil
}

// chosen returns the deliveries that an act is for: those of the address, else all that match the filter.
func (v *view) chosen(f deadFilter, values []string) (all chosen, more bool, err error) {
	if len(values) > 0 {
		return chosenOf(values), false, nil
	}
	all, f.Cursor = chosen{}, ""
	for n := 0; n < mostActed; {
		query, _ := f.query(v, 200)
		var rows page[deadRow]
		if err := v.get("/deliveries?"+query.Encode(), &rows); err != nil {
			return nil, false, err
		}
		for _, r := range rows.Items {
			all[r.ChannelID] = append(all[r.ChannelID], r.DeliveryID)
		}
		n += len(rows.Items)
		if f.Cursor = rows.cursor(); f.Cursor == "" {
			return all, false, nil
		}
	}
	return all, true, nil
}

// operationsOfDead are the operations of the acts.
var operationsOfDead = map[string]string{"retry": "/deliveries/requeue", "skip": "/deliveries/skip"}

// askDead asks the operation what it would do.
func (v *view) askDead(act string, those chosen, back string) (*deadQuestion, error) {
	var answer struct {
		Results []struct {
			DeliveryID string `json:"delivery_id"`
			Applied    bool   `json:"applied"`
			Reason     string `json:"reason"`
		} `json:"results"`
	}
	body := map[string]any{"delivery_ids": those.ids(), "reason": v.t("reason." + act)}
	if err := v.call(http.MethodPost, operationsOfDead[act]+"?dry_run=true", body, &answer); err != nil {
		return nil, err
	}
	stay, kept := map[string]int{}, map[string]bool{}
	for _, r := range answer.Results {
		if !r.Applied {
			stay[r.Reason]++
			kept[r.DeliveryID] = true
		}
	}
	q := &deadQuestion{Act: act, Back: back, Stay: counts(stay), Chosen: chosen{}}
	for channel, ids := range those {
		if ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return kept[id] }); len(ids) > 0 {
			q.Chosen[channel] = ids
		}
	}
	return q, nil
}

// counts returns the counts, largest first.
func counts(of map[string]int) (all []countOf) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, countOf{name, of[name]})
	}
	slices.SortStableFunc(all, func(a, b countOf) int { return cmp.Compare(b.Count, a.Count) })
	return all
}

// actOnDead sends deliveries again, or skips them.
func (s *server) actOnDead(v *view) {
	act, back := v.r.PathValue("act"), local(v.form.Get("back"))
	operation, known := operationsOfDead[act]
	those := chosenOf(v.form["id"])
	if !known || len(those) == 0 {
		v.fail(problem.Refused.Says("%s", v.t("operations.nothing")))
		return
	}
	if q := (deadQuestion{Act: act, Chosen: those, Back: back}); q.typed() && strings.TrimSpace(v.form.Get("count")) != strconv.Itoa(those.count()) {
		q.Fault, q.Reason = v.t("operations.count.wrong", those.count()), v.form.Get("reason")
		at, _ := url.Parse(back) // local has checked it
		list := deadList{Filter: deadFilterOf(at.Query()), Ask: &q}
		if v.readDead(&list) {
			v.showDead(http.StatusUnprocessableEntity, list)
		}
		return
	}
	if act == "retry" && !v.confirmed() {
		return
	}
	if err := v.post(operation, map[string]any{"delivery_ids": those.ids(), "reason": v.reason(act)}); err != nil {
		v.fail(err)
		return
	}
	v.done(back, act)
}
