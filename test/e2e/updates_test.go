package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// subscribed is a newsroom with bots that send their updates.
func subscribed(t *testing.T) (h *harness.Harness, d *harness.Daemon, public *harness.PublicAddress, chat, other string) {
	t.Helper()
	h, chat, other = newsroom(t)
	public = h.PublicAddress()
	for _, platform := range []string{"telegram", "max"} {
		require.Contains(t, ok(t, h, "endpoint", "add", platform, "--kind", platform, "--auth-ref", platform, because), "secret, not shown again")
	}
	h.Exec(`update autopost.settings set value = '1' where key = 'subscription_check_seconds'`)
	d = h.Serve("AUTOPOST_PUBLIC_URL="+public.URL, "MONITOR_INTERVAL_SECONDS=1")
	public.Forward(d)
	h.UntilTrue(`select count(*) = 2 from autopost.bot_subscriptions where subscribed_at is not null`)
	return h, d, public, chat, other
}

func number(t *testing.T, chat string) int64 {
	t.Helper()
	id, err := strconv.ParseInt(chat, 10, 64)
	require.NoError(t, err)
	return id
}

// A bot that is removed pauses its channel before anything is sent in vain; what
// waits goes in order, and within the rate, when the bot has its rights again.
func TestAChannelWaitsForTheRightsOfItsBot(t *testing.T) {
	t.Parallel()
	h, d, _, chat, other := subscribed(t)
	h.Exec(`update autopost.channels set rate_rps = 20 where channel_id = 'on-telegram'`)
	h.World.Telegram.SetAccess(number(t, chat), telegram.AccessKicked)
	h.UntilTrue(`select rights_held is not null and paused_until > now() from autopost.channels where channel_id = 'on-telegram'`)
	for n := range 5 {
		h.Push(d, "secret-cms", harness.Post("text", fmt.Sprint("Post ", n)))
	}
	h.Until("the other channel has them", func() bool { return len(h.Accepted(sim.Filter{Chat: other})) == 5 })
	require.Empty(t, h.Sends(sim.Filter{Chat: chat}), "nothing is tried in vain")
	require.Regexp(t, "add (it|the bot)", ok(t, h, "chat", "list"), "the first update of the platform counts")

	h.World.Telegram.SetAccess(number(t, chat), telegram.AccessAdmin)
	h.Until("what waited is sent", func() bool { return len(h.Accepted(sim.Filter{Chat: chat})) == 5 })
	sends := h.Sends(sim.Filter{Chat: chat})
	require.Len(t, sends, 5)
	for n, send := range sends {
		require.Equal(t, fmt.Sprint("Post ", n), send.Text)
	}
	h.WithinRate("the channel", sends, 20)
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.alerts where ended_at is null`))
	h.Verified()
}

// MAX reports that a bot was added, but not its rights. The engine asks for them.
func TestRightsOnMAXAreAsked(t *testing.T) {
	t.Parallel()
	h, _, _, _, other := subscribed(t)
	held := `select rights_held is not null from autopost.channels where channel_id = 'on-max'`
	h.World.MAX.SetAccess(number(t, other), maxmessenger.AccessNone)
	h.UntilTrue(held)
	h.World.MAX.SetAccess(number(t, other), maxmessenger.AccessReadOnly)
	h.UntilTrue(`select reason like '%may not write%' from autopost.discovered_chats where target_id = $1`, other)
	require.True(t, pgtest.Value[bool](h.DB, held), "a bot that may only read does not resume the channel")
	h.World.MAX.SetAccess(number(t, other), maxmessenger.AccessAdmin)
	h.UntilTrue(`select rights_held is null and paused_until is null from autopost.channels where channel_id = 'on-max'`)
	h.Verified()
}

// A subscription that was dropped is made again, and what happened meanwhile is noticed.
func TestADroppedSubscriptionIsRestored(t *testing.T) {
	t.Parallel()
	h, d, public, _, _ := subscribed(t)
	require.NoError(t, h.World.Pace.Set(0.00001))
	public.Close()
	h.World.MAX.Rename(-1, "nobody's")
	h.World.MAX.AddChat(maxmessenger.Chat{ID: -5, Title: "New one"})
	h.World.MAX.Rename(-5, "New name")
	h.Until("MAX drops the subscription", func() bool {
		pushes := h.World.MAX.Pushes()
		return len(pushes) > 0 && pushes[len(pushes)-1].Status == http.StatusBadGateway
	})
	was := pgtest.Value[time.Time](h.DB, `select subscribed_at from autopost.bot_subscriptions where endpoint_id = 'max'`)
	h.UntilTrue(`select subscribed_at > $1 and why = 'it is missing' from autopost.bot_subscriptions where endpoint_id = 'max'`, was)
	public.Forward(d)
	h.World.MAX.Rename(-5, "Newest name")
	h.UntilTrue(`select title = 'Newest name' from autopost.discovered_chats where target_id = '-5'`)
	require.Contains(t, d.Log(), `"msg":"monitor.subscribed"`)
	h.Verified()
}

// While the database is away, the answer asks the platform to retry. An update is accepted once;
// forged and repeated ones change nothing.
func TestUpdatesAreAcceptedOnce(t *testing.T) {
	t.Parallel()
	h, d, _, chat, _ := subscribed(t)
	update := `{"update_id":1,"my_chat_member":{"chat":{"id":` + chat + `,"type":"channel"},"date":1,"new_chat_member":{"status":"kicked"}}}`
	for _, secret := range []string{"", "guessed"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/hooks/telegram", strings.NewReader(update))
		require.NoError(t, err)
		request.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, 401, response.StatusCode)
	}
	h.Exec(`alter table autopost.bot_updates rename to bot_updates_away`)
	require.NoError(t, h.World.Pace.Set(0.01))
	h.World.Telegram.SetAccess(number(t, chat), telegram.AccessKicked)
	h.Until("Telegram is asked to retry", func() bool {
		pushes := h.World.Telegram.Pushes()
		return len(pushes) > 0 && pushes[len(pushes)-1].Status == http.StatusServiceUnavailable
	})
	h.Exec(`alter table autopost.bot_updates_away rename to bot_updates`)
	h.UntilTrue(`select rights_held is not null from autopost.channels where channel_id = 'on-telegram'`)
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.bot_updates where kind = 'my_chat_member'`))
	h.Verified()
}

