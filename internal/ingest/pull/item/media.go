package item

import (
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"

	"autopost"
)

// MaxMedia is the most media of one post that the database accepts.
const MaxMedia = 50

// extensions are the kinds by file extension, for sources without a usable type.
var extensions = map[string]autopost.MediaKind{
	".jpg": autopost.MediaImage, ".jpeg": autopost.MediaImage, ".png": autopost.MediaImage,
	".gif": autopost.MediaImage, ".webp": autopost.MediaImage,
	".mp4": autopost.MediaVideo, ".m4v": autopost.MediaVideo, ".mov": autopost.MediaVideo, ".webm": autopost.MediaVideo,
	".mp3": autopost.MediaAudio, ".m4a": autopost.MediaAudio, ".ogg": autopost.MediaAudio, ".oga": autopost.MediaAudio,
	".opus": autopost.MediaAudio, ".aac": autopost.MediaAudio, ".flac": autopost.MediaAudio, ".wav": autopost.MediaAudio,
}

var kinds = []autopost.MediaKind{autopost.MediaImage, autopost.MediaVideo, autopost.MediaAudio, autopost.MediaFile, autopost.MediaAnimation}

// KindOf returns the kind by the given type, which is a MIME type or the name of a kind, else by the extension of the
// address. "" means that the medium cannot be published.
func KindOf(given, reference string) autopost.MediaKind {
	if slices.Contains(kinds, autopost.MediaKind(given)) {
		return autopost.MediaKind(given)
	}
	name, _, err := mime.ParseMediaType(given)
	if err == nil {
		switch family, _, _ := strings.Cut(name, "/"); family {
		case "image":
			return autopost.MediaImage
		case "video":
			return autopost.MediaVideo
		case "audio":
			return autopost.MediaAudio
		}
	}
	u, err := url.Parse(reference)
	if err != nil {
		return ""
	}
	return extensions[strings.ToLower(path.Ext(u.Path))]
}
