package api

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"autopost"
	"autopost/internal/api/rest"
	"autopost/internal/media"
	"autopost/internal/problem"
)

// CodeNoUpload means that a platform accepts media only within a post.
const CodeNoUpload = "no_upload"

// Handover is a medium to upload to a platform with a credential.
type Handover struct {
	Workspace string
	Platform  autopost.Platform
	AuthRef   string
	Medium    autopost.Media
}

// Platforms uploads stored media to platforms without a post.
type Platforms interface {
	// Upload stores the platform's id of the medium for later deliveries. A failure with CodeNoUpload means that the
	// platform does not support it.
	Upload(ctx context.Context, h Handover) (autopost.Uploaded, *autopost.Error)
}

// handedOver is an uploaded medium.
type handedOver struct {
	Applied   bool    `json:"applied"`
	FileID    string  `json:"file_id" example:"1880028106020515840" doc:"The platform's token of the medium, valid only for posts with this credential."`
	Kind      string  `json:"kind" example:"tweet_video" doc:"The kind of the medium in the terms of the platform."`
	ExpiresAt instant `json:"expires_at" nullable:"true" doc:"When the platform forgets it; null if unknown."`
}

type proxyInput struct {
	rest.AuditedWrite
	Body struct {
		rest.Reasoned
		Platform string `json:"platform" maxLength:"200" example:"max"`
		AuthRef  string `json:"auth_ref" maxLength:"200" example:"bot" doc:"The name of the credential."`
		BlobRef  string `json:"blob_ref" pattern:"^sha256:[0-9a-f]{64}$" example:"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"The blob_ref in the answer to the upload."`
		Kind     string `json:"kind" enum:"image,video,audio,file,animation" example:"video" doc:"The use of the medium."`
		Alt      string `json:"alt,omitempty" maxLength:"4000" example:"a cat" doc:"Alternative text, if the platform stores it with the medium."`
	}
}

func registerProxy(d *server, platforms Platforms) {
	rest.Register(d.Server, rest.Operation{
		ID: "proxy-media", Method: http.MethodPost, Path: "/media/proxy", Summary: "Upload a medium to a platform without a post", Answer: handedOver{}, Also: []int{http.StatusNotFound},
		Example: map[string]any{"platform": "max", "auth_ref": "bot", "blob_ref": "sha256:" + strings.Repeat("0123456789abcdef", 4), "kind": "image", "reason": "n8n sends it"},
		Description: "Streams a stored medium to the platform and returns the platform's token. A medium that the platform already has is not sent again. Deliveries " +
			"use the same token. For a platform that accepts media only within a post (telegram, youtube, webhook) the reason is no_upload. After a 503 with a reason of the " +
			"platform, repeat the request after Retry-After; an upload that the platform still processes is not sent again. The request may take an hour.",
	}, func(ctx context.Context, in *proxyInput) (rest.Reply, error) {
		if reply, err := d.Repeated(ctx, in.Once); err != nil || reply != nil {
			return *cmp.Or(reply, &rest.Reply{}), err
		}
		b := in.Body
		if _, err := in.Why(b.Reason); err != nil {
			return rest.Reply{}, err
		}
		uploaded, failure := platforms.Upload(ctx, Handover{
			rest.Caller(ctx).WorkspaceID, autopost.Platform(b.Platform), b.AuthRef, autopost.Media{Type: autopost.MediaKind(b.Kind), BlobRef: b.BlobRef, Alt: b.Alt},
		})
		if failure != nil {
			return rest.Reply{}, platformProblem(failure)
		}
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: b.Reason}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.RecordUpload(ctx, a, media.BlobKey{BlobRef: b.BlobRef, Provider: b.Platform, AuthRef: b.AuthRef, Kind: uploaded.Kind}, uploaded.Used)
		})
	})
}

// platformProblem is the problem of a failed upload.
func platformProblem(failure *autopost.Error) error {
	kind := problem.PlatformRefused
	switch {
	case failure.Code == autopost.CodeMediaMissingOrigin:
		kind = problem.NotFound
	case failure.Category == autopost.Transient:
		kind = problem.PlatformUnavailable
	}
	p := kind.Says("The upload to the platform failed: %s", failure.Message)
	p.Reason = failure.Code
	if p.Status != http.StatusServiceUnavailable {
		return p
	}
	wait := rest.RetrySeconds
	if failure.RetryAfterMS > 0 {
		wait = strconv.FormatInt(int64((time.Duration(failure.RetryAfterMS)*time.Millisecond+time.Second-1)/time.Second), 10)
	}
	return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {wait}})
}
