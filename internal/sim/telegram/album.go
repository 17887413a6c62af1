package telegram

import (
	"fmt"
	"slices"
	"strconv"
)

const albumLimit = 10

// inputMedia is one item of an album.
type inputMedia struct {
	Type      string   `json:"type"`
	Media     string   `json:"media"`
	Caption   string   `json:"caption"`
	ParseMode string   `json:"parse_mode"`
	Entities  []Entity `json:"caption_entities"`
	Spoiler   bool     `json:"has_spoiler"`
	Above     bool     `json:"show_caption_above_media"`
	Video
}

func (s *Server) sendMediaGroup(c call) (outcome, *refusal) {
	var items []inputMedia
	given, err := c.args.object("media", &items)
	switch {
	case err != nil:
		return outcome{}, badRequest("can't parse media JSON object")
	case !given:
		return outcome{}, badRequest("parameter \"media\" is required")
	case len(items) == 0:
		return outcome{}, badRequest("there are no messages to send")
	case len(items) > albumLimit:
		return outcome{}, badRequest("too many messages to send as an album")
	case len(items) == 1:
		c.note("an album of one item; it is sent as a plain message")
	}
	if c.args.values["reply_markup"] != "" {
		c.note("reply_markup is ignored for albums")
	}
	if refused := albumMix(items); refused != nil {
		return outcome{}, refused
	}
	messages, refused := s.albumMessages(c, items)
	if refused != nil {
		return outcome{}, refused
	}
	if refused := s.answers(c); refused != nil {
		return outcome{}, refused
	}
	to, refused := s.post(c, messages)
	if refused != nil {
		return outcome{}, refused
	}
	var shown []any
	scheduled := s.scheduleVideos && slices.ContainsFunc(items, func(item inputMedia) bool { return item.Type == "video" })
	for _, m := range messages {
		result := m.show(to)
		if scheduled {
			result["message_id"] = 0
		}
		shown = append(shown, result)
	}
	return outcome{result: shown, messages: messages}, nil
}

// albumMix checks that the items may form an album. Documents and audio files do not mix with other kinds.
// All visual items must have the same caption position, also those without a caption.
func albumMix(items []inputMedia) *refusal {
	for _, item := range items {
		switch item.Type {
		case "photo", "video", "document", "audio", "live_photo":
		case "animation":
			return badRequest("can't use the media of the specified type in the album")
		default:
			return badRequest("can't parse InputMedia: type \"" + item.Type + "\" is unsupported")
		}
		if item.Type != items[0].Type {
			for _, alone := range []string{"document", "audio"} {
				if item.Type == alone || items[0].Type == alone {
					return badRequest(alone + " can't be mixed with other media types")
				}
			}
		}
		if visual[item.Type] && item.Above != items[0].Above {
			return badRequest("parameter show_caption_above_media must be the same for all messages")
		}
	}
	return nil
}

func (s *Server) albumMessages(c call, items []inputMedia) ([]*message, *refusal) {
	groupID := ""
	if len(items) > 1 {
		s.serial++
		groupID = strconv.FormatUint(14_000_000_000_000_000+s.serial, 10)
	}
	var messages []*message
	c.log.Media = nil
	for i, item := range items {
		src := source{text: item.Caption, parseMode: item.ParseMode, entities: item.Entities}
		caption, refused := src.caption(c.note)
		if refused != nil {
			return nil, refused
		}
		if item.Media == "" {
			return nil, badRequest("can't parse InputMedia: media not found")
		}
		f, refused := s.input(c, item.Type, "", item.Media, badRequest("can't parse InputMedia: media not found"))
		if refused != nil {
			return nil, refused
		}
		if item.Spoiler {
			c.log.Badges = append(c.log.Badges, fmt.Sprint("spoiler ", i+1))
		}
		f.measure(c, item.Video)
		if item.Above {
			c.log.Badges = append(c.log.Badges, fmt.Sprint("caption above ", i+1))
		}
		if (item.Spoiler || item.Above) && !visual[item.Type] {
			c.note("a " + item.Type + " has no spoiler and no caption above it")
		}
		shown := f.media
		if i == 0 {
			c.log.Text, c.log.Marks = caption.text, caption.marks()
		} else {
			shown.Caption = caption.text
		}
		c.log.Media = append(c.log.Media, shown)
		messages = append(messages, &message{body: caption, file: f, groupID: groupID, captionAbove: item.Above && visual[item.Type]})
	}
	return messages, nil
}
