package maxmessenger

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"autopost"
	"autopost/internal/adapter"
)

// Edit implements autopost.Editor. MAX has no time limit in groups and channels. In a dialog it edits a
// message without buttons for seven days.
func (a *Adapter) Edit(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	for _, step := range call.Delivery.RenderMeta.Steps {
		if !step.Text {
			continue
		}
		id := call.Delivery.RenderMeta.Progress.Steps[step.Name]
		if len(id) != 1 || id[0] == "" {
			return adapter.NoID(fmt.Sprint(id))
		}
		failure := s.change(ctx, http.MethodPut, "messages", url.Values{"message_id": id}, s.edited(step))
		if failure != nil && failure.Code == codeSimpleError {
			failure.Message += "; in a dialog MAX edits a message without buttons for seven days only: send a new post"
		}
		if failure != nil {
			return failure
		}
	}
	return nil
}

// edited returns the new content of a step's message. MAX keeps attachments if they are null, with media
// and buttons. An empty list removes the buttons of a text.
func (s *sender) edited(step autopost.Step) newMessage {
	body := s.message(step)
	if rows := adapter.Buttons(s.call.Delivery.RenderMeta, step); rows != nil && len(step.Items) == 0 {
		body.Attachments = []attachment{}
		if len(rows) > 0 {
			body.Attachments = append(body.Attachments, attachment{"inline_keyboard", keyboardPayload{keys(rows)}})
		}
	}
	return body
}

// Delete implements autopost.Deleter. It skips messages that do not exist.
func (a *Adapter) Delete(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	ids := call.Delivery.MessageIDs()
	if len(ids) == 0 {
		return adapter.NoID("")
	}
	for _, id := range ids {
		failure := s.change(ctx, http.MethodDelete, "messages", url.Values{"message_id": {id}}, nil)
		if failure != nil && failure.Code != codeNotFound {
			return failure
		}
	}
	return nil
}

// pinMessage is the body of PUT /chats/{id}/pin.
type pinMessage struct {
	MessageID string `json:"message_id"`
	Notify    bool   `json:"notify"`
}

// Pin implements autopost.Pinner. It pins the first message of the post, in place of the pinned one.
func (a *Adapter) Pin(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	ids := call.Delivery.MessageIDs()
	if len(ids) == 0 {
		return adapter.NoID("")
	}
	return s.change(ctx, http.MethodPut, s.pinPath(), nil, pinMessage{ids[0], !s.disableNotification})
}

// Unpin implements autopost.Pinner. MAX unpins any message, so Unpin first asks which one is pinned.
func (a *Adapter) Unpin(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	ids := call.Delivery.MessageIDs()
	if len(ids) == 0 {
		return adapter.NoID("")
	}
	answer, failure := s.exchange(ctx, http.MethodGet, s.pinPath(), nil, nil)
	if failure != nil {
		return failure
	}
	var pinned struct {
		Message *sent `json:"message"`
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &pinned) != nil {
		return s.refusal(answer)
	}
	if pinned.Message == nil || pinned.Message.Body.MID != ids[0] {
		return nil
	}
	return s.change(ctx, http.MethodDelete, s.pinPath(), nil, nil)
}

func (s *sender) pinPath() string { return "chats/" + s.chat + "/pin" }

// change makes a call that answers {"success": true}, and returns its error.
func (s *sender) change(ctx context.Context, method, path string, query url.Values, body any) *autopost.Error {
	answer, failure := s.exchange(ctx, method, path, query, body)
	if failure != nil {
		return failure
	}
	if r, ok := parse(answer); ok && answer.Status < 300 && r.Success != nil && *r.Success {
		return nil
	}
	return s.refusal(answer)
}

// refusal returns the error of a failed change. A missing message concerns only this post.
func (s *sender) refusal(answer adapter.Answer) *autopost.Error {
	_, failure := read(answer, s.hide)
	if failure == nil { // the answer is a message
		failure = adapter.Unknown("the answer does not state the result of the change")
	}
	if failure.Code == codeNotFound {
		failure.Scope = autopost.ScopeDelivery
	}
	return failure
}

var (
	_ autopost.Editor  = (*Adapter)(nil)
	_ autopost.Deleter = (*Adapter)(nil)
	_ autopost.Pinner  = (*Adapter)(nil)
)
