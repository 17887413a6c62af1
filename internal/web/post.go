package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"autopost/internal/api"
	"autopost/internal/problem"
)

// postRow is the delivery of a post to one channel.
type postRow struct {
	DeliveryID        string     `json:"delivery_id"`
	ChannelID         string     `json:"channel_id"`
	Platform          string     `json:"platform"`
	Status            string     `json:"status"`
	Attempt           int        `json:"attempt"`
	DueAt             *time.Time `json:"due_at"`
	SentAt            *time.Time `json:"sent_at"`
	ProviderMessageID *string    `json:"provider_message_id"`
	LastError         *failure   `json:"last_error"`
	// Why is nil until the delivery is explained.
	Why *why `json:"-"`
}

// why explains a delivery.
type why struct {
	Now struct {
		Sentence string     `json:"sentence"`
		SendAt   *time.Time `json:"send_at"`
		HeldBy   []wait     `json:"held_by"`
	} `json:"now"`
	Chain []step `json:"chain"`
}

// wait is a wait reason.
type wait struct {
	Gate  string     `json:"gate"`
	Until *time.Time `json:"until"`
	// Last is the latest end, if channels of a block wait until different times.
	Last *time.Time `json:"-"`
}

// step is a part of the history of a delivery.
type step struct {
	TS       time.Time `json:"ts"`
	Action   string    `json:"action"`
	Result   string    `json:"result"`
	Attempt  int       `json:"attempt"`
	Sentence string    `json:"sentence"`
	Error    *failure  `json:"error"`
}

// isUnknown reports whether the delivery waits for a person who knows whether it was published.
func (r postRow) isUnknown() bool {
	if r.Status != "retry" || r.Why == nil {
		return false
	}
	return slices.ContainsFunc(r.Why.Now.HeldBy, func(w wait) bool { return w.Gate == "unknown_outcome" })
}

// needsPerson reports whether the delivery goes on only after a person acted.
func (r postRow) needsPerson() bool {
	if isEnded(r.Status) || r.isUnknown() {
		return true
	}
	return r.Why != nil && slices.ContainsFunc(r.Why.Now.HeldBy, func(w wait) bool { return slices.Contains(personGates, w.Gate) })
}

// personGates are the wait reasons that a person ends.
var personGates = []string{"auth_lost", "credential_missing", "channel_disabled", "workspace", "unknown_outcome", "budget"}

func (r postRow) state() string {
	switch {
	case r.isUnknown():
		return "unknown"
	case isWaiting(r.Status) && r.needsPerson():
		return "held"
	}
	return r.Status
}

// postData is the content of the page of a post.
type postData struct {
	api.MessageRow

	Payload struct {
		Text string `json:"text"`
	} `json:"payload"`
	Deliveries []postRow `json:"deliveries"`

	// Open is the delivery that the address names.
	Open string `json:"-"`
	// Ask is the question before an act; nil for none.
	Ask *question `json:"-"`
	// Change is the form of a change; nil for none.
	Change *postChange `json:"-"`
	// Changed are the changes of the post since it was sent.
	Changed []changeRow `json:"-"`
	// Causes are the blocks of the deliveries that do not have the post.
	Causes []cause `json:"-"`
	// channels are the channels by their ids.
	channels map[string]channel
}

// rows returns the deliveries that were sent, or all others with those that need a person first.
func (d *postData) rows(sent bool) []postRow {
	rows := slices.DeleteFunc(slices.Clone(d.Deliveries), func(r postRow) bool { return (r.Status == "sent") != sent })
	slices.SortStableFunc(rows, func(a, b postRow) int {
		return cmp.Compare(slices.Index(order, a.Status), slices.Index(order, b.Status))
	})
	return rows
}

func (d *postData) counts() counted { return d.Counts }

func (d *postData) title(v *view) string {
	first, _, _ := strings.Cut(strings.TrimSpace(d.Payload.Text), "\n")
	if first == "" {
		return v.n("posts.media", d.Media)
	}
	if runes := []rune(first); len(runes) > 90 {
		return string(runes[:90]) + "…"
	}
	return first
}

// question asks before an act that cannot be undone.
type question struct {
	Act, Action, Title, Text, Button string
	Hidden                           map[string]string
	// MessageID asks for the id at the platform.
	MessageID bool
	// Hours asks for the length of a pause, Code for the code of a mail.
	Hours, Code bool
	// Refused is why the act is impossible now; it leaves no button.
	Refused string
	Back    string
}

