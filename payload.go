package autopost

// Payload is the normalized content of a message, as autopost.normalize_payload stored it. Adapters
// read Media; the text that they send is RenderedText.
type Payload struct {
	Type  string  `json:"type"`
	Text  string  `json:"text,omitempty"`
	Link  string  `json:"link,omitempty"`
	Media []Media `json:"media,omitempty"`
}

// MediaKind is the kind of a medium.
type MediaKind string

// The kinds of media of the raw payload.
const (
	MediaImage     MediaKind = "image"
	MediaVideo     MediaKind = "video"
	MediaAudio     MediaKind = "audio"
	MediaFile      MediaKind = "file"
	MediaAnimation MediaKind = "animation"
)

// Media is one item of a payload.
type Media struct {
	Type MediaKind `json:"type"`
	// BlobRef is "sha256:" and the lower-case hexadecimal digest of the content in the media store.
	BlobRef string `json:"blob_ref,omitempty"`
	// FileID is the platform's id, if the post contains one.
	FileID string `json:"file_id,omitempty"`
	// AttachmentToken is MAX's token, if the post contains one.
	AttachmentToken string `json:"attachment_token,omitempty"`
	// URL is set only before the content is fetched.
	URL     string    `json:"url,omitempty"`
	Caption string    `json:"caption,omitempty"`
	Alt     string    `json:"alt,omitempty"`
	Meta    MediaMeta `json:"meta,omitzero"`
}

// MediaMeta describes a medium. Zero fields are unknown.
type MediaMeta struct {
	// Filename is the name that a file has on the platform.
	Filename string `json:"filename,omitempty"`
	// Width and Height are those of the picture as shown, in pixels.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// Duration is in seconds.
	Duration float64 `json:"duration,omitempty"`
}
