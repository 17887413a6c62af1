package autopost

import (
	"context"
	"time"
)

// Subscription is where and of what a platform tells a bot's owner by itself.
type Subscription struct {
	// URL is where updates are pushed to; "" for none.
	URL string `json:"url"`
	// Updates are the types that are pushed, by the platform's names.
	Updates []string `json:"updates"`
	// Error is why the last push failed that did, as far as the platform tells.
	Error string `json:"error,omitempty"`
	// ErrorAt is when that was, by the platform's clock.
	ErrorAt time.Time `json:"error_at,omitzero"`
}

// Subscriber is what an adapter may be besides: its platform pushes updates of bots
// to a webhook, POST /hooks/<platform>, and can be told to.
type Subscriber interface {
	// Updates are the types of updates that are worth having.
	Updates() []string
	// Subscription asks for the present subscription to url. It changes nothing. A
	// platform that has one subscription for a bot tells of that, whatever its URL.
	Subscription(ctx context.Context, secret Secret, url string) (Subscription, *Error)
	// Subscribe has the platform push to want.URL what want.Updates names, each request with
	// the hook's secret. Repeated, it replaces what was said before of this URL.
	Subscribe(ctx context.Context, secret Secret, want Subscription, hook Secret) *Error
}
