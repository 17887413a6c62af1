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

var (
	olga = sim.Person{ID: 5001, Name: "Olga"}
	ivan = sim.Person{ID: 6002, Name: "Ivan"}
)

// The chats of the moderators.
const (
	telegramMods = -1_000_000_007_777
	maxMods      = -7777
)

// moderated is a newsroom whose posts wait for a decision of two chats.
func moderated(t *testing.T) (h *harness.Harness, d *harness.Daemon, public *harness.PublicAddress) {
	t.Helper()
	h, _, _ = newsroom(t)
	public = h.PublicAddress()
	h.World.Telegram.AddChat(telegram.Chat{ID: telegramMods, Type: "supergroup", Title: "Moderators"})
	h.World.MAX.AddChat(maxmessenger.Chat{ID: maxMods, Type: "chat", Title: "Moderators"})
	for _, platform := range []string{"telegram", "max"} {
		ok(t, h, "endpoint", "add", platform, "--kind", platform, "--auth-ref", platform, because)
	}
	h.Exec(`update autopost.settings set value = '1' where key in ('subscription_check_seconds', 'alert_lease_seconds')`)
	h.Exec(`update autopost.workspace_endpoints set moderated = true where endpoint_id = 'cms'`)
	ok(t, h, "moderation", "chat", "add", "tg", "--auth-ref", "telegram", "--target-id", strconv.Itoa(telegramMods), because)
	ok(t, h, "moderation", "chat", "add", "mx", "--auth-ref", "max", "--target-id", strconv.Itoa(maxMods), because)
	d = h.Serve("AUTOPOST_PUBLIC_URL="+public.URL, each)
	public.Forward(d)
	h.UntilTrue(`select count(*) = 2 from autopost.bot_subscriptions where subscribed_at is not null`)
	return h, d, public
}

// askedInChats waits for the n-th message in both chats and returns the last ones.
func askedInChats(h *harness.Harness, n int) (tg telegram.Message, mx maxmessenger.Message) {
	h.Until("both chats are asked", func() bool {
		return len(h.World.Telegram.Messages(telegramMods)) >= n && len(h.World.MAX.Messages(maxMods)) >= n
	})
	return h.World.Telegram.Messages(telegramMods)[n-1], h.World.MAX.Messages(maxMods)[n-1]
}

// closedInChats waits until no message in the chats has buttons, and returns the last texts.
func closedInChats(h *harness.Harness) (tg, mx string) {
	h.Until("no message has buttons", func() bool {
		for _, m := range h.World.Telegram.Messages(telegramMods) {
			if len(m.Buttons) > 0 {
				return false
			}
			tg = m.Text
		}
		for _, m := range h.World.MAX.Messages(maxMods) {
			if len(m.Buttons) > 0 {
				return false
			}
			mx = m.Text
		}
		return true
	})
	return tg, mx
}

// pressAnswer waits for the answer to a press and returns it.
func pressAnswer(h *harness.Harness, press string) string {
	text := ""
	h.Until("the press is answered", func() bool {
		for _, method := range []string{"answerCallbackQuery", "POST /answers"} {
			for _, e := range h.World.Log.Entries(sim.Filter{Method: method}) {
				if e.ReplyTo == press && e.Accepted {
					text = e.Text
					return true
				}
			}
		}
		return false
	})
	return text
}

