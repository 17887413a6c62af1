package media

import (
	"fmt"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"autopost"
)

// Codes of the verdicts that this package gives beside those of the root.
const (
	// CodeWrongType: the content is not what the payload declares, or no platform takes it.
	CodeWrongType = "media_wrong_type"
	// CodeBlockedAddress: the address lies where payloads must not make us go.
	CodeBlockedAddress = "media_blocked_address"
	// CodeDeadHost: the host name does not exist.
	CodeDeadHost = "media_dead_host"
	// CodeBadURL: the URL cannot be fetched whatever its host says.
	CodeBadURL = "media_bad_url"
	// CodeFetchTimeout: the download did not end in time.
	CodeFetchTimeout = "media_fetch_timeout"
	// CodeFetchFailed: the connection failed or broke.
	CodeFetchFailed = "media_fetch_failed"
	// CodeStoreFailed: the media origin could not take the content.
	CodeStoreFailed = "media_store_failed"
	// CodeNoRoom: the disk of the media origin is full, which is no fault of the content.
	CodeNoRoom = "media_no_room"
)

// sniffBytes is how much of the content its type is told from.
const sniffBytes = 3072

// Limits are the largest sizes taken, in bytes. Zero means the default of the
// founding documents.
type Limits struct {
	// ImageBytes caps pictures (MAX_MEDIA_BYTES_IMAGE, 10 MiB).
	ImageBytes int64
	// VideoBytes caps everything else (MAX_MEDIA_BYTES_VIDEO, 50 MiB).
	VideoBytes int64
}

const (
	defaultImageBytes = 10 << 20
	defaultVideoBytes = 50 << 20
)

// Of returns the cap for a kind. An animation may be a video, so it is capped as one.
func (l Limits) Of(kind autopost.MediaKind) int64 {
	limit, fallback := l.VideoBytes, int64(defaultVideoBytes)
	if kind == autopost.MediaImage {
		limit, fallback = l.ImageBytes, defaultImageBytes
	}
	if limit <= 0 {
		return fallback
	}
	return limit
}

// Rejection is the verdict that content cannot be taken, now or later.
type Rejection struct {
	// Code is one of the codes of this package or autopost.CodeMediaTooLarge.
	Code string
	// Message says what is wrong and, where there is one, the remedy.
	Message string
}

// Error implements error.
func (r *Rejection) Error() string { return r.Code + ": " + r.Message }

func wrongType(format string, args ...any) *Rejection {
	return &Rejection{Code: CodeWrongType, Message: fmt.Sprintf(format, args...)}
}

func tooLarge(kind autopost.MediaKind, limit int64) *Rejection {
	return &Rejection{
		Code:    autopost.CodeMediaTooLarge,
		Message: fmt.Sprintf("%s is larger than %d bytes; make it smaller, or raise %s", kind, limit, limitName(kind)),
	}
}

// typeOf tells the type by the content alone. A PNG that moves is a PNG to whoever
// cannot show that it does.
func typeOf(head []byte) string {
	contentType, _, _ := strings.Cut(mimetype.Detect(head).String(), ";")
	if contentType == "image/apng" {
		return "image/png"
	}
	return contentType
}

// kindOf tells the kind of content that was declared as nothing.
func kindOf(head []byte) autopost.MediaKind {
	contentType := typeOf(head)
	for _, kind := range []autopost.MediaKind{autopost.MediaImage, autopost.MediaVideo, autopost.MediaAudio} {
		if fits(contentType, kind) {
			return kind
		}
	}
	return autopost.MediaFile
}

func limitName(kind autopost.MediaKind) string {
	if kind == autopost.MediaImage {
		return "MAX_MEDIA_BYTES_IMAGE"
	}
	return "MAX_MEDIA_BYTES_VIDEO"
}

// sniff tells the type from the first bytes and whether it fits the declared kind.
func sniff(head []byte, kind autopost.MediaKind) (contentType string, err error) {
	switch kind {
	case autopost.MediaImage, autopost.MediaVideo, autopost.MediaAudio, autopost.MediaFile, autopost.MediaAnimation:
	default:
		return "", wrongType("media type %q is unknown; use image, video, audio, file or animation", kind)
	}
	if len(head) == 0 {
		return "", wrongType("the content is empty")
	}
	contentType = typeOf(head)
	if fits(contentType, kind) {
		return contentType, nil
	}
	if contentType == "text/html" {
		return "", wrongType("got an HTML page instead of %s; the URL must lead to the content itself", kind)
	}
	if kind == autopost.MediaImage && strings.HasPrefix(contentType, "image/") {
		return "", wrongType("%s is no picture that platforms show; use JPEG, PNG, GIF or WebP", contentType)
	}
	return "", wrongType("declared as %s, but the content is %s", kind, contentType)
}

func fits(contentType string, kind autopost.MediaKind) bool {
	family, _, _ := strings.Cut(contentType, "/")
	switch kind {
	case autopost.MediaImage:
		return pictureTypes[contentType]
	case autopost.MediaVideo:
		return family == "video"
	case autopost.MediaAudio:
		// A bare Ogg container is a voice or music file in practice, and sound
		// alone in an MP4 container may be labelled as its brand says: video/mp4.
		return family == "audio" || contentType == "application/ogg" || contentType == "video/mp4"
	case autopost.MediaAnimation:
		return contentType == "image/gif" || family == "video"
	default:
		return true
	}
}
