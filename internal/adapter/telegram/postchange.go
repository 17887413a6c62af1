package telegram

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"autopost"
	"autopost/internal/adapter"
)

const methodPin = "pinChatMessage"

// deletedAtOnce limits the messages of one deleteMessages call (Bot API 10.1).
const deletedAtOnce = 100

// Edit implements autopost.Editor. It replaces the text, or the caption of the first medium, of each
// step with text. Telegram has no time limit for a bot's own posts.
func (a *Adapter) Edit(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	for _, step := range call.Delivery.RenderMeta.Steps {
		if !step.Text {
			continue
		}
		ids, failure := messageIDs(call.Delivery.RenderMeta.Progress.Steps[step.Name])
		if failure != nil {
			return failure
		}
		r, failure := s.edit(step, ids[0])
		if failure != nil {
			return failure
		}
		if failure := s.change(ctx, r); failure != nil {
			return failure
		}
	}
	return nil
}

// Delete implements autopost.Deleter. It skips messages that do not exist.
func (a *Adapter) Delete(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	ids, failure := messageIDs(call.Delivery.MessageIDs())
	if failure != nil {
		return failure
	}
	for chunk := range slices.Chunk(ids, deletedAtOnce) {
		r := s.request("deleteMessages", param{"message_ids", chunk})
		if len(chunk) == 1 {
			r = s.request("deleteMessage", param{"message_id", chunk[0]})
		}
		if failure := s.change(ctx, r); failure != nil {
			return failure
		}
	}
	return nil
}

// Pin implements autopost.Pinner. It pins the first message of each part, the last part first, so that part 1
// is on top.
func (a *Adapter) Pin(ctx context.Context, call autopost.Call) *autopost.Error {
	return a.pin(ctx, call, methodPin)
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
	ids, failure := messageIDs(call.Delivery.PartIDs())
	if failure != nil {
		return failure
	}
	for n := len(ids) - 1; n >= 0; n-- {
		r := s.request(method, param{"message_id", ids[n]})
		if n > 0 && method == methodPin { // one notification for the post
			r.add("disable_notification", true)
		}
		if failure := s.change(ctx, r); failure != nil {
			return failure
		}
	}
	return nil
}

// messageIDs parses ids as Telegram's. The result has at least one.
func messageIDs(ids []string) ([]int64, *autopost.Error) {
	out := make([]int64, len(ids))
	for i, id := range ids {
		if strings.HasPrefix(id, scheduledPrefix) {
			return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, "tg_id_unknown",
				"Telegram posted the message later and did not state its id: change it in the chat by hand")
		}
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

// request makes a request about existing messages of the chat.
func (s *sender) request(method string, more ...param) request {
	return request{method: method, params: append([]param{s.common[0]}, more...)}
}

// edit makes the request that replaces a step's text. Telegram drops what an edit does not repeat: the
// look of the preview, the position of the caption, the buttons.
func (s *sender) edit(step autopost.Step, id int64) (request, *autopost.Error) {
	meta, text := s.call.Delivery.RenderMeta, s.call.Delivery.StepText(step)
	r := s.request("editMessageText", param{"message_id", id}, param{"text", text})
	if len(step.Items) > 0 {
		medium, failure := adapter.Item(s.call.Delivery, step.Items[0])
		if failure != nil {
			return request{}, failure
		}
		r = s.request("editMessageCaption", param{"message_id", id}, param{"caption", text})
		r.captionAbove(s.settings, kinds[medium.Type].name)
	} else {
		r.preview(s.preview(text))
	}
	r.parseMode(meta, text)
	r.buttons(adapter.Buttons(meta, step))
	return r, nil
}

// change makes a call and returns its error. A change that is already in effect is a success.
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
	case failure == nil, failure.Code == codeInEffect:
		return nil
	case failure.Code == codeDelete:
		failure.Message += "; without the right can_delete_messages a bot deletes its own posts for 48 hours only: grant the right, or delete the post by hand"
	}
	return failure
}

var (
	_ autopost.Editor  = (*Adapter)(nil)
	_ autopost.Deleter = (*Adapter)(nil)
	_ autopost.Pinner  = (*Adapter)(nil)
)
