package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"autopost"
	"autopost/internal/api/rest"
	"autopost/internal/media"
	"autopost/internal/problem"
)

// stall is the longest pause between two parts of an upload.
const stall = time.Minute

// Uploads stores and reads content. *media.WorkspaceStore implements it.
type Uploads interface {
	// Put stores the content of r and registers it for the workspace. A *media.Rejection means that the content is
	// refused; media.ErrBusy that a later attempt may succeed.
	Put(ctx context.Context, workspace string, r io.Reader, kind autopost.MediaKind) (media.Origin, error)
	// Open streams a medium of the workspace; autopost.ErrNoOrigin if it has none of this name.
	Open(ctx context.Context, workspace, blobRef string) (*autopost.Content, error)
}

// Media stores uploads, limits their size, and sends them to platforms.
type Media struct {
	Uploads   Uploads
	Limits    media.Limits
	Platforms Platforms
}

// stored is a medium in the media store.
type stored struct {
	Applied     bool   `json:"applied"`
	BlobRef     string `json:"blob_ref" example:"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"For media[].blob_ref of a post."`
	Kind        string `json:"kind" example:"image"`
	ContentType string `json:"content_type" example:"image/png" doc:"The type of the content."`
	SizeBytes   int64  `json:"size_bytes" example:"67"`
	Width       int    `json:"width" doc:"Pixels of a picture; 0 for other media."`
	Height      int    `json:"height"`
}

// MediumRow is a medium of the media store.
type MediumRow struct {
	BlobRef     string    `json:"blob_ref" example:"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"For media[].blob_ref of a post."`
	Kind        *string   `json:"kind" nullable:"true" example:"image" doc:"image, video, audio, file or animation."`
	ContentType *string   `json:"content_type" nullable:"true" example:"image/png" doc:"The type of the content."`
	SizeBytes   *int64    `json:"size_bytes" nullable:"true" example:"67"`
	Width       *int      `json:"width" nullable:"true" doc:"Pixels of a picture; 0 for other media."`
	Height      *int      `json:"height" nullable:"true"`
	CreatedAt   time.Time `json:"created_at"`
	LastSeenAt  time.Time `json:"last_seen_at"`
	Messages    int       `json:"messages" doc:"How many messages refer to it."`
	Forgotten   bool      `json:"forgotten" doc:"It is being removed."`
}

type mediaInput struct {
	rest.Page
	Kind   string `query:"kind" enum:"image,video,audio,file,animation" doc:"Only this kind."`
	Unused bool   `query:"unused" doc:"Only media that no message refers to."`
}

type pictureInput struct {
	BlobRef string `path:"blob_ref" pattern:"^sha256:[0-9a-f]{64}$" doc:"The blob_ref of the medium."`
}

var (
	mediaList = rest.List{Function: "list_media_origins", Key: rest.ByUse()}
	// pictureTypes are the types that every browser shows and none runs.
	pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
)

type uploadInput struct {
	rest.Once
	Kind string `query:"kind" required:"true" enum:"image,video,audio,file,animation" doc:"The use of the medium. The content must have a matching type." example:"image"`
	body io.Reader
	// length is -1 if there is no Content-Length.
	length int64
}

// Resolve implements huma.Resolver. It keeps the body as a stream.
func (in *uploadInput) Resolve(ctx huma.Context) []error {
	in.body, in.length = rest.Body(ctx, stall)
	return nil
}

func registerMedia(d *server, m Media) {
	rest.Register(d.Server, rest.Operation{
		ID: "upload-media", Method: http.MethodPost, Path: "/media", Summary: "Upload a medium", Status: http.StatusCreated, Answer: stored{}, Stream: true,
		Description: "Streams a medium into the media store, with a Content-Length or chunked. A picture may have MAX_MEDIA_BYTES_IMAGE bytes, other media MAX_MEDIA_BYTES_VIDEO bytes. " +
			"The same content is stored once. A medium without a post is deleted after some time.",
	}, func(ctx context.Context, in *uploadInput) (rest.Reply, error) {
		return upload(ctx, d, m, in)
	})
}

