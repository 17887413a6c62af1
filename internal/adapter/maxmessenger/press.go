package maxmessenger

import (
	"context"
	"net/http"
	"net/url"

	"autopost"
)

// pressAnswer is the body of POST /answers. It shows the notification once.
type pressAnswer struct {
	Notification string `json:"notification"`
}

// AnswerPress implements autopost.PressAnswerer with POST /answers.
func (a *Adapter) AnswerPress(ctx context.Context, secret autopost.Secret, callbackID, text string) *autopost.Error {
	c := a.checker(secret)
	if failure := c.usable(); failure != nil {
		return failure
	}
	return c.change(ctx, http.MethodPost, "answers", url.Values{"callback_id": {callbackID}}, pressAnswer{text})
}

var _ autopost.PressAnswerer = (*Adapter)(nil)
