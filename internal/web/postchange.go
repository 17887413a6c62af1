package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"autopost/internal/problem"
)

// changeKinds are the changes of a post after its submit, in the order of the page.
var changeKinds = []string{"edit", "pin", "unpin", "delete"}

// changeRow is a requested change of a sent post.
type changeRow struct {
	ChannelID string     `json:"channel_id"`
	Kind      string     `json:"kind"`
	Status    string     `json:"status"`
	NextAt    *time.Time `json:"next_at"`
	CreatedAt time.Time  `json:"created_at"`
	LastError *failure   `json:"last_error"`
}

// postChange is the form of a change, and what it did last.
type postChange struct {
	Kind, Text, Fault string
}

// change returns the form of a change that the address asks for; nil for none.
func (d *postData) change(v *view) *postChange {
	kind := v.r.URL.Query().Get("change")
	if !v.may("editor") || !slices.Contains(d.changes(), kind) {
		return nil
	}
	return &postChange{Kind: kind, Text: d.Payload.Text}
}

// changes are the changes that fit the state of the post: an edit also replaces what waits.
func (d *postData) changes() []string {
	c := d.counts()
	switch {
	case c.of("sent") > 0:
		return changeKinds
	case c.of("queued", "retry") > 0:
		return changeKinds[:1]
	}
	return nil
}

// firstDue is the first time at which the post waits in a channel; nil for none.
func (d *postData) firstDue() (first *time.Time) {
	for _, r := range d.Deliveries {
		if isWaiting(r.Status) && r.DueAt != nil && (first == nil || r.DueAt.Before(*first)) {
			first = r.DueAt
		}
	}
	return first
}

// moveTarget is the address at which the post moves to another time.
func (d *postData) moveTarget(v *view, from time.Time) string {
	q := url.Values{"range": {"week"}, "at": {from.In(v.zone).Format(time.DateOnly)}, "move": {d.MessageID}, "from": {from.Format(time.RFC3339)}}
	return "/calendar?" + q.Encode()
}

// published is the address of a sent post at its platform; "" if there is none.
func (d *postData) published(r postRow) string {
	id := text(r.ProviderMessageID)
	if id == "" {
		return ""
	}
	first, _, _ := strings.Cut(id, ",")
	switch r.Platform {
	case "x":
		return "https://x.com/i/status/" + url.PathEscape(first)
	case "youtube":
		return "https://youtu.be/" + url.PathEscape(first)
	case "telegram":
		target, _, _ := strings.Cut(d.channels[r.ChannelID].TargetID, ":")
		if name, isName := strings.CutPrefix(target, "@"); isName {
			return "https://t.me/" + url.PathEscape(name) + "/" + url.PathEscape(first)
		}
		if number, isChannel := strings.CutPrefix(target, "-100"); isChannel {
			return "https://t.me/c/" + url.PathEscape(number) + "/" + url.PathEscape(first)
		}
	}
	return ""
}

// readChanges reads the channels of a post, and the requested changes of what was sent.
func (v *view) readChanges(d *postData) error {
	d.channels = map[string]channel{}
	unknown := func(r postRow) bool { _, known := d.channels[r.ChannelID]; return !known }
	for n, cursor := 0, ""; n < mostChannelPages && slices.ContainsFunc(d.Deliveries, unknown); n++ {
		var channels page[channel]
		if err := v.get("/channels?limit=200"+cursor, &channels); err != nil {
			return err
		}
		for _, c := range channels.Items {
			d.channels[c.ChannelID] = c
		}
		if channels.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*channels.NextCursor)
	}
	if d.counts().of("sent") == 0 {
		return nil
	}
	var changes page[changeRow]
	if err := v.get("/acts?limit=50&message_id="+d.MessageID, &changes); err != nil {
		return err
	}
	d.Changed = changes.Items
	return nil
}

// changePost edits, deletes, pins or unpins a post.
func (s *server) changePost(v *view) {
	id, kind := v.r.PathValue("message_id"), v.r.PathValue("kind")
	if uuid.Validate(id) != nil || !slices.Contains(changeKinds, kind) {
		v.fail(errNotFound)
		return
	}
	reason := v.form.Get("reason")
	if reason == "" {
		reason = v.t("reason.change")
	}
	body := map[string]any{"reason": reason}
	written := strings.ReplaceAll(v.form.Get("text"), "\r\n", "\n")
	if kind == "edit" {
		body["changes"] = map[string]any{"text": written}
	}
	var answer struct {
		Applied bool `json:"applied"`
		Results []struct {
			ChannelID string `json:"channel_id"`
			Reason    string `json:"reason"`
			Message   string `json:"message"`
		} `json:"results"`
	}
	err := v.call(http.MethodPost, "/posts/"+id+"/"+kind, body, &answer)
	if err == nil && !answer.Applied {
		said := v.t("post.nothing")
		if len(answer.Results) > 0 {
			first := answer.Results[0]
			why, _ := v.said("change."+first.Reason, first.Message)
			said = first.ChannelID + ": " + why
		}
		err = problem.Refused.Says("%s", said)
	}
	if err == nil {
		v.done("/posts/"+id, "change_"+kind)
		return
	}
	wrong := v.fault(err)
	if wrong == "" || kind != "edit" || !v.may("editor") {
		v.fail(err)
		return
	}
	d, failed := v.readPost()
	if failed != nil {
		v.fail(failed)
		return
	}
	d.Change = &postChange{Kind: kind, Text: written, Fault: wrong}
	v.render(http.StatusUnprocessableEntity, postPage(v, d))
}
