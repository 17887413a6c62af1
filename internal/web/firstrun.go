package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"autopost/internal/api"
	"autopost/internal/problem"
)

// discoverPause is the least time between two looks for the chats of a bot by an open page.
const discoverPause = 2 * time.Second

// botChat is a chat that a bot discovered.
type botChat struct {
	AuthRef    string     `json:"auth_ref"`
	Platform   string     `json:"platform"`
	TargetID   string     `json:"target_id"`
	Title      string     `json:"title"`
	Username   *string    `json:"username"`
	Kind       string     `json:"kind"`
	MayPost    *bool      `json:"may_post"`
	Reason     *string    `json:"reason"`
	MigratedTo *string    `json:"migrated_to"`
	LeftAt     *time.Time `json:"left_at"`
	ChannelIDs []string   `json:"channel_ids"`
}

func (c botChat) name() string { return cmp.Or(c.Title, text(c.Username), c.TargetID) }

// firstRun are the four steps from an empty workspace to the first post that arrived.
type firstRun struct {
	// Step is the present one, from 1.
	Step     int
	Bots     []credentialRow
	Chats    []botChat
	Channels []channel
	Post     *api.MessageRow
	Rows     []postRow

	// What a person wrote, and what is wrong with it.
	Platform, Chat, Text string
	Fault                string
	Fields               map[string]string
	// Unheard says why the bot could not be asked for its chats.
	Unheard string
}

// bot is the bot that step 2 is about.
func (f *firstRun) bot() credentialRow { return f.Bots[0] }

// class is how a step is shown.
func (f *firstRun) class(step int) string {
	switch {
	case step < f.Step:
		return "done"
	case step == f.Step:
		return "cur"
	}
	return ""
}

// arrived reports whether a delivery of the post is sent.
func (f *firstRun) arrived() bool {
	return slices.ContainsFunc(f.Rows, func(r postRow) bool { return r.Status == "sent" })
}

func (s *server) firstRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /setup/first", s.signed(s.first))
	mux.HandleFunc("POST /setup/first/{act}", s.signed(s.actOnFirst))
}

// firstRun returns the first steps of the workspace; nil once a post has arrived, and for people who may not set it up.
func (v *view) firstRun() (*firstRun, error) {
	if !v.may("owner") {
		return nil, nil
	}
	var sent page[api.MessageRow]
	if err := v.get("/posts?status=sent&limit=1", &sent); err != nil || len(sent.Items) > 0 {
		return nil, err
	}
	f := &firstRun{Fields: map[string]string{}, Platform: "telegram", Text: v.t("first.post.default")}
	return f, f.read(v)
}

// read finds the present step.
func (f *firstRun) read(v *view) error {
	var credentials page[credentialRow]
	if err := v.get("/credentials?limit=100", &credentials); err != nil {
		return err
	}
	f.Bots = slices.DeleteFunc(credentials.Items, func(c credentialRow) bool { return c.Platform != "telegram" && c.Platform != "max" })
	f.Step = 1
	if len(f.Bots) == 0 {
		return nil
	}
	slices.SortStableFunc(f.Bots, func(a, b credentialRow) int { return cmp.Compare(a.Channels, b.Channels) })
	if id := v.r.URL.Query().Get("bot"); id != "" {
		slices.SortStableFunc(f.Bots, func(a, b credentialRow) int { return cmp.Compare(boolRank(a.AuthRef == id), boolRank(b.AuthRef == id)) })
	}
	var channels page[channel]
	if err := v.get("/channels?limit=100", &channels); err != nil {
		return err
	}
	f.Step, f.Channels = 2, channels.Items
	if err := f.readChats(v); err != nil || len(f.Channels) == 0 || v.r.URL.Query().Get("step") == "chats" {
		return err
	}
	var posts page[api.MessageRow]
	if err := v.get("/posts?limit=1", &posts); err != nil {
		return err
	}
	f.Step = 3
	if len(posts.Items) == 0 || v.r.URL.Query().Get("step") == "post" {
		return nil
	}
	return f.follow(v, posts.Items[0].MessageID)
}

