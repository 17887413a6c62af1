package media

import (
	"fmt"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"autopost"
)

// The error codes of this package.
const (
	// CodeWrongType means that the content does not match the declared kind, or that no platform accepts it.
	CodeWrongType = "media_wrong_type"
	// CodeBlockedAddress means that the host does not exist or has no public address.
	CodeBlockedAddress = "media_blocked_address"
	// CodeBadURL means that the URL can never be downloaded.
	CodeBadURL = "media_bad_url"
	// CodeFetchTimeout means that the download timed out.
	CodeFetchTimeout = "media_fetch_timeout"
	// CodeFetchFailed means that the connection failed or broke.
	CodeFetchFailed = "media_fetch_failed"
	// CodeStoreFailed means that the media store failed.
	CodeStoreFailed = "media_store_failed"
	// CodeNoSpace means that the disk of the media store is full.
	CodeNoSpace = "media_no_room"
)

// sniffBytes is the length of the prefix that determines the type of the content.
const sniffBytes = 3072

// Limits are the largest accepted sizes, in bytes. Zero means the default.
type Limits struct {
	// ImageBytes limits pictures (MAX_MEDIA_BYTES_IMAGE); 10 MiB by default.
	ImageBytes int64
	// VideoBytes limits other media (MAX_MEDIA_BYTES_VIDEO); 50 MiB by default.
	VideoBytes int64
}

const (
	defaultImageBytes = 10 << 20
	defaultVideoBytes = 50 << 20
)

// Of returns the limit of a kind. An animation may be a video, so it has the limit of a video.
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

// Rejection means that the content is refused, also at a retry.
type Rejection struct {
	// Code is a code of this package or autopost.CodeMediaTooLarge.
	Code string
	// Message contains the cause and the remedy.
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
		Message: fmt.Sprintf("%s must have at most %d bytes; make it smaller, or raise %s", kind, limit, limitName(kind)),
	}
}

// typeOf returns the type of the content. An animated PNG is a PNG for programs that cannot animate it.
func typeOf(head []byte) string {
	contentType, _, _ := strings.Cut(mimetype.Detect(head).String(), ";")
	if contentType == "image/apng" {
		return "image/png"
	}
	return contentType
}

// kindOf returns the kind of content without a declared kind.
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

// sniff returns the type by the first bytes. The error means that it does not match the declared kind.
func sniff(head []byte, kind autopost.MediaKind) (contentType string, err error) {
	switch kind {
	case autopost.MediaImage, autopost.MediaVideo, autopost.MediaAudio, autopost.MediaFile, autopost.MediaAnimation:
	default:
		return "", wrongType("the kind must be image, video, audio, file or animation, got %q", kind)
	}
	if len(head) == 0 {
		return "", wrongType("the content must not be empty")
	}
	contentType = typeOf(head)
	if fits(contentType, kind) {
		return contentType, nil
	}
	if contentType == "text/html" {
		return "", wrongType("the content must be %s, got an HTML page; use the URL of the content itself", kind)
	}
	if kind == autopost.MediaImage && strings.HasPrefix(contentType, "image/") {
		return "", wrongType("the picture must be JPEG, PNG, GIF or WebP, got %s", contentType)
	}
	return "", wrongType("the content must match the kind %s, got %s", kind, contentType)
}

func fits(contentType string, kind autopost.MediaKind) bool {
	family, _, _ := strings.Cut(contentType, "/")
	switch kind {
	case autopost.MediaImage:
		return pictureTypes[contentType]
	case autopost.MediaVideo:
		return family == "video"
	case autopost.MediaAudio:
		// A generic Ogg container is a voice or music file in practice. Sound in an MP4 container may be detected as
		// video/mp4 by its brand.
		return family == "audio" || contentType == "application/ogg" || contentType == "video/mp4"
	case autopost.MediaAnimation:
		return contentType == "image/gif" || family == "video"
	default:
		return true
	}
}
