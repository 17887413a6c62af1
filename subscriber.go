package autopost

import (
	"context"
	"encoding/json"
	"time"
)

// Subscription is a webhook subscription of a bot.
type Subscription struct {
	// URL receives the updates; "" if there is no subscription.
	URL string `json:"url"`
	// Updates are the platform's names of the update types that are sent.
	Updates []string `json:"updates"`
	// Error is the reason of the last failed delivery, if the platform states it.
	Error string `json:"error,omitempty"`
	// ErrorAt is the time of that failure, by the platform's clock.
	ErrorAt time.Time `json:"error_at,omitzero"`
}

// Subscriber is optional for an adapter: its platform sends updates of bots to a webhook, POST
// /hooks/<platform>, that can be set by the API.
type Subscriber interface {
	// Updates lists the update types that autopost needs.
	Updates() []string
	// Subscription returns the present subscription for url. It changes nothing. A platform with one
	// subscription per bot returns that one, whatever its URL.
	Subscription(ctx context.Context, secret Secret, url string) (Subscription, *Error)
	// Subscribe makes the platform send the types want.Updates to want.URL, each request with the
	// secret hook. It replaces an earlier subscription of the URL.
	Subscribe(ctx context.Context, secret Secret, want Subscription, hook Secret) *Error
}

// Poller is optional for an adapter: it reads the updates that wait for a bot without a subscription.
type Poller interface {
	// Poll returns a page of waiting updates, oldest first, and does not wait for new ones. after is "" for the first
	// page. A next that is not "" is the after of another page; the platform then forgets the pages before it.
	Poll(ctx context.Context, secret Secret, after string) (updates []json.RawMessage, next string, failure *Error)
}
