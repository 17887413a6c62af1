package monitor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"autopost"
)

// Credentials resolves the tokens of bots.
type Credentials interface {
	Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error)
}

// Bots is what the duty for bots works with.
type Bots struct {
	Credentials Credentials
	// Adapters may also implement autopost.Subscriber and autopost.Checker.
	Adapters map[autopost.Platform]autopost.Adapter
	// PublicURL is the address of this installation for platforms, such as "https://autopost.example.org". If it is
	// "", no bot is subscribed.
	PublicURL string
}

const (
	// botsPerSweep bounds the endpoints, and the chats, of a workspace in one sweep.
	botsPerSweep = 100
	// platformTimeout bounds the calls for one endpoint or chat.
	platformTimeout = 30 * time.Second
)

// checkBots subscribes bots to the updates of their platforms, and asks for their rights in chats.
func (m *Monitor) checkBots(ctx context.Context) error {
	subscribed, err := 0, error(nil)
	if m.deps.Bots.PublicURL != "" {
		subscribed, err = m.sweep(ctx, "list due subscriptions", func(query context.Context, workspace string) (int, error) {
			due, err := m.deps.Store.ListDueSubscriptions(query, workspace, botsPerSweep)
			return m.each(ctx, workspace, len(due), func(ctx context.Context, i int) (bool, error) { return m.subscribe(ctx, workspace, due[i]) }), err
		})
	}
	asked, chatsErr := m.sweep(ctx, "list unasked chats", func(query context.Context, workspace string) (int, error) {
		chats, err := m.deps.Store.ListUnaskedChats(query, workspace, botsPerSweep)
		return m.each(ctx, workspace, len(chats), func(ctx context.Context, i int) (bool, error) { return m.askRights(ctx, workspace, chats[i]) }), err
	})
	m.done(subscribed+asked > 0, "monitor.bots", "subscribed", subscribed, "asked", asked)
	return errors.Join(err, chatsErr)
}

// each calls one n times and counts the changes. A failure is logged and does not stop the others.
func (m *Monitor) each(ctx context.Context, workspace string, n int, one func(ctx context.Context, i int) (bool, error)) (did int) {
	for i := range n {
		limited, cancel := context.WithTimeout(ctx, platformTimeout)
		done, err := one(limited, i)
		cancel()
		if err != nil && ctx.Err() == nil {
			m.deps.Log.Warn("monitor.bot_not_kept", "workspace_id", workspace, "error", err)
		}
		if done {
			did++
		}
	}
	return did
}

// subscribe checks a bot's subscription and renews it if it differs from the wanted one.
func (m *Monitor) subscribe(ctx context.Context, workspace string, b Bot) (bool, error) {
	subscriber, ok := m.deps.Bots.Adapters[b.Platform].(autopost.Subscriber)
	if !ok {
		return false, nil
	}
	want := autopost.Subscription{URL: m.deps.Bots.PublicURL + "/hooks/" + string(b.Platform), Updates: subscriber.Updates()}
	hook, hash := newHookSecret()
	token, err := m.deps.Bots.Credentials.Credential(ctx, workspace, b.AuthRef, b.Platform)
	if err != nil {
		failure := &autopost.Error{Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: autopost.CodeCredentialUnavailable, Known: true, Message: err.Error()}
		_, recordErr := m.deps.Store.FinishSubscription(ctx, workspace, b.EndpointID, "", failure)
		return false, errors.Join(fmt.Errorf("token of endpoint %s: %w", b.EndpointID, err), recordErr)
	}
	seen, failure := subscriber.Subscription(ctx, token, want.URL)
	var why string
	if failure == nil {
		if why, err = m.deps.Store.BeginSubscription(ctx, workspace, SubscriptionCheck{b.EndpointID, want, seen, hash}); err != nil || why == "" {
			return false, err
		}
		failure = subscriber.Subscribe(ctx, token, want, hook)
	}
	applied, err := m.deps.Store.FinishSubscription(context.WithoutCancel(ctx), workspace, b.EndpointID, hash, failure)
	switch {
	case err != nil:
		return false, err
	case failure != nil:
		return false, fmt.Errorf("subscription of endpoint %s: %s", b.EndpointID, failure)
	case applied:
		m.deps.Log.Info("monitor.subscribed", "workspace_id", workspace, "endpoint_id", b.EndpointID, "platform", b.Platform, "why", why, "url", want.URL)
	}
	return applied, nil
}

// newHookSecret makes the secret that a platform sends with each update. Only the platform stores it; we store its
// SHA-256.
func newHookSecret() (secret autopost.Secret, hash string) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	text := hex.EncodeToString(raw)
	sum := sha256.Sum256([]byte(text))
	return autopost.NewSecret(text), hex.EncodeToString(sum[:])
}

// askRights asks the platform for the rights of a bot in a chat.
func (m *Monitor) askRights(ctx context.Context, workspace string, c Chat) (bool, error) {
	if _, ok := m.deps.Bots.Adapters[c.Platform].(autopost.Checker); !ok {
		return false, nil
	}
	right, err := m.deps.Bots.Rights(ctx, workspace, c)
	if err != nil {
		return false, err
	}
	rights, err := m.deps.Store.RecordChatRights(ctx, workspace, c, right)
	if rights != "" {
		m.deps.Log.Warn("monitor.rights", "workspace_id", workspace, "platform", c.Platform, "target_id", c.TargetID, "rights", rights)
	}
	return err == nil, err
}

// Rights asks the platform for the rights of a bot in a chat.
func (b Bots) Rights(ctx context.Context, workspace string, c Chat) (autopost.Right, error) {
	checker, ok := b.Adapters[c.Platform].(autopost.Checker)
	if !ok {
		return autopost.Right{}, fmt.Errorf("rights on %s: %w", c.Platform, errors.ErrUnsupported)
	}
	token, err := b.Credentials.Credential(ctx, workspace, c.AuthRef, c.Platform)
	if err != nil {
		return autopost.Right{}, fmt.Errorf("token of %s: %w", c.AuthRef, err)
	}
	standing, failure := checker.Check(ctx, token, []string{c.TargetID})
	if failure != nil || len(standing.Rights) != 1 {
		return autopost.Right{}, fmt.Errorf("rights of %s in %s: %v", c.AuthRef, c.TargetID, failure)
	}
	return standing.Rights[0], nil
}
