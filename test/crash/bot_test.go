package crash

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/failpoint"
	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
	"autopost/test/harness"
	"autopost/test/netfault"
)

// botPoints are the failpoints of the shop bot.
var botPoints = []failpoint.Point{failpoint.UpdateCommitted, failpoint.ReplyClaimed, failpoint.ReplyAccepted, failpoint.ReplyCommit}

const customers, questions = 4, 3

// The daemon dies at each failpoint of the shop bot and another one continues, while platforms repeat their updates. Each
// message is answered, in the order of its dialog, and an extra copy of an answer follows a recorded unknown outcome.
func TestTheShopBotIsKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	rounds := 1
	if os.Getenv("AUTOPOST_LONG") != "" {
		rounds = seeds
	}
	for n, point := range botPoints {
		for round := range rounds {
			t.Run(fmt.Sprintf("%s/%d", point, round), func(t *testing.T) {
				t.Parallel()
				killBot(t, point, rand.New(rand.NewPCG(seed, uint64(7000+100*n+round))))
			})
		}
	}
}

func killBot(t *testing.T, point failpoint.Point, random *rand.Rand) {
	h := harness.New(t, harness.WithFailpoints)
	botStation(h)
	order := fmt.Sprintf("AUTOPOST_FAILPOINT=%s:%d:%dus", point, 1+random.IntN(customers*questions), random.IntN(4000))
	t.Log(order)
	d := h.ServeUntilDeath(append(quick, order)...)
	var url atomic.Pointer[string]
	url.Store(&d.URL)
	asked := askAll(t, h, &url)
	require.True(t, d.Died(), "the point was not passed so often: %s", order)
	d = h.Serve(quick...)
	url.Store(&d.URL)
	asked.Wait()
	answeredInOrder(t, h)
	require.Zero(t, d.Stop())
	h.Verified()
}

// The line to the database or to the platforms fails while customers ask. Each message is answered, in the order of its
// dialog, and an extra copy of an answer follows a recorded unknown outcome.
func TestTheShopBotOnBadLines(t *testing.T) {
	t.Parallel()
	onBadLines(t, 20_000, []netfault.Kind{netfault.Deaf}, botOnBadLine)
}

func botOnBadLine(t *testing.T, kind netfault.Kind, side int, random *rand.Rand) {
	h := harness.New(t, harness.WithConnections(8))
	botStation(h)
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 40})
	database, platforms, variables := lines(t, h)
	d := h.Serve(append(variables, quick...)...)
	var url atomic.Pointer[string]
	url.Store(&d.URL)
	asked := askAll(t, h, &url)
	h.Until("answers go on", func() bool { return len(h.Accepted(sim.Filter{})) >= 1+random.IntN(customers) })
	trouble(t, []*netfault.Proxy{database, platforms}[side], kind, random)
	asked.Wait()
	answeredInOrder(t, h)
	require.Zero(t, d.Stop())
	h.Verified()
}

// botStation adds the webhooks of a bot on both platforms and a rule that repeats each question.
func botStation(h *harness.Harness) {
	station(h, 2, harness.Channel{})
	h.Exec(`update autopost.platforms set settle_seconds = 0`)
	for _, platform := range []string{"telegram", "max"} {
		h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps, meta)
			values ('news', $1, 'bot_webhook', encode(sha256(convert_to('secret-' || $1, 'UTF8')), 'hex'), 1000, jsonb_build_object('auth_ref', $1))`, platform)
	}
	h.Exec(`select autopost.put_bot_rule('news', 'echo', '{"keywords": ["question"], "response_template": "Answer to {text}"}', 'test', 'test', false)`)
}

// askAll lets all customers ask.
func askAll(t *testing.T, h *harness.Harness, url *atomic.Pointer[string]) *sync.WaitGroup {
	var asking sync.WaitGroup
	for n := range customers {
		asking.Go(func() { ask(t, h, url, n) })
	}
	return &asking
}

// answeredInOrder waits until all questions are answered and judges the answers that the platforms accepted.
func answeredInOrder(t *testing.T, h *harness.Harness) {
	h.UntilTrue(`select count(*) filter (where status = 'sent') = $1 from autopost.bot_outbox`, customers*questions)
	extra := 0
	for n := range customers {
		platform, chat := customer(n)
		first, copies := []string{}, map[string]int{}
		for _, e := range h.Accepted(sim.Filter{Platform: platform, Chat: chat}) {
			if copies[e.Text]++; copies[e.Text] == 1 {
				first = append(first, e.Text)
			}
		}
		want := []string{}
		for q := range questions {
			text := fmt.Sprintf("Answer to question %d", q)
			want = append(want, text)
			unknown := pgtest.Value[int](h.DB, `select unknown_outcomes from autopost.bot_outbox where provider = $1 and chat_id = $2 and rendered_text = $3`, platform, chat, text)
			require.LessOrEqual(t, copies[text], 1+unknown, "%s %s: %s", platform, chat, text)
			extra += copies[text] - 1
		}
		require.Equal(t, want, first, "%s %s", platform, chat)
	}
	t.Logf("%d extra copies", extra)
}

// customer returns the platform and the dialog of customer n.
func customer(n int) (platform, chat string) {
	return []string{"telegram", "max"}[n%2], strconv.Itoa(5000 + n)
}

// ask sends the questions of customer n one after the other, each until it is acknowledged and once more.
func ask(t *testing.T, h *harness.Harness, url *atomic.Pointer[string], n int) {
	platform, chat := customer(n)
	h.World.Telegram.AddChat(telegram.Chat{ID: int64(5000 + n), Type: "private"})
	h.World.MAX.AddChat(maxmessenger.Chat{ID: int64(5000 + n), Type: "dialog"})
	header := map[string]string{"telegram": "X-Telegram-Bot-Api-Secret-Token", "max": "X-Max-Bot-Api-Secret"}[platform]
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for q := range questions {
		id := 10*n + q + 1
		body := fmt.Sprintf(`{"update_id": %d, "message": {"message_id": %[1]d, "text": "question %[2]d", "chat": {"id": %[3]s, "type": "private"}, "from": {"id": 7}}}`, id, q, chat)
		if platform == "max" {
			body = fmt.Sprintf(`{"update_type": "message_created", "timestamp": %d, "message": {"recipient": {"chat_id": %[3]s, "chat_type": "dialog"},
				"body": {"mid": "mid.in.%[1]d", "text": "question %[2]d"}, "sender": {"user_id": 7}}}`, id, q, chat)
		}
		for acknowledged := 0; acknowledged < 2 && t.Context().Err() == nil; {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *url.Load()+"/hooks/"+platform, strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set(header, "secret-"+platform)
			if response, err := (&http.Client{Timeout: wait.Bound}).Do(request); err == nil {
				_ = response.Body.Close()
				if response.StatusCode == http.StatusOK {
					acknowledged++
					continue
				}
			}
			<-pause.C
		}
	}
}
