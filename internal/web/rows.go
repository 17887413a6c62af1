package web

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// page is one page of a list of the API.
type page[Row any] struct {
	Items      []Row   `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// failure is the error of the last call of a delivery.
type failure struct {
	Code     string `json:"code"`
	Category string `json:"category"`
	Known    bool   `json:"known"`
	Message  string `json:"message"`
}

// counted are the deliveries of a post by status.
type counted map[string]int

func (c counted) of(statuses ...string) (n int) {
	for _, s := range statuses {
		n += c[s]
	}
	return n
}

func (c counted) all() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}

// state is how a status is shown.
type state struct{ class, icon string }

var states = map[string]state{
	"queued": {"", "clock"}, "retry": {"", "wait"}, "claimed": {"run", "send"}, "sending": {"run", "send"},
	"sent": {"ok quiet", "check"}, "deduped": {"", "copy"}, "failed_permanent": {"fail", "cross"}, "dead": {"fail", "stop"},
	"pending": {"held", "decisions"}, "fetching": {"", "wait"}, "unknown": {"unsure", "unsure"}, "held": {"held", "hand"},
	"open": {"ok quiet", "check"}, "paused": {"held", "hand"}, "disabled": {"", "skip"}, "cooldown": {"", "wait"},
	"failing": {"fail", "warn"},
	"warning": {"held", "warn"}, "error": {"fail", "warn"}, "critical": {"fail", "stop"},
}

// order is the order of statuses: what needs a person first.
var order = []string{"dead", "failed_permanent", "retry", "sending", "claimed", "queued", "sent", "deduped"}

// worst is the status of a post: that of its worst delivery.
func (c counted) worst() string {
	for _, status := range order {
		if c[status] > 0 {
			return status
		}
	}
	return "queued"
}

// isEnded reports whether a delivery ended without being sent.
func isEnded(status string) bool { return status == "dead" || status == "failed_permanent" }

// isWaiting reports whether a delivery waits for its next call.
func isWaiting(status string) bool { return status == "queued" || status == "retry" }

// openAlert is an alert that is open.
type openAlert struct {
	AlertID  string    `json:"alert_id"`
	Kind     string    `json:"kind"`
	Subject  string    `json:"subject"`
	Severity string    `json:"severity"`
	What     string    `json:"what"`
	Remedy   string    `json:"remedy"`
	RaisedAt time.Time `json:"raised_at"`
	// Amount is the extent of the problem, in the unit of its kind.
	Amount float64        `json:"amount"`
	Meta   map[string]any `json:"meta"`
}

// name is the object of the alert: the part of its subject after the colon, or all of it.
func (a openAlert) name() string { return a.Subject[strings.Index(a.Subject, ":")+1:] }

// saidOf is an alert in the language of the person, and the language of the sentence. detail is what it says further in
// English; "" if the sentence has all.
func (v *view) saidOf(a openAlert) (said, lang, detail string) {
	text, known := alertTexts[v.words.code][a.Kind]
	if !known {
		return a.What, "en", ""
	}
	n := int(a.Amount)
	if text.minutes {
		n /= 60
	}
	forms := strings.Split(text.said, "|")
	said = forms[min(v.words.form(n), len(forms)-1)]
	if strings.Contains(said, "%d") {
		said = fmt.Sprintf(said, n)
	}
	if !text.whole {
		detail = a.What
	}
	return strings.ReplaceAll(said, "{name}", a.name()), v.words.code, detail
}

// sayAlert is the sentence of an alert, for the name of a button.
func (v *view) sayAlert(a openAlert) string {
	said, _, _ := v.saidOf(a)
	return said
}

// remedyOf says how an alert ends, and the language of that text.
func (v *view) remedyOf(a openAlert) (text, lang string) {
	known, found := alertTexts[v.words.code][a.Kind]
	if !found {
		return a.Remedy, "en"
	}
	code, _ := a.Meta["code"].(string) // an alert without a code has a placeholder there
	return strings.NewReplacer("{workspace}", v.workspace.WorkspaceID, "{alert}", a.AlertID, "{name}", a.name(),
		"{code}", cmp.Or(code, "CODE")).Replace(known.remedy), v.words.code
}

// mend is the page on which a person replaces the credential that the alert is about.
func (a openAlert) mend() string {
	ref, is := strings.CutPrefix(a.Subject, "credential:")
	if !is {
		return "/setup/credentials"
	}
	return "/setup/credentials?ask=replace&credential=" + url.QueryEscape(ref)
}

// channel is a target with what keeps it from sending.
type channel struct {
	ChannelID           string     `json:"channel_id"`
	Platform            string     `json:"platform"`
	TargetID            string     `json:"target_id"`
	AuthRef             string     `json:"auth_ref"`
	RateGroup           string     `json:"rate_group"`
	Title               *string    `json:"title"`
	Enabled             bool       `json:"enabled"`
	PausedUntil         *time.Time `json:"paused_until"`
	CooldownUntil       *time.Time `json:"cooldown_until"`
	AuthHeld            bool       `json:"auth_held"`
	RightsHeld          *string    `json:"rights_held"`
	CredentialMissingAt *time.Time `json:"credential_missing_at"`
	Moderated           bool       `json:"moderated"`
	Tags                []string   `json:"tags"`
}

func (c channel) name() string {
	if c.Title != nil && *c.Title != "" {
		return *c.Title
	}
	return c.ChannelID
}

// platforms are the words for platforms.
var platforms = map[string]string{"telegram": "Telegram", "max": "MAX", "x": "X", "youtube": "YouTube"}

func platformName(p string) string {
	if name, known := platforms[p]; known {
		return name
	}
	return p
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func num(n int) string { return strconv.Itoa(n) }
