package telegram

import (
	"fmt"
	"net/url"
	"strings"

	"autopost/internal/sim"
)

const (
	maxPhoto     = 10 << 20 // bytes
	maxPhotoSide = 10_000   // width + height in pixels
	maxRatio     = 20
)

// file is a stored medium under one of its ids.
type file struct {
	id, uniqueID  string
	botID         int64
	kind          string
	media         sim.Media
	width, height int
}

// idPrefix makes file ids look like the platform's, kind by kind.
var idPrefix = map[string]string{
	"photo": "AgACAgIAAx0S", "video": "BAACAgIAAx0S", "animation": "CgACAgIAAx0S",
	"audio": "CQACAgIAAx0S", "document": "BQACAgIAAx0S",
}

// input finds the medium that a parameter names: a file part of the parameter's
// own name, attach://part, a URL, or a file id. missing is the refusal when
// there is none.
func (s *Server) input(c call, kind, name, value string, missing *refusal) (*file, *refusal) {
	if part, ok := strings.CutPrefix(value, "attach://"); ok {
		name = part
	} else if value != "" {
		return s.known(c, kind, value)
	}
	up, ok := c.args.uploads[name]
	if !ok {
		return nil, missing
	}
	switch {
	case up.Size == 0:
		return nil, badRequest("file must be non-empty")
	case kind == "photo" && up.Size > maxPhoto:
		return nil, badRequest("file is too big")
	case kind == "photo" && !up.image:
		return nil, badRequest("IMAGE_PROCESS_FAILED")
	case kind == "photo" && badDimensions(up.width, up.height):
		return nil, badRequest("PHOTO_INVALID_DIMENSIONS")
	}
	return s.store(c.bot, kind, up), nil
}

func badDimensions(width, height int) bool {
	if width == 0 || height == 0 {
		return false // not readable here
	}
	return width+height > maxPhotoSide || width > maxRatio*height || height > maxRatio*width
}

func (s *Server) store(b *bot, kind string, up upload) *file {
	s.serial++
	f := &file{
		id:       fmt.Sprintf("%s%x_%d_%d", idPrefix[kind], s.serial, b.id, len(kind)),
		uniqueID: "AQAD" + up.Digest[:min(12, len(up.Digest))],
		botID:    b.id, kind: kind, media: up.Media, width: up.width, height: up.height,
	}
	f.media.Kind = kind
	s.files[f.id] = f
	return f
}

func (s *Server) known(c call, kind, value string) (*file, *refusal) {
	if strings.Contains(value, "://") {
		u, err := url.Parse(value)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, badRequest("wrong HTTP URL specified")
		}
		c.note("media by URL is taken unseen")
		return s.store(c.bot, kind, upload{Media: sim.Media{URL: value}}), nil
	}
	f := s.files[value]
	if f == nil || f.botID != c.bot.id || f.kind != kind {
		return nil, badRequest("wrong file_id or the file is temporarily unavailable")
	}
	reused := *f
	reused.media.Uploaded = false
	reused.media.ID = f.id
	return &reused, nil
}

// describe is the medium as the API shows it inside a message.
func (f *file) describe() any {
	sized := func(id string, width, height int, size int64) map[string]any {
		return map[string]any{"file_id": id, "file_unique_id": f.uniqueID, "file_size": size, "width": width, "height": height}
	}
	switch f.kind {
	case "photo":
		width, height := max(1, f.width), max(1, f.height)
		big := sized(f.id, width, height, f.media.Size)
		if width <= 90 && height <= 90 {
			return []any{big}
		}
		scale := 90 / float64(max(width, height))
		small := sized(f.id+"s", max(1, int(scale*float64(width))), max(1, int(scale*float64(height))), min(f.media.Size, 1200))
		return []any{small, big}
	case "video", "animation":
		shown := sized(f.id, max(1, f.width), max(1, f.height), f.media.Size)
		shown["duration"] = 1
		shown["file_name"] = f.media.Filename
		return shown
	case "audio":
		return map[string]any{"file_id": f.id, "file_unique_id": f.uniqueID, "file_size": f.media.Size, "duration": 1, "file_name": f.media.Filename}
	default:
		return map[string]any{"file_id": f.id, "file_unique_id": f.uniqueID, "file_size": f.media.Size, "file_name": f.media.Filename}
	}
}
