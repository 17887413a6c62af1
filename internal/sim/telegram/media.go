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

	maxMeasured  = 10 << 20 // bytes of a video that the server measures itself
	unmeasured   = 320      // pixels of each side of a larger one without dimensions
	maxVideoSide = 10_000   // pixels
	maxDuration  = 86_400   // seconds
)

// visual are the kinds that show a picture: they have a spoiler and a caption that may be above.
var visual = map[string]bool{"photo": true, "video": true, "animation": true, "live_photo": true}

// file is a stored medium under one of its ids.
type file struct {
	id, uniqueID  string
	botID         int64
	kind          string
	media         sim.Media
	width, height int
	// video is set for videos and animations.
	video *Video
}

// idPrefix makes file ids look like the platform's, kind by kind.
var idPrefix = map[string]string{
	"photo": "AgACAgIAAx0S", "video": "BAACAgIAAx0S", "animation": "CgACAgIAAx0S",
	"audio": "CQACAgIAAx0S", "document": "BQACAgIAAx0S",
}

// input returns the medium of a parameter: a file part with the parameter's name, attach://part, a URL or a
// file id. missing is the error if there is none.
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
		return false // unknown
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
	if kind == "video" || kind == "animation" {
		f.video = &Video{Width: 1, Height: 1, Duration: 1}
	}
	s.files[f.id] = f
	return f
}

func (s *Server) known(c call, kind, value string) (*file, *refusal) {
	if strings.Contains(value, "://") {
		u, err := url.Parse(value)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, badRequest("wrong HTTP URL specified")
		}
		c.note("the simulator does not fetch media by URL")
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

// measure sets the dimensions of an uploaded video. The server knows those of a large one only if the
// call states them.
func (f *file) measure(c call, given Video) {
	if !f.media.Uploaded || (f.kind != "video" && f.kind != "animation") {
		return
	}
	f.video = &Video{
		Width: min(given.Width, maxVideoSide), Height: min(given.Height, maxVideoSide), Duration: min(given.Duration, maxDuration),
		Streaming: given.Streaming && f.kind == "video",
	}
	if given.Width > 0 && given.Height > 0 && given.Duration > 0 {
		return
	}
	if f.media.Size <= maxMeasured {
		f.video.Width, f.video.Height, f.video.Duration = max(1, f.video.Width), max(1, f.video.Height), max(1, f.video.Duration)
		return
	}
	c.note("a " + f.kind + " over 10 MB without width, height and duration is shown as a square")
	f.video.Width, f.video.Height, f.video.Duration = unmeasured, unmeasured, 0
}

// describe returns the medium in the form of the API.
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
		shown := sized(f.id, f.video.Width, f.video.Height, f.media.Size)
		shown["duration"] = f.video.Duration
		shown["file_name"] = f.media.Filename
		return shown
	case "audio":
		return map[string]any{"file_id": f.id, "file_unique_id": f.uniqueID, "file_size": f.media.Size, "duration": 1, "file_name": f.media.Filename}
	default:
		return map[string]any{"file_id": f.id, "file_unique_id": f.uniqueID, "file_size": f.media.Size, "file_name": f.media.Filename}
	}
}
