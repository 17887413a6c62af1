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

// Edit implements autopost.Editor. MAX edits a message of a chat or channel at any time;
// in a dialog for seven days, or as long as it has buttons.
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
			failure.Message += "; in a dialog MAX edits a message without buttons for seven days: send another"
		}
		if failure != nil {
			return failure
		}
	}
	return nil
}

// edited is the message as it is to be. Attachments that are null stay as they are: the
// media, and the buttons beside them; an empty list takes the buttons of a text away.
func (s *sender) edited(step autopost.Step) newMessage {
	body := s.message(step)
	if rows := adapter.Buttons(s.call.Delivery.RenderMeta, step); rows != nil && len(step.Items) == 0 {
		body.Attachments = []attachment{}
		if len(rows) > 0 {
			body.Attachments = append(body.Attachments, attachment{"inline_keyboard", keyboardPayload{links(rows)}})
		}
	}
	return body
}

// Delete implements autopost.Deleter. What is not there any more is passed over.
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

// Pin implements autopost.Pinner: the first message of the post takes the place of the one that was pinned.
func (a *Adapter) Pin(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	ids := call.Delivery.MessageIDs()
	if len(ids) == 0 {
		return adapter.NoID("")
	}
	return s.change(ctx, http.MethodPut, s.pinPath(), nil, pinMessage{ids[0], !s.silent})
}

// Unpin implements autopost.Pinner. MAX unpins whatever is pinned, so it is asked first.
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

// change makes a call that is answered by whether it succeeded.
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

// refusal is what an answer that is no success says about a message that was sent: that
// it is not there concerns the message alone.
func (s *sender) refusal(answer adapter.Answer) *autopost.Error {
	_, failure := read(answer, s.hide)
	if failure == nil { // a message, where none was asked for
		failure = adapter.Unknown("the answer does not say whether it was done")
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
