package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost/internal/problem"
)

// credentialRow is a credential with its health.
type credentialRow struct {
	AuthRef  string     `json:"auth_ref"`
	Platform string     `json:"platform"`
	KeptIn   string     `json:"kept_in"`
	Hosts    []string   `json:"hosts"`
	Channels int        `json:"channels"`
	Held     int        `json:"held"`
	LostAt   *time.Time `json:"lost_at"`
	Uses     []struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	} `json:"uses"`
	Account       *string         `json:"account"`
	CheckedAt     *time.Time      `json:"checked_at"`
	Rights        []channelRight  `json:"rights"`
	Error         json.RawMessage `json:"error"`
	ValidUntil    *time.Time      `json:"valid_until"`
	NextRefreshAt *time.Time      `json:"next_refresh_at"`
	Failures      int             `json:"failures"`
}

// channelRight is whether a credential may post to a chat.
type channelRight struct {
	Target  string `json:"target"`
	Title   string `json:"title"`
	MayPost bool   `json:"may_post"`
	Reason  string `json:"reason"`
}

// standing is the answer of a platform about a secret.
type standing struct {
	OK      bool           `json:"ok"`
	Account string         `json:"account"`
	Rights  []channelRight `json:"rights"`
	Message string         `json:"message"`
}

// message is the last error in the words of the platform or of the daemon; "" without one.
func (c credentialRow) message() string {
	var e struct {
		Message string `json:"message"`
		Code    string `json:"code"`
	}
	_ = json.Unmarshal(c.Error, &e) // null and nothing are no error
	return cmp.Or(e.Message, e.Code)
}

// health is the state of a credential: lost, failing, ending, unchecked or works.
func (c credentialRow) health(now time.Time) string {
	switch {
	case c.LostAt != nil || c.Held > 0:
		return "lost"
	case c.Failures > 0 || c.message() != "":
		return "failing"
	case c.ValidUntil != nil && c.NextRefreshAt == nil && c.ValidUntil.Sub(now) < 7*24*time.Hour:
		return "ending"
	case c.CheckedAt == nil && c.isAsked():
		return "unchecked"
	}
	return "works"
}

// healthStates are how a health is shown.
var healthStates = map[string]state{
	"lost": {"fail", "cross"}, "failing": {"held", "warn"}, "ending": {"held", "clock"}, "unchecked": {"", "clock"}, "works": {"ok quiet", "check"},
}

// isAsked reports whether the platform can be asked about the credential.
func (c credentialRow) isAsked() bool { return platforms[c.Platform] != "" }

// isLinked reports whether an account is connected by the consent of its owner.
func isLinked(platform string) bool { return platform == "x" || platform == "youtube" }

// missing counts the chats in which it may not post.
func (c credentialRow) missing() (n int) {
	for _, r := range c.Rights {
		if !r.MayPost {
			n++
		}
	}
	return n
}

// until says when the secret expires.
func (c credentialRow) until(v *view) string {
	if c.ValidUntil == nil {
		return ""
	}
	left := c.ValidUntil.Sub(v.now)
	switch {
	case left <= 0:
		return v.t("credentials.expired")
	case left < 48*time.Hour:
		return v.n("credentials.hours", int(math.Ceil(left.Hours())))
	}
	return v.n("credentials.days", int(left.Hours()/24))
}

// kindsOfCredentials are the platforms of credentials in the order of the page.
var kindsOfCredentials = []string{"telegram", "max", "x", "youtube", "webhook", "http", "smtp", "postgres"}

// credentialForm is the form of a secret.
type credentialForm struct {
	// Row is the credential whose secret is replaced; nil for a new one.
	Row *credentialRow

	Platform, Name, Hosts, Days, ClientID string
	Requeue, Unchecked                    bool
	Fault                                 string
	// Fields are faults by field.
	Fields map[string]string
	// CanForce means that the platform refused the secret, and it may be stored anyway.
	CanForce bool
}

// credentialsData is the content of the page of credentials.
type credentialsData struct {
	Rows []credentialRow
	Next string
	Form *credentialForm
	Ask  *question
	// Checked is the answer to a check that was made now.
	Checked *standing
	Fault   string
}

// title answers the question of the page.
func (d credentialsData) title(v *view) string {
	bad := 0
	for _, r := range d.Rows {
		if h := r.health(v.now); h == "lost" || h == "failing" || h == "ending" {
			bad++
		}
	}
	switch {
	case len(d.Rows) == 0:
		return v.t("credentials.title")
	case bad == 0:
		return v.t("credentials.all_work")
	}
	return v.n("credentials.need_you", bad)
}

func (s *server) credentialsRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /setup/credentials", s.signed(s.credentials))
	mux.HandleFunc("POST /setup/credentials/test", s.signed(s.testSecret))
	mux.HandleFunc("POST /setup/credentials/{act}", s.signed(s.actOnCredential))
	mux.HandleFunc("GET /oauth/callback", s.open(s.callback))
}

