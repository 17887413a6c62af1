package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
)

// eventFilter is the filter of the list, as its address has it.
type eventFilter struct{ Result, Since, Channel, Action, Cursor string }

// sinces are the time ranges of the list.
var sinces = []struct {
	name  string
	hours int
}{{"hour", 1}, {"day", 24}, {"week", 7 * 24}, {"month", 30 * 24}}

func eventFilterOf(q url.Values) eventFilter {
	f := eventFilter{Result: q.Get("result"), Since: q.Get("since"), Channel: q.Get("channel"), Action: strings.TrimSpace(q.Get("action")), Cursor: q.Get("cursor")}
	if f.Result != "ok" && f.Result != "all" {
		f.Result = "error"
	}
	if f.hours() == 0 {
		f.Since = "day"
	}
	return f
}

func (f eventFilter) hours() int {
	for _, s := range sinces {
		if s.name == f.Since {
			return s.hours
		}
	}
	return 0
}

// target returns the address of this list with further parameters, which replace those of the filter.
func (f eventFilter) target(pairs ...string) string {
	all := append([]string{"result", f.Result, "since", f.Since, "channel", f.Channel, "action", f.Action}, pairs...)
	return addressOf("/operations/events", all...)
}

func (f eventFilter) query(v *view) string {
	result := f.Result
	if result == "all" {
		result = ""
	}
	since := v.now.Add(-time.Duration(f.hours()) * time.Hour).Truncate(time.Minute)
	return addressOf("/events", "limit", "50", "since", since.Format(time.RFC3339), "result", result, "channel_id", f.Channel, "action", f.Action, "cursor", f.Cursor)
}

// eventLine is an event.
type eventLine struct {
	ID         string          `json:"id"`
	TS         time.Time       `json:"ts"`
	Action     string          `json:"action"`
	Result     string          `json:"result"`
	Attempt    int             `json:"attempt"`
	DeliveryID *string         `json:"delivery_id"`
	MessageID  *string         `json:"message_id"`
	ChannelID  *string         `json:"channel_id"`
	Error      *failure        `json:"error"`
	Meta       json.RawMessage `json:"meta"`
	PayloadRef *string         `json:"payload_ref"`
}

// details are the fields of the event that have no column; "" for none.
func (e eventLine) details() string { return indented(e.Meta) }

// indented is JSON for people; "" for an empty value.
func indented(raw json.RawMessage) string {
	var out bytes.Buffer
	if text := string(raw); text == "" || text == "{}" || text == "null" || json.Indent(&out, raw, "", "  ") != nil {
		return ""
	}
	return out.String()
}

// eventList is a page of events.
type eventList struct {
	Filter   eventFilter
	Rows     page[eventLine]
	Channels []channel
	Fault    string
	Ask      *question
	// Raw is a link to a raw payload that was just made.
	Raw *rawLink
}

// rawLink is a link that works once.
type rawLink struct {
	Path      string    `json:"path"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (s *server) events(v *view) { v.showEvents(eventList{Filter: eventFilterOf(v.r.URL.Query())}) }

func (v *view) showEvents(list eventList) {
	var channels page[channel]
	err := v.get(channelNames, &channels)
	list.Channels = channels.Items
	status := http.StatusOK
	if err == nil {
		if err = v.get(list.Filter.query(v), &list.Rows); v.fault(err) != "" {
			list.Fault, status, err = v.fault(err), http.StatusUnprocessableEntity, nil
		}
	}
	if err != nil {
		v.fail(err)
		return
	}
	q := v.r.URL.Query()
	if id := q.Get("event"); q.Get("ask") == "raw" && uuid.Validate(id) == nil && v.may("owner") {
		list.Ask = &question{Act: "raw", Action: "/operations/events/" + id + "/raw", Back: list.Filter.target(), Title: v.t("operations.raw.title"),
			Text: v.t("operations.raw.text"), Button: v.t("operations.raw.go"), Hidden: map[string]string{"back": list.Filter.target("cursor", list.Filter.Cursor)}}
	}
	v.show(status, "events", eventsPage(v, list), eventsPanel(v, list))
}

// linkRaw makes a link to the raw answer of an event.
func (s *server) linkRaw(v *view) {
	id := v.r.PathValue("event_id")
	if uuid.Validate(id) != nil {
		v.fail(errNotFound)
		return
	}
	if !v.confirmed() {
		return
	}
	link := &rawLink{}
	if err := v.call(http.MethodPost, "/events/"+id+"/raw", map[string]any{"reason": v.reason("raw")}, link); err != nil {
		v.fail(err)
		return
	}
	at, _ := url.Parse(local(v.form.Get("back"))) // local has checked it
	v.showEvents(eventList{Filter: eventFilterOf(at.Query()), Raw: link})
}
