package pages

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

func (s *site) botPaths() []string {
	if s.ids["talk"] == "" {
		s.converse("Delivery takes 2 days.", "How long does delivery take?")
	}
	return []string{"/bot/chats", s.ids["talk"], s.ids["talk"] + "&ask=forget", "/bot/rules", "/bot/rules?form=new", "/bot/rules/delivery", "/bot/try", "/bot/unmatched"}
}

// converse makes a rule, a chat that it answered, and a question without an answer. words are in the answer.
func (s *site) converse(words, asked string) {
	s.t.Helper()
	s.Exec(`select autopost.put_bot_rule('news', 'delivery', jsonb_build_object('intent', 'delivery', 'keywords', array['delivery'], 'response_template', $1::text), 'ann', 'r', false)`, words)
	s.Exec(`insert into autopost.bot_state (workspace_id, provider, auth_ref, chat_id, updated_at) values ('news', 'max', 'shop', '4711', now())`)
	for _, line := range []struct {
		kind, said, answer string
		rule               any
	}{{"matched", asked, words, "delivery"}, {"fallback", "Do you sell " + asked, "Please say it in other words.", nil}} {
		s.Exec(`insert into autopost.bot_logs (workspace_id, id, ts, provider, auth_ref, chat_id, kind, inbound_provider_message_id, message_text, response_preview, matched_rule_id, rule_version, state_before, state_after)
			values ('news', autopost.new_id(), now(), 'max', 'shop', '4711', $1, autopost.new_id()::text, $2, $3, $4, case when $4::text is not null then 1 end, 'default', 'default')`, line.kind, line.said, line.answer, line.rule)
	}
	s.ids["talk"] = "/bot/chats/max/4711?auth_ref=shop"
}

// The last conversation is read, and an owner erases it after the password.
func TestConversationsOfTheBotAreRead(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	require.Contains(t, p.get("/bot/chats").body, "Nobody has written to the bot yet.")
	require.NotContains(t, p.get("/").body, `href="/bot"`, "no rule yet")
	s.converse("Two days. "+hostileText(), "How long? "+hostileText())
	require.Contains(t, p.get("/").body, `href="/bot"`)
	require.Contains(t, p.get("/bot/chats").body, "4711")
	for _, path := range s.botPaths() {
		p.harmless(path)
	}
	talk := p.get(s.ids["talk"]).body
	require.Contains(t, talk, "How long?")
	require.Contains(t, talk, "no rule matched")
	require.Contains(t, p.get("/bot/unmatched").body, "Do you sell How long?")
	require.NotContains(t, s.member("operator").get(s.ids["talk"]+"&ask=forget").body, "Erase")
	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	at := "/bot/chats/max/4711/forget"
	require.Contains(t, p.post(at, "auth_ref", "shop").body, `name="current_password"`)
	require.Equal(t, "/bot/chats?done=bot_forget", p.post(at, "auth_ref", "shop", "current_password", password, "reason", "she asked").header.Get("Location"))
	require.Equal(t, "she asked", pgtest.Value[string](s.DB, `select reason from autopost.admin_audit_log where action = 'bot_forget'`))
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.bot_logs`))
	require.Equal(t, http.StatusNotFound, p.get(s.ids["talk"]).status)
}

// A change makes the next version of a rule; another version is chosen; the test chat answers by what is enabled.
func TestRulesOfTheBotAreWrittenAndTried(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	fields := []string{"rule_id", "payment", "intent", "payment", "keywords", "card\npay", "response_template", "Cards are fine, {name}.", "priority", "3", "max_turns", "5"}
	require.Equal(t, "/bot/rules/payment?done=bot_rule", p.post("/bot/rules/new/put", fields...).header.Get("Location"))
	rules := p.get("/bot/rules").body
	require.Contains(t, rules, "Cards are fine, {name}.")
	require.NotContains(t, rules, "of these rules")
	require.Equal(t, http.StatusSeeOther, p.post("/bot/rules/new/put", "rule_id", "late", "intent", "payment", "keywords", "paypal", "response_template", "No.", "priority", "1", "max_turns", "5").status)
	rules = p.get("/bot/rules").body
	require.Contains(t, rules, "1 fault of these rules")
	require.Contains(t, rules, "rule payment takes all its texts first")
	require.Equal(t, http.StatusSeeOther, p.post("/bot/rules/late/enable", "version", "0").status)
	asked := p.post("/bot/try", "text", "May I pay?")
	require.Contains(t, asked.body, "Cards are fine, Ann.")
	require.Contains(t, asked.body, "payment 1")
	again := formOf(asked.body, "/bot/try")
	again.Set("text", "zzz "+hostileText())
	answer := p.submit("/bot/try", again)
	require.Contains(t, answer.body, "Cards are fine, Ann.", "the conversation stays")
	s.harmless("/bot/try", answer.body)
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.bot_logs`), "nothing is stored")

	fields[7] = "Cash only."
	require.Equal(t, http.StatusSeeOther, p.post("/bot/rules/payment/put", fields...).status)
	require.Contains(t, p.post("/bot/try", "text", "May I pay?").body, "Cash only.")
	require.Equal(t, http.StatusSeeOther, p.post("/bot/rules/payment/enable", "version", "1").status)
	require.Contains(t, p.post("/bot/try", "text", "May I pay?").body, "Cards are fine")
	bad := p.post("/bot/rules/payment/put", "intent", "kept "+hostile[1], "keywords", "x", "response_template", "", "max_turns", "0")
	require.Equal(t, http.StatusUnprocessableEntity, bad.status)
	require.Contains(t, bad.body, `value="kept &#34;`)
	viewer := s.member("viewer")
	require.NotContains(t, viewer.get("/bot/rules/payment").body, "Next version")
	require.Equal(t, http.StatusForbidden, viewer.post("/bot/rules/payment/put", fields...).status)
	require.Equal(t, http.StatusNotFound, p.get("/bot/rules/nothing").status)
}
