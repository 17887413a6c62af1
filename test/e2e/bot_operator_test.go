package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const operators = -900

// fromOperators is an update of the chat of the operators: the text is a reply to a message, or the press of a button.
func (s *botShop) fromOperators(platform, text, replyTo, press string) update {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	encode := func(object map[string]any) update {
		raw, _ := json.Marshal(object) // texts always have JSON
		return update{platform, string(raw)}
	}
	if platform == "telegram" {
		chat, from := map[string]any{"id": operators, "type": "group"}, map[string]any{"id": 9, "is_bot": false, "first_name": "Olga"}
		if press != "" {
			return encode(map[string]any{"update_id": s.serial, "callback_query": map[string]any{"id": fmt.Sprint("cb", s.serial), "data": press, "from": from, "message": map[string]any{"message_id": 1, "chat": chat}}})
		}
		return encode(map[string]any{"update_id": s.serial, "message": map[string]any{"message_id": 9000 + s.serial, "chat": chat, "from": from, "text": text,
			"reply_to_message": map[string]any{"message_id": json.RawMessage(replyTo)}}})
	}
	recipient, from := map[string]any{"chat_id": operators, "chat_type": "chat"}, map[string]any{"user_id": 9, "is_bot": false}
	if press != "" {
		return encode(map[string]any{"update_type": "message_callback", "timestamp": s.serial, "callback": map[string]any{"callback_id": fmt.Sprint("cb", s.serial), "payload": press, "user": from},
			"message": map[string]any{"recipient": recipient, "body": map[string]any{"mid": "mid.x", "text": "?"}}})
	}
	return encode(map[string]any{"update_type": "message_created", "timestamp": s.serial, "message": map[string]any{"recipient": recipient, "sender": from,
		"body": map[string]any{"mid": fmt.Sprint("mid.op.", s.serial), "text": text}, "link": map[string]any{"type": "reply", "message": map[string]any{"mid": replyTo}}}})
}

// A customer without a rule is handed to the operators: both sides read each other's words, the bot is silent, and the button or
// the end of the wait gives the customer back.
func TestACustomerIsHandedToOperatorsAndBack(t *testing.T) {
	t.Parallel()
	s := newBotShop(t)
	s.Exec(`update autopost.workspace_endpoints set meta = meta || '{"bot": {"fallback": "escalate", "operator_chat_id": "-900"}}' where kind = 'bot_webhook'`)
	s.World.MAX.AddChat(maxmessenger.Chat{ID: operators, Type: "chat", Access: maxmessenger.AccessAdmin})
	s.World.Telegram.AddChat(telegram.Chat{ID: operators, Type: "group", Access: telegram.AccessAdmin})
	d := s.Serve()
	for n, platform := range []string{"max", "telegram"} {
		chat := int64(6000 + n)
		s.dialog(chat)
		got := func(chat int64, count int) []string {
			s.quiet()
			require.Len(t, s.answers(platform, chat), count, "%s %d", platform, chat)
			return s.answers(platform, chat)
		}
		require.Equal(t, 200, s.send(t, d, s.says(platform, chat, "Где мой заказ из космоса?")))
		require.Equal(t, []string{"Передаю вопрос оператору. Он ответит здесь."}, got(chat, 1))
		copied := s.Accepted(sim.Filter{Platform: platform, Chat: fmt.Sprint(operators)})
		require.Len(t, copied, 1)
		require.Contains(t, copied[0].Text, fmt.Sprintf("Ann (%d): Где мой заказ из космоса?", chat))

		require.Equal(t, 200, s.send(t, d, s.fromOperators(platform, "Он в пути.", copied[0].MessageIDs[0], "")))
		require.Equal(t, "Он в пути.", got(chat, 2)[1])
		require.Equal(t, 200, s.send(t, d, s.says(platform, chat, "А доставка?")))
		got(chat, 2) // the bot is silent
		require.Contains(t, got(operators, 2)[1], "А доставка?")

		back := s.fromOperators(platform, "", "", copied[0].Buttons[0][0].Data)
		require.Equal(t, 200, s.send(t, d, back))
		require.Equal(t, 200, s.send(t, d, back), "the platform repeats it")
		require.Equal(t, "Снова отвечает бот. Чем помочь?", got(chat, 3)[2])
		require.Equal(t, 200, s.send(t, d, s.says(platform, chat, "доставка")))
		require.Contains(t, got(chat, 4)[3], "Доставляем")

		// The wait for an operator ends.
		require.Equal(t, 200, s.send(t, d, s.says(platform, chat, "абракадабра")))
		got(chat, 5)
		s.Exec(`update autopost.bot_state set expires_at = now() - interval '1 second' where chat_id = $1 and state = 'operator'`, fmt.Sprint(chat))
		require.Equal(t, 200, s.send(t, d, s.says(platform, chat, "гарантия")))
		require.Contains(t, got(chat, 6)[5], "Гарантия")
	}
	s.Verified()
}

