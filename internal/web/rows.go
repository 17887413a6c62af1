package web

import (
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
