package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"autopost"
	"autopost/internal/admin/door"
	"autopost/internal/media"
)

// stall is how long an upload may rest between two pieces.
const stall = time.Minute

// Uploads takes content that is handed in; *media.Depository does.
type Uploads interface {
	// Put stores what r yields and registers it for the workspace. A *media.Rejection says
	// that the content cannot be taken; media.ErrBusy, that it can be in a moment.
	Put(ctx context.Context, workspace string, r io.Reader, kind autopost.MediaKind) (media.Origin, error)
}

// Media is where uploads go, how large they may be, and who hands them on.
type Media struct {
	Uploads   Uploads
	Limits    media.Limits
	Platforms Platforms
}

// stored is a medium in the origin.
type stored struct {
	Applied     bool   `json:"applied"`
	BlobRef     string `json:"blob_ref" example:"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"For media[].blob_ref of a post."`
	Kind        string `json:"kind" example:"image"`
	ContentType string `json:"content_type" example:"image/png" doc:"As told from the content."`
	SizeBytes   int64  `json:"size_bytes" example:"67"`
	Width       int    `json:"width" doc:"Pixels of a picture, else 0."`
	Height      int    `json:"height"`
}

type uploadInput struct {
	door.Once
	Kind string `query:"kind" required:"true" enum:"image,video,audio,file,animation" doc:"What it is for; the content must fit." example:"image"`
	body io.Reader
	// length is -1 where it was not announced.
	length int64
}

// Resolve takes the body as it comes.
func (in *uploadInput) Resolve(ctx huma.Context) []error {
	in.body, in.length = door.Body(ctx, stall)
	return nil
}

func registerMedia(d *door.Door, m Media) {
	door.Register(d, door.Operation{
		ID: "upload-media", Method: http.MethodPost, Path: "/media", Summary: "Upload a medium", Status: http.StatusCreated, Answer: stored{}, Stream: true,
		Description: "Streams a medium into the origin, with a Content-Length or chunked: a picture of up to MAX_MEDIA_BYTES_IMAGE, anything else of up to MAX_MEDIA_BYTES_VIDEO bytes. " +
			"The same content is kept once. What no post refers to is removed after a time.",
	}, func(ctx context.Context, in *uploadInput) (door.Reply, error) {
		return upload(ctx, d, m, in)
	})
}

func upload(ctx context.Context, d *door.Door, m Media, in *uploadInput) (door.Reply, error) {
	kind := autopost.MediaKind(in.Kind)
	limit := m.Limits.Of(kind)
	tooLarge := door.NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("A medium of this kind has up to %d bytes.", limit))
	if in.length > limit {
		return door.Reply{}, tooLarge
	}
	// Registered before the answer is kept: from then on nobody takes the object away. The write below finds the row and adds the answer alone.
	origin, err := m.Uploads.Put(ctx, door.Caller(ctx).WorkspaceID, in.body, kind)
	rejection := (*media.Rejection)(nil)
	switch {
	case errors.As(err, &rejection) && rejection.Code == autopost.CodeMediaTooLarge:
		return door.Reply{}, tooLarge
	case errors.As(err, &rejection):
		return door.Reply{}, door.Wrong("body", rejection.Message, "send the medium itself, and the kind that it is")
	case errors.Is(err, media.ErrBusy):
		return door.Reply{}, huma.ErrorWithHeaders(
			door.NewProblem(http.StatusServiceUnavailable, "The same content is just being removed. Send it again."), http.Header{"Retry-After": {door.ComeAgain}})
	case errors.Is(err, io.ErrUnexpectedEOF):
		return door.Reply{}, door.NewProblem(http.StatusBadRequest, "The body ended before it was complete.")
	case err != nil:
		return door.Reply{}, d.StorageProblem(ctx, err)
	}
	shown := map[string]any{"blob_ref": origin.BlobRef, "kind": in.Kind, "content_type": origin.ContentType, "size_bytes": origin.SizeBytes,
		"width": origin.Width, "height": origin.Height}
	return d.Write(ctx, in.Once, door.Write{Function: "put_media_origin", RequestHash: door.HashWith(ctx, origin.SHA256), Args: map[string]any{
		"blob_ref": origin.BlobRef, "origin_url": origin.OriginURL, "content_type": origin.ContentType, "size_bytes": origin.SizeBytes,
		"kind": in.Kind, "width": origin.Width, "height": origin.Height, "shown": shown,
	}})
}
