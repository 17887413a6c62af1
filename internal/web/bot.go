package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// mostLines is how many lines of a conversation a page shows, mostGroups how many groups of questions.
	mostLines, mostGroups = 200, 100
	// reportDays is the period of the report.
	reportDays = 30
	// mostTried is how many lines the test chat keeps.
	mostTried = 20
)

// botSections are the pages of the bot.
var botSections = []string{"chats", "rules", "try", "unmatched"}

func (s *server) botRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /bot", s.signed(func(v *view) { v.redirect("/bot/chats") }))
	mux.HandleFunc("GET /bot/chats", s.signed(s.botChats))
	mux.HandleFunc("GET /bot/chats/{provider}/{chat_id}", s.signed(s.botChat))
	mux.HandleFunc("POST /bot/chats/{provider}/{chat_id}/forget", s.signed(s.forgetBotChat))
	mux.HandleFunc("GET /bot/rules", s.signed(s.botRules))
	mux.HandleFunc("GET /bot/rules/{rule_id}", s.signed(s.botRule))
	mux.HandleFunc("POST /bot/rules/{rule_id}/{act}", s.signed(s.actOnBotRule))
	mux.HandleFunc("GET /bot/try", s.signed(s.tryBot))
	mux.HandleFunc("POST /bot/try", s.signed(s.tryBot))
	mux.HandleFunc("GET /bot/unmatched", s.signed(s.unmatched))
}

// botChatRow is a dialog of a bot.
type botChatRow struct {
	Provider  string    `json:"provider"`
	AuthRef   string    `json:"auth_ref"`
	ChatID    string    `json:"chat_id"`
	State     string    `json:"state"`
	Waiting   int       `json:"waiting"`
	Failing   int       `json:"failing"`
	Unsent    int       `json:"unsent"`
	UpdatedAt time.Time `json:"updated_at"`
}

func (c botChatRow) path() string {
	return "/bot/chats/" + url.PathEscape(c.Provider) + "/" + url.PathEscape(c.ChatID)
}

func (s *server) botChats(v *view) {
	var chats page[botChatRow]
	if err := v.get(addressOf("/bot/chats", "limit", "50", "cursor", v.r.URL.Query().Get("cursor")), &chats); err != nil {
		v.fail(err)
		return
	}
	v.show(http.StatusOK, "chats", botChatsPage(v, chats), botChatsPanel(v, chats))
}

// botLine is a line of a conversation: a message and what the bot did.
type botLine struct {
	ID              string    `json:"id"`
	TS              time.Time `json:"ts"`
	Kind            string    `json:"kind"`
	MessageText     *string   `json:"message_text"`
	MatchedRuleID   *string   `json:"matched_rule_id"`
	RuleVersion     *int      `json:"rule_version"`
	StateBefore     *string   `json:"state_before"`
	StateAfter      *string   `json:"state_after"`
	ResponsePreview *string   `json:"response_preview"`
	ReplyStatus     *string   `json:"reply_status"`
	LastError       *failure  `json:"last_error"`
}

// moved reports whether the state of the chat changed.
func (l botLine) moved() bool { return text(l.StateBefore) != text(l.StateAfter) }

// botTalk is the content of the page of a conversation.
type botTalk struct {
	botChatRow

	Items []botLine `json:"items"`
	Ask   *question `json:"-"`
}

func (v *view) botTarget() (botChatRow, string) {
	c := botChatRow{Provider: v.r.PathValue("provider"), ChatID: v.r.PathValue("chat_id"), AuthRef: cmp.Or(v.form.Get("auth_ref"), v.r.URL.Query().Get("auth_ref"))}
	return c, c.path()
}

func (s *server) botChat(v *view) {
	c, at := v.botTarget()
	d := botTalk{}
	if err := v.get(addressOf(at, "auth_ref", c.AuthRef, "limit", num(mostLines)), &d); err != nil {
		v.fail(err)
		return
	}
	d.botChatRow = c
	if v.r.URL.Query().Get("ask") == "forget" && v.may("owner") {
		d.Ask = &question{Act: "forget", Action: at + "/forget", Back: addressOf(at, "auth_ref", c.AuthRef), Title: v.t("bot.forget.title"), Text: v.t("bot.forget.text"),
			Button: v.t("bot.forget.go"), Hidden: map[string]string{"auth_ref": c.AuthRef}}
	}
	v.show(http.StatusOK, "talk", botChatPage(v, d), botTalkPanel(v, d))
}