// follow shows how a post arrives.
func (f *firstRun) follow(v *view, message string) error {
	var whole postData
	if err := v.get("/posts/"+url.PathEscape(message), &whole); err != nil {
		return err
	}
	f.Step, f.Post, f.Rows = 4, &whole.MessageRow, whole.Deliveries
	if whole.Excerpt == nil {
		f.Post.Excerpt = &whole.Payload.Text
	}
	return nil
}

func boolRank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// readChats reads the chats of the bot that are known.
func (f *firstRun) readChats(v *view) error {
	var chats page[botChat]
	if err := v.get("/chats?limit=200", &chats); err != nil {
		return err
	}
	f.Chats = slices.DeleteFunc(chats.Items, func(c botChat) bool {
		return c.AuthRef != f.bot().AuthRef || c.LeftAt != nil || c.MigratedTo != nil || c.Kind == "dialog"
	})
	return nil
}

// first shows the steps alone: after a form, and as the parts of the page that follow the platform. An open page asks
// for it again and again, so that the chats of a bot without a public address are found while it is open.
func (s *server) first(v *view) {
	if !v.owner() {
		return
	}
	f, err := v.firstRun()
	if message := v.r.URL.Query().Get("post"); err == nil && uuid.Validate(message) == nil {
		f = &firstRun{}
		if err = f.read(v); err == nil && len(f.Bots) > 0 {
			err = f.follow(v, message)
		}
	}
	switch {
	case err != nil:
		v.fail(err)
		return
	case f == nil:
		v.redirect("/setup")
		return
	case f.Step == 2:
		v.discover(f)
		if err := f.readChats(v); err != nil {
			v.fail(err)
			return
		}
	}
	switch v.r.Header.Get("HX-Target") {
	case "first-chats":
		v.render(http.StatusOK, firstChats(v, f))
	case "first-arrival":
		v.render(http.StatusOK, firstArrival(v, f))
	default:
		v.render(http.StatusOK, firstPage(v, f))
	}
}

// discover looks for the chats of the bot.
func (v *view) discover(f *firstRun) {
	var found struct {
		Polled  bool   `json:"polled"`
		Message string `json:"message"`
	}
	if v.s.looks.tooSoon(v.workspace.WorkspaceID+" "+f.bot().AuthRef, v.now) {
		return
	}
	if err := v.call(http.MethodPost, "/credentials/"+url.PathEscape(f.bot().AuthRef)+"/discover", nil, &found); err != nil {
		f.Unheard = v.fault(err)
		return
	}
	f.Unheard = found.Message
}

// actOnFirst does what a step says.
func (s *server) actOnFirst(v *view) {
	if !v.owner() {
		return
	}
	f := &firstRun{
		Platform: cmp.Or(v.form.Get("platform"), "telegram"), Chat: strings.TrimSpace(v.form.Get("chat")), Text: strings.TrimSpace(v.form.Get("text")), Fields: map[string]string{},
	}
	next := "/setup/first"
	var err error
	switch act := v.r.PathValue("act"); act {
	case "bot":
		if !v.confirmed() {
			return
		}
		err = v.connectBot(f)
	case "chats":
		err = v.addChannels(f)
	case "post":
		var message string
		if message, err = v.postFirst(f); message != "" {
			next += "?post=" + url.QueryEscape(message)
		}
	default:
		err = errNotFound
	}
	p := (*problem.Problem)(nil)
	switch {
	case err == nil && f.Fault == "" && len(f.Fields) == 0:
		v.redirect(next)
		return
	case err != nil && (!errors.As(err, &p) || v.fault(err) == "" || p.Status == http.StatusNotFound || p.Status == http.StatusForbidden):
		v.fail(err)
		return
	case err != nil && f.Fault == "":
		f.Fault = v.fault(err)
	}
	if err := f.read(v); err != nil {
		v.fail(err)
		return
	}
	v.render(http.StatusUnprocessableEntity, firstPage(v, f))
}

