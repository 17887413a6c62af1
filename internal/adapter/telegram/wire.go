package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"autopost"
	"autopost/internal/adapter"
)

// param is a parameter of a method, in the order in which it goes out.
type param struct {
	name  string
	value any
}

type linkPreview struct {
	IsDisabled bool `json:"is_disabled"`
}

type replyParameters struct {
	MessageID                int64 `json:"message_id"`
	AllowSendingWithoutReply bool  `json:"allow_sending_without_reply"`
}

type inputMedia struct {
	Type      string `json:"type"`
	Media     string `json:"media"`
	Caption   string `json:"caption,omitempty"`
	ParseMode string `json:"parse_mode,omitempty"`
}

type keyboard struct {
	InlineKeyboard [][]autopost.Button `json:"inline_keyboard"`
}

func (s *sender) start() []param { return slices.Clone(s.common) }

func (r *request) add(name string, value any) { r.params = append(r.params, param{name, value}) }

func (r *request) parseMode(meta autopost.RenderMeta, text string) {
	if meta.ParseMode != "" && text != "" {
		r.add("parse_mode", meta.ParseMode)
	}
}

func (r *request) buttons(rows [][]autopost.Button) {
	if len(rows) > 0 {
		r.add("reply_markup", keyboard{rows})
	}
}

// message is what an answer tells of a message made.
type message struct {
	MessageID int64  `json:"message_id"`
	Date      int64  `json:"date"`
	Photo     []file `json:"photo"`
	Video     file   `json:"video"`
	Animation file   `json:"animation"`
	Audio     file   `json:"audio"`
	Document  file   `json:"document"`
}

type file struct {
	FileID string `json:"file_id"`
}

// fileID is empty when Telegram made something else of the upload.
func (m message) fileID(kind string) string {
	switch kind {
	case "photo":
		if len(m.Photo) > 0 {
			return m.Photo[len(m.Photo)-1].FileID // sizes in growing order
		}
	case "video":
		return m.Video.FileID
	case "animation":
		return m.Animation.FileID
	case "audio":
		return m.Audio.FileID
	case "document":
		return m.Document.FileID
	}
	return ""
}

func (s *sender) exchange(ctx context.Context, r request, items []item) ([]message, *autopost.Error) {
	answer, failure := s.ask(ctx, r, items)
	if failure != nil {
		return nil, failure
	}
	return read(answer, s.hide)
}

func (s *sender) ask(ctx context.Context, r request, items []item) (adapter.Answer, *autopost.Error) {
	target := s.adapter.base.JoinPath("bot"+url.PathEscape(s.call.Secret.Reveal()), r.method)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), nil)
	if err != nil {
		// The error quotes the URL.
		return adapter.Answer{}, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeBadToken, "the token makes no address")
	}
	if failure := s.attach(ctx, req, r, items); failure != nil {
		return adapter.Answer{}, failure
	}
	return adapter.Exchange(s.adapter.client, req, s.hide)
}

// attach makes the body: JSON, or a form where content goes along.
func (s *sender) attach(ctx context.Context, req *http.Request, r request, items []item) *autopost.Error {
	if len(r.uploads) == 0 {
		params := make(map[string]any, len(r.params))
		for _, p := range r.params {
			params[p.name] = p.value
		}
		body := encode(params)
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		req.Header.Set("Content-Type", "application/json")
		return nil
	}
	form := adapter.NewForm()
	for _, p := range r.params {
		text, ok := p.value.(string)
		if !ok {
			text = string(encode(p.value))
		}
		form.Field(p.name, text)
	}
	for _, name := range slices.Sorted(maps.Keys(r.uploads)) {
		content, failure := adapter.Open(ctx, s.call.Media, items[r.uploads[name]].medium, s.hide)
		if failure != nil {
			_ = form.Close()
			return failure
		}
		form.File(name, content)
	}
	form.Attach(req)
	return nil
}

// encode writes JSON. What the adapter encodes has no value that JSON lacks.
func encode(value any) []byte {
	out, err := json.Marshal(value)
	if err != nil {
		panic("telegram: encode: " + err.Error())
	}
	return out
}
