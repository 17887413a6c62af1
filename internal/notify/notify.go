// Package notify sends alerts to operators: to a Telegram or MAX chat through the adapters for posts, by mail, or to a
// webhook that is signed by the specification of Standard Webhooks. It sends each notice once; SQL decides about
// retries. In the same way it calls the chats in which people decide about posts.
package notify

import (
	"context"
	"errors"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/outbound"
)

// Kinds of targets that are not platforms of adapters.
const (
	Email   = "email"
	Webhook = "webhook"
)

// SMTP is the platform of the credentials of mail servers.
const SMTP autopost.Platform = "smtp"

// Credentials resolves the credentials of targets.
type Credentials interface {
	Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error)
}

// Config is what a Notifier works with.
type Config struct {
	Credentials Credentials
	// Adapters send to chats.
	Adapters map[autopost.Platform]autopost.Adapter
	// Client calls webhooks. Tenants choose the addresses, so it must guard the private network.
	Client adapter.Doer
	// Mail is the mail server; nil if none is configured.
	Mail *Mail
}

// Notifier sends notices. It is safe for concurrent use.
type Notifier struct{ cfg Config }

// New makes a Notifier without effect.
func New(cfg Config) *Notifier { return &Notifier{cfg} }

// Send sends a notice once. The error is data; nil means that the notice was sent.
func (n *Notifier) Send(ctx context.Context, workspace string, m autopost.Notice) *autopost.Error {
	secret, failure := n.secret(ctx, workspace, m)
	if failure != nil {
		return failure
	}
	switch m.Kind {
	case Email:
		if n.cfg.Mail == nil {
			return refused("smtp_not_configured", "no mail server is configured: set AUTOPOST_SMTP_URL and AUTOPOST_SMTP_FROM, and restart the daemon")
		}
		return n.cfg.Mail.send(ctx, m, secret)
	case Webhook:
		return n.call(ctx, m, secret)
	}
	return n.post(ctx, workspace, m, secret)
}

// secret returns the credential of the target; a zero secret if it needs none.
func (n *Notifier) secret(ctx context.Context, workspace string, m autopost.Notice) (autopost.Secret, *autopost.Error) {
	if m.AuthRef == "" {
		return autopost.Secret{}, nil
	}
	platform := autopost.Platform(m.Kind)
	if m.Kind == Email {
		platform = SMTP
	}
	secret, err := n.cfg.Credentials.Credential(ctx, workspace, m.AuthRef, platform)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return secret, adapter.Refusal(autopost.Transient, autopost.ScopeChannel, adapter.CodeNotStarted, "no time was left")
	case err != nil:
		return secret, adapter.Refusal(autopost.Transient, autopost.ScopeChannel, autopost.CodeCredentialUnavailable, err.Error())
	}
	return secret, nil
}

// post sends a text to a chat, like a post of one step.
func (n *Notifier) post(ctx context.Context, workspace string, m autopost.Notice, secret autopost.Secret) *autopost.Error {
	target, ok := n.cfg.Adapters[autopost.Platform(m.Kind)]
	if !ok {
		return refused("target_kind_unknown", "this version does not support targets of kind "+m.Kind)
	}
	return target.Send(ctx, textCall(workspace, m, secret)).Error
}

// call sends to a webhook. A failure that the receiver reports is definite, whatever its status: a retry has the same
// id.
func (n *Notifier) call(ctx context.Context, m autopost.Notice, secret autopost.Secret) *autopost.Error {
	if secret.IsZero() {
		return refused(autopost.CodeCredentialMissing, "the target has no signing secret")
	}
	key, err := outbound.ReadSigningKey(secret)
	if err != nil {
		return refused("webhook_secret_invalid", err.Error())
	}
	req, err := outbound.SignedRequest(ctx, m.Address, m.MessageID, m.Body, key)
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