// Platforms send updates in any order and repeat old ones. The bot answers each message once, in the order of arrival.
func TestTheShopBotTakesReorderedUpdates(t *testing.T) {
	t.Parallel()
	s := newBotShop(t)
	s.Exec(`select autopost.put_bot_rule('news', 'echo', '{"keywords": ["вопрос"], "priority": 50, "response_template": "Ответ: {text}"}', 'test', 'test', false)`)
	daemons := []*harness.Daemon{s.Serve(), s.ServeOnly("bot,ingest,web")}
	const dialogs, questions = 4, 6
	var running sync.WaitGroup
	want := make([][]string, dialogs)
	for n := range dialogs {
		platform, chat := []string{"max", "telegram"}[n%2], int64(7000+n)
		s.dialog(chat)
		random := rand.New(rand.NewPCG(11, uint64(n)))
		updates := []update{}
		for q := range questions {
			updates = append(updates, s.says(platform, chat, fmt.Sprint("вопрос ", q)))
		}
		order := random.Perm(questions)
		for _, q := range order {
			want[n] = append(want[n], fmt.Sprint("Ответ: вопрос ", q))
		}
		running.Go(func() {
			for k, q := range order {
				for _, at := range []int{q, order[random.IntN(k+1)]} { // a new one, then one that was there before
					if status := s.send(t, daemons[random.IntN(len(daemons))], updates[at]); status != http.StatusOK {
						t.Errorf("an update was answered %d", status)
					}
				}
			}
		})
	}
	running.Wait()
	s.quiet()
	for n := range dialogs {
		require.Equal(t, want[n], s.answers([]string{"max", "telegram"}[n%2], int64(7000+n)), "dialog %d", n)
		require.False(t, slices.IsSorted(want[n]), "the order is another one")
	}
	s.Verified()
}

// The monitor subscribes the bot to what it answers: messages and presses. A dropped subscription is made again.
func TestTheSubscriptionOfTheShopBotIsKept(t *testing.T) {
	t.Parallel()
	h, d, public, _, _ := subscribed(t)
	h.Exec(`select autopost.install_bot_examples('news', 'test', 'test')`)
	const dialog = 5001
	h.World.MAX.AddChat(maxmessenger.Chat{ID: dialog, Type: "dialog"})
	h.World.Telegram.AddChat(telegram.Chat{ID: dialog, Type: "private"})
	answers := func(platform, words string, count int) []sim.Entry {
		var got []sim.Entry
		h.Until(platform+" has an answer: "+words, func() bool {
			got = h.Accepted(sim.Filter{Platform: platform, Chat: fmt.Sprint(dialog)})
			return len(got) == count
		})
		require.Contains(t, got[count-1].Text, words)
		return got
	}
	h.World.MAX.Say(dialog, "доставка")
	h.World.Telegram.Say(dialog, "доставка")
	onMAX := answers("max", "Доставляем", 1)
	answers("telegram", "Доставляем", 1)
	_, err := h.World.MAX.Press(onMAX[0].MessageIDs[0], sim.Person{ID: dialog, Name: "Olga"}, "Оплата")
	require.NoError(t, err)
	answers("max", "Принимаем карты", 2)

	require.NoError(t, h.World.Pace.Set(0.00001))
	public.Close()
	h.World.MAX.Say(dialog, "lost")
	h.Until("MAX drops the subscription", func() bool {
		pushes := h.World.MAX.Pushes()
		return len(pushes) > 0 && pushes[len(pushes)-1].Status == http.StatusBadGateway
	})
	was := pgtest.Value[time.Time](h.DB, `select subscribed_at from autopost.bot_subscriptions where endpoint_id = 'max'`)
	h.UntilTrue(`select subscribed_at > $1 and why = 'it is missing' from autopost.bot_subscriptions where endpoint_id = 'max'`, was)
	public.Forward(d)
	h.World.MAX.Say(dialog, "гарантия")
	h.Until("the bot answers again", func() bool {
		got := h.Accepted(sim.Filter{Platform: "max", Chat: fmt.Sprint(dialog)})
		return strings.Contains(got[len(got)-1].Text, "Гарантия")
	})
	h.Verified()
}
