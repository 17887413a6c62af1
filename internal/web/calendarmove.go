package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// calendarMove asks before a post or an occurrence moves.
type calendarMove struct {
	Message, Recurrence, Occurrence string
	Title                           string
	From                            time.Time
	// To is the new time; nil while the person chooses it.
	To     *time.Time
	Chosen clock
	// Fault is why the time is refused.
	Fault string
	// Result is what the move would do.
	Result *moveResult
}

// moveResult is the dry run of a move.
type moveResult struct {
	Moved   int `json:"moved"`
	Refused int `json:"refused"`
	Results []struct {
		ChannelID    string     `json:"channel_id"`
		Status       string     `json:"status"`
		Reason       string     `json:"reason"`
		Message      string     `json:"message"`
		ScheduledFor *time.Time `json:"scheduled_for"`
		OpensAt      *time.Time `json:"opens_at"`
	} `json:"results"`
}

// later are the channels whose posting window is closed at the new time.
func (r moveResult) later() (n int) {
	for _, one := range r.Results {
		if one.OpensAt != nil && one.ScheduledFor != nil && one.OpensAt.After(*one.ScheduledFor) {
			n++
		}
	}
	return n
}

// staying is a reason why deliveries stay, with the first of their channels.
type staying struct{ Text, Lang string }

// refusals are the reasons why deliveries stay, each once.
func (r moveResult) refusals(v *view) (all []staying) {
	seen := map[string]bool{}
	for _, one := range r.Results {
		if one.Status == "refused" && !seen[one.Message] {
			seen[one.Message] = true
			text, lang := v.said("move."+one.Reason, one.Message)
			all = append(all, staying{one.ChannelID + ": " + text, lang})
		}
	}
	return all[:min(len(all), 5)]
}

// moved moves a post in all channels where it waits: to a time, or to the next free slot of each channel.
func (v *view) moved(message, to, slot, reason string) error {
	target := map[string]any{"scheduled_for": to, "reason": reason}
	if slot != "" {
		target = map[string]any{"slot": slot, "reason": reason}
	}
	var answer moveResult
	if err := v.call(http.MethodPost, "/posts/"+message+"/reschedule", target, &answer); err != nil || answer.Moved > 0 {
		return err
	}
	if why := answer.refusals(v); len(why) > 0 {
		return problem.Refused.Says("%s", why[0].Text)
	}
	return problem.Refused.Says("%s", v.t("post.nothing"))
}

// askMove returns the question that the address asks for; nil for none.
func (v *view) askMove() (*calendarMove, error) {
	q := v.r.URL.Query()
	m := &calendarMove{Message: q.Get("move"), Recurrence: q.Get("recurrence")}
	if !v.may(rest.Editor) || m.Message == "" && m.Recurrence == "" {
		return nil, nil
	}
	from, err := time.Parse(time.RFC3339, q.Get("from"))
	if err != nil {
		return nil, errNotFound
	}
	m.From = from
	m.Chosen = clockOf(from.In(v.zone))
	if m.Message != "" {
		err = v.nameMove(m)
	} else {
		err = v.findOccurrence(m)
	}
	if err != nil {
		return nil, err
	}
	if !v.chooseTime(m, q) || m.Message == "" {
		return m, nil
	}
	m.Result = &moveResult{}
	err = v.call(http.MethodPost, "/posts/"+m.Message+"/reschedule?dry_run=true", map[string]any{"scheduled_for": m.To.Format(time.RFC3339), "reason": v.t("reason.calendar")}, m.Result)
	if text := v.fault(err); err != nil && text != "" {
		m.Fault, m.Result, m.To, err = text, nil, nil, nil
	}
	return m, err
}

// chooseTime reads the new time: an instant, or a date and a time of the clock.
func (v *view) chooseTime(m *calendarMove, q url.Values) bool {
	if to, err := time.Parse(time.RFC3339, q.Get("to")); err == nil {
		m.To, m.Chosen = &to, clockOf(to.In(v.zone))
		return true
	}
	if q.Get("date") == "" && q.Get("time") == "" {
		return false
	}
	m.Chosen = clock{q.Get("date"), q.Get("time")}
	to, wrong := m.Chosen.in(v.zone)
	if wrong != "" {
		m.Fault = v.t(wrong)
		return false
	}
	m.To = &to
	return true
}

func (v *view) nameMove(m *calendarMove) error {
	if uuid.Validate(m.Message) != nil {
		return errNotFound
	}
	var post postData
	if err := v.get("/posts/"+m.Message, &post); err != nil {
		return err
	}
	m.Title = post.title(v)
	return nil
}

// findOccurrence finds the expected occurrence at the time.
func (v *view) findOccurrence(m *calendarMove) error {
	if uuid.Validate(m.Recurrence) != nil {
		return errNotFound
	}
	var all page[struct {
		OccurrenceID string    `json:"occurrence_id"`
		At           time.Time `json:"at"`
		Status       string    `json:"status"`
	}]
	query := url.Values{"since": {m.From.Format(time.RFC3339Nano)}, "until": {m.From.Add(time.Second).Format(time.RFC3339Nano)}, "limit": {"10"}}
	if err := v.get("/recurrences/"+m.Recurrence+"/occurrences?"+query.Encode(), &all); err != nil {
		return err
	}
	for _, o := range all.Items {
		if o.Status == "expected" {
			m.Occurrence = o.OccurrenceID
			return nil
		}
	}
	return problem.Refused.Says("%s", v.t("calendar.no_occurrence"))
}

// recurrenceRow is a post that repeats.
type recurrenceRow struct {
	RecurrenceID string     `json:"recurrence_id"`
	Rule         string     `json:"rule"`
	Zone         string     `json:"zone"`
	Enabled      bool       `json:"enabled"`
	NextAt       *time.Time `json:"next_at"`
	Posts        int        `json:"posts"`
	Payloads     []struct {
		Text string `json:"text"`
	} `json:"payloads"`
	LastError *struct {
		Reason string `json:"reason"`
	} `json:"last_error"`
}

func (r recurrenceRow) title(v *view) string {
	if len(r.Payloads) > 0 && r.Payloads[0].Text != "" {
		return r.Payloads[0].Text
	}
	return v.t("calendar.repeat")
}

// ruleWords are the rule in words, or the rule itself.
func (r recurrenceRow) ruleWords(v *view) string {
	w := when{}
	w.setRule(r.Rule)
	if w.Every == "rule" {
		return r.Rule
	}
	text := v.t("calendar.every." + w.Every)
	for _, day := range w.Days {
		text += " " + v.t("compose.day."+day)
	}
	return text
}

func (v *view) readRecurrences(d *calendarData) error {
	var all page[recurrenceRow]
	if err := v.get("/recurrences?limit=50", &all); err != nil {
		return err
	}
	d.Recurring = all.Items
	return nil
}

// changeRecurrence enables, disables or removes a post that repeats.
func (v *view) changeRecurrence(act, id, reason string) error {
	if uuid.Validate(id) != nil {
		return errNotFound
	}
	if act == "remove" {
		return v.call(http.MethodDelete, "/recurrences/"+id, nil, nil)
	}
	return v.call(http.MethodPatch, "/recurrences/"+id, map[string]any{"enabled": act == "enable", "reason": reason}, nil)
}