func (s *server) credentials(v *view) {
	q := v.r.URL.Query()
	d := credentialsData{}
	if kind := q.Get("add"); v.may("owner") && slices.Contains(kindsOfCredentials, kind) {
		d.Form = &credentialForm{Platform: kind, Name: kind, Requeue: true}
	}
	v.showCredentials(http.StatusOK, d)
}

// showCredentials shows the page with its list.
func (v *view) showCredentials(status int, d credentialsData) {
	q := v.r.URL.Query()
	target := url.Values{"limit": {"100"}}
	if cursor := q.Get("cursor"); cursor != "" {
		target.Set("cursor", cursor)
	}
	var rows page[credentialRow]
	if err := v.get("/credentials?"+target.Encode(), &rows); err != nil {
		v.fail(err)
		return
	}
	d.Rows = rows.Items
	slices.SortStableFunc(d.Rows, func(a, b credentialRow) int {
		return cmp.Compare(healthRank[a.health(v.now)], healthRank[b.health(v.now)])
	})
	if rows.NextCursor != nil {
		d.Next = *rows.NextCursor
	}
	id := cmp.Or(q.Get("credential"), v.form.Get("auth_ref"))
	if at := slices.IndexFunc(d.Rows, func(c credentialRow) bool { return c.AuthRef == id }); at >= 0 && v.may("owner") {
		row := &d.Rows[at]
		switch {
		case d.Form != nil && v.form.Get("new") == "":
			d.Form.Row, d.Form.Platform = row, row.Platform
		case q.Get("ask") == "replace":
			d.Form = &credentialForm{Row: row, Platform: row.Platform, Name: row.AuthRef, Hosts: strings.Join(row.Hosts, ", "), Requeue: true}
		case q.Get("ask") == "remove":
			d.Ask = &question{Act: "remove", Action: "/setup/credentials/remove", Back: "/setup/credentials", Hidden: map[string]string{"auth_ref": row.AuthRef},
				Title: v.t("credentials.ask_remove", row.AuthRef), Text: v.t("credentials.ask_remove.text"), Button: v.t("credentials.remove")}
		}
	}
	v.render(status, credentialsPage(v, d))
}

// healthRank puts what needs a person first.
var healthRank = map[string]int{"lost": 1, "failing": 2, "ending": 3, "unchecked": 4, "works": 5}

// testSecret says what the platform thinks of a secret, as a part of the form.
func (s *server) testSecret(v *view) {
	body := map[string]any{"platform": v.form.Get("platform"), "secret": strings.TrimSpace(v.form.Get("secret"))}
	if body["secret"] == "" {
		v.render(http.StatusOK, secretStanding(v, nil))
		return
	}
	var found standing
	if err := v.call(http.MethodPost, "/credentials/test", body, &found); err != nil {
		v.fail(err)
		return
	}
	v.render(http.StatusOK, secretStanding(v, &found))
}

// actOnCredential stores a secret, connects an account, checks, sends again or removes.
func (s *server) actOnCredential(v *view) {
	act, id := v.r.PathValue("act"), strings.TrimSpace(v.form.Get("auth_ref"))
	at := "/credentials/" + url.PathEscape(id)
	reason := map[string]any{"reason": cmp.Or(strings.TrimSpace(v.form.Get("reason")), v.t("reason.credentials"))}
	var err error
	switch act {
	case "set", "link":
		if v.confirmed() {
			v.storeSecret(act, id, at)
		}
		return
	case "check":
		var found standing
		if err = v.call(http.MethodPost, at+"/check", nil, &found); err == nil {
			v.done("/setup/credentials", map[bool]string{true: "credential_checked", false: "credential_refused"}[found.OK])
			return
		}
	case "requeue":
		if !v.confirmed() {
			return
		}
		err = v.post(at+"/requeue", reason)
	case "remove":
		if !v.confirmed() {
			return
		}
		err = v.call(http.MethodDelete, at, nil, nil)
	default:
		err = errNotFound
	}
	p := (*problem.Problem)(nil)
	switch {
	case err == nil:
		v.done("/setup/credentials", "credential_"+act)
	case errors.As(err, &p) && p.Reason == "referred_to":
		v.showCredentials(http.StatusConflict, credentialsData{Fault: v.t("credentials.in_use", id)})
	default:
		v.fail(err)
	}
}