// forgetBotChat erases a conversation.
func (s *server) forgetBotChat(v *view) {
	c, at := v.botTarget()
	if !v.confirmed() {
		return
	}
	if err := v.call(http.MethodDelete, addressOf(at, "auth_ref", c.AuthRef), map[string]any{"reason": v.reason("bot_forget")}, nil); err != nil {
		v.fail(err)
		return
	}
	v.done("/bot/chats", "bot_forget")
}

// botRuleRow is a version of a rule.
type botRuleRow struct {
	RuleID           string   `json:"rule_id"`
	Version          int      `json:"version"`
	Enabled          bool     `json:"enabled"`
	Intent           string   `json:"intent"`
	State            *string  `json:"state"`
	Keywords         []string `json:"keywords"`
	Priority         int      `json:"priority"`
	MaxTurns         int      `json:"max_turns"`
	ResponseTemplate string   `json:"response_template"`
	NextState        *string  `json:"next_state"`
}

func (r botRuleRow) path() string { return "/bot/rules/" + url.PathEscape(r.RuleID) }

// fields are the values of the form of a rule.
func (r botRuleRow) fields() url.Values {
	return url.Values{"rule_id": {r.RuleID}, "intent": {r.Intent}, "state": {text(r.State)}, "keywords": {strings.Join(r.Keywords, "\n")}, "priority": {num(r.Priority)},
		"max_turns": {num(r.MaxTurns)}, "response_template": {r.ResponseTemplate}, "next_state": {text(r.NextState)}}
}

// botRuleList is a page of rules: of each the version that answers, else the newest.
type botRuleList struct {
	Rows page[botRuleRow] `json:"-"`
	// Findings are the faults that the enabled rules have together.
	Findings []botFinding `json:"findings"`
	// New is the form of a new rule; nil if the address does not ask for it.
	New url.Values `json:"-"`
}