// connectBot stores the token of a bot. The platform is asked first.
func (v *view) connectBot(f *firstRun) error {
	token := strings.TrimSpace(v.form.Get("secret"))
	if token == "" {
		f.Fields["secret"] = v.t("credentials.secret.fault")
		return nil
	}
	var found standing
	if err := v.call(http.MethodPost, "/credentials/test", map[string]any{"platform": f.Platform, "secret": token}, &found); err != nil {
		return err
	}
	if !found.OK {
		f.Fields["secret"] = v.t("credentials.refused", platformName(f.Platform)) + " " + found.Message
		return nil
	}
	name := cmp.Or(slug(strings.TrimPrefix(found.Account, "@")), f.Platform)
	var stored struct{}
	if err := v.call(http.MethodPost, "/credentials/"+url.PathEscape(name)+"/secret", map[string]any{"platform": f.Platform, "secret": token, "reason": v.t("reason.first")}, &stored); err != nil {
		return err
	}
	return v.call(http.MethodPost, "/credentials/"+url.PathEscape(name)+"/check", nil, nil)
}

// addChannels makes channels of the chosen chats, and of a chat whose id the person wrote.
func (v *view) addChannels(f *firstRun) error {
	if err := f.read(v); err != nil || len(f.Bots) == 0 {
		return cmp.Or(err, error(errNotFound))
	}
	bot := f.bot()
	chosen := slices.DeleteFunc(slices.Clone(f.Chats), func(c botChat) bool { return !slices.Contains(v.form["target"], c.TargetID) })
	if f.Chat != "" {
		target := strings.TrimPrefix(strings.TrimPrefix(f.Chat, "https://t.me/"), "t.me/")
		if target != f.Chat {
			target = "@" + target
		}
		chosen = append(chosen, botChat{AuthRef: bot.AuthRef, Platform: bot.Platform, TargetID: target})
	}
	if len(chosen) == 0 {
		f.Fault = v.t("first.chats.fault")
		return nil
	}
	taken := map[string]bool{}
	for _, c := range f.Channels {
		taken[c.ChannelID] = true
	}
	for _, chat := range chosen {
		id := cmp.Or(slug(chat.name()), bot.Platform)
		if taken[id] {
			id += "-" + slug(chat.TargetID)
		}
		fields := map[string]any{"platform": bot.Platform, "target_id": chat.TargetID, "auth_ref": bot.AuthRef, "title": chat.name(), "reason": v.t("reason.first")}
		if err := v.call(http.MethodPatch, "/channels/"+url.PathEscape(id), fields, nil); err != nil {
			f.Fields["chat"] = v.fault(err)
			if f.Chat == "" {
				f.Fault = v.fault(err)
			}
			return err
		}
	}
	return v.call(http.MethodPost, "/credentials/"+url.PathEscape(bot.AuthRef)+"/check", nil, nil)
}

// postFirst submits the first post to the channels that the person chose, and returns its id.
func (v *view) postFirst(f *firstRun) (string, error) {
	if f.Text == "" {
		f.Fields["text"] = v.t("first.post.fault")
		return "", nil
	}
	channels := v.form["channel"]
	if len(channels) == 0 {
		f.Fault = v.t("first.channel.fault")
		return "", nil
	}
	if err := v.ensureEndpoint(); err != nil {
		return "", err
	}
	var answer struct {
		MessageID string `json:"message_id"`
	}
	err := v.call(http.MethodPost, "/posts", map[string]any{"text": f.Text, "routing": map[string]any{"include_channels": channels}}, &answer)
	return answer.MessageID, err
}

// firstEndpoint is the endpoint that posts of the pages belong to in a new workspace.
const firstEndpoint = "pages"

// ensureEndpoint makes an endpoint if the workspace has none that takes posts. Nobody knows its secret: a person gives
// it another one to post from programs.
func (v *view) ensureEndpoint() error {
	var endpoints page[struct {
		Kind    string `json:"kind"`
		Enabled bool   `json:"enabled"`
	}]
	if err := v.get("/endpoints?limit=200", &endpoints); err != nil {
		return err
	}
	for _, e := range endpoints.Items {
		if e.Enabled && e.Kind == "webhook_push" {
			return nil
		}
	}
	return v.call(http.MethodPatch, "/endpoints/"+firstEndpoint, map[string]any{"kind": "webhook_push", "secret_hash": TokenHash(Token()), "reason": v.t("reason.first")}, nil)
}

// slug returns a name as an id: letters and digits in lower case, joined by dashes.
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	runes := []rune(strings.Join(words, "-"))
	return strings.Trim(string(runes[:min(len(runes), 60)]), "-")
}
