package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
)

// botSecret is the secret of the bot's endpoint in db/seed.sql.
const botSecret = "demo-bot-secret"

// talk is a conversation with the example rules: a question, a return in three steps, another question.
var talk = []struct{ said, answer string }{
	{"Сколько стоит доставка?", "Доставляем по России"},
	{"Хочу вернуть чайник", "Напишите номер заказа"},
	{"12345", "Почему вы его возвращаете?"},
	{"не подошёл цвет", "заказ 12345, причина: не подошёл цвет"},
	{"Какая гарантия?", "12 месяцев"},
}

// conversation asks the shop bot as a customer of MAX does. MAX sends one update twice.
func (d *demo) conversation(ctx context.Context) (string, error) {
	chat := time.Now().UnixMilli() // a dialog of this run
	d.sims.MAX.AddChat(maxmessenger.Chat{ID: chat, Type: "dialog"})
	filter := sim.Filter{Platform: "max", Chat: fmt.Sprint(chat)}
	sent := func() []sim.Entry { return d.sims.Log.Entries(filter) }
	for n, line := range talk {
		began := time.Now()
		if err := d.customerSays(ctx, chat, n, line.said); err != nil {
			return "", err
		}
		if n == len(talk)-2 { // MAX sends it again; the answer to the last question comes right after the first copy
			if err := d.customerSays(ctx, chat, n, line.said); err != nil {
				return "", err
			}
		}
		if err := await(ctx, "the bot answers", func(context.Context) (bool, error) { return len(sent()) > n, nil }); err != nil {
			return "", err
		}
		answer := sent()[n].Text
		d.report.clock(began, "customer: %s", line.said)
		d.report.clock(time.Now(), "bot: %s", answer)
		if !strings.Contains(answer, line.answer) {
			return "", fmt.Errorf("the bot answered %q, not %q", answer, line.answer)
		}
	}
	if n := len(sent()); n != len(talk) {
		return "", fmt.Errorf("the customer has %d answers, not %d", n, len(talk))
	}
	return fmt.Sprintf("%d messages, %d answers in their order; a repeated update changed nothing", len(talk), len(talk)), nil
}

// customerSays sends the update of MAX for message n of a customer.
func (d *demo) customerSays(ctx context.Context, chat int64, n int, text string) error {
	body, err := json.Marshal(map[string]any{
		"update_type": "message_created", "timestamp": time.Now().UnixMilli(), "user_locale": "ru", "message": map[string]any{
			"recipient": map[string]any{"chat_id": chat, "chat_type": "dialog"}, "sender": map[string]any{"user_id": 7001, "first_name": "Анна", "is_bot": false},
			"body": map[string]any{"mid": fmt.Sprintf("mid.%s.%d", d.run, n), "text": text},
		},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.daemon.Addr()+"/hooks/max", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	request.Header.Set("X-Max-Bot-Api-Secret", botSecret)
	request.Header.Set("Content-Type", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return fmt.Errorf("send an update: %w", err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("an update was answered %d", response.StatusCode)
	}
	return nil
}
