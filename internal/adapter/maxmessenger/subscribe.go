package maxmessenger

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"autopost"
)

// Updates implements autopost.Subscriber: messages, pressed buttons, titles of chats, and chats that the
// bot enters or leaves.
func (*Adapter) Updates() []string {
	return []string{"message_created", "message_edited", "message_callback", "bot_added", "bot_removed", "bot_started", "bot_stopped", "chat_title_changed"}
}

// Subscription implements autopost.Subscriber with GET /subscriptions. A bot may have several; those
// with another URL are ignored.
func (a *Adapter) Subscription(ctx context.Context, secret autopost.Secret, url string) (autopost.Subscription, *autopost.Error) {
	c := a.checker(secret)
	if failure := c.usable(); failure != nil {
		return autopost.Subscription{}, failure
	}
	var list struct {
		Subscriptions []struct {
			URL         string   `json:"url"`
			UpdateTypes []string `json:"update_types"`
		} `json:"subscriptions"`
	}
	if failure := c.ask(ctx, &list, nil, "subscriptions"); failure != nil {
		return autopost.Subscription{}, failure
	}
	for _, s := range list.Subscriptions {
		if s.URL == url {
			return autopost.Subscription{URL: s.URL, Updates: s.UpdateTypes}, nil
		}
	}
	return autopost.Subscription{}, nil
}

// Subscribe implements autopost.Subscriber with POST /subscriptions.
func (a *Adapter) Subscribe(ctx context.Context, secret autopost.Secret, want autopost.Subscription, hook autopost.Secret) *autopost.Error {
	c := a.checker(secret, hook)
	if failure := c.usable(); failure != nil {
		return failure
	}
	body, err := json.Marshal(map[string]any{"url": want.URL, "update_types": want.Updates, "secret": hook.Reveal()})
	if err != nil {
		panic("max: encode strings: " + err.Error())
	}
	req, failure := c.request(ctx, http.MethodPost, "subscriptions", nil, bytes.NewReader(body))
	if failure != nil {
		return failure
	}
	req.Header.Set("Content-Type", "application/json")
	return c.decode(req, new(any))
}

// mostUpdates is the largest page of GET /updates.
const mostUpdates = 1000

// Poll implements autopost.Poller with GET /updates. Only the marker after a full page confirms updates.
func (a *Adapter) Poll(ctx context.Context, secret autopost.Secret, after string) (updates []json.RawMessage, next string, failure *autopost.Error) {
	c := a.checker(secret)
	if failure := c.usable(); failure != nil {
		return nil, "", failure
	}
	query := url.Values{"limit": {strconv.Itoa(mostUpdates)}, "timeout": {"0"}}
	if after != "" {
		query.Set("marker", after)
	}
	var page struct {
		Updates []json.RawMessage `json:"updates"`
		Marker  *int64            `json:"marker"`
	}
	if failure := c.ask(ctx, &page, query, "updates"); failure != nil {
		return nil, "", failure
	}
	if len(page.Updates) == mostUpdates && page.Marker != nil {
		next = strconv.FormatInt(*page.Marker, 10)
	}
	return page.Updates, next, nil
}

var (
	_ autopost.Subscriber = (*Adapter)(nil)
	_ autopost.Poller     = (*Adapter)(nil)
)
