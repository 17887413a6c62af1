package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// xConfig is a configuration of Global X, as stored or as it acts. A field that was not set is nil.
type xConfig struct {
	Enabled      *bool  `json:"enabled"`
	EnableImages *bool  `json:"enableImages"`
	EnableVideos *bool  `json:"enableVideos"`
	EnableCombat *bool  `json:"enableCombat"`
	Mode         string `json:"mode"`
	ChannelID    string `json:"channel_id"`
	Moderation   struct {
		Enabled *bool `json:"enabled"`
	} `json:"moderation"`
	Rate struct {
		PerHour *int `json:"perHour"`
		PerDay  *int `json:"perDay"`
	} `json:"rate"`
	Templates map[string]string `json:"templates"`
}

// xKinds are the types of events with a template, and xContext an example of the values of each.
var (
	xKinds   = []string{"image", "video", "combat"}
	xContext = map[string]map[string]any{
		"image":  {"avatar_name": "Nyx", "prompt": "Celestial ranger in neon forest", "short_hash": "3f9a2c"},
		"video":  {"title": "Origin cinematic", "avatar_name": "Nyx"},
		"combat": {"winner_name": "Nyx", "loser_name": "Helion", "rounds": 7, "summary": "Nyx outmaneuvered Helion in a 7-round duel"},
	}
	xModes    = []string{"live", "hold", "shadow"}
	xStatuses = []string{"pending", "approved", "posted", "failed", "skipped", "rejected", "expired"}
)

// xToggle is a switch of the configuration.
type xToggle struct {
	name string
	of   func(c xConfig) *bool
}

var xToggles = []xToggle{
	{name: "enabled", of: func(c xConfig) *bool { return c.Enabled }}, {name: "enableImages", of: func(c xConfig) *bool { return c.EnableImages }},
	{name: "enableVideos", of: func(c xConfig) *bool { return c.EnableVideos }}, {name: "enableCombat", of: func(c xConfig) *bool { return c.EnableCombat }},
	{name: "moderation", of: func(c xConfig) *bool { return c.Moderation.Enabled }},
}

// xRate is a cap of the configuration.
type xRate struct {
	name string
	of   func(c xConfig) *int
}

var xRates = []xRate{{"perHour", func(c xConfig) *int { return c.Rate.PerHour }}, {"perDay", func(c xConfig) *int { return c.Rate.PerDay }}}

// xEvent is a domain event and its post.
type xEvent struct {
	ID             string     `json:"_id"`
	EventType      string     `json:"eventType"`
	Status         string     `json:"status"`
	MediaType      string     `json:"mediaType"`
	Text           string     `json:"resolvedContent"`
	Attempts       int        `json:"attempts"`
	NextAttemptAt  *time.Time `json:"nextAttemptAt"`
	LastError      *string    `json:"lastError"`
	TweetURL       *string    `json:"tweetUrl"`
	CreatedAt      time.Time  `json:"createdAt"`
	UpdatedAt      time.Time  `json:"updatedAt"`
	PostedAt       *time.Time `json:"postedAt"`
	RejectedReason *string    `json:"rejectedReason"`
	Digest         *string    `json:"digest"`
}

// mayRetry reports whether a retry fits the event.
func (e xEvent) mayRetry() bool {
	return slices.Contains([]string{"failed", "skipped", "expired"}, e.Status)
}

// postURL is the address of the post on X; "" if it is not one.
func (e xEvent) postURL() string { return safeURL(text(e.TweetURL)) }

// xStats is Global X in numbers.
type xStats struct {
	Since             time.Time      `json:"since"`
	Counts            map[string]int `json:"counts"`
	SuccessRate       *float64       `json:"successRate"`
	QueueDepth        int            `json:"queueDepth"`
	PendingModeration int            `json:"pendingModeration"`
	LatencySeconds    struct {
		P50 *float64 `json:"p50"`
		P95 *float64 `json:"p95"`
	} `json:"latencySeconds"`
}

// xPreview is the text of an event. Fault is what is wrong with its template.
type xPreview struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"`
	Length    int    `json:"length"`
	Limit     int    `json:"limit"`
	Fault     string `json:"-"`
}

// xData is the content of the page.
type xData struct {
	Stored    xConfig
	Effective xConfig
	UpdatedAt *time.Time
	// Given is the form of the configuration as it is shown.
	Given    url.Values
	Previews map[string]xPreview
	Channels []channel
	Stats    xStats
	Pending  page[xEvent]
	Recent   page[xEvent]
	Status   string
	Type     string
	Cursor   string
	Fault    string
	// Reject is the event whose rejection the address asks for.
	Reject string
}

