package notify

import (
	"context"

	"autopost"
)

// Moderate makes one call to a chat in which people decide about posts. An outcome of an ask has the id of the message.
func (n *Notifier) Moderate(ctx context.Context, workspace string, c autopost.ModerationCall) autopost.Outcome {
	target, ok := n.cfg.Adapters[c.Platform]
	if !ok {
		return autopost.Failed(*refused("target_kind_unknown", "this version does not support chats of "+string(c.Platform)))
	}
	secret, failure := n.secret(ctx, workspace, autopost.Notice{Kind: string(c.Platform), AuthRef: c.AuthRef})
	if failure != nil {
		return autopost.Failed(*failure)
	}
	switch c.Kind {
	case autopost.ModerationAnswer:
		return outcome(answerPress(ctx, target, secret, c))
	case autopost.ModerationClose:
		return outcome(closeMessage(ctx, workspace, target, secret, c))
	}
	return target.Send(ctx, moderationCall(workspace, secret, c))
}

// outcome is the outcome of a call that makes no message.
func outcome(failure *autopost.Error) autopost.Outcome {
	if failure != nil {
		return autopost.Failed(*failure)
	}
	return autopost.Outcome{OK: true}
}

func answerPress(ctx context.Context, target autopost.Adapter, secret autopost.Secret, c autopost.ModerationCall) *autopost.Error {
	answerer, ok := target.(autopost.PressAnswerer)
	if !ok {
		return refused("target_kind_unknown", "this version does not answer presses of "+string(c.Platform))
	}
	return answerer.AnswerPress(ctx, secret, c.CallbackID, c.Text)
}

// closeMessage replaces the text of every copy of a message and removes its buttons. A copy that the platform refuses
// to change does not keep the others from it.
func closeMessage(ctx context.Context, workspace string, target autopost.Adapter, secret autopost.Secret, c autopost.ModerationCall) *autopost.Error {
	editor, ok := target.(autopost.Editor)
	if !ok {
		return refused("target_kind_unknown", "this version does not change messages of "+string(c.Platform))
	}
	var first *autopost.Error
	for _, id := range c.ProviderIDs {
		call := moderationCall(workspace, secret, c)
		call.Delivery.RenderMeta.Progress = autopost.SeriesProgress{Steps: map[string][]string{"text": {id}}}
		if failure := editor.Edit(ctx, call); failure != nil && (first == nil || failure.Category == autopost.Transient) {
			first = failure
		}
	}
	return first
}

// moderationCall is a text with one row of buttons as a post of one step. Without buttons it removes them.
func moderationCall(workspace string, secret autopost.Secret, c autopost.ModerationCall) autopost.Call {
	rows := [][]autopost.Button{}
	if len(c.Buttons) > 0 {
		row := make([]autopost.Button, len(c.Buttons))
		for i, b := range c.Buttons {
			row[i] = autopost.Button{Text: b.Text, Data: b.Data}
		}
		rows = append(rows, row)
	}
	call := textCall(workspace, autopost.Notice{MessageID: c.ID, Kind: string(c.Platform), Address: c.TargetID, AuthRef: c.AuthRef, Text: c.Text}, secret)
	call.Delivery.RenderMeta.Buttons = rows
	return call
}

// textCall is a call that sends a plain text to a chat as a post of one step.
func textCall(workspace string, m autopost.Notice, secret autopost.Secret) autopost.Call {
	proceed := func(context.Context) error { return nil }
	return autopost.Call{
		Delivery: autopost.Delivery{
			WorkspaceID: workspace, DeliveryID: m.MessageID, Platform: autopost.Platform(m.Kind), TargetID: m.Address, AuthRef: m.AuthRef, RenderedText: m.Text,
			RenderMeta: autopost.RenderMeta{DisablePreview: true, Steps: []autopost.Step{{Name: "text", Text: true}}},
		},
		Secret: secret,
		Emit:   func(ctx context.Context, _ autopost.Acknowledged) error { return proceed(ctx) },
		Renew:  proceed,
	}
}
