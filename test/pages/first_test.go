package pages

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const (
	// botToken and maxBotToken are those of bots that the simulators know and no workspace has.
	botToken    = "7002002:AAcanaryFirstRunToken"
	maxBotToken = "canary-first-run-max-token"
	newsChat    = -1_001_777_000_001
)

// bare is a daemon with an empty database, and simulated bots.
func bare(t *testing.T) *site {
	t.Helper()
	s := &site{Harness: harness.New(t), t: t, ids: map[string]string{}}
	require.NoError(t, s.World.Telegram.AddBot(botToken))
	require.NoError(t, s.World.MAX.AddBot(maxBotToken))
	s.begin()
	return s
}

// begin starts the daemon and reads the link of the first person.
func (s *site) begin(extra ...string) {
	s.t.Helper()
	d := s.Serve(extra...)
	s.url, s.log = d.URL, d.Log
	s.Until("the first link is printed", func() bool { return printedLink.MatchString(d.Log()) })
	s.link = printedLink.FindStringSubmatch(d.Log())[1]
}

// joinChat makes the bots administrators of a channel, as a person does in the app.
func (s *site) joinChat(id int64, title string) {
	s.World.Telegram.AddChat(telegram.Chat{ID: id, Title: title, Access: telegram.AccessNone})
	s.World.Telegram.SetAccess(id, telegram.AccessAdmin)
}

var shownFault = regexp.MustCompile(`(?s)(?:note fail|c-fail)[^>]*>(.*?)</p>`)

// faults are what a page says is wrong.
func faults(a answer) []string { return shownFault.FindAllString(a.body, -1) }

// From an empty database to the arrived post, by the forms of the pages alone and without script.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	s := bare(t)
	p := s.person()
	joined := p.post(s.link, "email", ann, "name", "Ann", "workspace", "news", "password", password)
	require.Equal(t, "/setup", joined.header.Get("Location"), joined.body)
	require.Contains(t, p.get("/setup").body, "Connect a bot")

	refused := p.post("/setup/first/bot", "platform", "telegram", "secret", "7009009:AAunknownTokenOfNobody00000000000000")
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.body, "does not accept the secret")
	require.NotContains(t, refused.body, "AAunknownToken", "a secret is not sent back")
	require.Contains(t, p.post("/setup/first/bot", "platform", "telegram", "secret", "").body, "The secret is missing")
	require.Contains(t, p.post("/setup/credentials/test", "platform", "telegram", "secret", botToken).body, "The token works: @")
	require.Contains(t, p.post("/setup/credentials/test", "platform", "telegram", "secret", "x").body, "does not accept it")
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.credential_bindings`))

	require.Equal(t, http.StatusSeeOther, p.post("/setup/first/bot", "platform", "telegram", "secret", botToken).status)
	require.Equal(t, []string{"telegram sealed"}, pgtest.Column[string](s.DB, `select platform || ' ' || split_part(secret_ref, ':', 1) from autopost.credential_bindings`))
	require.Contains(t, p.get("/setup/first").body, "No chat yet")

	s.joinChat(newsChat, "Северные новости")
	s.Until("the chat is found", func() bool {
		return regexp.MustCompile(`type="checkbox"[^>]*value="-1001777000001"`).MatchString(p.get("/setup/first").body)
	})
	s.World.Telegram.AddChat(telegram.Chat{ID: newsChat - 1, Title: "No right", Access: telegram.AccessNone})
	s.World.Telegram.SetAccess(newsChat-1, telegram.AccessReadOnly)
	s.Until("a chat without a right is shown with its reason", func() bool {
		return regexp.MustCompile(`(?s)No right.*may not post messages`).MatchString(p.get("/setup/first").body)
	})
	require.NotContains(t, p.get("/setup/first").body, `value="-1001777000002"`)

	require.Contains(t, p.post("/setup/first/chats").body, "No chat is picked")
	require.Contains(t, p.post("/setup/first/chats", "chat", " ").body, "No chat is picked")
	require.Equal(t, http.StatusSeeOther, p.post("/setup/first/chats", "target", strconv.Itoa(newsChat)).status)
	require.Equal(t, []string{"северные-новости -1001777000001"}, pgtest.Column[string](s.DB, `select channel_id || ' ' || target_id from autopost.channels`))

	require.Contains(t, p.get("/setup").body, "Write the first post")
	empty := p.post("/setup/first/post", "text", " ", "channel", "северные-новости")
	require.Equal(t, http.StatusUnprocessableEntity, empty.status)
	require.Contains(t, empty.body, "The text is missing")
	require.Contains(t, p.post("/setup/first/post", "text", "Kept text").body, "Kept text", "what a person wrote stays")
	posted := p.post("/setup/first/post", "text", "Hello from the first run", "channel", "северные-новости")
	require.Equal(t, http.StatusSeeOther, posted.status, faults(posted))
	at := posted.header.Get("Location")
	s.Until("the post has arrived", func() bool { return regexp.MustCompile(`Arrived at`).MatchString(p.get(at).body) })
	sends := s.Accepted(sim.Filter{Platform: telegram.Platform, Method: "sendMessage"})
	require.Len(t, sends, 1, "judged by the log of the platform")
	require.Equal(t, "Hello from the first run", sends[0].Text)
	require.NotContains(t, p.get("/setup").body, "First post in four steps", "the steps are over")
	require.Equal(t, http.StatusSeeOther, p.get("/setup/first").status)
	require.NotContains(t, s.log(), botToken)
}

// A bot of MAX and a pasted id work, too; other roles see no steps.
func TestFirstRunWithMAXAndAPastedChat(t *testing.T) {
	t.Parallel()
	s := bare(t)
	p := s.person()
	require.Equal(t, http.StatusSeeOther, p.post(s.link, "email", ann, "name", "Ann", "workspace", "news", "password", password).status)
	require.Equal(t, http.StatusSeeOther, p.post("/setup/first/bot", "platform", "max", "secret", maxBotToken).status)
	s.World.MAX.AddChat(maxmessenger.Chat{ID: -7700, Title: "Группа", Type: "chat", Access: maxmessenger.AccessNone})
	s.World.MAX.SetAccess(-7700, maxmessenger.AccessAdmin)
	s.Until("the chat is found", func() bool { return regexp.MustCompile(`value="-7700"`).MatchString(p.get("/setup/first").body) })
	s.World.MAX.AddChat(maxmessenger.Chat{ID: -7701, Title: "Канал"})
	require.Equal(t, http.StatusSeeOther, p.post("/setup/first/chats", "chat", "-7701").status)
	require.Equal(t, "-7701", pgtest.Value[string](s.DB, `select target_id from autopost.channels`))
	viewer := s.member("viewer")
	require.NotContains(t, viewer.get("/setup").body, "Connect a bot")
	require.Equal(t, http.StatusForbidden, viewer.get("/setup/first").status)
	require.Equal(t, http.StatusForbidden, viewer.post("/setup/first/bot", "platform", "telegram", "secret", botToken).status)
}
