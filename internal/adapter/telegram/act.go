package telegram

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"autopost"
	"autopost/internal/adapter"
)

// deletedAtOnce is how many messages one call of deleteMessages takes (Bot API 10.1).
const deletedAtOnce = 100

// Edit implements autopost.Editor: the text, or the caption of the first medium, of each
// step that bears text. Telegram sets no time limit to a bot's own posts.
func (a *Adapter) Edit(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	for _, step := range call.Delivery.RenderMeta.Steps {
		if !step.Text {
			continue
		}
		ids, failure := numbers(call.Delivery.RenderMeta.Progress.Steps[step.Name])
		if failure != nil {
			return failure
		}
		if failure := s.change(ctx, s.edit(step, ids[0])); failure != nil {
			return failure
		}
	}
	return nil
}

// Delete implements autopost.Deleter. What is not there any more is skipped.
func (a *Adapter) Delete(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	ids, failure := numbers(call.Delivery.MessageIDs())
	if failure != nil {
		return failure
	}
	for some := range slices.Chunk(ids, deletedAtOnce) {
		r := s.about("deleteMessages", param{"message_ids", some})
		if len(some) == 1 {
			r = s.about("deleteMessage", param{"message_id", some[0]})
		}
		if failure := s.change(ctx, r); failure != nil {
			return failure
		}
	}
	return nil
}

// Pin implements autopost.Pinner, by the first message of the post.
func (a *Adapter) Pin(ctx context.Context, call autopost.Call) *autopost.Error {
	return a.pin(ctx, call, "pinChatMessage")
}

// Unpin implements autopost.Pinner.
func (a *Adapter) Unpin(ctx context.Context, call autopost.Call) *autopost.Error {
	return a.pin(ctx, call, "unpinChatMessage")
}

func (a *Adapter) pin(ctx context.Context, call autopost.Call, method string) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	ids, failure := numbers(call.Delivery.MessageIDs())
	if failure != nil {
		return failure
	}
	return s.change(ctx, s.about(method, param{"message_id", ids[0]}))
}

// numbers are ids as Telegram writes them, at least one.
func numbers(ids []string) ([]int64, *autopost.Error) {
	out := make([]int64, len(ids))
	for i, id := range ids {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return nil, adapter.NoID(id)
		}
		out[i] = n
	}
	if len(out) == 0 {
		return nil, adapter.NoID("")
	}
	return out, nil
}

// about is a call about what is in the chat already.
func (s *sender) about(method string, more ...param) request {
	return request{method: method, params: append([]param{s.common[0]}, more...)}
}

// edit shows all of a step's message but its media: what is left out is taken away.
func (s *sender) edit(step autopost.Step, id int64) request {
	meta, text := s.call.Delivery.RenderMeta, s.call.Delivery.Said(step)
	r := s.about("editMessageText", param{"message_id", id}, param{"text", text})
	if len(step.Items) > 0 {
		r = s.about("editMessageCaption", param{"message_id", id}, param{"caption", text})
	} else if meta.DisablePreview {
		r.add("link_preview_options", linkPreview{IsDisabled: true})
	}
	r.parseMode(meta, text)
	r.buttons(adapter.Buttons(meta, step))
	return r
}

// change makes a call whose answer is of no interest but for whether it is a refusal.
func (s *sender) change(ctx context.Context, r request) *autopost.Error {
	answer, failure := s.ask(ctx, r, nil)
	if failure != nil {
		return failure
	}
	outcome, failure := result(answer, s.hide)
	var done bool
	switch {
	case failure == nil && json.Unmarshal(outcome, &done) == nil && !done:
		return unreadable(answer, s.hide)
	case failure == nil, failure.Code == codeStands:
		return nil
	case failure.Code == codeDelete:
		failure.Message += "; a bot may delete what it posted for 48 hours, and later where it has can_delete_messages: grant that, or delete by hand"
	}
	return failure
}

var (
	_ autopost.Editor  = (*Adapter)(nil)
	_ autopost.Deleter = (*Adapter)(nil)
	_ autopost.Pinner  = (*Adapter)(nil)
)
