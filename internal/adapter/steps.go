package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"autopost"
)

// Receipt is what a platform gave for one step.
type Receipt struct {
	// IDs are the ids of the messages made, at least one; of a step that makes none,
	// whatever the platform gave.
	IDs []string
	// SentAt is the platform's own time; zero when it does not tell.
	SentAt time.Time
}

// SendStep makes the call of one step. answers is the id of the message that it
// replies to; "" for none.
type SendStep func(ctx context.Context, step autopost.Step, answers string) (Receipt, *autopost.Error)

// Run sends the delivery's steps that are not acknowledged yet, in order, gives
// each but the last to call.Emit before the next begins, and assembles the outcome.
func Run(ctx context.Context, call autopost.Call, send SendStep) autopost.Outcome {
	meta := call.Delivery.RenderMeta
	if len(meta.Steps) == 0 {
		return autopost.Failed(*Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, "the delivery has no steps"))
	}
	done := made{Steps: map[string][]string{}}
	var sentAt time.Time
	for i, step := range meta.Steps {
		if meta.Progress.Done(step.Name) {
			done.add(step, meta.Progress.Steps[step.Name])
			continue
		}
		if err := ctx.Err(); err != nil {
			return done.failed(Refusal(autopost.Transient, autopost.ScopeDelivery, CodeNotStarted,
				fmt.Sprintf("step %s: %v", step.Name, err)))
		}
		receipt, failure := send(ctx, step, done.first(step.ReplyTo))
		if failure != nil {
			return done.failed(failure)
		}
		done.add(step, receipt.IDs)
		if sentAt.IsZero() {
			sentAt = receipt.SentAt
		}
		if i == len(meta.Steps)-1 {
			break
		}
		ack := autopost.Acknowledged{Step: step.Name, IDs: receipt.IDs, Items: step.Items}
		if err := call.Emit(ctx, ack); err != nil && step.Aside {
			return done.failed(NotRecorded(step.Name, err, Hide(call.Secret)))
		} else if err != nil {
			// The platform has the step and the database may not: sending it again would be blind.
			return done.failed(Unknown(Hide(call.Secret).Text(fmt.Sprintf("step %s has ids %v, not recorded: %v", step.Name, receipt.IDs, err))))
		}
	}
	if len(done.IDs) == 0 {
		return done.failed(Unknown("the steps are acknowledged without an id"))
	}
	return autopost.Sent(done.IDs[0], sentAt, done.raw())
}

// Missing is the first step of the delivery that is not acknowledged, and the id of
// the message that it answers; false when there is none.
func Missing(delivery autopost.Delivery) (step autopost.Step, answers string, ok bool) {
	progress := delivery.RenderMeta.Progress
	for _, step := range delivery.RenderMeta.Steps {
		if !progress.Done(step.Name) {
			known := made{Steps: progress.Steps}
			return step, known.first(step.ReplyTo), true
		}
	}
	return autopost.Step{}, "", false
}

// Found makes the verdict on a delivery whose first missing step the platform turned
// out to have, as these ids. Where more steps are missing it gives this one to
// call.Emit and says neither found nor absent.
func Found(ctx context.Context, call autopost.Call, ids []string) autopost.Verdict {
	meta := call.Delivery.RenderMeta
	all := made{Steps: map[string][]string{}}
	for i, step := range meta.Steps {
		if meta.Progress.Done(step.Name) {
			all.add(step, meta.Progress.Steps[step.Name])
			continue
		}
		all.add(step, ids)
		if i == len(meta.Steps)-1 {
			break
		}
		if err := call.Emit(ctx, autopost.Acknowledged{Step: step.Name, IDs: ids, Items: step.Items}); err != nil {
			return autopost.Verdict{Error: Unknown(Hide(call.Secret).Text(fmt.Sprintf("step %s was found as %v, not recorded: %v", step.Name, ids, err)))}
		}
		return autopost.Verdict{}
	}
	return autopost.Verdict{Found: true, ProviderMessageID: all.IDs[0], Raw: all.raw()}
}

// NotRecorded is the failure of a step that made no message and could not be
// recorded: it can be made again.
func NotRecorded(step string, err error, hide Redactor) *autopost.Error {
	return Refusal(autopost.Transient, autopost.ScopeDelivery, CodeNotRecorded, hide.Text(fmt.Sprintf("step %s is not recorded: %v", step, err)))
}

// NoID is the failure of an act on a message whose id is none of the platform's.
func NoID(id string) *autopost.Error {
	return Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, fmt.Sprintf("%q is no id of a message of this platform", id))
}

// Buttons are those that go with the step: under the end of the text, or under the
// first step of a delivery without text.
func Buttons(meta autopost.RenderMeta, step autopost.Step) [][]autopost.Button {
	carrier := meta.Steps[0].Name
	for _, s := range meta.Steps {
		if s.Text {
			carrier = s.Name
		}
	}
	if step.Name != carrier {
		return nil
	}
	return meta.Buttons
}

// made is what the platform has of the delivery so far.
type made struct {
	IDs   []string            `json:"ids"`
	Steps map[string][]string `json:"steps"`
}

func (m *made) add(step autopost.Step, ids []string) {
	if !step.Aside {
		m.IDs = append(m.IDs, ids...)
	}
	m.Steps[step.Name] = ids
}

// first is the id of a step's first message; "" while it has none.
func (m *made) first(step string) string {
	if ids := m.Steps[step]; len(ids) > 0 {
		return ids[0]
	}
	return ""
}

func (m *made) raw() json.RawMessage { return encode(m) }

// failed keeps the ids of a part that was sent with the failure of the rest.
func (m *made) failed(failure *autopost.Error) autopost.Outcome {
	outcome := autopost.Failed(*failure)
	if len(m.IDs) > 0 {
		outcome.Raw = m.raw()
	}
	return outcome
}
