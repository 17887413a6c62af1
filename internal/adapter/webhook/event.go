package webhook

import (
	"context"
	"html"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"autopost"
	"autopost/internal/adapter"
)

// event is the body of a call. It depends only on the delivery, so a repeated call has the same bytes.
type event struct {
	// ID is also the header webhook-id. A receiver that knows the id has the post.
	ID   string `json:"id"`
	Type string `json:"type"`
	// Created is the creation time of the delivery.
	Created time.Time `json:"created,omitzero"`
	Channel string    `json:"channel"`
	// Part is the number of the call, from 1, if a post needs several calls; Parts is their count.
	Part  int `json:"part,omitempty"`
	Parts int `json:"parts,omitempty"`
	// Text is plain text. HTML is the same text with markup, if it has any.
	Text    string              `json:"text"`
	HTML    string              `json:"html,omitempty"`
	Link    string              `json:"link,omitempty"`
	Media   []medium            `json:"media,omitempty"`
	Buttons [][]autopost.Button `json:"buttons,omitempty"`
	// ReplyTo is the receiver's id of the part to which this one replies.
	ReplyTo string `json:"reply_to,omitempty"`
}

type medium struct {
	Type        autopost.MediaKind `json:"type"`
	ContentType string             `json:"content_type"`
	Size        int64              `json:"size"` // bytes
	SHA256      string             `json:"sha256"`
	Filename    string             `json:"filename,omitempty"`
	Caption     string             `json:"caption,omitempty"`
	Alt         string             `json:"alt,omitempty"`
	// Content is set if it is not larger than the channel's inline_media_bytes.
	Content []byte `json:"content,omitempty"`
}

var (
	kinds = []autopost.MediaKind{
		autopost.MediaImage, autopost.MediaVideo, autopost.MediaAudio, autopost.MediaFile, autopost.MediaAnimation,
	}
	tags = regexp.MustCompile(`<[^>]*>`)
)

// event returns the body of a step. The first step has the delivery's id.
func (s *sender) event(ctx context.Context, step autopost.Step, replyTo string) (event, *autopost.Error) {
	delivery := s.call.Delivery
	e := event{
		ID: delivery.DeliveryID, Type: "post", Channel: delivery.ChannelID, Text: delivery.StepText(step), Link: delivery.Payload.Link,
		Buttons: adapter.Buttons(delivery.RenderMeta, step), ReplyTo: replyTo,
	}
	if id, err := uuid.Parse(delivery.DeliveryID); err == nil && id.Version() == 7 {
		seconds, nanoseconds := id.Time().UnixTime()
		e.Created = time.Unix(seconds, nanoseconds).UTC()
	}
	if steps := delivery.RenderMeta.Steps; len(steps) > 1 {
		e.Part = 1 + slices.IndexFunc(steps, func(other autopost.Step) bool { return other.Name == step.Name })
		e.Parts = len(steps)
	}
	if e.Part > 1 {
		e.ID += "-" + strconv.Itoa(e.Part)
	}
	if delivery.RenderMeta.ParseMode == "HTML" && e.Text != "" {
		// In rendered text, every < and > outside tags is escaped.
		e.HTML, e.Text = e.Text, html.UnescapeString(tags.ReplaceAllString(e.Text, ""))
	}
	for _, index := range step.Items {
		item, failure := s.medium(ctx, index)
		if failure != nil {
			return event{}, failure
		}
		e.Media = append(e.Media, item)
	}
	return e, nil
}

// medium describes one medium of the media store, with its content if it is small enough.
func (s *sender) medium(ctx context.Context, index int) (medium, *autopost.Error) {
	item, failure := adapter.Item(s.call.Delivery, index)
	if failure != nil {
		return medium{}, failure
	}
	if !slices.Contains(kinds, item.Type) {
		return medium{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, "the kind of the medium is unknown")
	}
	content, failure := adapter.Open(ctx, s.call.Media, item, s.hide)
	if failure != nil {
		return medium{}, failure
	}
	defer func() { _ = content.Close() }()
	m := medium{
		Type: item.Type, ContentType: content.ContentType, Size: content.Size, SHA256: strings.TrimPrefix(item.BlobRef, "sha256:"),
		Filename: item.Meta.Filename, Caption: item.Caption, Alt: item.Alt,
	}
	if content.Size > s.inline {
		return m, nil
	}
	m.Content = make([]byte, content.Size)
	if _, err := io.ReadFull(content, m.Content); err != nil {
		return medium{}, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, adapter.CodeOriginUnavailable, s.hide.Text("read "+item.BlobRef+": "+err.Error()))
	}
	return m, nil
}
