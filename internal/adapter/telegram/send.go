package telegram

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// kinds maps a medium to its method and its name. The name is that of the parameter, of the answer's
// field with the file id, and of the kind under which the id is cached.
var kinds = map[autopost.MediaKind]struct{ method, name string }{
	autopost.MediaImage:     {"sendPhoto", "photo"},
	autopost.MediaVideo:     {"sendVideo", "video"},
	autopost.MediaAnimation: {"sendAnimation", "animation"},
	autopost.MediaAudio:     {"sendAudio", "audio"},
	autopost.MediaFile:      {"sendDocument", "document"},
}

// visual are the kinds that can have a spoiler and a caption above them.
var visual = map[string]bool{"photo": true, "video": true, "animation": true}

// scheduledPrefix begins our id of a message that Telegram accepted with message_id 0: it posts a video to
// a large chat later, under an id that it does not state. The message is sent and never sent again.
const scheduledPrefix = "scheduled-"

// item is one medium of a step.
type item struct {
	medium  autopost.Media
	method  string
	kind    string
	caption string
	// fileID is Telegram's id; if it is empty, the call uploads the content.
	fileID string
	// size is that of a video that is uploaded; zero if the file does not state it.
	size adapter.VideoSize
}

// step sends one step. If Telegram rejects a known file id, it uploads the content and sends again.
func (s *sender) step(ctx context.Context, step autopost.Step, replyTo string) (adapter.Receipt, *autopost.Error) {
	if len(step.Items) == 0 {
		return s.post(ctx, step, s.message(step, replyTo), nil)
	}
	items, failure := s.items(ctx, step)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	known := slices.ContainsFunc(items, func(it item) bool { return it.fileID != "" })
	s.measure(ctx, items)
	receipt, failure := s.post(ctx, step, s.media(step, items, replyTo), items)
	if failure == nil || !known || (failure.Code != autopost.CodeMediaExpired && failure.Code != codeURLFetch) {
		return receipt, failure
	}
	// The answer does not state which id is meant.
	for i := range items {
		s.forget(ctx, &items[i])
	}
	s.measure(ctx, items)
	return s.post(ctx, step, s.media(step, items, replyTo), items)
}

// items returns the media of a step, with Telegram's ids as far as they are known.
func (s *sender) items(ctx context.Context, step autopost.Step) ([]item, *autopost.Error) {
	items := make([]item, len(step.Items))
	for i, index := range step.Items {
		medium, failure := adapter.Item(s.call.Delivery, index)
		if failure != nil {
			return nil, failure
		}
		kind, ok := kinds[medium.Type]
		if !ok {
			return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed,
				fmt.Sprintf("media[%d].type must be image, video, animation, audio or file, got %q", index, medium.Type))
		}
		items[i] = item{medium: medium, method: kind.method, kind: kind.name}
		switch {
		case i == 0 && step.Text:
			items[i].caption = s.call.Delivery.StepText(step)
		case i < len(step.Captions) && step.Captions[i] != nil:
			items[i].caption = *step.Captions[i]
		}
		if failure := s.find(ctx, &items[i]); failure != nil {
			return nil, failure
		}
	}
	return items, nil
}

// find looks up Telegram's id of an item.
func (s *sender) find(ctx context.Context, it *item) *autopost.Error {
	if it.medium.FileID != "" {
		it.fileID = it.medium.FileID
		return nil
	}
	id, failure := adapter.Cached(ctx, s.call.Media, it.medium, it.kind)
	it.fileID = id
	return failure
}

// measure finds the sizes of the videos and sounds that the call uploads, in the post or in the file:
// Telegram itself measures small files only. Content that cannot be read is reported by the upload.
func (s *sender) measure(ctx context.Context, items []item) {
	for i := range items {
		it := &items[i]
		if it.fileID != "" || !slices.Contains([]string{"video", "animation", "audio"}, it.kind) {
			continue
		}
		given := adapter.VideoSize{Seconds: int(math.Ceil(it.medium.Meta.Duration))}
		if it.kind != "audio" && it.medium.Meta.Height > 0 {
			given.Width, given.Height = it.medium.Meta.Width, it.medium.Meta.Height
		}
		if it.kind == "audio" || given.Width > 0 {
			it.size = given
			continue
		}
		content, failure := adapter.Open(ctx, s.call.Media, it.medium, s.hide)
		if failure != nil {
			continue
		}
		it.size, _ = adapter.MeasureVideo(content)
		_ = content.Close()
	}
}

