package bot

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"autopost"
	"autopost/internal/failpoint"
	"autopost/internal/outbound"
	"autopost/internal/telemetry"
	"autopost/internal/worker"
)

const (
	// credentialTimeout bounds one lookup, which may wait for a renewal.
	credentialTimeout = 30 * time.Second
	// longestSlot bounds the wait for a slot by our clock; the database reserves a second ahead.
	longestSlot = 5 * time.Second
	// pressTimeout bounds the answer to a pressed button.
	pressTimeout = 10 * time.Second
)

var commitBackoff = worker.Backoff{Least: 100 * time.Millisecond, Most: 2 * time.Second}

// deliver takes a claimed message to its commit, unless the database releases it. Without a commit its lease expires.
func (w *Worker) deliver(ctx context.Context, reply Reply) {
	failpoint.Hit(failpoint.ReplyClaimed)
	record := telemetry.Attempt{Delivery: reply.Delivery, Claimed: time.Now()}
	secret, outcome := w.secret(ctx, reply)
	if outcome.Error == nil {
		until, refused, err := w.begin(ctx, reply)
		switch {
		case err != nil:
			outcome = failed("not_called", "the start of the call was not recorded")
			w.cfg.Log.WarnContext(ctx, "bot.start_unanswered", append(ids(reply), "error", err)...)
		case refused != "":
			w.cfg.Log.InfoContext(ctx, "bot.not_started", append(ids(reply), "reason", refused)...)
			return
		case until.over():
			outcome = failed("not_started", "the call could not start in time")
		default:
			began := time.Now()
			outcome = w.call(ctx, reply, secret, until)
			record.Called(began, 0, true)
		}
	}
	failpoint.Hit(failpoint.ReplyAccepted)
	answer, err := w.commit(ctx, reply, storable(outcome))
	record.Ended(reply.Delivery, outcome, answer.Status, answer.Applied, err)
	w.cfg.Recorder.Replied(&record)
	w.log(ctx, reply, outcome, answer, err)
	if outcome.OK {
		w.answerPress(ctx, reply, secret)
	}
}

// secret opens the credential of the bot. The outcome has an error if there is none.
func (w *Worker) secret(ctx context.Context, reply Reply) (autopost.Secret, autopost.Outcome) {
	if w.cfg.Adapters[reply.Platform] == nil {
		return autopost.Secret{}, failed("no_adapter", "this daemon has no adapter for platform %q", reply.Platform)
	}
	ctx, cancel := context.WithTimeout(ctx, credentialTimeout)
	defer cancel()
	secret, err := w.cfg.Credentials.Credential(ctx, reply.WorkspaceID, reply.AuthRef, reply.Platform)
	refused, isRefused := errors.AsType[*autopost.RenewalError](err)
	switch {
	case isRefused:
		return secret, autopost.Failed(refused.Failure)
	case errors.Is(err, autopost.ErrNoCredential), err == nil && secret.IsZero():
		return secret, failed(autopost.CodeCredentialMissing, "credential %q is not bound", reply.AuthRef)
	case err != nil:
		return secret, failed(autopost.CodeCredentialUnavailable, "credential %q cannot be read now", reply.AuthRef)
	}
	return secret, autopost.Outcome{}
}

// limit is the end of a call on two clocks: the monotonic one stops while the machine sleeps, and the lease goes on.
type limit struct {
	at   time.Time
	boot time.Duration
}

func newLimit(in time.Duration) limit { return limit{time.Now(), worker.SinceBoot()}.add(in) }

func (l limit) add(d time.Duration) limit { return limit{l.at.Add(d), l.boot + d} }

func (l limit) over() bool { return time.Until(l.at) <= 0 || l.boot <= worker.SinceBoot() }

// allow runs before each request: a process that was stopped resumes before its timers fire.
func (l limit) allow() error {
	if l.over() {
		return context.DeadlineExceeded
	}
	return nil
}

// begin writes the start record and waits for the slot. refused is the reason if the database released the message.
func (w *Worker) begin(ctx context.Context, reply Reply) (until limit, refused string, err error) {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	asked := newLimit(0) // before the database reads its clock
	start, err := w.cfg.Store.BotStartReply(query, reply.WorkspaceID, reply.DeliveryID, reply.ClaimToken)
	if err != nil || !start.Applied {
		return limit{}, start.Reason, err
	}
	if !worker.Sleep(ctx, min(start.SendIn, longestSlot)) {
		return limit{}, "", ctx.Err()
	}
	lease, whole := asked.add(start.Deadline), newLimit(w.cfg.AdapterTimeout)
	if lease.at.Before(whole.at) {
		return lease, "", nil
	}
	return whole, "", nil
}

// call uses the adapter once; after an unknown outcome it first asks the platform for the message. If the platform
// refuses the credential only, it sends again with a renewed one.
func (w *Worker) call(ctx context.Context, reply Reply, secret autopost.Secret, until limit) autopost.Outcome {
	ctx, cancel := context.WithDeadline(ctx, until.at)
	defer cancel()
	ctx = outbound.WithSendCheck(ctx, until.allow)
	outcome := w.send(ctx, reply, secret)
	e := outcome.Error
	if e == nil || !e.Known || e.Category != autopost.Permanent || e.Scope != autopost.ScopeChannel {
		return outcome
	}
	renewed, err := w.cfg.Credentials.Renew(ctx, reply.Delivery, secret, *e)
	if refused, ok := errors.AsType[*autopost.RenewalError](err); ok {
		return autopost.Failed(refused.Failure)
	}
	if err != nil || renewed.IsZero() {
		return outcome
	}
	return w.send(ctx, reply, renewed)
}

