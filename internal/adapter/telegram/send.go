package telegram

import (
	"context"
	"slices"
	"strconv"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// kinds maps a medium to its method and to the name of its parameter, which is also
// the field of the answer that holds the file id, and the kind that the id is good for.
var kinds = map[autopost.MediaKind]struct{ method, name string }{
	autopost.MediaImage:     {"sendPhoto", "photo"},
	autopost.MediaVideo:     {"sendVideo", "video"},
	autopost.MediaAnimation: {"sendAnimation", "animation"},
	autopost.MediaAudio:     {"sendAudio", "audio"},
	autopost.MediaFile:      {"sendDocument", "document"},
}

// visual are the kinds that may be covered, and stand below their caption.
var visual = map[string]bool{"photo": true, "video": true, "animation": true}

// item is one medium of a step.
type item struct {
	medium  autopost.Media
	method  string
	kind    string
	caption string
	// fileID is Telegram's id; the content is uploaded when it is empty.
	fileID string
}

func (s *sender) step(ctx context.Context, step autopost.Step, answers string) (adapter.Receipt, *autopost.Error) {
	if len(step.Items) == 0 {
		return s.post(ctx, s.message(step, answers), nil)
	}
	items, failure := s.items(ctx, step)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	known := slices.ContainsFunc(items, func(it item) bool { return it.fileID != "" })
	receipt, failure := s.post(ctx, s.media(step, items), items)
	if failure == nil || !known || (failure.Code != autopost.CodeMediaExpired && failure.Code != codeURLFetch) {
		return receipt, failure
	}
	// The answer does not say which id is meant.
	for i := range items {
		s.forget(ctx, &items[i])
	}
	return s.post(ctx, s.media(step, items), items)
}

// items are the media of a step, with Telegram's ids where they are known.
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
				"medium "+strconv.Itoa(index)+" is of no kind that Telegram has")
		}
		items[i] = item{medium: medium, method: kind.method, kind: kind.name}
		switch {
		case i == 0 && step.Text:
			items[i].caption = s.call.Delivery.Said(step)
		case i < len(step.Captions) && step.Captions[i] != nil:
			items[i].caption = *step.Captions[i]
		}
		if failure := s.find(ctx, &items[i]); failure != nil {
			return nil, failure
		}
	}
	return items, nil
}

func (s *sender) find(ctx context.Context, it *item) *autopost.Error {
	if it.medium.FileID != "" {
		it.fileID = it.medium.FileID
		return nil
	}
	id, failure := adapter.Cached(ctx, s.call.Media, it.medium, it.kind)
	it.fileID = id
	return failure
}

// forget makes the item be uploaded. A failing cache does not matter here: the id of
// the upload will overwrite the refused one.
func (s *sender) forget(ctx context.Context, it *item) {
	if it.fileID != "" && it.medium.FileID == "" {
		_ = s.call.Media.Forget(ctx, it.medium.BlobRef, it.kind)
	}
	it.fileID = ""
}

// request is one call to be made.
type request struct {
	method string
	params []param
	// uploads are indexes of the items whose content goes along, by the name of their part.
	uploads map[string]int
}

func (s *sender) message(step autopost.Step, answers string) request {
	meta, text := s.call.Delivery.RenderMeta, s.call.Delivery.Said(step)
	r := request{method: "sendMessage", params: s.start()}
	r.add("text", text)
	r.parseMode(meta, text)
	if id, err := strconv.ParseInt(answers, 10, 64); err == nil {
		r.add("reply_parameters", replyParameters{MessageID: id, AllowSendingWithoutReply: true})
	}
	preview := s.settings.LinkPreview
	if meta.DisablePreview {
		preview = linkPreview{IsDisabled: true}
	}
	if preview != (linkPreview{}) {
		r.add("link_preview_options", preview)
	}
	r.buttons(adapter.Buttons(meta, step))
	return r
}

func (s *sender) media(step autopost.Step, items []item) request {
	if len(items) > 1 {
		return s.album(items)
	}
	it := items[0]
	r := request{method: it.method, params: s.start(), uploads: map[string]int{}}
	if it.fileID != "" {
		r.add(it.kind, it.fileID)
	} else {
		r.uploads[it.kind] = 0
	}
	if it.caption != "" {
		r.add("caption", it.caption)
	}
	r.parseMode(s.call.Delivery.RenderMeta, it.caption)
	if s.settings.HasSpoiler && visual[it.kind] {
		r.add("has_spoiler", true)
	}
	if s.settings.ShowCaptionAboveMedia && visual[it.kind] && it.caption != "" {
		r.add("show_caption_above_media", true)
	}
	r.buttons(adapter.Buttons(s.call.Delivery.RenderMeta, step))
	return r
}

// album has no buttons: sendMediaGroup knows no reply_markup.
func (s *sender) album(items []item) request {
	r := request{method: "sendMediaGroup", params: s.start(), uploads: map[string]int{}}
	group := make([]inputMedia, len(items))
	for i, it := range items {
		group[i] = inputMedia{Type: it.kind, Media: it.fileID, Caption: it.caption}
		if it.caption != "" {
			group[i].ParseMode = s.call.Delivery.RenderMeta.ParseMode
		}
		group[i].HasSpoiler = s.settings.HasSpoiler && visual[it.kind]
		group[i].ShowCaptionAboveMedia = s.settings.ShowCaptionAboveMedia && visual[it.kind] && it.caption != ""
		if it.fileID == "" {
			name := "f" + strconv.Itoa(i)
			group[i].Media = "attach://" + name
			r.uploads[name] = i
		}
	}
	r.add("media", group)
	return r
}

// post makes the call and keeps the ids of what was uploaded. A failing cache is no
// failure of the post, it costs one more upload some day.
func (s *sender) post(ctx context.Context, r request, items []item) (adapter.Receipt, *autopost.Error) {
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
	for _, m := range messages {
		receipt.IDs = append(receipt.IDs, strconv.FormatInt(m.MessageID, 10))
	}
	for _, i := range r.uploads {
		if i >= len(messages) {
			continue
		}
		if id := messages[i].fileID(items[i].kind); id != "" {
			_ = s.call.Media.Keep(ctx, items[i].medium.BlobRef, items[i].kind, id, time.Time{})
		}
	}
	return receipt, nil
}