// Two people press different buttons in two chats at once: one decides, the other learns who did.
func TestTwoPressesAreOneDecision(t *testing.T) {
	t.Parallel()
	h, d, public := moderated(t)
	h.Serve("AUTOPOST_PUBLIC_URL="+public.URL, each) // a second daemon asks nobody twice
	began := time.Now()
	h.Push(d, "secret-cms", harness.Post("text", "Sale **today**"))
	tg, mx := askedInChats(h, 1)
	t.Logf("both chats are asked after %s", time.Since(began))
	for _, text := range []string{tg.Text, mx.Text} {
		require.Contains(t, text, "A post of workspace news waits for a decision.")
		require.Contains(t, text, "Channels: on-max, on-telegram")
		require.Contains(t, text, "Sale **today**")
		require.Regexp(t, `Expires: \d{4}-\d\d-\d\d \d\d:\d\d UTC`, text)
	}
	require.Equal(t, []string{"Approve", "Reject"}, []string{tg.Buttons[0][0].Text, tg.Buttons[0][1].Text})
	require.Len(t, tg.Buttons[0][0].Data, 24, "m: and a nonce")
	began = time.Now()
	approve, err := h.World.Telegram.Press(telegramMods, tg.ID, olga, "Approve")
	require.NoError(t, err)
	reject, err := h.World.MAX.Press(mx.Mid, ivan, "Reject")
	require.NoError(t, err)
	answers := []string{pressAnswer(h, approve), pressAnswer(h, reject)}
	first, second := "Approved", "Rejected"
	if answers[1] == "Rejected." {
		answers[0], answers[1] = answers[1], answers[0]
		first, second = second, first
	}
	require.Equal(t, first+".", answers[0])
	require.Regexp(t, "^"+first+` by (Olga|Ivan) \((telegram:user:5001|max:user:6002)\) on .* UTC`, answers[1], "the second person learns it, not %s", second)
	onTelegram, onMAX := closedInChats(h)
	t.Logf("both chats show the decision after %s", time.Since(began))
	require.Regexp(t, "^"+first+" by", onTelegram)
	require.Regexp(t, "^"+first+" by", onMAX)
	require.Len(t, h.World.Telegram.Messages(telegramMods), 1)
	require.Len(t, h.World.MAX.Messages(maxMods), 1)
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.approvals`))
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.admin_audit_log where action in ('approve_submission', 'reject_submission')`))
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.admin_audit_log where action = 'press_refused'`))
	if first == "Approved" {
		h.Drained("news")
	}
	h.Verified()
}

// Each way of a decision shows in the chats. An edit asks again, and the old buttons are refused.
func TestChatsShowEveryDecision(t *testing.T) {
	t.Parallel()
	h, d, _ := moderated(t)
	id := func() string {
		return pgtest.Value[string](h.DB, `select submission_id::text from autopost.submissions where status = 'pending'`)
	}
	h.Push(d, "secret-cms", harness.Post("text", "First"))
	old, _ := askedInChats(h, 1)
	ok(t, h, "moderation", "edit", id(), "--text", "Second", because)
	h.Until("the old message is closed", func() bool { return len(h.World.Telegram.Messages(telegramMods)[0].Buttons) == 0 })
	require.Contains(t, h.World.Telegram.Messages(telegramMods)[0].Text, "A new message asks again.")
	again, err := h.World.Telegram.PressAgain(telegramMods, old.ID, olga, old.Buttons[0][0].Data)
	require.NoError(t, err)
	require.Contains(t, pressAnswer(h, again), "changed since this message")
	require.NotEmpty(t, id(), "it still waits")
	askedInChats(h, 2)
	ok(t, h, "moderation", "reject", id(), "--reason", "off topic")
	tg, mx := closedInChats(h)
	for _, text := range []string{tg, mx} {
		require.Regexp(t, `^Rejected by .* on .* UTC \(command\)\. Reason: off topic`, text)
		require.Contains(t, text, "Second")
	}
	// A person who is not listed, and the expiry.
	ok(t, h, "moderation", "chat", "set", "tg", "--users", "5001", because)
	h.Push(d, "secret-cms", harness.Post("text", "Third"))
	third, _ := askedInChats(h, 3)
	other, err := h.World.Telegram.Press(telegramMods, third.ID, ivan, "Approve")
	require.NoError(t, err)
	require.Contains(t, pressAnswer(h, other), "You may not decide here.")
	require.Contains(t, ok(t, h, "audit", "list"), "press_refused")
	h.Exec(`update autopost.submissions set expires_at = now() where status = 'pending'`)
	tg, _ = closedInChats(h)
	require.Regexp(t, `^Expired on .* UTC without a decision`, tg)
	require.Contains(t, ok(t, h, "moderation", "chat", "list"), "any member")
	h.Verified()
}

// A press survives the death of the daemon, before it is stored and before it is answered.
func TestAPressOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	h, d, public := moderated(t)
	h.Push(d, "secret-cms", harness.Post("text", "Hello"))
	tg, _ := askedInChats(h, 1)
	// A message whose id is not recorded keeps its buttons until a press on it.
	h.UntilTrue(`select count(*) = 2 from autopost.moderation_messages where status = 'open' and provider_ids <> '{}'`)
	require.NoError(t, h.World.Pace.Set(0.01))
	h.Fault(sim.Fault{Method: "answerCallbackQuery", Effect: sim.EffectHang, To: 1})
	public.Close()
	press, err := h.World.Telegram.Press(telegramMods, tg.ID, olga, "Approve")
	require.NoError(t, err)
	h.Until("the update is refused", func() bool {
		pushes := h.World.Telegram.Pushes()
		return len(pushes) > 0 && pushes[len(pushes)-1].Status == http.StatusBadGateway
	})
	d.Kill()
	d = h.Serve("AUTOPOST_PUBLIC_URL="+public.URL, each)
	public.Forward(d)
	require.NoError(t, h.World.Pace.Set(1)) // a start of the daemon may take longer than a scaled press can be answered
	h.UntilTrue(`select status = 'enqueued' from autopost.submissions`)
	h.Until("the answer hangs", func() bool { return len(h.World.Log.Entries(sim.Filter{Method: "answerCallbackQuery"})) == 1 })
	d.Kill()
	h.Serve("AUTOPOST_PUBLIC_URL="+public.URL, each)
	require.Equal(t, "Approved.", pressAnswer(h, press))
	onTelegram, onMAX := closedInChats(h)
	require.Regexp(t, "^Approved by Olga", onTelegram)
	require.Regexp(t, "^Approved by Olga", onMAX)
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.approvals`))
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.moderation_presses`))
	h.Verified()
}

// After an unknown outcome the chat has two copies. The one without a known id loses its buttons with a press.
func TestALostCopyClosesAfterItsPress(t *testing.T) {
	t.Parallel()
	h, d, _ := moderated(t)
	h.Fault(sim.Fault{Platform: "telegram", Chat: strconv.Itoa(telegramMods), Method: "sendMessage", Effect: sim.EffectAcceptThenDrop, To: 1})
	h.Push(d, "secret-cms", harness.Post("text", "Twice"))
	askedInChats(h, 1)
	h.Until("it is sent once more", func() bool { return len(h.World.Telegram.Messages(telegramMods)) == 2 })
	h.UntilTrue(`select count(*) = 2 from autopost.moderation_messages where status = 'open'`)
	ok(t, h, "moderation", "reject", pgtest.Value[string](h.DB, `select submission_id::text from autopost.submissions`), "--reason", "off topic")
	h.Until("the known copy shows it", func() bool { return len(h.World.Telegram.Messages(telegramMods)[1].Buttons) == 0 })
	lost := h.World.Telegram.Messages(telegramMods)[0]
	require.NotEmpty(t, lost.Buttons)
	press, err := h.World.Telegram.Press(telegramMods, lost.ID, olga, "Approve")
	require.NoError(t, err)
	require.Regexp(t, "^Rejected by", pressAnswer(h, press))
	closedInChats(h)
	require.Regexp(t, "^Rejected by", h.World.Telegram.Messages(telegramMods)[0].Text)
	require.Len(t, h.World.Telegram.Messages(telegramMods), 2)
	h.Verified()
}

// Many posts keep the rate of the chat and its length of texts. A stated wait is kept.
func TestManyPostsKeepTheRateOfTheChat(t *testing.T) {
	t.Parallel()
	h, d, _ := moderated(t)
	h.World.Telegram.SetLimits(telegram.DefaultLimits())
	h.World.MAX.SetLimits(maxmessenger.DefaultLimits())
	chat := strconv.Itoa(telegramMods)
	h.Fault(sim.Fault{Platform: "telegram", Chat: chat, Method: "sendMessage", Effect: sim.EffectStatus, Status: 429, RetryAfter: 2, From: 2, To: 2})
	posts := make([]string, 8)
	for n := range posts {
		posts[n] = harness.Post("text", fmt.Sprint("Post ", n, " ", strings.Repeat("🙂 word ", 490)))
	}
	h.Push(d, "secret-cms", "["+strings.Join(posts, ",")+"]")
	h.Until("MAX is asked", func() bool { return len(h.World.MAX.Messages(maxMods)) == len(posts) })
	h.Until("Telegram is asked", func() bool { return len(h.World.Telegram.Messages(telegramMods)) == len(posts) })
	var refused []sim.Entry
	sends := h.Sends(sim.Filter{Chat: chat})
	for i, e := range sends {
		if e.Status == http.StatusTooManyRequests {
			refused = append(refused, e)
			require.GreaterOrEqual(t, sends[i+1].Start.Sub(e.Start), 2*time.Second, "the wait of the platform is kept")
		}
	}
	require.Len(t, refused, 1, "only the scripted one")
	for _, e := range h.Sends(sim.Filter{Chat: strconv.Itoa(maxMods)}) {
		require.Equal(t, http.StatusOK, e.Status)
	}
	for _, m := range h.World.Telegram.Messages(telegramMods) {
		require.LessOrEqual(t, len([]rune(m.Text)), 4096)
		require.True(t, strings.HasSuffix(m.Text, "…"), m.Text[len(m.Text)-30:])
	}
	h.Verified()
}

// doctor names what keeps people from deciding in a chat.
func TestDoctorNamesWhyAChatCannotDecide(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	added := h.Run(nil, "moderation", "chat", "add", "mods", "--auth-ref", "telegram", "--target-id=-100777", because)
	require.Zero(t, added.Code, added.Stderr)
	require.Contains(t, added.Stderr, "no press can arrive: no endpoint gets the updates of telegram: autopost endpoint add NAME --kind telegram")
	require.Contains(t, added.Stderr, "AUTOPOST_PUBLIC_URL is not set")
	doctor := h.Run(nil, "doctor")
	require.Equal(t, 1, doctor.Code)
	require.Contains(t, doctor.Stdout, "moderation chat news/mods")
	require.Contains(t, doctor.Stdout, "no endpoint gets the updates")
	wrong := h.Run(nil, "moderation", "chat", "set", "mods", "--users", "olga", because)
	require.Equal(t, 1, wrong.Code)
	require.Contains(t, wrong.Stderr, "users must hold numeric ids of people, got \"olga\"")
	exported := ok(t, h, "config", "export")
	require.Contains(t, exported, "moderation_chats:")
	h.File("autopost.yaml", strings.ReplaceAll(exported, "-100777", "-100778"))
	ok(t, h, "config", "apply", "autopost.yaml", "--yes", because)
	require.Equal(t, "-100778", pgtest.Value[string](h.DB, `select target_id from autopost.moderation_chats`))
	ok(t, h, "moderation", "chat", "remove", "mods", because)
	require.Contains(t, ok(t, h, "moderation", "chat", "list"), "autopost moderation chat add")
}
