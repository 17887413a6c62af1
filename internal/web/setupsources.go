package web

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"autopost/internal/configfile"
)

var sourceResource = &resource{
	section: "/setup/sources", path: "/sources", id: "source_id", kind: configfile.KindOf("source"),
	first: []string{"kind", "config_json.url", "config_json.interval_seconds", "config_json.backfill_items", "config_json.template", "config_json.tags"},
	state: func(_ *view, r row) string { return healthOf(r) },
	sub:   func(_ *view, r row) string { return joined(r.text("kind"), row(r.object("config_json")).text("url")) },
	why: func(v *view, r row) string {
		if r.number("failures") > 0 || !r.is("enabled") {
			return joined(r.lastError(), v.when("sources.polled", r.at("polled_at")))
		}
		return joined(v.when("sources.polled", r.at("polled_at")), v.when("sources.next", r.at("next_poll_at")))
	},
	acts: func(v *view, r row) []string {
		if !v.may("operator") {
			return nil
		}
		if r.is("enabled") {
			return []string{"fetch", "disable"}
		}
		return []string{"enable"}
	},
	extra: sourceTrialPanel,
}

// sourceTrial is what a test of a source found.
type sourceTrial struct {
	OK      bool     `json:"ok"`
	Code    string   `json:"code"`
	Error   string   `json:"error"`
	Feeds   []string `json:"feeds"`
	Total   int      `json:"total"`
	Publish int      `json:"publish"`
	Notes   []string `json:"notes"`
	Items   []struct {
		PublishedAt *time.Time `json:"published_at"`
		Text        string     `json:"text"`
		Tags        []string   `json:"tags"`
		Skip        string     `json:"skip"`
		Media       []any      `json:"media"`
	} `json:"items"`
	Plan json.RawMessage `json:"plan"`
}

// trial is the result of a test beside the form.
func (d rowData) trial() sourceTrial {
	t, _ := d.Extra.(sourceTrial)
	slices.Reverse(t.Items)
	return t
}

// channels returns the channels of the plan of the newest item, by verdict.
func (t sourceTrial) channels() map[string][]string {
	var plan struct {
		Deliveries []struct {
			ChannelID string `json:"channel_id"`
			Status    string `json:"status"`
			Verdict   string `json:"verdict"`
		} `json:"deliveries"`
		Channels []struct {
			ChannelID string `json:"channel_id"`
			Verdict   string `json:"verdict"`
		} `json:"channels"`
	}
	by := map[string][]string{}
	if len(t.Plan) == 0 || json.Unmarshal(t.Plan, &plan) != nil {
		return by
	}
	for _, c := range plan.Channels {
		by[c.Verdict] = append(by[c.Verdict], c.ChannelID)
	}
	return by
}

func (t sourceTrial) verdicts() []string { return slices.Sorted(maps.Keys(t.channels())) }

// tryRow polls the source of the form and shows the posts that it would give.
func (v *view) tryRow(d rowData) {
	config := map[string]any{}
	whole, _ := d.Form.object(v, "config_json") // changes has checked it
	body := map[string]any{}
	if d.Row != nil {
		body["source_id"] = d.ID
		config = merged(d.Row.object("config_json"), whole)
	} else {
		maps.Copy(config, whole)
	}
	for _, f := range d.Form.Fields {
		if f.Name == "kind" {
			body["kind"] = f.Value
		}
	}
	body["config_json"] = config
	var trial sourceTrial
	if err := v.call(http.MethodPost, "/sources/test", body, &trial); err != nil {
		status, shown := d.Form.refuse(v, err)
		if !shown {
			v.fail(err)
			return
		}
		v.renderRow(status, d)
		return
	}
	d.Extra = trial
	v.renderRow(http.StatusOK, d)
}

// line is the beginning of a text in one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }
