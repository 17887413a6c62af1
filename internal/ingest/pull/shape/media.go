package shape

import (
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"

	"autopost"
)

// MaxMedia is the most media that the database takes of one post.
const MaxMedia = 50

// extensions tell the kind where a source gives no usable type.
var extensions = map[string]autopost.MediaKind{
	".jpg": autopost.MediaImage, ".jpeg": autopost.MediaImage, ".png": autopost.MediaImage,
	".gif": autopost.MediaImage, ".webp": autopost.MediaImage,
	".mp4": autopost.MediaVideo, ".m4v": autopost.MediaVideo, ".mov": autopost.MediaVideo, ".webm": autopost.MediaVideo,
	".mp3": autopost.MediaAudio, ".m4a": autopost.MediaAudio, ".ogg": autopost.MediaAudio, ".oga": autopost.MediaAudio,
	".opus": autopost.MediaAudio, ".aac": autopost.MediaAudio, ".flac": autopost.MediaAudio, ".wav": autopost.MediaAudio,
}

var kinds = []autopost.MediaKind{autopost.MediaImage, autopost.MediaVideo, autopost.MediaAudio, autopost.MediaFile, autopost.MediaAnimation}

// KindOf goes by the type, which is a MIME type or the name of a kind, else by the
// extension of the address; "" is not publishable.
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
