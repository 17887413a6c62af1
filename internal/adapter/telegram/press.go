package telegram

import (
	"context"
	"net/url"

	"autopost"
)

// AnswerPress implements autopost.PressAnswerer with answerCallbackQuery. Telegram shows the text for a few seconds.
func (a *Adapter) AnswerPress(ctx context.Context, secret autopost.Secret, callbackID, text string) *autopost.Error {
	return a.checker(secret).post(ctx, "answerCallbackQuery", url.Values{"callback_query_id": {callbackID}, "text": {text}})
}

var _ autopost.PressAnswerer = (*Adapter)(nil)
