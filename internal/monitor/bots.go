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

// Bot is an endpoint that a platform sends the updates of a bot to.
type Bot struct {
	EndpointID string
	Platform   string
	AuthRef    string
}

// Chat is one of which nobody has said what a bot may do in it.
type Chat struct {
	Platform string
	AuthRef  string
	TargetID string
	AskAt    time.Time
}

// BotRecords knows what bots are subscribed to and what they may, and decides what follows.
type BotRecords interface {
	// ListDueSubscriptions leases endpoints at whose subscriptions it is time to look.
	ListDueSubscriptions(ctx context.Context, workspace string, limit int) ([]Bot, error)
	// BeginSubscription compares; why is "" when a subscription is as it should be.
	BeginSubscription(ctx context.Context, workspace, endpoint string, want, seen autopost.Subscription, secretHash string) (why string, err error)
	// FinishSubscription takes what became of a look or a subscription; a nil failure: the platform took it.
	FinishSubscription(ctx context.Context, workspace, endpoint, secretHash string, failure *autopost.Error) (applied bool, err error)
	// ListUnaskedChats leases chats whose rights are to be asked.
	ListUnaskedChats(ctx context.Context, workspace string, limit int) ([]Chat, error)
	// RecordChatRights takes the answer; rights is "lost" or "regained" where channels followed.
	RecordChatRights(ctx context.Context, workspace string, chat Chat, right autopost.Right) (rights string, err error)
}

// Credentials gives the tokens of bots.
type Credentials interface {
	Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error)
}

// BotKeeper keeps platforms telling what happens to bots, and asks what they have
// not told. Records and Credentials are required.
type BotKeeper struct {
	Records     BotRecords
	Credentials Credentials
	// Adapters are asked for what they are besides: Subscriber, Checker.
	Adapters map[autopost.Platform]autopost.Adapter
	// PublicURL is where platforms reach this installation, as "https://autopost.example.org";
	// "" when nobody said, and then nothing is subscribed.
	PublicURL string
}

const (
	// botsPerSweep bounds how many endpoints, and how many chats, of a workspace one sweep looks at.
	botsPerSweep = 100
	// platformTimeout bounds one look at a platform, or one change there.
	platformTimeout = 30 * time.Second
)

// keepBots has every bot's platform push its updates to us, and asks for the rights that none has told.
func (m *Monitor) keepBots(ctx context.Context) bool {
	subscribed, fine := 0, true
	if m.deps.Bots.PublicURL != "" {
		subscribed, fine = m.sweep(ctx, "list due subscriptions", func(query context.Context, workspace string) (int, error) {
			due, err := m.deps.Bots.Records.ListDueSubscriptions(query, workspace, botsPerSweep)
			return m.each(ctx, workspace, len(due), func(ctx context.Context, i int) (bool, error) { return m.subscribe(ctx, workspace, due[i]) }), err
		})
	}
	asked, ok := m.sweep(ctx, "list unasked chats", func(query context.Context, workspace string) (int, error) {
		chats, err := m.deps.Bots.Records.ListUnaskedChats(query, workspace, botsPerSweep)
		return m.each(ctx, workspace, len(chats), func(ctx context.Context, i int) (bool, error) { return m.askRights(ctx, workspace, chats[i]) }), err
	})
	m.done(subscribed+asked > 0, "monitor.bots", "subscribed", subscribed, "asked", asked)
	return fine && ok
}

// each does something n times, and counts what it did; a failure holds up no other.
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

// subscribe looks at a bot's subscription, and makes it anew where it has to be.
func (m *Monitor) subscribe(ctx context.Context, workspace string, b Bot) (bool, error) {
	subscriber, ok := m.deps.Bots.Adapters[autopost.Platform(b.Platform)].(autopost.Subscriber)
	if !ok {
		return false, nil
	}
	records := m.deps.Bots.Records
	want := autopost.Subscription{URL: m.deps.Bots.PublicURL + "/hooks/" + b.Platform, Updates: subscriber.Updates()}
	hook, hash := newHookSecret()
	token, err := m.deps.Bots.Credentials.Credential(ctx, workspace, b.AuthRef, autopost.Platform(b.Platform))
	if err != nil {
		failure := &autopost.Error{Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: autopost.CodeCredentialUnavailable, Known: true, Message: err.Error()}
		_, recordErr := records.FinishSubscription(ctx, workspace, b.EndpointID, "", failure)
		return false, errors.Join(fmt.Errorf("token of endpoint %s: %w", b.EndpointID, err), recordErr)
	}
	seen, failure := subscriber.Subscription(ctx, token, want.URL)
	var why string
	if failure == nil {
		if why, err = records.BeginSubscription(ctx, workspace, b.EndpointID, want, seen, hash); err != nil || why == "" {
			return false, err
		}
		failure = subscriber.Subscribe(ctx, token, want, hook)
	}
	applied, err := records.FinishSubscription(context.WithoutCancel(ctx), workspace, b.EndpointID, hash, failure)
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

// newHookSecret makes what a platform shows with each update. Nobody but the platform keeps it: here is only its SHA-256.
func newHookSecret() (secret autopost.Secret, hash string) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	text := hex.EncodeToString(raw)
	sum := sha256.Sum256([]byte(text))
	return autopost.NewSecret(text), hex.EncodeToString(sum[:])
}

// askRights asks what a bot may do in a chat.
func (m *Monitor) askRights(ctx context.Context, workspace string, c Chat) (bool, error) {
	checker, ok := m.deps.Bots.Adapters[autopost.Platform(c.Platform)].(autopost.Checker)
	if !ok {
		return false, nil
	}
	token, err := m.deps.Bots.Credentials.Credential(ctx, workspace, c.AuthRef, autopost.Platform(c.Platform))
	if err != nil {
		return false, fmt.Errorf("token of %s: %w", c.AuthRef, err)
	}
	standing, failure := checker.Check(ctx, token, []string{c.TargetID})
	if failure != nil || len(standing.Rights) != 1 {
		return false, fmt.Errorf("rights of %s in %s: %v", c.AuthRef, c.TargetID, failure)
	}
	rights, err := m.deps.Bots.Records.RecordChatRights(ctx, workspace, c, standing.Rights[0])
	if rights != "" {
		m.deps.Log.Warn("monitor.rights", "workspace_id", workspace, "platform", c.Platform, "target_id", c.TargetID, "rights", rights)
	}
	return err == nil, err
}