// botFinding is a fault of a rule beside the others.
type botFinding struct {
	Kind   string `json:"kind"`
	RuleID string `json:"rule_id"`
	Field  string `json:"field"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

func (s *server) botRules(v *view) {
	q := v.r.URL.Query()
	var list botRuleList
	if err := v.get(addressOf("/bot/rules", "limit", "200", "cursor", q.Get("cursor")), &list.Rows); err != nil {
		v.fail(err)
		return
	}
	if err := v.call(http.MethodPost, "/bot/lint", map[string]any{}, &list); err != nil {
		v.fail(err)
		return
	}
	shown := map[string]int{}
	rules := []botRuleRow{}
	for _, r := range list.Rows.Items {
		if at, known := shown[r.RuleID]; known {
			if r.Enabled {
				rules[at] = r
			}
			continue
		}
		shown[r.RuleID] = len(rules)
		rules = append(rules, r)
	}
	list.Rows.Items = rules
	slices.SortStableFunc(list.Rows.Items, func(a, b botRuleRow) int { return cmp.Compare(b.Priority, a.Priority) })
	if q.Get("form") == "new" && v.may("editor") {
		list.New = url.Values{"max_turns": {"5"}, "priority": {"0"}}
	}
	v.show(http.StatusOK, "rules", botRulesPage(v, list), botRulesPanel(v, list))
}

// botRuleData is the content of the page of a rule.
type botRuleData struct {
	ID       string
	Versions []botRuleRow
	Given    url.Values
	Fault    string
}

func (v *view) readBotRule() (botRuleData, error) {
	d := botRuleData{ID: v.r.PathValue("rule_id")}
	var versions page[botRuleRow]
	if err := v.get(addressOf("/bot/rules", "rule_id", d.ID, "limit", "50"), &versions); err != nil {
		return d, err
	}
	d.Versions = versions.Items
	if len(d.Versions) == 0 {
		return d, errNotFound
	}
	d.Given = d.Versions[0].fields()
	return d, nil
}

func (s *server) botRule(v *view) {
	d, err := v.readBotRule()
	if err != nil {
		v.fail(err)
		return
	}
	v.render(http.StatusOK, botRulePage(v, d))
}

// ruleChange returns the body of a change of a rule.
func (v *view) ruleChange() map[string]any {
	body := map[string]any{"intent": v.form.Get("intent"), "response_template": strings.ReplaceAll(v.form.Get("response_template"), "\r\n", "\n"), "reason": v.reason("bot"),
		"keywords": strings.FieldsFunc(v.form.Get("keywords"), func(r rune) bool { return r == '\n' || r == '\r' }), "enabled": v.form.Get("draft") == ""}
	for _, name := range []string{"state", "next_state"} {
		if body[name] = nil; v.form.Get(name) != "" {
			body[name] = v.form.Get(name)
		}
	}
	for _, name := range []string{"priority", "max_turns"} {
		if n, err := strconv.Atoi(v.form.Get(name)); err == nil {
			body[name] = n
		}
	}
	return body
}

// actOnBotRule writes the next version of a rule, or chooses the one that answers.
func (s *server) actOnBotRule(v *view) {
	id, act := v.r.PathValue("rule_id"), v.r.PathValue("act")
	if act == "put" && id == "new" {
		id = strings.TrimSpace(v.form.Get("rule_id"))
	}
	at := "/bot/rules/" + url.PathEscape(id)
	var err error
	switch act {
	case "put":
		err = v.call(http.MethodPatch, at, v.ruleChange(), nil)
	case "enable":
		version, _ := strconv.Atoi(v.form.Get("version")) // 0 disables the rule
		err = v.post(at+"/enable", map[string]any{"version": version, "reason": v.reason("bot")})
	default:
		err = errNotFound
	}
	if err == nil {
		v.done(at, "bot_rule")
		return
	}
	wrong := v.fault(err)
	if wrong == "" || act != "put" || statusOf(err) == http.StatusForbidden {
		v.fail(err)
		return
	}
	v.render(statusOf(err), botRulePage(v, botRuleData{ID: v.r.PathValue("rule_id"), Given: v.form, Fault: wrong}))
}

// tried is a line of the test chat.
type tried struct {
	Asked, Text, Kind, Rule, State string
}

// botTrial is the test chat. Its form keeps the conversation: nothing is stored.
type botTrial struct {
	Lines []tried
	State string
	// Context is the context of the state as JSON.
	Context string
	Text    string
	Fault   string
}

func (s *server) tryBot(v *view) {
	d := botTrial{State: v.form.Get("state"), Context: v.form.Get("context"), Text: strings.TrimSpace(v.form.Get("text"))}
	_ = json.Unmarshal([]byte(v.form.Get("lines")), &d.Lines) // without script-made lines it is what this page wrote
	if v.safe() || d.Text == "" {
		v.show(http.StatusOK, "trial", botTryPage(v, d), botTrialPanel(v, d))
		return
	}
	var context map[string]any
	_ = json.Unmarshal([]byte(d.Context), &context)
	var answer struct {
		Kind    string         `json:"kind"`
		RuleID  string         `json:"rule_id"`
		Version int            `json:"version"`
		Text    string         `json:"text"`
		State   string         `json:"state"`
		Context map[string]any `json:"context"`
	}
	body := map[string]any{"text": d.Text, "name": v.session.Name}
	if d.State != "" {
		body["state"], body["context"] = d.State, context
	}
	status := http.StatusOK
	if err := v.call(http.MethodPost, "/bot/try", body, &answer); err != nil {
		if d.Fault = v.fault(err); d.Fault == "" {
			v.fail(err)
			return
		}
		status = statusOf(err)
	} else {
		line := tried{Asked: d.Text, Text: answer.Text, Kind: answer.Kind, State: answer.State}
		if answer.RuleID != "" {
			line.Rule = answer.RuleID + " " + strconv.Itoa(answer.Version)
		}
		kept, _ := json.Marshal(answer.Context) // a map always has JSON
		d.Lines = append(d.Lines, line)
		d.Lines, d.State, d.Context, d.Text = d.Lines[max(0, len(d.Lines)-mostTried):], answer.State, string(kept), ""
	}
	v.show(status, "trial", botTryPage(v, d), botTrialPanel(v, d))
}

// lines are the lines of the test chat as its form keeps them.
func (d botTrial) lines() string {
	kept, _ := json.Marshal(d.Lines) // texts always have JSON
	return string(kept)
}

// unmatchedData is the report of the questions that no rule answered.
type unmatchedData struct {
	Messages  int             `json:"messages"`
	Rate      float64         `json:"fallback_rate"`
	Questions []unmatchedLine `json:"unmatched"`
}

// unmatchedLine are questions with the same words.
type unmatchedLine struct {
	Count   int       `json:"count"`
	Example string    `json:"example"`
	LastAt  time.Time `json:"last_at"`
}

// percent is the share of the messages without a rule.
func (d unmatchedData) percent() string { return strconv.FormatFloat(100*d.Rate, 'f', 1, 64) }

// unmatched shows the questions that no rule answered, grouped by their words.
func (s *server) unmatched(v *view) {
	var d unmatchedData
	if err := v.get(addressOf("/bot/report", "since", v.now.AddDate(0, 0, -reportDays).Format(time.RFC3339), "limit", num(mostGroups)), &d); err != nil {
		v.fail(err)
		return
	}
	v.show(http.StatusOK, "unmatched", unmatchedPage(v, d), unmatchedPanel(v, d))
}