func registerMediaReads(d *server, m Media) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-media", Method: http.MethodGet, Path: "/media", Summary: "List media, last used first", Answer: rest.Listed[MediumRow]{},
		Description: "The media of the workspace in the media store.",
	}, func(ctx context.Context, in *mediaInput) (rest.Reply, error) {
		filter := map[string]any{"kind": in.Kind}
		if in.Unused {
			filter["unused"] = true
		}
		return d.Read(ctx, mediaList, in.Page, filter)
	})
	rest.RegisterContent(d.Server, rest.Operation{
		ID: "get-picture", Method: http.MethodGet, Path: "/media/{blob_ref}", Summary: "Get the bytes of a picture",
		Description: "Streams a picture of the workspace (PNG, JPEG, GIF or WebP). Other media, and pictures above MAX_MEDIA_BYTES_IMAGE bytes, are not found.",
	}, pictureTypes, func(ctx context.Context, in *pictureInput) (*rest.Content, error) {
		return picture(ctx, d, m, in.BlobRef)
	})
}

func picture(ctx context.Context, d *server, m Media, ref string) (*rest.Content, error) {
	content, err := m.Uploads.Open(ctx, rest.Caller(ctx).WorkspaceID, ref)
	switch {
	case errors.Is(err, autopost.ErrNoOrigin):
		return nil, rest.NotFound("This workspace has no such medium. GET /api/v1/media lists all.")
	case err != nil:
		return nil, d.StorageProblem(ctx, err)
	case !slices.Contains(pictureTypes, content.ContentType) || content.Size > m.Limits.Of(autopost.MediaImage):
		_ = content.Close()
		return nil, rest.NotFound("This medium is not a picture that can be shown.")
	}
	return &rest.Content{ReadCloser: content, Type: content.ContentType, Size: content.Size, Filename: content.Filename}, nil
}

func upload(ctx context.Context, d *server, m Media, in *uploadInput) (rest.Reply, error) {
	kind := autopost.MediaKind(in.Kind)
	limit := m.Limits.Of(kind)
	tooLarge := problem.TooLarge.Says("A medium of this kind may have up to %d bytes. Send a smaller one.", limit)
	if in.length > limit {
		return rest.Reply{}, tooLarge
	}
	// Put registers the medium, so that no cleanup deletes the object. The write below finds the row and stores only the answer.
	origin, err := m.Uploads.Put(ctx, rest.Caller(ctx).WorkspaceID, in.body, kind)
	rejection := (*media.Rejection)(nil)
	switch {
	case errors.As(err, &rejection) && rejection.Code == autopost.CodeMediaTooLarge:
		return rest.Reply{}, tooLarge
	case errors.As(err, &rejection):
		return rest.Reply{}, rest.Wrong("body", rejection.Message, "send the medium and its kind")
	case errors.Is(err, media.ErrBusy):
		return rest.Reply{}, huma.ErrorWithHeaders(
			problem.Unavailable.Says("The same content is being removed. Send it again."), http.Header{"Retry-After": {rest.RetrySeconds}})
	case errors.Is(err, io.ErrUnexpectedEOF):
		return rest.Reply{}, problem.BodyCut.Says("The body ended before it was complete.")
	case err != nil:
		return rest.Reply{}, d.StorageProblem(ctx, err)
	}
	shown := map[string]any{"blob_ref": origin.BlobRef, "kind": in.Kind, "content_type": origin.ContentType, "size_bytes": origin.SizeBytes,
		"width": origin.Width, "height": origin.Height}
	return d.Write(ctx, in.Once, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
		a.Once.RequestHash = rest.HashWith(ctx, origin.SHA256)
		return d.db.PutUpload(ctx, a, origin, shown)
	})
}
