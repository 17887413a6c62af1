// Package notify sends messages about the house itself to people: to a Telegram or
// MAX chat through the adapters that send posts, by mail, or to a webhook that is
// signed by the specification of Standard Webhooks. Each is sent once; whether to try
// again is decided in SQL.
package notify

import (
	"context"
	"encoding/json"
	"errors"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/outbound/signed"
)

// The kinds of targets, besides the platforms of the adapters.
const (
	Email   = "email"
	Webhook = "webhook"
)

// SMTP is the platform that credentials of mail servers are bound for.
const SMTP autopost.Platform = "smtp"

// Message is what one target is to be told.
type Message struct {
	WorkspaceID string
	// ID is the same in each repetition.
	ID string
	// Kind is telegram, max, email or webhook.
	Kind string
	// Address is a chat, a mail address or an https address.
	Address string
	// AuthRef names the credential; "" where none is needed.
	AuthRef string
	Subject string
	Text    string
	// Body says the same for programs, a JSON object.
	Body json.RawMessage
}

// Credentials gives the secrets that targets name.
type Credentials interface {
	Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error)
}

// Config is what a Notifier works with.
type Config struct {
	Credentials Credentials
	// Adapters speak to chats.
	Adapters map[autopost.Platform]autopost.Adapter
	// Client calls webhooks. The addresses are tenants' own, so it is to guard them.
	Client adapter.Doer
	// Mail is the mail server; nil where there is none.
	Mail *Mail
}

// Notifier sends messages. It is safe for concurrent use.
type Notifier struct{ cfg Config }

// New makes a Notifier without effect.
func New(cfg Config) *Notifier { return &Notifier{cfg} }

// Send sends one message; the error is data, nil when it went out.
func (n *Notifier) Send(ctx context.Context, m Message) *autopost.Error {
	secret, failure := n.secret(ctx, m)
	if failure != nil {
		return failure
	}
	switch m.Kind {
	case Email:
		if n.cfg.Mail == nil {
			return refused("smtp_not_configured", "there is no mail server: set AUTOPOST_SMTP_URL and AUTOPOST_SMTP_FROM, and restart the daemon")
		}
		return n.cfg.Mail.send(ctx, m, secret)
	case Webhook:
		return n.call(ctx, m, secret)
	}
	return n.say(ctx, m, secret)
}

// secret is that of the message's target, zero where it needs none.
func (n *Notifier) secret(ctx context.Context, m Message) (autopost.Secret, *autopost.Error) {
	if m.AuthRef == "" {
		return autopost.Secret{}, nil
	}
	platform := autopost.Platform(m.Kind)
	if m.Kind == Email {
		platform = SMTP
	}
	secret, err := n.cfg.Credentials.Credential(ctx, m.WorkspaceID, m.AuthRef, platform)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return secret, adapter.Refusal(autopost.Transient, autopost.ScopeChannel, adapter.CodeNotStarted, "there was no time left")
	case err != nil:
		return secret, adapter.Refusal(autopost.Transient, autopost.ScopeChannel, autopost.CodeCredentialUnavailable, err.Error())
	}
	return secret, nil
}

// say sends a text to a chat, as the adapter would a post of one step.
func (n *Notifier) say(ctx context.Context, m Message, secret autopost.Secret) *autopost.Error {
	speaker, ok := n.cfg.Adapters[autopost.Platform(m.Kind)]
	if !ok {
		return refused("target_kind_unknown", "this version knows no targets of kind "+m.Kind)
	}
	goOn := func(context.Context) error { return nil }
	return speaker.Send(ctx, autopost.Call{
		Delivery: autopost.Delivery{
			WorkspaceID: m.WorkspaceID, DeliveryID: m.ID, Platform: speaker.Platform(), TargetID: m.Address, AuthRef: m.AuthRef, RenderedText: m.Text,
			RenderMeta: autopost.RenderMeta{DisablePreview: true, Steps: []autopost.Step{{Name: "text", Text: true}}},
		},
		Secret: secret,
		Emit:   func(ctx context.Context, _ autopost.Acknowledged) error { return goOn(ctx) },
		Renew:  goOn,
	}).Error
}

// call tells a webhook. A failure that it states is definite, whatever its number:
// it knows a repetition by its id.
func (n *Notifier) call(ctx context.Context, m Message, secret autopost.Secret) *autopost.Error {
	if secret.IsZero() {
		return refused(autopost.CodeCredentialMissing, "there is no signing secret")
	}
	key, err := signed.ReadKey(secret)
	if err != nil {
		return refused("webhook_secret_invalid", err.Error())
	}
	req, err := signed.Request(ctx, m.Address, m.ID, m.Body, key)
	if err != nil {
		return refused("webhook_target_invalid", "no request can be made for the address")
	}
	hide := adapter.Hide(secret)
	answer, failure := adapter.Exchange(n.cfg.Client, req, hide)
	if failure != nil || answer.Status < 300 {
		return failure
	}
	return adapter.Classify(nil, "webhook", answer.Status, "").Error(answer, "the receiver refuses the call", hide)
}

func refused(code, message string) *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, code, message)
}
