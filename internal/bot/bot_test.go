package bot_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/bot"
	"autopost/internal/worker"
)

var errGone = errors.New("the database is unavailable")

// fake is a store with one due message, a vault and an adapter.
type fake struct {
	bot.Store

	mu        sync.Mutex
	due       []bot.Reply
	start     bot.Start
	startErr  error
	claimErr  []error     // of the first claims, whose messages are claimed if it is errGone
	lost      []bot.Reply // claimed by a claim without an answer
	known     [][]string  // tokens of each request for lost claims
	freeErr   []error     // of the first requests for lost claims
	commitErr []error     // of the first commits
	committed []autopost.Outcome
	recovered int
	touched   []bool

	credentialErr error
	renewed       autopost.Secret

	outcomes []autopost.Outcome // of the calls, in order; then ok
	secrets  []string
	verdict  autopost.Verdict
	asked    int
	pressed  []string
	panics   bool
}

func (f *fake) ReadyBotWorkspaces(context.Context, int) ([]string, error) { return []string{"w"}, nil }

func (f *fake) BotClaimReplies(_ context.Context, _, _ string, limit int) ([]bot.Reply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(limit, len(f.due))
	claimed := f.due[:n]
	if len(f.claimErr) > 0 {
		err := f.claimErr[0]
		f.claimErr = f.claimErr[1:]
		if errors.Is(err, errGone) {
			f.due, f.lost = f.due[n:], append(f.lost, claimed...)
		}
		return nil, err
	}
	f.due = f.due[n:]
	return claimed, nil
}

func (f *fake) BotReleaseLost(_ context.Context, _, _ string, known []string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.freeErr) > 0 {
		err := f.freeErr[0]
		f.freeErr = f.freeErr[1:]
		return 0, err
	}
	f.known = append(f.known, known)
	released := len(f.lost)
	f.due, f.lost = append(f.due, f.lost...), nil
	return released, nil
}

func (f *fake) BotStartReply(context.Context, string, string, string) (bot.Start, error) {
	return f.start, f.startErr
}

func (f *fake) BotCommitReply(_ context.Context, _, _, _ string, outcome autopost.Outcome) (bot.Commit, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.commitErr) > 0 {
		err := f.commitErr[0]
		f.commitErr = f.commitErr[1:]
		return bot.Commit{}, err
	}
	f.committed = append(f.committed, outcome)
	return bot.Commit{Applied: true, Status: "sent"}, nil
}

func (f *fake) BotRecover(context.Context, string) (bot.Recovered, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recovered++
	return bot.Recovered{}, nil
}

func (f *fake) TouchRun(_ context.Context, _, _ string, ended bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched = append(f.touched, ended)
	return nil
}

func (f *fake) Credential(context.Context, string, string, autopost.Platform) (autopost.Secret, error) {
	return autopost.NewSecret("first"), f.credentialErr
}

func (f *fake) Renew(context.Context, autopost.Delivery, autopost.Secret, autopost.Error) (autopost.Secret, error) {
	return f.renewed, nil
}

func (f *fake) MaterialsFor(autopost.Delivery) autopost.MediaAccess { return nil }

func (*fake) Platform() autopost.Platform { return autopost.MAX }

func (f *fake) Send(_ context.Context, call autopost.Call) autopost.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("a bug with a token in it")
	}
	f.secrets = append(f.secrets, call.Secret.Reveal())
	if len(f.outcomes) > 0 {
		next := f.outcomes[0]
		f.outcomes = f.outcomes[1:]
		return next
	}
	return autopost.Sent("mid.1", time.Time{}, []byte(`{"text": "private"}`))
}

func (f *fake) Reconcile(context.Context, autopost.Call) autopost.Verdict {
	f.asked++
	return f.verdict
}

func (*fake) SettleTime() time.Duration { return 0 }

func (f *fake) AnswerPress(_ context.Context, _ autopost.Secret, callback, _ string) *autopost.Error {
	f.pressed = append(f.pressed, callback)
	return nil
}

func reply(change func(r *bot.Reply)) bot.Reply {
	r := bot.Reply{Delivery: autopost.Delivery{WorkspaceID: "w", DeliveryID: "r1", Platform: autopost.MAX, TargetID: "7", AuthRef: "shop", ClaimToken: "t", Attempt: 1}}
	if change != nil {
		change(&r)
	}
	return r
}

// run runs the stage for a minute.
func run(t *testing.T, f *fake) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if f.start == (bot.Start{}) && f.startErr == nil {
			f.start = bot.Start{Applied: true, Deadline: 5 * time.Minute}
		}
		w, err := bot.New(bot.Config{
			RunID: "run", Store: f, Credentials: f, Media: f, Adapters: map[autopost.Platform]autopost.Adapter{autopost.MAX: f}, Heartbeats: true,
			Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, w.Run(ctx))
		_, polled := w.LastPoll()
		require.True(t, polled)
	})
}

// codeOf returns the code and the certainty of a committed failure.
func codeOf(t *testing.T, f *fake) (string, bool) {
	t.Helper()
	require.Len(t, f.committed, 1)
	require.NotNil(t, f.committed[0].Error)
	return f.committed[0].Error.Code, f.committed[0].Error.Known
}

