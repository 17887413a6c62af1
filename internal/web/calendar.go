package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"autopost"
	"autopost/internal/problem"
)

// calendarEntry is a post, or an expected one, at its time.
type calendarEntry struct {
	At           time.Time `json:"at"`
	Kind         string    `json:"kind"`
	MessageID    string    `json:"message_id"`
	RecurrenceID string    `json:"recurrence_id"`
	Channels     int       `json:"channels"`
	Excerpt      string    `json:"excerpt"`
}

// calendarDay is a day of the calendar.
type calendarDay struct {
	Day      string          `json:"day"`
	Sent     int             `json:"sent"`
	Queued   int             `json:"queued"`
	Expected int             `json:"expected"`
	Items    []calendarEntry `json:"items"`
	// Date is the midnight at its beginning.
	Date time.Time `json:"-"`
}

func (d calendarDay) all() int { return d.Sent + d.Queued + d.Expected }

// more is how many items of the day are not shown.
func (d calendarDay) more() int { return d.all() - len(d.Items) }

// limit is a quota or a budget with its use.
type limit struct {
	Name      string
	Used, Max float64
	IsMoney   bool
}

// calendarData is the content of the calendar.
type calendarData struct {
	// Range is month, week or day.
	Range     string
	At        time.Time
	From      time.Time
	Until     time.Time
	Days      []calendarDay
	Hours     []hourRow
	AllHours  bool
	Closed    map[int64]bool
	Limits    []limit
	Recurring []recurrenceRow
	Channels  []channel
	Channel   string
	Move      *calendarMove
	Fault     string
	// More means that the range has more deliveries than are counted.
	More bool
}

func (s *server) calendarRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /calendar", s.signed(s.calendar))
	mux.HandleFunc("POST /calendar/{act}", s.signed(s.actOnCalendar))
	mux.HandleFunc("GET /calendar/repeats/{recurrence_id}", s.signed(s.recurrence))
	mux.HandleFunc("POST /calendar/repeats/{recurrence_id}/{act}", s.signed(s.changeRule))
}

// shownOf is how many items of a day a range shows. The page stays below its budget.
var shownOf = map[string]int{"month": 3, "week": 12, "day": 100}

// ranges returns the interval of a range around a day.
func (d *calendarData) setInterval() {
	day := midnight(d.At)
	switch d.Range {
	case "day":
		d.From, d.Until = day, day.AddDate(0, 0, 1)
	case "month":
		first := time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, day.Location())
		d.From = monday(first)
		d.Until = monday(first.AddDate(0, 1, 6))
	default:
		d.From = monday(day)
		d.Until = d.From.AddDate(0, 0, 7)
	}
}

func midnight(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, at.Location())
}

func monday(at time.Time) time.Time {
	return midnight(at).AddDate(0, 0, -(int(at.Weekday())+6)%7)
}

// step returns the day from which the range before (-1) or after (1) is shown.
func (d calendarData) step(n int) time.Time {
	switch d.Range {
	case "day":
		return midnight(d.At).AddDate(0, 0, n)
	case "month":
		return time.Date(d.At.Year(), d.At.Month()+time.Month(n), 1, 0, 0, 0, 0, d.At.Location())
	}
	return d.From.AddDate(0, 0, 7*n)
}

// target returns the address of a range around a day.
func (d calendarData) target(span string, at time.Time, more ...string) string {
	q := url.Values{"range": {span}, "at": {at.Format(time.DateOnly)}}
	if d.Channel != "" {
		q.Set("channel", d.Channel)
	}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "/calendar?" + q.Encode()
}

// here is the address of the shown range.
func (d calendarData) here(more ...string) string { return d.target(d.Range, d.At, more...) }

func (s *server) calendar(v *view) {
	d, err := v.readCalendar()
	if err == nil {
		d.Move, err = v.askMove()
	}
	if err != nil {
		v.fail(err)
		return
	}
	if v.r.Header.Get("HX-Target") == "calendar" {
		v.render(http.StatusOK, calendarPanel(v, d))
		return
	}
	v.render(http.StatusOK, calendarPage(v, d))
}

