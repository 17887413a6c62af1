package youtube

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // thumbnails
	_ "image/png"  // thumbnails
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"autopost/internal/sim"
)

const (
	maxThumbnail   = 50 << 20  // bytes
	maxCaption     = 100 << 20 // bytes
	maxCaptionName = 150       // characters
)

// caption is a subtitle track.
type caption struct {
	id, language, name string
	draft              bool
	updated            time.Time
}

// extended finds the video of a thumbnail or of captions. A new video is not found at once.
func (s *Server) extended(c *call, id string) (*video, *refusal) {
	v, refused := s.ownVideo(c, id)
	if refused == nil && time.Now().Before(v.found) {
		return nil, because("videoNotFound")
	}
	return v, refused
}

func (s *Server) setThumbnail(c *call) (outcome, *refusal) {
	id := c.query.Get("videoId")
	if id == "" {
		return outcome{}, wrong("missingRequiredParameter", "Required parameter: videoId", "videoId")
	}
	v, refused := s.extended(c, id)
	if refused != nil {
		return outcome{}, refused
	}
	c.log.Media = []sim.Media{{Kind: "thumbnail", Digest: sim.Digest(c.body), Size: int64(len(c.body)), Uploaded: true}}
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	_, format, imageErr := image.DecodeConfig(bytes.NewReader(c.body))
	switch {
	case v.channel.Unverified:
		return outcome{}, wrong("forbidden", "The authenticated user doesn't have permissions to upload and set custom video thumbnails.", "")
	case err != nil || !slices.Contains([]string{"image/jpeg", "image/png", "application/octet-stream"}, kind):
		return outcome{}, wrong("badRequest", "Media type '"+kind+"' is not supported. Valid media types: [image/jpeg, image/png, application/octet-stream]", "")
	case len(c.body) == 0:
		return outcome{}, wrong("mediaBodyRequired", "The request does not include the image content.", "")
	case len(c.body) > maxThumbnail:
		return outcome{}, because("uploadTooLarge")
	case imageErr != nil:
		return outcome{}, because("invalidImage")
	case kind != "application/octet-stream" && kind != "image/"+format:
		return outcome{}, because("imageFormatUnsupported")
	}
	v.thumbnail = c.log.Media[0]
	v.thumbnail.Uploaded = false
	return outcome{body: map[string]any{
		"kind": "youtube#thumbnailSetResponse", "etag": etag(v.thumbnail.Digest), "items": []any{v.showThumbnails()},
	}}, nil
}

func (v *video) showThumbnails() map[string]any {
	sizes := map[string]any{}
	for name, size := range map[string][2]int{"default": {120, 90}, "medium": {320, 180}, "high": {480, 360}} {
		file := map[string]string{"default": "default", "medium": "mqdefault", "high": "hqdefault"}[name]
		sizes[name] = map[string]any{"url": "https://i.ytimg.com/vi/" + v.id + "/" + file + ".jpg", "width": size[0], "height": size[1]}
	}
	return sizes
}

// captionBody has both parts of captions.insert.
type captionBody struct {
	Snippet struct {
		VideoID  string `json:"videoId"`
		Language string `json:"language"`
		Name     string `json:"name"`
		IsDraft  bool   `json:"isDraft"`
	} `json:"snippet"`
}

func (s *Server) insertCaption(c *call) (outcome, *refusal) {
	if _, refused := c.parts(); refused != nil {
		return outcome{}, refused
	}
	body, content, refused := c.related()
	if refused != nil {
		return outcome{}, refused
	}
	sn := body.Snippet
	c.log.Media = []sim.Media{{Kind: "captions", Digest: sim.Digest(content), Size: int64(len(content)), Filename: sn.Language, Caption: sn.Name, Uploaded: true}}
	v, refused := s.extended(c, sn.VideoID)
	if refused != nil {
		return outcome{}, refused
	}
	switch {
	case !language.MatchString(sn.Language):
		return outcome{}, because("invalidMetadata")
	case utf8.RuneCountInString(sn.Name) > maxCaptionName:
		return outcome{}, wrong("nameTooLong", "The name is longer than 150 characters.", "")
	case len(bytes.TrimSpace(content)) == 0:
		return outcome{}, because("contentRequired")
	case len(content) > maxCaption:
		return outcome{}, because("uploadTooLarge")
	case slices.ContainsFunc(v.captions, func(o caption) bool { return o.language == sn.Language && o.name == sn.Name }):
		return outcome{}, because("captionExists")
	}
	made := caption{id: "AUieDa" + s.newName("caption", 30), language: sn.Language, name: sn.Name, draft: sn.IsDraft, updated: time.Now()}
	v.captions = append(v.captions, made)
	return outcome{body: made.show(v)}, nil
}

func (t caption) show(v *video) map[string]any {
	return map[string]any{"kind": "youtube#caption", "etag": etag(t.id), "id": t.id, "snippet": map[string]any{
		"videoId": v.id, "lastUpdated": t.updated.UTC().Format(time.RFC3339), "trackKind": "standard", "language": t.language, "name": t.name,
		"audioTrackType": "unknown", "isCC": false, "isLarge": false, "isEasyReader": false, "isDraft": t.draft, "isAutoSynced": false, "status": "serving",
	}}
}

// related reads a multipart/related body: JSON, then the content.
func (c *call) related() (body captionBody, content []byte, refused *refusal) {
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" || c.query.Get("uploadType") != "multipart" {
		return body, nil, wrong("badRequest", "The simulator takes captions with uploadType=multipart and a multipart/related body only.", "uploadType")
	}
	reader := multipart.NewReader(bytes.NewReader(c.body), params["boundary"])
	var parts [][]byte
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return body, nil, wrong("badRequest", "Malformed multipart body.", "")
		}
		read, err := io.ReadAll(part)
		if err != nil {
			return body, nil, wrong("badRequest", "Malformed multipart body.", "")
		}
		if len(parts) == 0 && !strings.HasPrefix(part.Header.Get("Content-Type"), "application/json") {
			return body, nil, wrong("badRequest", "The first part of the body is not application/json.", "")
		}
		parts = append(parts, read)
	}
	if len(parts) != 2 {
		return body, nil, wrong("badRequest", fmt.Sprintf("Multipart must have two parts, not %d.", len(parts)), "")
	}
	refused = decodeJSON(parts[0], &body)
	return body, parts[1], refused
}

func (s *Server) listCaptions(c *call) (outcome, *refusal) {
	if _, refused := c.parts(); refused != nil {
		return outcome{}, refused
	}
	v, refused := s.extended(c, c.query.Get("videoId"))
	if refused != nil {
		return outcome{}, refused
	}
	items := make([]any, 0, len(v.captions))
	for _, t := range v.captions {
		items = append(items, t.show(v))
	}
	return outcome{body: map[string]any{"kind": "youtube#captionListResponse", "etag": etag(v.id + "captions"), "items": items}}, nil
}
