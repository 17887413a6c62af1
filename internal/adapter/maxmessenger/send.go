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

// newMessage is the body of POST /messages. The schema requires the first three and
// takes null for each.
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

type keyboardPayload struct {
	Buttons [][]linkButton `json:"buttons"`
}

type linkButton struct {
	Type string `json:"type"`
	Text string `json:"text"`
	URL  string `json:"url"`
}

func (s *sender) step(ctx context.Context, step autopost.Step, answers string) (adapter.Receipt, *autopost.Error) {
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
	known := slices.ContainsFunc(items, func(it item) bool { return it.known })
	receipt, failure := s.post(ctx, step, items, answers)
	if failure == nil || !known || failure.Code != autopost.CodeMediaExpired {
		return receipt, failure
	}
	// The answer does not say which token is meant.
	for i := range items {
		s.forget(ctx, &items[i])
	}
	return s.post(ctx, step, items, answers)
}

// post uploads what has no token yet and sends the message.
func (s *sender) post(ctx context.Context, step autopost.Step, items []item, answers string) (adapter.Receipt, *autopost.Error) {
	body := s.message(step)
	if answers != "" {
		body.Link = &messageLink{Type: "reply", MID: answers}
	}
	for i := range items {
		if items[i].token == "" {
			if failure := s.upload(ctx, &items[i]); failure != nil {
				return adapter.Receipt{}, failure
			}
		}
		body.Attachments = append(body.Attachments, attachment{items[i].kind, tokenPayload{items[i].token}})
	}
	if rows := adapter.Buttons(s.call.Delivery.RenderMeta, step); len(rows) > 0 {
		body.Attachments = append(body.Attachments, attachment{"inline_keyboard", keyboardPayload{links(rows)}})
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

// message makes the body without its attachments. A step that carries no delivery
// text shows its media's captions, for attachments have none of their own.
func (s *sender) message(step autopost.Step) newMessage {
	text := s.call.Delivery.Said(step)
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
	if s.silent {
		body.Notify = new(bool)
	}
	return body
}

func links(rows [][]autopost.Button) [][]linkButton {
	out := make([][]linkButton, len(rows))
	for i, row := range rows {
		for _, button := range row {
			out[i] = append(out[i], linkButton{"link", button.Text, button.URL})
		}
	}
	return out
}

// exchange makes a call of the API; without a body where that is nil.
func (s *sender) exchange(ctx context.Context, method, path string, query url.Values, body any) (adapter.Answer, *autopost.Error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			panic("maxmessenger: encode a body: " + err.Error()) // the types have no value that JSON lacks
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

// request makes a call to the API itself: only here does the token go into a header, raw, without a scheme.
func (s *sender) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request, *autopost.Error) {
	target := s.adapter.base.JoinPath(path)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopePlatform, autopost.CodeValidationFailed, "the base URL makes no address")
	}
	req.Header.Set("Authorization", s.call.Secret.Reveal())
	return req, nil
}

// sent is what an answer tells of the message made.
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