// readCalendar reads the range of the address.
func (v *view) readCalendar() (d calendarData, err error) {
	q := v.r.URL.Query()
	d = calendarData{Range: q.Get("range"), At: v.now.In(v.zone), Channel: q.Get("channel"), AllHours: q.Get("hours") == "all"}
	if _, known := shownOf[d.Range]; !known {
		d.Range = "week"
	}
	if given := q.Get("at"); given != "" {
		if d.At, err = time.ParseInLocation(time.DateOnly, given, v.zone); err != nil {
			return d, problem.WrongRequest.Says("%s", v.t("posts.date", given))
		}
	}
	d.setInterval()
	var channels page[channel]
	if err := v.get(channelNames, &channels); err != nil {
		return d, err
	}
	d.Channels = channels.Items
	query := url.Values{"from": {d.From.Format(time.RFC3339)}, "until": {d.Until.Format(time.RFC3339)}, "zone": {v.zone.String()}, "shown": {num(shownOf[d.Range])}}
	if d.Channel != "" {
		query.Set("channel_id", d.Channel)
	}
	var answer struct {
		Days   []calendarDay `json:"days"`
		Closed []time.Time   `json:"closed"`
		More   bool          `json:"more"`
	}
	if err := v.get("/calendar/days?"+query.Encode(), &answer); err != nil {
		return d, err
	}
	d.Closed, d.More = map[int64]bool{}, answer.More
	for _, at := range answer.Closed {
		d.Closed[at.Unix()] = true
	}
	for day := d.From; day.Before(d.Until); day = day.AddDate(0, 0, 1) {
		one := calendarDay{Day: day.Format(time.DateOnly)}
		if n := slices.IndexFunc(answer.Days, func(c calendarDay) bool { return c.Day == one.Day }); n >= 0 {
			one = answer.Days[n]
		}
		one.Date = day
		d.Days = append(d.Days, one)
	}
	if d.Range != "month" {
		d.Hours = d.hours(v)
	}
	if err := v.readLimits(&d); err != nil {
		return d, err
	}
	return d, v.readRecurrences(&d)
}

// readLimits reads the quotas and budgets that are used most.
func (v *view) readLimits(d *calendarData) error {
	var quotas page[struct {
		Subject       string  `json:"subject"`
		WindowSeconds int     `json:"window_seconds"`
		MaxSends      float64 `json:"max_sends"`
		Used          float64 `json:"used"`
	}]
	var budgets page[struct {
		AuthRef  string  `json:"auth_ref"`
		MonthUSD float64 `json:"month_usd"`
		SpentUSD float64 `json:"spent_usd"`
	}]
	if err := v.get("/quotas?limit=100", &quotas); err != nil {
		return err
	}
	if err := v.get("/budgets?limit=100", &budgets); err != nil {
		return err
	}
	for _, q := range quotas.Items {
		d.Limits = append(d.Limits, limit{Name: q.Subject + ", " + v.seconds(q.WindowSeconds), Used: q.Used, Max: q.MaxSends})
	}
	for _, b := range budgets.Items {
		d.Limits = append(d.Limits, limit{Name: b.AuthRef, Used: b.SpentUSD, Max: b.MonthUSD, IsMoney: true})
	}
	slices.SortStableFunc(d.Limits, func(a, b limit) int {
		return cmp.Compare(b.Used/max(b.Max, 1), a.Used/max(a.Max, 1))
	})
	d.Limits = d.Limits[:min(len(d.Limits), 6)]
	return nil
}

// words are the use of a limit.
func (l limit) words(v *view) string {
	if l.IsMoney {
		return v.t("calendar.budget", fmt.Sprintf("$%.2f", l.Used), fmt.Sprintf("$%.2f", l.Max))
	}
	return v.t("calendar.quota", int(l.Used), int(l.Max))
}

// actOnCalendar moves a post or an occurrence, skips an occurrence, or changes a post that repeats.
func (s *server) actOnCalendar(v *view) {
	form := v.form
	back := local(form.Get("back"))
	act := v.r.PathValue("act")
	reason := cmp.Or(form.Get("reason"), v.t("reason.calendar"))
	var err error
	switch act {
	case "move":
		to := form.Get("to")
		switch message, recurrence, occurrence := form.Get("message"), form.Get("recurrence"), form.Get("occurrence"); {
		case uuid.Validate(message) == nil:
			err = v.moved(message, to, form.Get("slot"), reason)
		case uuid.Validate(recurrence) == nil && uuid.Validate(occurrence) == nil:
			err = v.post("/recurrences/"+recurrence+"/occurrences/"+occurrence+"/reschedule", map[string]any{"at": to, "reason": reason})
		default:
			err = errNotFound
		}
	case "skip":
		recurrence, occurrence := form.Get("recurrence"), form.Get("occurrence")
		if uuid.Validate(recurrence) != nil || uuid.Validate(occurrence) != nil {
			err = errNotFound
			break
		}
		err = v.post("/recurrences/"+recurrence+"/occurrences/"+occurrence+"/skip", map[string]any{"reason": reason})
	case "enable", "disable", "remove":
		err = v.changeRecurrence(act, form.Get("recurrence"), reason)
	default:
		err = errNotFound
	}
	if err != nil {
		v.refusedCalendar(err)
		return
	}
	v.done(back, "calendar_"+act)
}

// refusedCalendar says on a page why nothing was changed.
func (v *view) refusedCalendar(err error) {
	wrong := (*autopost.ArgumentError)(nil)
	if text := v.fault(err); text != "" && !errors.Is(err, errNotFound) && errors.As(err, &wrong) {
		v.fail(problem.Refused.Says("%s", text))
		return
	}
	v.fail(err)
}