func (s *server) post(v *view) {
	d, err := v.readPost()
	if err != nil {
		v.fail(err)
		return
	}
	if v.r.Header.Get("HX-Target") == "delivery-"+d.Open && d.Open != "" {
		for _, row := range d.Deliveries {
			if row.DeliveryID == d.Open {
				v.render(http.StatusOK, causeBlock(v, &d, cause{[]postRow{row}}))
				return
			}
		}
	}
	v.render(http.StatusOK, postPage(v, d))
}

// readPost reads the post of the address and explains the deliveries that matter most.
func (v *view) readPost() (postData, error) {
	var d postData
	id := v.r.PathValue("message_id")
	if uuid.Validate(id) != nil {
		return d, errNotFound
	}
	if err := v.get("/posts/"+id, &d); err != nil {
		return d, err
	}
	d.Open = v.r.URL.Query().Get("delivery")
	if err := v.readChanges(&d); err != nil {
		return d, err
	}
	if err := v.readCauses(&d); err != nil {
		return d, err
	}
	d.Ask, d.Change = d.ask(v), d.change(v)
	return d, nil
}

// nameOf is the name of the channel of a delivery.
func (d *postData) nameOf(r postRow) string {
	if ch, known := d.channels[r.ChannelID]; known {
		return ch.name()
	}
	return r.ChannelID
}

func (d *postData) explain(v *view, id string) error {
	at := slices.IndexFunc(d.Deliveries, func(r postRow) bool { return r.DeliveryID == id })
	d.Deliveries[at].Why = &why{}
	return v.get("/deliveries/"+id, d.Deliveries[at].Why)
}

// ask returns the question that the address asks for.
func (d *postData) ask(v *view) *question {
	act := v.r.URL.Query().Get("ask")
	at := "/posts/" + d.MessageID
	ids := d.subjects(act, d.Open)
	if !v.may("operator") || len(ids) == 0 {
		return nil
	}
	q := &question{Act: act, Action: at + "/" + act, Back: at, Hidden: map[string]string{"delivery": d.Open},
		Title: v.n("ask."+act, len(ids)), Text: v.t("ask." + act + ".text"), Button: v.n("ask."+act+".go", len(ids))}
	q.MessageID = act == "found"
	return q
}

// subjects returns the deliveries that an act is for: those that are named, else all that it fits. Only one at a time is
// said to be there or absent.
func (d *postData) subjects(act, only string) []string {
	var ids, named []string
	if only != "" {
		named = strings.Split(only, ",")
	}
	for _, r := range d.Deliveries {
		if only != "" && !slices.Contains(named, r.DeliveryID) {
			continue
		}
		fits := map[string]bool{"retry": isEnded(r.Status), "skip": isWaiting(r.Status), "found": len(named) == 1 && r.Status == "retry", "absent": len(named) == 1 && r.Status == "retry"}
		if fits[act] {
			ids = append(ids, r.DeliveryID)
		}
	}
	return ids
}

// actOnPost sends deliveries again, skips them, or says whether one was published.
func (s *server) actOnPost(v *view) {
	act, form := v.r.PathValue("act"), v.form
	reason := form.Get("reason")
	if reason == "" {
		reason = v.t("reason." + act)
	}
	if act != "skip" && !v.confirmed() {
		return
	}
	id := v.r.PathValue("message_id")
	if uuid.Validate(id) != nil {
		v.fail(errNotFound)
		return
	}
	var d postData
	if err := v.get("/posts/"+id, &d); err != nil {
		v.fail(err)
		return
	}
	ids := d.subjects(act, form.Get("delivery"))
	if len(ids) == 0 {
		v.fail(problem.Refused.Says("%s", v.t("post.nothing")))
		return
	}
	var err error
	switch act {
	case "retry":
		err = v.post("/deliveries/requeue", map[string]any{"delivery_ids": ids, "reason": reason})
	case "skip":
		err = v.post("/deliveries/skip", map[string]any{"delivery_ids": ids, "reason": reason})
	case "found", "absent":
		body := map[string]any{"verdict": act, "reason": reason}
		if act == "found" {
			body["provider_message_id"] = form.Get("provider_message_id")
		}
		err = v.post("/deliveries/"+url.PathEscape(ids[0])+"/resolve", body)
	}
	if err != nil {
		v.fail(err)
		return
	}
	v.done("/posts/"+id, act)
}
