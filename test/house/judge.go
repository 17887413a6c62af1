package house

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
	"autopost/internal/sim"
)

// Place is where a receiver may hold copies of a text.
type Place struct {
	Platform, Chat, Text string
}

// Sends are the requests that asked a platform to post something, in the order of
// their arrival, whatever came of them. A copy for a look at a message is no post.
func (h *House) Sends(filters ...sim.Filter) []sim.Entry {
	return slices.DeleteFunc(h.World.Log.Entries(filters...), func(e sim.Entry) bool { return e.Items == 0 || e.Method == "forwardMessage" })
}

// Accepted are the sends that the platform carried out, whatever we heard of it.
func (h *House) Accepted(filters ...sim.Filter) []sim.Entry {
	return slices.DeleteFunc(h.Sends(filters...), func(e sim.Entry) bool { return len(e.MessageIDs) == 0 })
}

// Copies counts what the receivers hold.
func (h *House) Copies() map[Place]int {
	copies := map[Place]int{}
	for _, e := range h.Accepted() {
		copies[Place{e.Platform, e.Chat, e.Text}]++
	}
	return copies
}

// WithinRate fails the test unless the requests i < j of entries, in the order of
// their arrival, are (j-i)/rate apart, less epsilon.
func (h *House) WithinRate(what string, entries []sim.Entry, rate float64, epsilon time.Duration) {
	h.t.Helper()
	starts := make([]time.Time, 0, len(entries))
	for _, e := range entries {
		starts = append(starts, e.Start)
	}
	slices.SortFunc(starts, time.Time.Compare)
	for i := range starts {
		for j := i + 1; j < len(starts); j++ {
			least := time.Duration(float64(j-i)/rate*float64(time.Second)) - epsilon
			if apart := starts[j].Sub(starts[i]); apart < least {
				require.FailNow(h.t, "too fast: "+what, "requests %d and %d are %s apart, %s is the least at %g a second", i, j, apart, least, rate)
			}
		}
	}
}

// delivery is a row with what its receiver is to be asked by.
type delivery struct {
	place   Place
	id      string
	status  string
	policy  string
	message string // the platform's id
	// series is a text with media behind it that bear none: there is one of them at most in a chat.
	series  bool
	unknown []time.Time
}

func (h *House) deliveries(workspace string) []delivery {
	h.t.Helper()
	rows := pgtest.Column[map[string]any](h.DB, `
		select jsonb_build_object('id', d.delivery_id, 'status', d.status, 'policy', c.on_unknown, 'message', coalesce(d.provider_message_id, ''),
			'platform', c.platform, 'chat', c.target_id, 'text', d.rendered_text,
			'series', coalesce(jsonb_array_length(d.render_meta -> 'steps') > 1, false),
			'unknown', (select coalesce(jsonb_agg(extract(epoch from e.ts) order by e.ts), '[]') from autopost.events e
				where e.workspace_id = d.workspace_id and e.delivery_id = d.delivery_id and e.action = 'unknown_outcome'))
		from autopost.deliveries d
		join autopost.channels c on c.workspace_id = d.workspace_id and c.channel_id = d.channel_id
		where d.workspace_id = $1`, workspace)
	list := make([]delivery, 0, len(rows))
	for _, row := range rows {
		d := delivery{
			id: row["id"].(string), status: row["status"].(string), policy: row["policy"].(string), message: row["message"].(string), series: row["series"].(bool),
			place: Place{row["platform"].(string), row["chat"].(string), row["text"].(string)},
		}
		for _, at := range row["unknown"].([]any) {
			d.unknown = append(d.unknown, time.UnixMicro(int64(at.(float64)*1e6)))
		}
		list = append(list, d)
	}
	return list
}

// Toll is what a hard time cost.
type Toll struct {
	Deliveries, Sent, Held, Failed, Extra int
}

// Judge compares every delivery of a workspace with the receivers' log, where
// every text of a channel is there once: sent means that the platform has it under
// the very id; nobody has more copies than the policy allows (2 under reconcile, 1
// under hold); each copy beyond the first began after an outcome of that delivery
// was recorded as unknown; and the receivers have nothing that has no delivery.
func (h *House) Judge(workspace string) Toll {
	h.t.Helper()
	accepted := map[Place][]sim.Entry{}
	for _, e := range h.Accepted() {
		place := Place{e.Platform, e.Chat, e.Text}
		accepted[place] = append(accepted[place], e)
	}
	var toll Toll
	for _, d := range h.deliveries(workspace) {
		toll.Deliveries++
		copies := h.item(d, accepted, d.place, &toll)
		if d.series {
			copies = append(copies, h.item(d, accepted, Place{d.place.Platform, d.place.Chat, ""}, &toll)...)
		}
		h.settled(d, copies, &toll)
	}
	for place, copies := range accepted {
		h.t.Errorf("%+v: %d copies and no delivery", place, len(copies))
	}
	return toll
}

// item takes the copies of one item of a delivery out of accepted, checks and counts them.
func (h *House) item(d delivery, accepted map[Place][]sim.Entry, place Place, toll *Toll) []sim.Entry {
	copies := accepted[place]
	delete(accepted, place)
	toll.Extra += max(0, len(copies)-1)
	most := 2
	if d.policy == "hold" {
		most = 1
	}
	if len(copies) > most {
		h.t.Errorf("delivery %s: %d copies under %s", d.id, len(copies), d.policy)
	}
	for n := 1; n < len(copies); n++ {
		if len(d.unknown) < n || !d.unknown[n-1].Before(copies[n].Start) {
			h.t.Errorf("delivery %s: copy %d began at %s, outcomes were unknown at %v", d.id, n+1, copies[n].Start, d.unknown)
		}
	}
	return copies
}

// settled checks what a delivery came to, and counts it.
func (h *House) settled(d delivery, copies []sim.Entry, toll *Toll) {
	switch d.status {
	case "sent":
		toll.Sent++
		if !slices.ContainsFunc(copies, func(e sim.Entry) bool {
			return e.MessageIDs[len(e.MessageIDs)-1] == d.message || e.MessageIDs[0] == d.message
		}) {
			h.t.Errorf("delivery %s is sent as %q, which its receiver does not have: %s", d.id, d.message, ids(copies))
		}
	case "failed_permanent":
		toll.Failed++
		if len(d.unknown) < 2 {
			h.t.Errorf("delivery %s failed though not two of its outcomes were unknown: %v", d.id, d.unknown)
		}
	case "retry":
		toll.Held++
		if d.policy != "hold" {
			h.t.Errorf("delivery %s waits under %s", d.id, d.policy)
		}
	default:
		h.t.Errorf("delivery %s is not final: %s", d.id, d.status)
	}
}

func ids(entries []sim.Entry) string {
	all := make([][]string, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.MessageIDs)
	}
	return fmt.Sprint(all)
}
