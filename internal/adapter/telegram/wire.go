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
	"strconv"

	"autopost"
	"autopost/internal/adapter"
)

// param is a parameter of a method.
type param struct {
	name  string
	value any
}

type linkPreview struct {
	IsDisabled       bool   `json:"is_disabled,omitempty"`
	URL              string `json:"url,omitempty"`
	PreferSmallMedia bool   `json:"prefer_small_media,omitempty"`
	PreferLargeMedia bool   `json:"prefer_large_media,omitempty"`
	ShowAboveText    bool   `json:"show_above_text,omitempty"`
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

	HasSpoiler            bool `json:"has_spoiler,omitempty"`
	ShowCaptionAboveMedia bool `json:"show_caption_above_media,omitempty"`

	Width             int  `json:"width,omitempty"`
	Height            int  `json:"height,omitempty"`
	Duration          int  `json:"duration,omitempty"`
	SupportsStreaming bool `json:"supports_streaming,omitempty"`
}

type keyboard struct {
	InlineKeyboard [][]inlineButton `json:"inline_keyboard"`
}

// inlineButton has either a URL or callback data.
type inlineButton struct {
	Text         string `json:"text"`
	URL          string `json:"url,omitempty"`
	CallbackData string `json:"callback_data,omitempty"`
}

func (r *request) add(name string, value any) { r.params = append(r.params, param{name, value}) }

func (r *request) parseMode(meta autopost.RenderMeta, text string) {
	if meta.ParseMode != "" && text != "" {
		r.add("parse_mode", meta.ParseMode)
	}
}

// replyTo makes a message reply to another one of the delivery. A part of a thread is also sent if that one
// is gone; a comment then has no post.
func (r *request) replyTo(step autopost.Step, id string) {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		r.add("reply_parameters", replyParameters{MessageID: n, AllowSendingWithoutReply: !step.Comment})
	}
}

func (r *request) buttons(rows [][]autopost.Button) {
	if len(rows) == 0 {
		return
	}
	shown := make([][]inlineButton, len(rows))
	for i, row := range rows {
		for _, b := range row {
			shown[i] = append(shown[i], inlineButton{b.Text, b.URL, b.Data})
		}
	}
	r.add("reply_markup", keyboard{shown})
}

func (r *request) preview(options linkPreview) {
	if options != (linkPreview{}) {
		r.add("link_preview_options", options)
	}
}

func (r *request) captionAbove(channel settings, kind string) {
	if channel.ShowCaptionAboveMedia && visual[kind] {
		r.add("show_caption_above_media", true)
	}
}

// size adds the size of an uploaded video or sound. Only a video has supports_streaming.
func (r *request) size(it item) {
	if it.size.Width > 0 {
		r.add("width", it.size.Width)
		r.add("height", it.size.Height)
	}
	if it.size.Seconds > 0 {
		r.add("duration", it.size.Seconds)
	}
	if it.kind == "video" && it.size.Width > 0 {
		r.add("supports_streaming", true)
	}
}

// message is a message in an answer.
type message struct {
	// MessageID is 0 if Telegram posts the message later.
	MessageID *int64 `json:"message_id"`
	Date      int64  `json:"date"`
	Photo     []file `json:"photo"`
	Video     file   `json:"video"`
	Animation file   `json:"animation"`
	Audio     file   `json:"audio"`
	Document  file   `json:"document"`
	Text      string `json:"text"`
	Caption   string `json:"caption"`

	ForwardOrigin origin `json:"forward_origin"`
}

// origin is the author of a forwarded message and the time when it was posted.
type origin struct {
	Type string `json:"type"`
	Date int64  `json:"date"`
	Chat struct {
		ID int64 `json:"id"`
	} `json:"chat"`
	SenderChat struct {
		ID int64 `json:"id"`
	} `json:"sender_chat"`
	SenderUser struct {
		ID int64 `json:"id"`
	} `json:"sender_user"`
}

type file struct {
	FileID string `json:"file_id"`
}

// kind is the kind of the message's medium; "" for a text.
func (m message) kind() string {
	for _, kind := range []string{"photo", "animation", "video", "audio", "document"} { // an animation also has a document
		if m.fileID(kind) != "" {
			return kind
		}
	}
	return ""
}

// fileID is the id of the medium; "" if it is of another kind. Telegram may convert an upload.
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

// exchange makes a call and returns the messages that it made.
func (s *sender) exchange(ctx context.Context, r request, items []item) ([]message, *autopost.Error) {
	answer, failure := s.ask(ctx, r, items)
	if failure != nil {
		return nil, failure
	}
	return read(answer, s.hide)
}

// ask makes a call and returns the answer.
func (s *sender) ask(ctx context.Context, r request, items []item) (adapter.Answer, *autopost.Error) {
	target := s.adapter.base.JoinPath("bot"+url.PathEscape(s.call.Secret.Reveal()), r.method)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), nil)
	if err != nil {
		return adapter.Answer{}, badToken()
	}
	if failure := s.attach(ctx, req, r, items); failure != nil {
		return adapter.Answer{}, failure
	}
	return adapter.Exchange(s.adapter.client, req, s.hide)
}

// attach sets the body: JSON, or a form if the call uploads content.
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

// encode returns JSON. It panics if value cannot be JSON, which no value of this package is.
func encode(value any) []byte {
	out, err := json.Marshal(value)
	if err != nil {
		panic("telegram: encode: " + err.Error())
	}
	return out
}
