package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// alertRow is an open alert with what a person said about it.
type alertRow struct {
	openAlert

	AcknowledgedAt *time.Time `json:"acknowledged_at"`
	AcknowledgedBy *string    `json:"acknowledged_by"`
	LastNotifiedAt *time.Time `json:"last_notified_at"`
}

// alertRemedy is the page on which a person ends an alert, and the words of the button to it.
type alertRemedy struct{ to, word string }

// remedies are the remedies of alerts by their kind. "{}" stands for the name in the subject of the alert.
var remedies = map[string]alertRemedy{
	"dead": {"/operations/dead", "send"}, "dead_many": {"/operations/dead", "send"}, "failed_permanent": {"/operations/dead?view=failed", "send"},
	"unknown_outcome": {"/operations/dead?view=failed", "look"}, "outcome_held": {"/posts?view=retrying", "look"}, "oldest_due": {"/posts?view=waiting", "look"},
	"paused_channels": {"/channels", "channels"}, "channel_refused": {"/channels/{}", "channel"}, "rights_lost": {"/channels/{}", "channel"},
	"auth_lost": {"/setup/credentials", "secret"}, "credential_missing": {"/setup/credentials", "secret"},
	"auth_expiring": {"/setup/credentials", "secret"}, "auth_not_renewed": {"/setup/credentials", "secret"},
	"moderation_backlog": {"/decisions", "decide"}, "moderation_chat_failing": {"/setup/moderation-chats", "setup"},
	"publish_job_failed": {"/operations/files?status=failed", "files"}, "publish_job_unknown": {"/operations/files?status=unknown", "files"},
	"source_failing": {"/setup/sources", "source"}, "source_stopped": {"/setup/sources", "source"},
	"alert_target_failing": {"/setup/alert-targets", "target"}, "alerts_undelivered": {"/setup/alert-targets", "target"},
	"webhook_failing": {"/setup/webhooks", "webhook"}, "webhook_disabled": {"/setup/webhooks", "webhook"},
	"breaker_open": {"/setup/limits", "limits"}, "platform_wait": {"/setup/limits", "limits"}, "subscription": {"/setup/endpoints", "endpoints"},
	"bot_given_up": {"/bot/chats", "chats"}, "bot_replies_failing": {"/bot/chats", "chats"}, "bot_errors": {"/bot/rules", "rules"},
	"bot_fallback_rate": {"/bot/unmatched", "questions"}, "bot_unmatched": {"/bot/unmatched", "questions"},
	"audit_chain": {"/operations/audit?verify=1", "audit"}, "submission_failed": {"/operations/events?result=error&action=submission_failed", "look"},
	"no_dispatcher": {"/operations/daemons", "daemons"}, "daemon_lost": {"/operations/daemons", "daemons"}, "duty_failing": {"/operations/daemons", "daemons"},
	"stage_panicked": {"/operations/daemons", "daemons"}, "clock_skew": {"/operations/daemons", "daemons"}, "config_differs": {"/operations/daemons", "daemons"},
}

// button returns the page on which the person ends the alert. Its address is "" if no page of the person ends it.
func (a openAlert) button(v *view) alertRemedy {
	found := remedies[a.Kind]
	_, name, _ := strings.Cut(a.Subject, ":") // "" if the subject is all of a kind
	if strings.HasSuffix(found.to, "/{}") && name == "" {
		found.to = strings.TrimSuffix(found.to, "/{}")
	}
	found.to = strings.ReplaceAll(found.to, "{}", url.PathEscape(name))
	if strings.HasPrefix(found.to, "/operations/daemons") && !v.session.InstallationOwner {
		return alertRemedy{}
	}
	return found
}

// alertList is a page of open alerts.
type alertList struct{ Rows page[alertRow] }

func (l alertList) title(v *view) string {
	switch n := len(l.Rows.Items); {
	case n == 0:
		return v.t("operations.alerts.none_open")
	case l.Rows.cursor() != "":
		return v.n("operations.alerts.many", n)
	default:
		return v.n("operations.alerts.title", n)
	}
}

// severities are the severities, worst first.
var severities = []string{"critical", "error", "warning"}

func (s *server) alerts(v *view) {
	var list alertList
	if err := v.get(addressOf("/alerts", "limit", "100", "cursor", v.r.URL.Query().Get("cursor")), &list.Rows); err != nil {
		v.fail(err)
		return
	}
	slices.SortStableFunc(list.Rows.Items, func(a, b alertRow) int {
		return cmp.Or(cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)), b.RaisedAt.Compare(a.RaisedAt))
	})
	v.show(http.StatusOK, "alerts", alertsPage(v, list), alertsPanel(v, list))
}

func (s *server) acknowledge(v *view) {
	id := v.r.PathValue("alert_id")
	if uuid.Validate(id) != nil {
		v.fail(errNotFound)
		return
	}
	if err := v.post("/alerts/"+id+"/acknowledge", map[string]any{"reason": v.reason("acknowledge")}); err != nil {
		v.fail(err)
		return
	}
	v.done("/operations/alerts", "acknowledge")
}