func TestAMessageIsSentAndCommitted(t *testing.T) {
	t.Parallel()
	f := &fake{due: []bot.Reply{reply(func(r *bot.Reply) { r.CallbackID = "press" })}, commitErr: []error{errGone, errGone}}
	run(t, f)
	require.Equal(t, []autopost.Outcome{{OK: true, ProviderMessageID: "mid.1"}}, f.committed, "until it is recorded, and without the words of the answer")
	require.Equal(t, []string{"press"}, f.pressed)
	require.Equal(t, []string{"first"}, f.secrets)
	require.NotZero(t, f.recovered)
	require.False(t, f.touched[0])
	require.True(t, f.touched[len(f.touched)-1], "the last heartbeat ends the run")
}

func TestARefusedStartSendsNothing(t *testing.T) {
	t.Parallel()
	f := &fake{due: []bot.Reply{reply(nil)}, start: bot.Start{Reason: "workspace"}}
	run(t, f)
	require.Empty(t, f.secrets)
	require.Empty(t, f.committed, "the database has released it")
}

func TestWhatWasNotCalledIsAKnownFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f    *fake
		code string
	}{
		"no start record":      {&fake{startErr: errGone}, "not_called"},
		"the lease is over":    {&fake{start: bot.Start{Applied: true, Deadline: -time.Second}}, "not_started"},
		"no credential":        {&fake{credentialErr: autopost.ErrNoCredential}, autopost.CodeCredentialMissing},
		"an unread credential": {&fake{credentialErr: errGone}, autopost.CodeCredentialUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := c.f
			f.due = []bot.Reply{reply(nil)}
			run(t, f)
			code, known := codeOf(t, f)
			require.Equal(t, c.code, code)
			require.True(t, known)
			require.Empty(t, f.secrets, "the platform was not called")
		})
	}
}

func TestAPanicOfAnAdapterIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	f := &fake{due: []bot.Reply{reply(nil)}, panics: true}
	run(t, f)
	_, known := codeOf(t, f)
	require.False(t, known)
	require.NotContains(t, f.committed[0].Error.Message, "token")
}

func TestThePlatformIsAskedAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	doubtful := reply(func(r *bot.Reply) { r.UnknownOutcomes = 1 })
	found := &fake{due: []bot.Reply{doubtful}, verdict: autopost.Verdict{Found: true, ProviderMessageID: "mid.0"}}
	run(t, found)
	require.Equal(t, "mid.0", found.committed[0].ProviderMessageID)
	require.Empty(t, found.secrets, "a found message is not sent again")
	absent := &fake{due: []bot.Reply{doubtful}, verdict: autopost.Verdict{Absent: true}}
	run(t, absent)
	require.Len(t, absent.secrets, 1)
	fresh := &fake{due: []bot.Reply{reply(nil)}}
	run(t, fresh)
	require.Zero(t, fresh.asked, "without doubt it is not asked")
}

func TestARenewedCredentialIsTriedOnce(t *testing.T) {
	t.Parallel()
	refused := autopost.Failed(autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "max_unauthorized", Known: true, Message: "a\x00b"})
	f := &fake{due: []bot.Reply{reply(nil)}, outcomes: []autopost.Outcome{refused}, renewed: autopost.NewSecret("second")}
	run(t, f)
	require.Equal(t, []string{"first", "second"}, f.secrets)
	require.True(t, f.committed[0].OK)
	f = &fake{due: []bot.Reply{reply(nil)}, outcomes: []autopost.Outcome{refused}}
	run(t, f)
	require.Equal(t, []string{"first"}, f.secrets)
	require.Equal(t, "ab", f.committed[0].Error.Message, "what the database cannot store is left out")
}

// A claim commits and its answer is lost: the database releases its messages long before their lease, but never one in
// flight. The search ends after a minute without such a claim.
func TestALostClaimIsReleased(t *testing.T) {
	t.Parallel()
	f := &fake{due: []bot.Reply{reply(nil)}, claimErr: []error{errGone}, freeErr: []error{errGone}}
	run(t, f)
	require.Len(t, f.committed, 1, "it is sent")
	require.True(t, f.committed[0].OK)
	require.GreaterOrEqual(t, len(f.known), 3, "the server may finish the claim later")
	require.Empty(t, f.known[0], "nothing is in flight")
	refused := &fake{due: []bot.Reply{reply(nil)}, claimErr: []error{worker.ErrRefused}}
	run(t, refused)
	require.Len(t, refused.committed, 1)
	require.Empty(t, refused.known, "a refused claim has claimed nothing")
}

func TestARefusedCommitIsNotRepeated(t *testing.T) {
	t.Parallel()
	f := &fake{due: []bot.Reply{reply(nil)}, commitErr: []error{worker.ErrRefused}}
	run(t, f)
	require.Empty(t, f.committed)
}

func TestAWorkerNeedsItsParts(t *testing.T) {
	t.Parallel()
	_, err := bot.New(bot.Config{RunID: "run"})
	require.ErrorContains(t, err, "store")
}