// An endpoint of a bot is that of a credential of its platform.
func TestAnEndpointOfABotNamesIt(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--auth-ref", []string{"--kind", "telegram"}},
		{"unknown credential nobody", []string{"--kind", "telegram", "--auth-ref", "nobody"}},
		{"unknown credential max of platform telegram", []string{"--kind", "telegram", "--auth-ref", "max"}},
		{"--kind telegram or max", []string{"--auth-ref", "max"}},
		{"--meta", []string{"--kind", "max", "--auth-ref", "max", "--meta", "[]"}},
	} {
		result := h.Run(nil, append([]string{"endpoint", "add", "bot", because}, c.args...)...)
		require.Equal(t, 2, result.Code, "%v: %s", c.args, result.Stderr)
		require.Contains(t, result.Stderr, c.says)
	}
	result := h.Run(nil, "endpoint", "add", "bot", "--kind", "max", "--auth-ref", "max", "--meta", `{"owner": "olga"}`, because)
	require.Zero(t, result.Code, result.Stderr)
	require.Contains(t, result.Stderr, "AUTOPOST_PUBLIC_URL")
	require.JSONEq(t, `{"auth_ref": "max", "owner": "olga"}`, pgtest.Value[string](h.DB, `select meta::text from autopost.workspace_endpoints where endpoint_id = 'bot'`))
	require.Equal(t, 100.0, pgtest.Value[float64](h.DB, `select ingress_rps::float8 from autopost.workspace_endpoints where endpoint_id = 'bot'`))
}

// A chat that a bot was added to is found, and can be made a channel.
func TestAChatIsFoundAndBecomesAChannel(t *testing.T) {
	t.Parallel()
	h, d, _, chat, _ := subscribed(t)
	h.World.Telegram.AddChat(telegram.Chat{ID: -1007, Title: "Demo shop", Access: telegram.AccessNone})
	h.World.Telegram.SetAccess(-1007, telegram.AccessAdmin)
	h.Until("the chat is found", func() bool { return strings.Contains(ok(t, h, "chat", "list"), "Demo shop") })
	chats := items[struct {
		TargetID string   `json:"target_id"`
		MayPost  *bool    `json:"may_post"`
		Channels []string `json:"channel_ids"`
	}](t, ok(t, h, "channel", "discover", "--json"))
	require.Len(t, chats, 1, "what is a channel already, as %s, is left out", chat)
	require.Equal(t, "-1007", chats[0].TargetID)
	require.True(t, *chats[0].MayPost)
	nowhere := h.Run(nil, "channel", "add", "nowhere", "--chat", "-1008", because)
	require.Equal(t, 1, nowhere.Code)
	require.Contains(t, nowhere.Stderr, "autopost chat list")
	h.World.Telegram.AddChat(telegram.Chat{ID: -1009, Title: "Read only", Access: telegram.AccessNone})
	h.World.Telegram.SetAccess(-1009, telegram.AccessReadOnly)
	h.UntilTrue(`select not may_post from autopost.discovered_chats where target_id = '-1009'`)
	early := h.Run(nil, "channel", "add", "early", "--chat", "-1009", "--enabled=false", because)
	require.Zero(t, early.Code, early.Stderr)
	require.Contains(t, early.Stderr, "that right")
	ok(t, h, "channel", "add", "shop", "--chat", "-1007", because)
	h.Push(d, "secret-cms", harness.Post("text", "Hello"))
	h.Until("it is posted to", func() bool { return len(h.Accepted(sim.Filter{Chat: "-1007"})) == 1 })
	require.NotContains(t, ok(t, h, "channel", "discover"), "Demo shop")
}
