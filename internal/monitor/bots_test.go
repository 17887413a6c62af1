package monitor_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/monitor"
)

// bots is a bot of acme, its platform and its records.
type bots struct {
	autopost.Adapter

	url string
	why string
	// seen is the platform's answer; asked and made are the calls that it received.
	seen        autopost.Subscription
	asked, made []string
	hook        string
	failure     *autopost.Error
	tokenErr    error
	rights      []autopost.Right
	// finished are the recorded results: a hash or an error code.
	finished []string
	begun    string
}

func (b *bots) deps() monitor.Bots {
	return monitor.Bots{Credentials: b, Adapters: map[autopost.Platform]autopost.Adapter{autopost.Telegram: b}, PublicURL: b.url}
}

func (b *bots) Credential(_ context.Context, _, authRef string, _ autopost.Platform) (autopost.Secret, error) {
	return autopost.NewSecret("token of " + authRef), b.tokenErr
}

func (b *bots) Updates() []string { return []string{"my_chat_member"} }

func (b *bots) Subscription(_ context.Context, secret autopost.Secret, url string) (autopost.Subscription, *autopost.Error) {
	b.asked = append(b.asked, secret.Reveal()+" "+url)
	return b.seen, nil
}

func (b *bots) Subscribe(_ context.Context, _ autopost.Secret, want autopost.Subscription, hook autopost.Secret) *autopost.Error {
	b.made, b.hook = append(b.made, want.URL), hook.Reveal()
	return b.failure
}

func (b *bots) Check(_ context.Context, _ autopost.Secret, targets []string) (autopost.CredentialInfo, *autopost.Error) {
	return autopost.CredentialInfo{Rights: []autopost.Right{{Target: targets[0], MayPost: true}}}, b.failure
}

func (b *bots) ListDueSubscriptions(_ context.Context, workspace string, _ int) ([]monitor.Bot, error) {
	if b.url == "" || workspace != "acme" {
		return nil, nil
	}
	return []monitor.Bot{{EndpointID: "x", Platform: "webhook"}, {EndpointID: "tg", Platform: "telegram", AuthRef: "bot"}}, nil
}

func (b *bots) BeginSubscription(_ context.Context, _ string, check monitor.SubscriptionCheck) (string, error) {
	b.begun = check.EndpointID + " " + check.Want.URL + " " + check.SecretHash
	return b.why, nil
}

func (b *bots) FinishSubscription(_ context.Context, _, endpoint, secretHash string, failure *autopost.Error) (bool, error) {
	if failure != nil {
		secretHash = failure.Code
	}
	b.finished = append(b.finished, endpoint+" "+secretHash)
	return true, nil
}

func (b *bots) ListUnaskedChats(_ context.Context, workspace string, _ int) ([]monitor.Chat, error) {
	if b.url == "" || workspace != "acme" {
		return nil, nil
	}
	return []monitor.Chat{{Platform: "telegram", AuthRef: "bot", TargetID: "-1"}}, nil
}

func (b *bots) RecordChatRights(_ context.Context, _ string, _ monitor.Chat, right autopost.Right) (string, error) {
	b.rights = append(b.rights, right)
	return "regained", nil
}

const address = "https://autopost.example.org"

func TestAWrongSubscriptionIsRenewed(t *testing.T) {
	s := newStore()
	s.bots.url, s.bots.why = address, "it is missing"
	watch(t, s, time.Second)
	require.Equal(t, []string{"token of bot " + address + "/hooks/telegram"}, s.bots.asked)
	require.Equal(t, []string{address + "/hooks/telegram"}, s.bots.made)
	sum := sha256.Sum256([]byte(s.bots.hook))
	require.Equal(t, []string{"tg " + hex.EncodeToString(sum[:])}, s.bots.finished)
	require.Equal(t, "tg "+address+"/hooks/telegram "+hex.EncodeToString(sum[:]), s.bots.begun, "the database knows the secret before the platform does")
	require.Len(t, s.bots.hook, 64)
	require.Contains(t, s.logged(), `"why":"it is missing"`)
	require.NotContains(t, s.logged(), s.bots.hook)
	require.Equal(t, []autopost.Right{{Target: "-1", MayPost: true}}, s.bots.rights)
}

func TestACorrectSubscriptionIsNotChanged(t *testing.T) {
	s := newStore()
	s.bots.url = address
	watch(t, s, time.Second)
	require.Len(t, s.bots.asked, 1)
	require.Empty(t, s.bots.made)
	require.Empty(t, s.bots.finished)
}

func TestAFailedSubscriptionIsRecorded(t *testing.T) {
	s := newStore()
	s.bots.url, s.bots.why = address, "it is missing"
	s.bots.failure = &autopost.Error{Category: autopost.Permanent, Code: "tg_400", Message: "bad webhook"}
	watch(t, s, time.Second)
	require.Equal(t, []string{"tg tg_400"}, s.bots.finished)
	require.Contains(t, s.logged(), "bad webhook")
	require.Empty(t, s.bots.rights)

	s = newStore()
	s.bots.url, s.bots.tokenErr = address, errGone
	watch(t, s, time.Second)
	require.Equal(t, []string{"tg " + autopost.CodeCredentialUnavailable}, s.bots.finished)
	require.Empty(t, s.bots.asked)
}

func TestWithoutAPublicURLNothingIsSubscribed(t *testing.T) {
	s := newStore()
	watch(t, s, time.Second)
	require.Empty(t, s.bots.asked)
}
