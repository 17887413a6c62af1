package media

import (
	"bufio"
	"fmt"
	"image"
	_ "image/gif"  // a format that DecodeConfig must know
	_ "image/jpeg" // a format that DecodeConfig must know
	_ "image/png"  // a format that DecodeConfig must know
	"io"
	"strings"

	"github.com/gabriel-vasile/mimetype"
	_ "golang.org/x/image/webp" // a format that DecodeConfig must know

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
)

const (
	// maxPixels bounds the memory that decoding a picture may cost.
	maxPixels = 50_000_000
	// maxSides is the sum of width and height above which pictures are refused.
	maxSides = 20_000
	// sniffBytes is how much of the content its type is told from.
	sniffBytes = 3072
)

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
		Message: fmt.Sprintf("%s is larger than %d bytes", kind, limit),
	}
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
	contentType, _, _ = strings.Cut(mimetype.Detect(head).String(), ";")
	if fits(contentType, kind) {
		return contentType, nil
	}
	if contentType == "text/html" {
		return "", wrongType("got an HTML page instead of %s; the URL must lead to the content itself", kind)
	}
	return "", wrongType("declared as %s, but the content is %s", kind, contentType)
}

func fits(contentType string, kind autopost.MediaKind) bool {
	family, _, _ := strings.Cut(contentType, "/")
	switch kind {
	case autopost.MediaImage:
		return family == "image"
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

// measure reads a picture's header and refuses what is too big to be decoded
// safely, or is no picture that the platforms take.
func measure(r io.Reader, contentType string) (width, height int, err error) {
	config, _, err := image.DecodeConfig(bufio.NewReader(r))
	if err != nil {
		return 0, 0, wrongType("%s cannot be read as a picture; use JPEG, PNG, GIF or WebP", contentType)
	}
	if config.Width <= 0 || config.Height <= 0 ||
		config.Width+config.Height > maxSides || config.Width*config.Height > maxPixels {
		return 0, 0, wrongType("a picture of %dx%d pixels is too big; at most %d pixels, width and height together at most %d",
			config.Width, config.Height, maxPixels, maxSides)
	}
	return config.Width, config.Height, nil
}
