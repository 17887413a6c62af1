package flow

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"autopost"
	"autopost/internal/admin/door"
)

// CodeNoUpload says that a platform takes media along with a post only.
const CodeNoUpload = "no_upload"

// Handover says what of the origin is to be given to which platform, and by which credential.
type Handover struct {
	Workspace string
	Platform  autopost.Platform
	AuthRef   string
	Medium    autopost.Media
}

// Platforms hand media of the origin to their platforms without posting them.
type Platforms interface {
	// Upload keeps the platform's id for later deliveries. A failure of code
	// CodeNoUpload says that the platform has no such thing.
	Upload(ctx context.Context, h Handover) (autopost.Uploaded, *autopost.Error)
}

// handedOver is a medium that a platform has.
type handedOver struct {
	Applied   bool    `json:"applied"`
	FileID    string  `json:"file_id" example:"1880028106020515840" doc:"The platform's token of the medium, good for posts by this credential alone."`
	Kind      string  `json:"kind" example:"tweet_video" doc:"What the platform takes it for, in its own words."`
	ExpiresAt instant `json:"expires_at" nullable:"true" doc:"Until when the platform knows it; null where it does not say."`
}

type proxyInput struct {
	door.Act
	Body struct {
		door.Reasoned
		Platform string `json:"platform" maxLength:"200" example:"max"`
		AuthRef  string `json:"auth_ref" maxLength:"200" example:"bot" doc:"The credential, by its name."`
		BlobRef  string `json:"blob_ref" pattern:"^sha256:[0-9a-f]{64}$" example:"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"The medium, as uploading it was answered."`
		Kind     string `json:"kind" enum:"image,video,audio,file,animation" example:"video" doc:"What it is for."`
		Alt      string `json:"alt,omitempty" maxLength:"4000" example:"a cat" doc:"Alternative text, for a platform that keeps one with the medium."`
	}
}

func registerProxy(d *door.Door, platforms Platforms) {
	door.Register(d, door.Operation{
		ID: "proxy-media", Method: http.MethodPost, Path: "/media/proxy", Summary: "Hand a medium to a platform without posting it", Answer: handedOver{}, Also: []int{http.StatusNotFound},
		Example: map[string]any{"platform": "max", "auth_ref": "bot", "blob_ref": "sha256:" + strings.Repeat("0123456789abcdef", 4), "kind": "image", "reason": "n8n sends it"},
		Description: "Streams a medium of the origin to the platform and answers its token alone, when the platform has it. What it has already is not sent again, and deliveries " +
			"use the same token. A platform that takes media along with a post only (telegram, youtube, webhook) is refused with the reason no_upload. 503 with a reason of the " +
			"platform's: ask again after Retry-After; what was sent by then is not sent again where the platform works on it. An answer takes up to an hour.",
	}, func(ctx context.Context, in *proxyInput) (door.Reply, error) {
		if reply, err := d.Told(ctx, in.Once); err != nil || reply != nil {
			return *cmp.Or(reply, &door.Reply{}), err
		}
		b := in.Body
		if _, err := in.Why(b.Reason); err != nil {
			return door.Reply{}, err
		}
		uploaded, failure := platforms.Upload(ctx, Handover{
			door.Caller(ctx).WorkspaceID, autopost.Platform(b.Platform), b.AuthRef, autopost.Media{Type: autopost.MediaKind(b.Kind), BlobRef: b.BlobRef, Alt: b.Alt},
		})
		if failure != nil {
			return door.Reply{}, platformProblem(failure)
		}
		return d.Do(ctx, in.Act, door.Write{Function: "record_upload", Reason: b.Reason, Args: map[string]any{
			"platform": b.Platform, "auth_ref": b.AuthRef, "blob_ref": b.BlobRef, "kind": uploaded.Kind, "used": uploaded.Used,
		}})
	})
}

// platformProblem is what a caller is told of an upload that failed.
func platformProblem(failure *autopost.Error) error {
	p := door.NewProblem(http.StatusUnprocessableEntity, "The platform does not have the medium: "+failure.Message)
	p.Reason = failure.Code
	switch {
	case failure.Code == autopost.CodeMediaMissingOrigin:
		p.Status = http.StatusNotFound
	case failure.Category == autopost.Transient:
		p.Status = http.StatusServiceUnavailable
	}
	p.Title = http.StatusText(p.Status)
	if p.Status != http.StatusServiceUnavailable {
		return p
	}
	wait := door.ComeAgain
	if failure.RetryAfterMS > 0 {
		wait = strconv.FormatInt(int64((time.Duration(failure.RetryAfterMS)*time.Millisecond+time.Second-1)/time.Second), 10)
	}
	return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {wait}})
}
