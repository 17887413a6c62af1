package web

import (
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
}

// overviewData is the content of the first page.
type overviewData struct {
	health

	// Status is that of the workspace.
	Status string
	Alerts []openAlert
	More   bool
	Latest []api.MessageRow
}

// needs is how many things wait for a person.
func (d overviewData) needs() int {
	n := len(d.Alerts)
	if d.Submissions["pending"] > 0 {
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
	case d.OldestDueAt != nil && v.now.Sub(*d.OldestDueAt) > 15*time.Minute:
		flow = v.t("overview.late")
	case d.Queue.of("queued", "retry", "claimed", "sending") > 0:
		flow = v.t("overview.flows")
	}
	if d.needs() == 0 {
		return flow + " " + v.t("overview.needs_nothing")
	}
	return flow + " " + v.n("overview.needs", d.needs())
}

func (s *server) overview(v *view) {
	var d overviewData
	var alerts page[openAlert]
	var latest page[api.MessageRow]
	var workspace struct {
		Status string `json:"status"`
	}
	for target, into := range map[string]any{"/workspaces/" + url.PathEscape(v.workspace.WorkspaceID): &workspace, "/health": &d.health, "/alerts?limit=20": &alerts, "/posts?limit=5": &latest} {
		if err := v.get(target, into); err != nil {
			v.fail(err)
			return
		}
	}
	d.Status = workspace.Status
	d.Alerts, d.More, d.Latest = alerts.Items, alerts.NextCursor != nil, latest.Items
	v.render(http.StatusOK, overviewPage(v, d))
}

// pagesOfAlerts are the pages on which a person ends an alert.
var pagesOfAlerts = map[string]string{
	"dead": "/posts?view=dead", "dead_many": "/posts?view=dead", "failed_permanent": "/posts?view=failed", "outcome_held": "/posts?view=retrying",
	"auth_lost": "/channels", "rights_lost": "/channels", "channel_refused": "/channels", "paused_channels": "/channels", "credential_missing": "/channels",
	"moderation_backlog": "/decisions", "oldest_due": "/posts?view=waiting",
}

// lostCredentials returns the open alerts about credentials that a platform refuses. A page is shown without them if
// they cannot be read.
func (v *view) lostCredentials() []openAlert {
	var alerts page[openAlert]
	if v.get("/alerts?limit=50", &alerts) != nil {
		return nil
	}
	return slices.DeleteFunc(alerts.Items, func(a openAlert) bool { return a.Kind != "auth_lost" })
}
