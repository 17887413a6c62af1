package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// botShop is a newsroom with bots of two platforms, the example rules and dialogs with customers. The tests send the updates:
// they repeat and reorder them as platforms do.
type botShop struct {
	*harness.Harness

	mu     sync.Mutex
	serial int
}

func newBotShop(t *testing.T, options ...harness.Option) *botShop {
	t.Helper()
	h, _, _ := newsroom(t, options...)
	for _, platform := range []string{"telegram", "max"} {
		h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps, meta)
			values ('news', $1, 'bot_webhook', encode(sha256(convert_to('secret-' || $1, 'UTF8')), 'hex'), 1000, jsonb_build_object('auth_ref', $1))`, platform)
	}
	h.Exec(`select autopost.install_bot_examples('news', 'test', 'test')`)
	return &botShop{Harness: h}
}

// dialog adds a dialog with a customer on both platforms.
func (s *botShop) dialog(chat int64) {
	s.World.MAX.AddChat(maxmessenger.Chat{ID: chat, Type: "dialog"})
	s.World.Telegram.AddChat(telegram.Chat{ID: chat, Type: "private"})
}

// update is what a platform sends.
type update struct{ platform, body string }

// says is the update for a message of a customer.
func (s *botShop) says(platform string, chat int64, text string) update {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	if platform == "telegram" {
		return update{platform, fmt.Sprintf(`{"update_id": %d, "message": {"message_id": %[1]d, "date": 1795000000, "text": %[2]q, "chat": {"id": %[3]d, "type": "private"},
			"from": {"id": %[3]d, "is_bot": false, "first_name": "Ann", "language_code": "ru"}}}`, s.serial, text, chat)}
	}
	return update{platform, fmt.Sprintf(`{"update_type": "message_created", "timestamp": %d, "user_locale": "ru", "message": {"recipient": {"chat_id": %d, "chat_type": "dialog"},
		"body": {"mid": "mid.in.%[1]d", "seq": %[1]d, "text": %[3]q}, "sender": {"user_id": %[2]d, "first_name": "Ann", "is_bot": false}}}`, s.serial, chat, text)}
}

// send delivers an update and returns the status of the answer; 0 without one.
func (s *botShop) send(t *testing.T, d *harness.Daemon, u update) int {
	header := map[string]string{"telegram": "X-Telegram-Bot-Api-Secret-Token", "max": "X-Max-Bot-Api-Secret"}[u.platform]
	return post(t, d.URL+"/hooks/"+u.platform, header, "secret-"+u.platform, u.body)
}

func post(t *testing.T, url, header, secret, body string) int {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0
	}
	request.Header.Set(header, secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// answers are the texts that a chat got, in order.
func (s *botShop) answers(platform string, chat int64) []string {
	texts := []string{}
	for _, e := range s.Accepted(sim.Filter{Platform: platform, Chat: strconv.FormatInt(chat, 10)}) {
		texts = append(texts, e.Text)
	}
	return texts
}

// quiet waits until the bot has nothing to say.
func (s *botShop) quiet() {
	s.UntilTrue(`select not exists (select 1 from autopost.bot_outbox where status in ('pending', 'sending', 'retry'))
		and not exists (select 1 from autopost.bot_inbox where status = 'received')`)
}

// questions and the answers of the example rules.
var talk = []struct{ said, answer string }{
	{"Сколько стоит ДОСТАВКА?", "Доставляем по России за 2–5 дней, от 3000 ₽ бесплатно. Самовывоз — в день заказа."},
	{"Как оплатить?", "Принимаем карты, СБП и наличные при получении."},
	{"Хочу вернуть чайник", "Вернуть товар можно в течение 14 дней. Напишите номер заказа."},
	{"12345", "Заказ 12345. Почему вы его возвращаете?"},
	{"мал", "Заявка принята: заказ 12345, причина: мал. Принесите товар и чек в любой наш магазин или отправьте почтой."},
	{"Какая гарантия?", "Гарантия на все товары — 12 месяцев. Сохраните чек."},
	{"Ваш телефон", "Мы на связи с 9 до 21 часа: shop@example.org, Москва, Примерная улица, 1."},
	{"абракадабра", "Я не понял вопрос. Напишите, пожалуйста, другими словами."},
}

// Two daemons get each update three times at once, from many customers at the same time: every customer gets each answer
// once, in the order of her questions.
func TestTheShopBotAnswersEachMessageOnce(t *testing.T) {
	t.Parallel()
	s := newBotShop(t)
	daemons := []*harness.Daemon{s.Serve(), s.ServeOnly("bot,ingest,web")}
	const customers = 6
	var running sync.WaitGroup
	for n := range customers {
		chat := int64(1000 + n)
		s.dialog(chat)
		for _, platform := range []string{"max", "telegram"} {
			running.Go(func() {
				for _, line := range talk {
					u := s.says(platform, chat, line.said)
					var repeats sync.WaitGroup
					for k := range 3 {
						repeats.Go(func() {
							if status := s.send(t, daemons[k%len(daemons)], u); status != http.StatusOK {
								t.Errorf("an update was answered %d", status)
							}
						})
					}
					repeats.Wait()
				}
			})
		}
	}
	running.Wait()
	s.quiet()
	want := []string{}
	for _, line := range talk {
		want = append(want, line.answer)
	}
	for n := range customers {
		for platform, rate := range map[string]float64{"max": 2, "telegram": 1} {
			chat := int64(1000 + n)
			require.Equal(t, want, s.answers(platform, chat), "%s %d", platform, chat)
			for _, e := range s.Sends(sim.Filter{Platform: platform, Chat: strconv.FormatInt(chat, 10)}) {
				require.True(t, e.Accepted, "more than %v a second: %s", rate, e.Reason)
			}
		}
	}
	require.Equal(t, 2*customers*len(talk), pgtest.Value[int](s.DB, `select count(*)::int from autopost.events where action = 'bot_replied' and result = 'ok'`))
	sent := 0.0
	for _, d := range daemons {
		for name, value := range s.Metrics(d.URL) {
			if strings.HasPrefix(name, "autopost_bot_replies_total{") && strings.Contains(name, `outcome="sent"`) {
				sent += value
			}
		}
	}
	require.InDelta(t, 2*customers*len(talk), sent, 0, "the counters of the daemons")
	s.Verified()
}

// Rate limits, failures and lost answers of the platform: no reply is lost, none overtakes another, and a second copy comes
// only after a recorded unknown outcome. A paused workspace receives, and answers later.
func TestTheShopBotSurvivesItsPlatform(t *testing.T) {
	t.Parallel()
	s := newBotShop(t)
	s.Exec(`update autopost.platforms set settle_seconds = 1 where platform = 'max'`)
	d := s.Serve()
	for chat := range int64(6) {
		s.dialog(2000 + chat)
	}
	s.Fault(sim.Fault{Platform: "max", Chat: "2000", From: 1, To: 1, Effect: sim.EffectStatus, Status: 429, Code: "too.many.requests"})
	s.Fault(sim.Fault{Platform: "max", Chat: "2001", From: 1, To: 2, Effect: sim.EffectStatus, Status: 503, Code: "service.unavailable"})
	s.Fault(sim.Fault{Platform: "max", Method: "POST /messages", Chat: "2002", From: 2, To: 2, Effect: sim.EffectAcceptThenDrop})
	s.Fault(sim.Fault{Platform: "max", Method: "POST /messages", Chat: "2003", From: 1, To: 1, Effect: sim.EffectReset})
	s.Fault(sim.Fault{Platform: "max", Chat: "2004", Effect: sim.EffectStatus, Status: 403, Code: "chat.denied", To: 1, From: 1})
	for chat := range int64(6) {
		for _, line := range talk[:4] {
			require.Equal(t, 200, s.send(t, d, s.says("max", 2000+chat, line.said)))
		}
	}
	s.quiet()
	want := []string{}
	for _, line := range talk[:4] {
		want = append(want, line.answer)
	}
	for chat := range int64(6) {
		got := s.answers("max", 2000+chat)
		switch chat {
		case 4:
			require.Equal(t, want[1:], got, "a refused reply lets the next go")
		default:
			require.Equal(t, want, got, "chat %d: the platform is asked before a reply is repeated", chat)
		}
	}
	require.Equal(t, 2, pgtest.Value[int](s.DB, `select sum(unknown_outcomes)::int from autopost.bot_outbox`))

	s.Exec(`select autopost.set_workspace_status('news', 'paused', 'o', 'r', false)`)
	require.Equal(t, 200, s.send(t, d, s.says("max", 2005, "абракадабра")))
	require.Equal(t, "processed", pgtest.Value[string](s.DB, `select status from autopost.bot_inbox where chat_id = '2005' order by ts desc limit 1`))
	require.Len(t, s.answers("max", 2005), 4, "a paused workspace sends nothing")
	s.Exec(`select autopost.set_workspace_status('news', 'active', 'o', 'r', false)`)
	s.quiet()
	require.Len(t, s.answers("max", 2005), 5)
	s.Verified()
}

// Forged, oversized, malformed and foreign updates get a clear answer, and nothing of them is stored.
func TestTheShopBotRefusesWhatIsNotForIt(t *testing.T) {
	t.Parallel()
	s := newBotShop(t)
	s.Workspace("other")
	d := s.Serve()
	fine := s.says("max", 3000, "доставка").body
	for _, c := range []struct {
		name, path, header, secret, body string
		status                           int
	}{
		{"forged", "max", "X-Max-Bot-Api-Secret", "guess", fine, 401},
		{"no secret", "max", "X-Max-Bot-Api-Secret", "", fine, 401},
		{"of the other platform", "telegram", "X-Telegram-Bot-Api-Secret-Token", "secret-max", fine, 401},
		{"a push secret", "max", "X-Max-Bot-Api-Secret", "secret-cms", fine, 401},
		{"not JSON", "max", "X-Max-Bot-Api-Secret", "secret-max", `{"update_type":`, 400},
		{"an array", "max", "X-Max-Bot-Api-Secret", "secret-max", `[` + fine + `]`, 400},
		{"oversized", "max", "X-Max-Bot-Api-Secret", "secret-max", `{"text": "` + strings.Repeat("x", 1<<20) + `"}`, 413},
	} {
		require.Equal(t, c.status, post(t, d.URL+"/hooks/"+c.path, c.header, c.secret, c.body), c.name)
	}
	require.Zero(t, pgtest.Value[int](s.DB, `select (select count(*) from autopost.bot_inbox)::int + (select count(*) from autopost.bot_updates)::int`))
	require.Equal(t, 1, events(s.Harness, "ingress_payload_rejected"))
	// What is stored is answered at once; what names another workspace is of this one.
	require.Equal(t, 200, post(t, d.URL+"/hooks/max?workspace_id=other", "X-Max-Bot-Api-Secret", "secret-max", strings.Replace(fine, `{"update_type"`, `{"workspace_id": "other", "update_type"`, 1)))
	s.dialog(3000)
	s.quiet()
	require.Equal(t, "news", pgtest.Value[string](s.DB, `select string_agg(distinct workspace_id, ',') from autopost.bot_inbox`))
	s.Verified()
}

// A pressed button is answered, and its payload is a message.
func TestTheShopBotTakesPressedButtons(t *testing.T) {
	t.Parallel()
	s := newBotShop(t)
	d := s.Serve()
	s.dialog(4000)
	require.Equal(t, 200, s.send(t, d, s.says("max", 4000, "доставка")))
	s.Until("the bot answers", func() bool { return len(s.answers("max", 4000)) == 1 })
	buttons := s.Accepted(sim.Filter{Chat: "4000"})[0].Buttons
	require.Equal(t, "Оплата", buttons[0][0].Text)
	press := fmt.Sprintf(`{"update_type": "message_callback", "timestamp": 1795000001000, "user_locale": "ru", "callback": {"callback_id": "cb-1", "payload": %q, "user": {"user_id": 4000}},
		"message": {"recipient": {"chat_id": 4000, "chat_type": "dialog"}, "body": {"mid": "mid.x", "text": "?"}, "sender": {"user_id": 1, "is_bot": true}}}`, buttons[0][0].Data)
	require.Equal(t, 200, s.send(t, d, update{"max", press}))
	s.Until("the bot answers the press", func() bool { return len(s.answers("max", 4000)) == 2 })
	require.Equal(t, "Принимаем карты, СБП и наличные при получении.", s.answers("max", 4000)[1])
	s.Until("the press is ended", func() bool { return len(s.World.Log.Entries(sim.Filter{Method: "POST /answers"})) == 1 })
	s.Verified()
}