// send calls the adapter. A panic of the adapter is an unknown outcome.
func (w *Worker) send(ctx context.Context, reply Reply, secret autopost.Secret) (outcome autopost.Outcome) {
	defer func() {
		if v := recover(); v != nil {
			// The value may hold a URL with a token; its type and the stack do not.
			kind := fmt.Sprintf("%T", v)
			w.cfg.Log.ErrorContext(ctx, "bot.adapter_panicked", append(ids(reply), "panic", kind, "stack", string(debug.Stack()))...)
			outcome = failed("adapter_panicked", "the adapter panicked: %s", kind)
			outcome.Error.Known = false
		}
	}()
	proceed := func(context.Context) error { return nil }
	call := autopost.Call{
		Delivery: reply.Delivery, Secret: secret, Media: w.cfg.Media.MaterialsFor(reply.Delivery),
		Emit: func(ctx context.Context, _ autopost.Acknowledged) error { return proceed(ctx) }, Renew: proceed,
	}
	adapter := w.cfg.Adapters[reply.Platform]
	if platform, ok := adapter.(autopost.Reconciler); ok && reply.UnknownOutcomes > 0 {
		verdict := platform.Reconcile(ctx, call)
		if verdict.Found {
			return autopost.Sent(verdict.ProviderMessageID, time.Time{}, nil)
		}
		if verdict.Error != nil {
			w.cfg.Log.WarnContext(ctx, "bot.not_reconciled", append(ids(reply), "code", verdict.Error.Code, "message", verdict.Error.Message)...)
		}
	}
	return adapter.Send(ctx, call)
}

// storable drops the platform's answer, which may hold a customer's words, and what JSON of the database cannot hold.
func storable(outcome autopost.Outcome) autopost.Outcome {
	outcome.Raw = nil
	if outcome.Error != nil {
		e := *outcome.Error
		e.Raw = nil
		e.Message = strings.ReplaceAll(strings.ToValidUTF8(e.Message, "\uFFFD"), "\x00", "")
		outcome.Error = &e
	}
	return outcome
}

// commit repeats the commit until it is answered or the lease is over: an outcome without a record would become an
// unknown one.
func (w *Worker) commit(ctx context.Context, reply Reply, outcome autopost.Outcome) (answer Commit, err error) {
	end := time.Now().Add(w.cfg.AdapterTimeout)
	for n := 0; ; n++ {
		query, cancel := context.WithTimeout(ctx, queryTimeout)
		failpoint.Within(failpoint.ReplyCommit)
		answer, err = w.cfg.Store.BotCommitReply(query, reply.WorkspaceID, reply.DeliveryID, reply.ClaimToken, outcome)
		cancel()
		pause := commitBackoff.Pause(n)
		if err == nil || errors.Is(err, worker.ErrRefused) || time.Until(end) <= pause || !worker.Sleep(ctx, pause) {
			return answer, err
		}
	}
}

// answerPress ends the wait that a pressed button shows. A lost answer does no harm.
func (w *Worker) answerPress(ctx context.Context, reply Reply, secret autopost.Secret) {
	presser, ok := w.cfg.Adapters[reply.Platform].(autopost.PressAnswerer)
	if !ok || reply.CallbackID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	if e := presser.AnswerPress(ctx, secret, reply.CallbackID, "✓"); e != nil {
		w.cfg.Log.DebugContext(ctx, "bot.press_unanswered", append(ids(reply), "code", e.Code)...)
	}
}

func (w *Worker) log(ctx context.Context, reply Reply, outcome autopost.Outcome, answer Commit, err error) {
	attrs := append(ids(reply), "ok", outcome.OK, "outcome", answer.Status)
	if e := outcome.Error; e != nil {
		attrs = append(attrs, "code", e.Code, "category", e.Category, "scope", e.Scope, "known", e.Known, "message", e.Message)
	}
	switch {
	case err != nil:
		w.cfg.Log.ErrorContext(ctx, "bot.attempted", append(attrs, "error", fmt.Errorf("commit reply ws=%s reply=%s: %w", reply.WorkspaceID, reply.DeliveryID, err))...)
	case !answer.Applied:
		w.cfg.Log.WarnContext(ctx, "bot.attempted", append(attrs, "refused", answer.Reason)...)
	case outcome.Error != nil:
		w.cfg.Log.WarnContext(ctx, "bot.attempted", attrs...)
	default:
		w.cfg.Log.InfoContext(ctx, "bot.attempted", attrs...)
	}
}

func ids(reply Reply) []any {
	return []any{
		"workspace_id", reply.WorkspaceID, "reply_id", reply.DeliveryID, "platform", reply.Platform, "chat_id", reply.TargetID,
		"auth_ref", reply.AuthRef, "attempt", reply.Attempt, "trace_id", reply.TraceID, "unknown_outcomes", reply.UnknownOutcomes,
	}
}
