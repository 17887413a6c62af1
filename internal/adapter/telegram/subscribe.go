package telegram

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"autopost"
)

// Updates implements autopost.Subscriber: changes of the rights of the bot, messages, their edits and pressed buttons.
func (*Adapter) Updates() []string {
	return []string{"message", "edited_message", "channel_post", "callback_query", "my_chat_member"}
}

// Subscription implements autopost.Subscriber with getWebhookInfo. A bot has one webhook.
func (a *Adapter) Subscription(ctx context.Context, secret autopost.Secret, _ string) (autopost.Subscription, *autopost.Error) {
	var info struct {
		URL              string   `json:"url"`
		AllowedUpdates   []string `json:"allowed_updates"`
		LastErrorDate    int64    `json:"last_error_date"`
		LastErrorMessage string   `json:"last_error_message"`
	}
	if failure := a.checker(secret).ask(ctx, "getWebhookInfo", nil, &info); failure != nil {
		return autopost.Subscription{}, failure
	}
	s := autopost.Subscription{URL: info.URL, Updates: info.AllowedUpdates, Error: info.LastErrorMessage}
	if info.LastErrorDate > 0 {
		s.ErrorAt = time.Unix(info.LastErrorDate, 0).UTC()
	}
	return s, nil
}

// Subscribe implements autopost.Subscriber with setWebhook. Telegram then pushes the waiting updates.
func (a *Adapter) Subscribe(ctx context.Context, secret autopost.Secret, want autopost.Subscription, hook autopost.Secret) *autopost.Error {
	updates, err := json.Marshal(want.Updates)
	if err != nil {
		panic("telegram: encode a list of strings: " + err.Error())
	}
	return a.checker(secret, hook).post(ctx, "setWebhook", url.Values{
		"url": {want.URL}, "allowed_updates": {string(updates)}, "secret_token": {hook.Reveal()},
	})
}

// mostUpdates is the largest page of getUpdates.
const mostUpdates = 100

// Poll implements autopost.Poller with getUpdates. Only an offset after a full page confirms updates, so that a later
// webhook gets the others.
func (a *Adapter) Poll(ctx context.Context, secret autopost.Secret, after string) (updates []json.RawMessage, next string, failure *autopost.Error) {
	query := url.Values{"limit": {strconv.Itoa(mostUpdates)}, "timeout": {"0"}}
	if after != "" {
		query.Set("offset", after)
	}
	if failure := a.checker(secret).ask(ctx, "getUpdates", query, &updates); failure != nil || len(updates) < mostUpdates {
		return updates, "", failure
	}
	var last struct {
		UpdateID int64 `json:"update_id"`
	}
	if json.Unmarshal(updates[len(updates)-1], &last) != nil || last.UpdateID == 0 {
		return updates, "", nil
	}
	return updates, strconv.FormatInt(last.UpdateID+1, 10), nil
}

var (
	_ autopost.Subscriber = (*Adapter)(nil)
	_ autopost.Poller     = (*Adapter)(nil)
)
