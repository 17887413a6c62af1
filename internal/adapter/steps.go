package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"autopost"
)

// Receipt is the platform's acknowledgement of a step.
type Receipt struct {
	// IDs are the ids of the messages, at least one. For a step without messages they are any ids that
	// the platform returned.
	IDs []string
	// SentAt is the platform's time; zero if not stated.
	SentAt time.Time
}

// SendStep makes the call of one step. replyTo is the id of the message to which it replies; "" for
// none.
type SendStep func(ctx context.Context, step autopost.Step, replyTo string) (Receipt, *autopost.Error)

// Run sends the unacknowledged steps of the delivery in order. It passes each step except the last to
// call.Emit before the next one starts, and returns the outcome.
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
			// The platform has the step, but the database may not: another send could repeat it.
			return done.failed(Unknown(Hide(call.Secret).Text(fmt.Sprintf("step %s has ids %v, not recorded: %v", step.Name, receipt.IDs, err))))
		}
	}
	if len(done.IDs) == 0 {
		return done.failed(Unknown("the steps are acknowledged without an id"))
	}
	if len(meta.Steps) == 1 && len(done.IDs) == 1 {
		return autopost.Sent(done.IDs[0], sentAt, nil) // there is nothing but the id
	}
	return autopost.Sent(done.IDs[0], sentAt, done.raw())
}

// Missing returns the first unacknowledged step of the delivery, and the id of the message to which it
// replies; false if there is none.
func Missing(delivery autopost.Delivery) (step autopost.Step, replyTo string, ok bool) {
	progress := delivery.RenderMeta.Progress
	for _, step := range delivery.RenderMeta.Steps {
		if !progress.Done(step.Name) {
			known := made{Steps: progress.Steps}
			return step, known.first(step.ReplyTo), true
		}
	}
	return autopost.Step{}, "", false
}

// Found returns the verdict for a delivery whose first missing step exists on the platform with these
// ids. If later steps are missing, it passes this step to call.Emit and returns an empty verdict.
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

// NotRecorded is the failure of a step without messages that could not be recorded. It may be repeated.
func NotRecorded(step string, err error, hide Redactor) *autopost.Error {
	return Refusal(autopost.Transient, autopost.ScopeDelivery, CodeNotRecorded, hide.Text(fmt.Sprintf("step %s is not recorded: %v", step, err)))
}

// NoID is the failure of a change of a message whose id is invalid on the platform.
func NoID(id string) *autopost.Error {
	return Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, fmt.Sprintf("%q is not a message id of this platform", id))
}

// Buttons returns the buttons of a step. They belong to the last step with text of part 1, or to the first
// step if part 1 has no text.
func Buttons(meta autopost.RenderMeta, step autopost.Step) [][]autopost.Button {
	carrier := meta.Steps[0].Name
	for _, s := range meta.Steps {
		if s.Text && s.Part == 0 && !s.Comment {
			carrier = s.Name
		}
	}
	if step.Name != carrier {
		return nil
	}
	return meta.Buttons
}

// made lists the steps that the platform has.
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

// first returns the id of a step's first message; "" if it has none.
func (m *made) first(step string) string {
	if ids := m.Steps[step]; len(ids) > 0 {
		return ids[0]
	}
	return ""
}

func (m *made) raw() json.RawMessage { return encode(m) }

// failed returns the outcome of a failure. If a part was sent, it contains the ids of that part.
func (m *made) failed(failure *autopost.Error) autopost.Outcome {
	outcome := autopost.Failed(*failure)
	if len(m.IDs) > 0 {
		outcome.Raw = m.raw()
	}
	return outcome
}