// forget drops the id of an item, so that its content is uploaded.
func (s *sender) forget(ctx context.Context, it *item) {
	if it.fileID != "" && it.medium.FileID == "" {
		adapter.Forget(ctx, s.call.Media, it.medium, it.kind)
	}
	it.fileID = ""
}

// request is a call.
type request struct {
	method string
	params []param
	// uploads maps the name of a file part to the index of the item with its content.
	uploads map[string]int
}

// message makes the request for a step without media. replyTo is the id of the message to reply to.
func (s *sender) message(step autopost.Step, replyTo string) request {
	meta, text := s.call.Delivery.RenderMeta, s.call.Delivery.StepText(step)
	r := request{method: "sendMessage", params: slices.Clone(s.common)}
	r.add("text", text)
	r.parseMode(meta, text)
	r.replyTo(step, replyTo)
	r.preview(s.preview(text))
	r.buttons(adapter.Buttons(meta, step))
	return r
}

// media makes the request for a step with media. replyTo is the id of the message to reply to.
func (s *sender) media(step autopost.Step, items []item, replyTo string) request {
	if len(items) > 1 {
		r := s.album(items)
		r.replyTo(step, replyTo)
		return r
	}
	it := items[0]
	r := request{method: it.method, params: slices.Clone(s.common), uploads: map[string]int{}}
	if it.fileID != "" {
		r.add(it.kind, it.fileID)
	} else {
		r.uploads[it.kind] = 0
	}
	if it.caption != "" {
		r.add("caption", it.caption)
	}
	r.parseMode(s.call.Delivery.RenderMeta, it.caption)
	r.replyTo(step, replyTo)
	if s.settings.HasSpoiler && visual[it.kind] {
		r.add("has_spoiler", true)
	}
	if it.caption != "" {
		r.captionAbove(s.settings, it.kind)
	}
	r.size(it)
	r.buttons(adapter.Buttons(s.call.Delivery.RenderMeta, step))
	return r
}

// album makes a request without buttons: sendMediaGroup has no reply_markup. All visual items have the
// same caption position, else Telegram refuses the album.
func (s *sender) album(items []item) request {
	r := request{method: "sendMediaGroup", params: slices.Clone(s.common), uploads: map[string]int{}}
	group := make([]inputMedia, len(items))
	for i, it := range items {
		group[i] = inputMedia{Type: it.kind, Media: it.fileID, Caption: it.caption}
		if it.caption != "" {
			group[i].ParseMode = s.call.Delivery.RenderMeta.ParseMode
		}
		group[i].HasSpoiler = s.settings.HasSpoiler && visual[it.kind]
		group[i].ShowCaptionAboveMedia = s.settings.ShowCaptionAboveMedia && visual[it.kind]
		if it.size != (adapter.VideoSize{}) {
			group[i].Width, group[i].Height, group[i].Duration, group[i].SupportsStreaming = it.size.Width, it.size.Height, it.size.Seconds, it.kind == "video"
		}
		if it.fileID == "" {
			name := "f" + strconv.Itoa(i)
			group[i].Media = "attach://" + name
			r.uploads[name] = i
		}
	}
	r.add("media", group)
	return r
}

// post makes the call and caches the ids of uploads.
func (s *sender) post(ctx context.Context, step autopost.Step, r request, items []item) (adapter.Receipt, *autopost.Error) {
	messages, failure := s.exchange(ctx, r, items)
	if failure != nil && failure.Moved != nil {
		failure.Moved.From = s.chat
	}
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	var receipt adapter.Receipt
	if date := messages[0].Date; date > 0 {
		receipt.SentAt = time.Unix(date, 0).UTC()
	}
	for i, m := range messages {
		id := strconv.FormatInt(*m.MessageID, 10)
		if *m.MessageID == 0 {
			id = fmt.Sprintf("%s%s-%s-%d", scheduledPrefix, s.call.Delivery.DeliveryID, step.Name, i)
		}
		receipt.IDs = append(receipt.IDs, id)
	}
	for _, i := range r.uploads {
		if i >= len(messages) {
			continue
		}
		if id := messages[i].fileID(items[i].kind); id != "" {
			adapter.Keep(ctx, s.call.Media, items[i].medium, items[i].kind, id)
		}
	}
	return receipt, nil
}