// account is the channel that posts; nil if there is none.
func (d xData) account() *channel {
	for i, c := range d.Channels {
		if c.ChannelID == d.Effective.ChannelID {
			return &d.Channels[i]
		}
	}
	return nil
}

func (d xData) title(v *view) string {
	account := d.account()
	switch {
	case account == nil:
		return v.t("xposts.title.no_account")
	case account.AuthHeld:
		return v.t("xposts.title.refused")
	case !on(d.Effective.Enabled):
		return v.t("xposts.title.off")
	case d.Effective.Mode != "live":
		return v.t("xposts.title." + d.Effective.Mode)
	}
	return v.t("xposts.title.works")
}

func on(b *bool) bool { return b != nil && *b }

func (s *server) xpostsRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /x-posts", s.signed(s.xposts))
	mux.HandleFunc("GET /admin/x-global-posts.html", s.signed(s.xposts))
	mux.HandleFunc("POST /x-posts/config", s.signed(s.configureX))
	mux.HandleFunc("POST /x-posts/preview", s.signed(s.previewX))
	mux.HandleFunc("POST /x-posts/{event_id}/{act}", s.signed(s.actOnX))
}

// admin runs an operation of Global X.
func (v *view) admin(method, target string, body, into any) error {
	answer, err := v.s.API.Call(v.r.Context(), v.caller(), method, "/api/admin/x-posts"+target, body)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

func (s *server) xposts(v *view) {
	d, err := v.readX(nil)
	if err != nil {
		v.fail(err)
		return
	}
	v.show(http.StatusOK, "recent", xPage(v, d), xRecent(v, d))
}

// readX reads the page. given is a form that was not accepted; nil shows what is stored.
func (v *view) readX(given url.Values) (xData, error) {
	q := v.r.URL.Query()
	d := xData{Given: given, Status: q.Get("status"), Type: strings.TrimSpace(q.Get("type")), Cursor: q.Get("cursor"), Reject: q.Get("reject")}
	if !slices.Contains(xStatuses, d.Status) {
		d.Status = ""
	}
	var config struct {
		Stored    json.RawMessage `json:"stored"`
		Effective xConfig         `json:"effective"`
	}
	var channels page[channel]
	err := v.admin(http.MethodGet, "/config", nil, &config)
	for target, into := range map[string]any{"/stats": &d.Stats, addressOf("", "status", "pending", "limit", "20"): &d.Pending,
		addressOf("", "status", d.Status, "type", d.Type, "cursor", d.Cursor, "limit", "25"): &d.Recent} {
		if err == nil {
			err = v.admin(http.MethodGet, target, nil, into)
		}
	}
	if err == nil {
		err = v.get(channelNames, &channels)
	}
	if err != nil {
		return d, err
	}
	var stored struct {
		xConfig
		UpdatedAt *time.Time `json:"updatedAt"`
	}
	if err := json.Unmarshal(config.Stored, &stored); err != nil {
		return d, fmt.Errorf("read the configuration of Global X: %w", err)
	}
	d.Stored, d.UpdatedAt, d.Effective = stored.xConfig, stored.UpdatedAt, config.Effective
	d.Channels = slices.DeleteFunc(channels.Items, func(c channel) bool { return c.Platform != "x" })
	if d.Given == nil {
		d.Given = d.fields()
	}
	d.Previews = map[string]xPreview{}
	for _, kind := range xKinds {
		d.Previews[kind] = v.xPreviewOf(kind, d.Given.Get("template-"+kind))
	}
	return d, nil
}

// fields are the values of the form: what is stored, else what acts.
func (d xData) fields() url.Values {
	form := url.Values{"mode": {d.Stored.Mode}, "channel_id": {d.Stored.ChannelID}}
	if d.Stored.Mode == "" {
		form.Set("mode", d.Effective.Mode)
	}
	for _, t := range xToggles {
		value := t.of(d.Stored)
		if value == nil {
			value = t.of(d.Effective)
		}
		if on(value) {
			form.Set(t.name, "on")
		}
	}
	for _, r := range xRates {
		value := r.of(d.Stored)
		if value == nil {
			value = r.of(d.Effective)
		}
		if value != nil {
			form.Set(r.name, strconv.Itoa(*value))
		}
	}
	for _, kind := range xKinds {
		body := d.Stored.Templates[kind]
		if body == "" {
			body = d.Effective.Templates[kind]
		}
		form.Set("template-"+kind, body)
	}
	return form
}

// xPreviewOf renders an example event in a template.
func (v *view) xPreviewOf(kind, template string) (p xPreview) {
	err := v.admin(http.MethodPost, "/preview", map[string]any{"type": kind, "template": template, "context": xContext[kind]}, &p)
	if err != nil {
		if p.Fault = v.fault(err); p.Fault == "" {
			p.Fault = v.t("error.unavailable")
		}
	}
	return p
}

// previewX renders one template for the form, or the page again without script.
func (s *server) previewX(v *view) {
	kind, _ := strings.CutPrefix(v.r.Header.Get("HX-Target"), "preview-")
	if slices.Contains(xKinds, kind) {
		v.render(http.StatusOK, xPreviewPart(v, kind, v.xPreviewOf(kind, v.form.Get("template-"+kind))))
		return
	}
	d, err := v.readX(v.form)
	if err != nil {
		v.fail(err)
		return
	}
	v.render(http.StatusOK, xPage(v, d))
}

// configureX changes the configuration.
func (s *server) configureX(v *view) {
	d, err := v.readX(v.form)
	if err != nil {
		v.fail(err)
		return
	}
	body := map[string]any{"mode": v.form.Get("mode"), "reason": v.reason("xposts"), "channel_id": nil}
	if id := v.form.Get("channel_id"); id != "" {
		body["channel_id"] = id
	}
	for _, t := range xToggles {
		isOn := v.form.Get(t.name) != ""
		if t.name == "moderation" {
			body["moderation"] = map[string]any{"enabled": isOn}
			continue
		}
		body[t.name] = isOn
	}
	rate := map[string]any{}
	for _, r := range xRates {
		n, err := strconv.Atoi(strings.TrimSpace(v.form.Get(r.name)))
		if err != nil || n < 1 {
			d.Fault = v.t("xposts.rate.wrong", v.t("xposts."+r.name))
			v.render(http.StatusUnprocessableEntity, xPage(v, d))
			return
		}
		rate[r.name] = n
	}
	templates := map[string]any{}
	for _, kind := range xKinds {
		if given := strings.ReplaceAll(v.form.Get("template-"+kind), "\r\n", "\n"); given != d.Effective.Templates[kind] {
			templates[kind] = given
		}
	}
	body["rate"] = rate
	if len(templates) > 0 {
		body["templates"] = templates
	}
	if err := v.admin(http.MethodPut, "/config", body, nil); err != nil {
		if d.Fault = v.fault(err); d.Fault == "" {
			v.fail(err)
			return
		}
		v.render(statusOf(err), xPage(v, d))
		return
	}
	v.done("/x-posts", "xposts_config")
}

// actOnX approves, rejects or retries an event.
func (s *server) actOnX(v *view) {
	id, act := v.r.PathValue("event_id"), v.r.PathValue("act")
	if uuid.Validate(id) != nil || !slices.Contains([]string{"approve", "reject", "retry"}, act) {
		v.fail(errNotFound)
		return
	}
	if act == "approve" && !v.confirmed() {
		return
	}
	body := map[string]any{"reason": v.reason(act)}
	if digest := v.form.Get("digest"); digest != "" && act != "retry" {
		body["digest"] = digest
	}
	err := v.admin(http.MethodPost, "/"+id+"/"+act, body, nil)
	if err == nil {
		v.done("/x-posts", "xposts_"+act)
		return
	}
	wrong := v.fault(err)
	d, failed := v.readX(nil)
	if wrong == "" || failed != nil || statusOf(err) != http.StatusConflict {
		v.fail(err)
		return
	}
	d.Fault = v.refusedX(err, wrong)
	v.render(http.StatusConflict, xPage(v, d))
}

// refusedX says why a decision was refused: who decided before, or that the event changed.
func (v *view) refusedX(err error, otherwise string) string {
	if isReason(err, "digest_changed") {
		return v.t("decisions.changed")
	}
	if p := problemOf(err); p != nil && p.Decision != nil {
		return v.t("decided.by", v.nameOf(p.Decision.By), v.t("decided."+p.Decision.Decision))
	}
	return otherwise
}

// target is the address of the page with a filter of the recent events.
func (d xData) target(pairs ...string) string {
	return addressOf("/x-posts", append([]string{"status", d.Status, "type", d.Type}, pairs...)...)
}
