package web

import (
	"encoding/json"
	"net/url"
	"slices"

	"autopost/internal/configfile"
)

func pathOf(id string) string { return url.PathEscape(id) }

// asChannel reads a row as a channel.
func (r row) asChannel() (c channel) {
	raw, _ := json.Marshal(r)   // decoded JSON can be encoded
	_ = json.Unmarshal(raw, &c) // the row is that of the API
	return c
}

var channelResource = &resource{
	section: "/channels", path: "/channels", id: "channel_id", kind: configfile.KindOf("channel"), home: "/channels",
	first: []string{"platform", "target_id", "auth_ref", "title", "rate_rps", "tags"},
	state: func(v *view, r row) string { return r.asChannel().state(v.now) },
	sub:   func(_ *view, r row) string { return joined(platformName(r.text("platform")), r.text("target_id")) },
	why: func(v *view, r row) string {
		c := r.asChannel()
		return joined(c.cause(v), v.when("channels.until", c.until(v.now)))
	},
	acts: func(v *view, r row) []string {
		if !v.may("operator") {
			return nil
		}
		acts := r.asChannel().acts(v.now)
		if !r.is("enabled") && v.may("owner") {
			acts = append(slices.Clone(acts), "remove")
		}
		return acts
	},
	read:  readChannelSide,
	extra: channelSide,
}

// channelData is what the page of a channel shows beside the form: what waits there, or the chats that could become one.
type channelData struct {
	Waiting []waitingRow
	More    bool
	Chats   []row
}

// waitingRow is a delivery that waits.
type waitingRow struct {
	DeliveryID string `json:"delivery_id"`
	MessageID  string `json:"message_id"`
	Status     string `json:"status"`
	Text       string `json:"rendered_text"`
}

// shownWaiting is how many waiting deliveries a page shows.
const shownWaiting = 10

func readChannelSide(v *view, d *rowData) error {
	var side channelData
	if d.Row == nil {
		var chats page[row]
		if err := v.get("/chats?limit=100", &chats); err != nil {
			return err
		}
		for _, c := range chats.Items {
			if len(c.list("channel_ids")) == 0 && c["left_at"] == nil {
				side.Chats = append(side.Chats, c)
			}
		}
		d.Extra = side
		return nil
	}
	for _, status := range []string{"retry", "queued"} {
		var waiting page[waitingRow]
		query := url.Values{"channel_id": {d.ID}, "status": {status}, "limit": {num(shownWaiting)}}
		if err := v.get("/deliveries?"+query.Encode(), &waiting); err != nil {
			return err
		}
		side.Waiting = append(side.Waiting, waiting.Items...)
		side.More = side.More || waiting.NextCursor != nil
	}
	d.Extra = side
	return nil
}

// side is the data of the page of a channel.
func (d rowData) side() channelData {
	side, _ := d.Extra.(channelData)
	return side
}

// from returns the address of the form for a channel in a chat.
func chatAddress(c row) string {
	return "/channels?" + url.Values{"add": {"1"}, "platform": {c.text("platform")}, "target_id": {c.text("target_id")}, "auth_ref": {c.text("auth_ref")}, "title": {c.text("title")},
		"id": {c.text("username")}}.Encode()
}
