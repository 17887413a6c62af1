package maxmessenger

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// newMessage is the body of POST and PUT /messages. Some versions of the schema require the first three
// fields, which may be null.
type newMessage struct {
	Text        *string      `json:"text"`
	Attachments []attachment `json:"attachments"`
	Link        *messageLink `json:"link"`
	Notify      *bool        `json:"notify,omitempty"`
	Format      string       `json:"format,omitempty"`
}

type messageLink struct {
	Type string `json:"type"`
	MID  string `json:"mid"`
}

type attachment struct {
	Type    string `json:"type"`
	Payload any    `json:"payload"`
}

type tokenPayload struct {
	Token string `json:"token"`
}

type urlPayload struct {
	URL string `json:"url"`
}

type keyboardPayload struct {
	Buttons [][]button `json:"buttons"`
}

// button has a URL if its type is link, and a payload if it is callback.
type button struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	URL     string `json:"url,omitempty"`
	Payload string `json:"payload,omitempty"`
}

// step sends one step. If MAX rejects a token or what it should fetch, step uploads the content and sends
// once more.
func (s *sender) step(ctx context.Context, step autopost.Step, replyTo string) (adapter.Receipt, *autopost.Error) {
	items := make([]item, len(step.Items))
	for i, index := range step.Items {
		medium, failure := adapter.Item(s.call.Delivery, index)
		if failure != nil {
			return adapter.Receipt{}, failure
		}
		if items[i], failure = s.find(ctx, medium); failure != nil {
			return adapter.Receipt{}, failure
		}
	}
	cached := slices.ContainsFunc(items, func(it item) bool { return it.known })
	fetched := slices.ContainsFunc(items, func(it item) bool { return it.url != "" })
	receipt, failure := s.post(ctx, step, items, replyTo)
	if failure == nil || len(items) == 0 {
		return receipt, failure
	}
	notFetched := fetched && failure.Known && failure.Category == autopost.Permanent && failure.Scope == autopost.ScopeDelivery
	if failure.Code != autopost.CodeMediaExpired && !notFetched {
		return receipt, failure
	}
	// The answer does not state which one is meant. MAX also rejects tokens that it has just issued.
	for i := range items {
		if items[i].known || items[i].url != "" || (!cached && !fetched) {
			s.forget(ctx, &items[i])
		}
	}
	return s.post(ctx, step, items, replyTo)
}

// post uploads the items without a token and sends the message. replyTo is the id of the message to
// reply to.
func (s *sender) post(ctx context.Context, step autopost.Step, items []item, replyTo string) (adapter.Receipt, *autopost.Error) {
	body := s.message(step)
	silent, failure := s.silent(ctx)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	if silent {
		body.Notify = new(bool)
	}
	if replyTo != "" {
		body.Link = &messageLink{Type: "reply", MID: replyTo}
	}
	for i := range items {
		if items[i].url != "" {
			body.Attachments = append(body.Attachments, attachment{items[i].kind, urlPayload{items[i].url}})
			continue
		}
		if items[i].token == "" {
			if failure := s.upload(ctx, &items[i]); failure != nil {
				return adapter.Receipt{}, failure
			}
		}
		body.Attachments = append(body.Attachments, attachment{items[i].kind, tokenPayload{items[i].token}})
	}
	if rows := adapter.Buttons(s.call.Delivery.RenderMeta, step); len(rows) > 0 {
		body.Attachments = append(body.Attachments, attachment{"inline_keyboard", keyboardPayload{keys(rows)}})
	}
	query := url.Values{"chat_id": {s.chat}}
	if s.call.Delivery.RenderMeta.DisablePreview {
		query.Set("disable_link_preview", "true")
	}
	answer, failure := s.exchange(ctx, http.MethodPost, "messages", query, body)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	return read(answer, s.hide)
}

// message makes the body without attachments. Attachments have no captions, so that the captions of a
// step without text become the text of its message.
func (s *sender) message(step autopost.Step) newMessage {
	text := s.call.Delivery.StepText(step)
	if !step.Text {
		var captions []string
		for _, caption := range step.Captions {
			if caption != nil {
				captions = append(captions, *caption)
			}
		}
		text = strings.Join(captions, "\n\n")
	}
	var body newMessage
	if text != "" {
		body.Text = &text
		if s.call.Delivery.RenderMeta.ParseMode == "HTML" {
			body.Format = "html"
		}
	}
	return body
}

// silent reports whether the message is sent without a notification. A channel rejects notify=false, so
// silent first asks MAX for the type of the chat.
func (s *sender) silent(ctx context.Context) (bool, *autopost.Error) {
	if !s.disableNotification {
		return false, nil
	}
	if s.chatType == "" {
		var chat struct {
			Type string `json:"type"`
		}
		if failure := s.ask(ctx, &chat, nil, "chats", s.chat); failure != nil {
			if !failure.Known { // nothing was posted
				failure.Known, failure.Code = true, codeChatUnknown
			}
			return false, failure
		}
		s.chatType = chat.Type
	}
	return s.chatType == "chat" || s.chatType == "dialog", nil
}

func keys(rows [][]autopost.Button) [][]button {
	out := make([][]button, len(rows))
	for i, row := range rows {
		for _, b := range row {
			kind := "link"
			if b.Data != "" {
				kind = "callback"
			}
			out[i] = append(out[i], button{kind, b.Text, b.URL, b.Data})
		}
	}
	return out
}

// exchange makes a call to the API. A nil body is not sent.
func (s *sender) exchange(ctx context.Context, method, path string, query url.Values, body any) (adapter.Answer, *autopost.Error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			panic("maxmessenger: encode a body: " + err.Error()) // every body of this package can be JSON
		}
		content = bytes.NewReader(encoded)
	}
	req, failure := s.request(ctx, method, path, query, content)
	if failure != nil {
		return adapter.Answer{}, failure
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return adapter.Exchange(s.adapter.client, req, s.hide)
}

// request makes a request to the API, with the token as the whole Authorization header. Requests to
// other hosts do not have it.
func (s *sender) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request, *autopost.Error) {
	target := s.adapter.base.JoinPath(path)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopePlatform, autopost.CodeValidationFailed, "the base URL cannot be part of a URL")
	}
	req.Header.Set("Authorization", s.call.Secret.Reveal())
	return req, nil
}

// sent is a message in an answer.
type sent struct {
	Timestamp int64 `json:"timestamp"` // Unix time in milliseconds
	Body      struct {
		MID string `json:"mid"`
	} `json:"body"`
}

func (m sent) receipt() adapter.Receipt {
	receipt := adapter.Receipt{IDs: []string{m.Body.MID}}
	if m.Timestamp > 0 {
		receipt.SentAt = time.UnixMilli(m.Timestamp).UTC()
	}
	return receipt
}