// storeSecret stores the secret of the form, or sends the person to the platform to connect an account.
func (v *view) storeSecret(act, id, at string) {
	form := &credentialForm{
		Platform: v.form.Get("platform"), Name: id, Hosts: v.form.Get("hosts"), Days: v.form.Get("days"), ClientID: strings.TrimSpace(v.form.Get("client_id")),
		Requeue: v.form.Get("requeue") != "", Unchecked: v.form.Get("unchecked") != "", Fields: map[string]string{},
	}
	body := map[string]any{"platform": form.Platform, "requeue": form.Requeue, "reason": v.t("reason.credentials")}
	if id == "" {
		form.Fields["auth_ref"] = v.t("credentials.name.fault")
	}
	if act == "link" {
		body["client_id"], body["client_secret"], body["redirect_uri"] = form.ClientID, v.form.Get("client_secret"), v.site()+"/oauth/callback"
	} else {
		body["secret"], body["unchecked"] = strings.TrimSpace(v.form.Get("secret")), form.Unchecked
		if body["secret"] == "" {
			form.Fields["secret"] = v.t("credentials.secret.fault")
		}
		if hosts := strings.FieldsFunc(form.Hosts, func(r rune) bool { return strings.ContainsRune(", \n\r\t", r) }); len(hosts) > 0 {
			body["hosts"] = hosts
		}
		if form.Days != "" {
			days, wrong := strconv.Atoi(form.Days)
			if wrong != nil || days < 1 || days > 3650 {
				form.Fields["days"] = v.t("credentials.days.fault")
			}
			body["valid_seconds"] = days * 24 * 60 * 60
		}
	}
	if len(form.Fields) > 0 {
		v.showCredentials(http.StatusUnprocessableEntity, credentialsData{Form: form})
		return
	}
	var answer struct {
		URL      string `json:"url"`
		Requeued int    `json:"requeued"`
	}
	if err := v.call(http.MethodPost, at+map[string]string{"set": "/secret", "link": "/link"}[act], body, &answer); err != nil {
		v.refuseSecret(form, err)
		return
	}
	if act == "link" {
		v.leave(answer.URL)
		return
	}
	v.done("/setup/credentials?credential="+url.QueryEscape(id), "credential_set")
}

// leave sends the browser to a page of a platform. Its policy forbids a form to end there, so that a page with a link
// is shown.
func (v *view) leave(address string) {
	v.render(http.StatusOK, leavePage(v, address))
}

// refuseSecret shows the form with what the API refused.
func (v *view) refuseSecret(form *credentialForm, err error) {
	p := (*problem.Problem)(nil)
	if !errors.As(err, &p) || p.Status >= http.StatusInternalServerError || p.Status == http.StatusForbidden {
		v.fail(err)
		return
	}
	for _, e := range p.Errors {
		switch name := strings.TrimPrefix(e.Field, "body."); name {
		case "secret", "hosts", "client_id", "auth_ref":
			form.Fields[name] = v.detailOf(e)
		default:
			form.Fault += v.sentence(e.Field, e) + " "
		}
	}
	if p.Type == problem.SecretRefused.URN() {
		form.CanForce = true
		form.Fields["secret"] = v.t("credentials.refused", platformName(form.Platform)) + " " + p.Detail
	} else if len(p.Errors) == 0 {
		form.Fault, _ = v.refusal(p)
	}
	v.showCredentials(http.StatusUnprocessableEntity, credentialsData{Form: form})
}

// callback takes the answer of a platform about an account.
func (s *server) callback(v *view) {
	if err := v.resolve(); err != nil {
		v.fail(err)
		return
	}
	q, operator := v.r.URL.Query(), ""
	if v.session != nil {
		operator = "user:" + v.session.UserID
	}
	linked, err := s.Accounts.FinishLink(v.r.Context(), q.Get("state"), q.Get("code"), operator)
	switch {
	case err != nil:
		v.fail(err)
	case linked.AuthRef == "" && v.session == nil:
		v.redirect("/login?next=" + url.QueryEscape(v.r.URL.RequestURI()))
	case linked.AuthRef == "":
		v.fail(problem.UnknownPath.Says("%s", v.t("credentials.link_ended")))
	case v.session != nil && linked.OK:
		v.redirect("/setup/credentials?done=credential_link&credential=" + url.QueryEscape(linked.AuthRef))
	default:
		v.render(http.StatusOK, linkedPage(v, linked))
	}
}

func (v *view) linkedTitle(l Linked) string {
	if l.OK {
		return v.t("credentials.linked", l.AuthRef)
	}
	return v.t("credentials.not_linked", l.AuthRef)
}

// replaceWord is the act that gives a credential another secret.
func (v *view) replaceWord(c credentialRow) string {
	if isLinked(c.Platform) {
		return v.t("credentials.reconnect")
	}
	return v.t("credentials.replace")
}

func (f *credentialForm) title(v *view) string {
	if f.Row != nil {
		return v.t("credentials.replace_of", f.Row.AuthRef)
	}
	return v.t("credentials.new", v.t("credentials.kind."+f.Platform))
}

// secretWord is the key of what the secret is.
func (f *credentialForm) secretWord() string {
	switch f.Platform {
	case "telegram", "max":
		return "token"
	case "x", "youtube":
		return "json"
	}
	return "value"
}

func (f *credentialForm) appHint(v *view) string {
	if f.Row != nil {
		return v.t("credentials.same_app")
	}
	return v.t("credentials.client_id.hint")
}

// mayPost says where the credential may post.
func (c credentialRow) mayPost(v *view) string {
	if n := c.missing(); n > 0 {
		return v.n("credentials.may_not", n)
	}
	return v.n("credentials.may", len(c.Rights))
}

// name is the chat of a right, with a colon if a reason follows.
func (r channelRight) name() string {
	name := r.Target
	if r.Title != "" {
		name = r.Title + " (" + r.Target + ")"
	}
	if !r.MayPost {
		name += ": "
	}
	return name
}
