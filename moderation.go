package autopost

import "context"

// ModerationKind is the kind of a call to a chat in which people decide about posts.
type ModerationKind string

// The kinds of calls to a chat in which people decide.
const (
	// ModerationAsk sends a message with buttons.
	ModerationAsk ModerationKind = "ask"
	// ModerationClose changes a message: it shows the decision and has no buttons.
	ModerationClose ModerationKind = "close"
	// ModerationAnswer answers the person who pressed a button.
	ModerationAnswer ModerationKind = "answer"
)

// ModerationCall is a call to a chat in which people decide about posts, with a lease.
type ModerationCall struct {
	Kind ModerationKind `json:"kind"`
	// ID is the same in each retry.
	ID    string `json:"id"`
	Token string `json:"token"`
	// ChatID is the name of the chat; "" for an answer.
	ChatID   string   `json:"chat_id"`
	Platform Platform `json:"platform"`
	AuthRef  string   `json:"auth_ref"`
	// TargetID is the chat on the platform; "" for an answer.
	TargetID string `json:"target_id"`
	// Text is plain and within the limit of the platform.
	Text string `json:"text"`
	// Buttons are the buttons of an ask.
	Buttons []PressButton `json:"buttons"`
	// ProviderIDs are the messages of a close. There are several after a send with an unknown outcome.
	ProviderIDs []string `json:"provider_ids"`
	// CallbackID identifies the press of an answer.
	CallbackID string `json:"callback_id"`
}

// PressButton is a button that reports who pressed it.
type PressButton struct {
	Text string `json:"text"`
	// Data comes back with the press. Telegram takes 64 bytes.
	Data string `json:"data"`
}

// PressAnswerer is optional for an adapter: its platform reports pressed buttons, and shows an answer to
// the person.
type PressAnswerer interface {
	// AnswerPress shows a text of up to 200 characters to the person of a press. A repeated call does no harm.
	AnswerPress(ctx context.Context, secret Secret, callbackID, text string) *Error
}
