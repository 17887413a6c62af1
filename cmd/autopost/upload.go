package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/singleflight"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/admin/door"
	"autopost/internal/admin/flow"
	"autopost/internal/credential"
	"autopost/internal/media"
)

// handovers give media of the origin to platforms without a post.
type handovers struct {
	adapters map[autopost.Platform]autopost.Adapter
	vault    *credential.Vault
	origin   *media.Depository
	library  media.Library
	// underWay tells those who ask for the same at the same time the same.
	underWay *singleflight.Group
}

// Upload implements flow.Platforms.
func (u handovers) Upload(ctx context.Context, h flow.Handover) (autopost.Uploaded, *autopost.Error) {
	type answer struct {
		uploaded autopost.Uploaded
		failure  *autopost.Error
	}
	got, _, _ := u.underWay.Do(fmt.Sprintf("%q", h), func() (any, error) {
		uploaded, failure := u.upload(ctx, h)
		return answer{uploaded, failure}, nil
	})
	a := got.(answer)
	return a.uploaded, a.failure
}

func (u handovers) upload(ctx context.Context, h flow.Handover) (autopost.Uploaded, *autopost.Error) {
	speaker, known := u.adapters[h.Platform]
	uploader, can := speaker.(autopost.Uploader)
	switch {
	case !known:
		return autopost.Uploaded{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, fmt.Sprintf("there is no platform %q", h.Platform))
	case !can:
		return autopost.Uploaded{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, flow.CodeNoUpload,
			fmt.Sprintf("%s takes media along with a post only: give its blob_ref in the post", h.Platform))
	}
	if failure := u.held(ctx, h); failure != nil {
		return autopost.Uploaded{}, failure
	}
	secret, failure := u.secret(ctx, h)
	if failure != nil {
		return autopost.Uploaded{}, failure
	}
	of := autopost.Delivery{WorkspaceID: h.Workspace, AuthRef: h.AuthRef, Platform: h.Platform}
	materials := u.library.MaterialsFor(of)
	return renewing(ctx, u.vault, of, secret, func(secret autopost.Secret) (autopost.Uploaded, *autopost.Error) {
		return uploader.Upload(ctx, autopost.Upload{Secret: secret, Media: materials, Medium: h.Medium})
	})
}

// held says why the workspace cannot give the medium; nil when it can.
func (u handovers) held(ctx context.Context, h flow.Handover) *autopost.Error {
	content, err := u.origin.Open(ctx, h.Workspace, h.Medium.BlobRef)
	switch {
	case errors.Is(err, autopost.ErrNoOrigin):
		return adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeMediaMissingOrigin, "the workspace holds no such medium: upload it to "+door.MediaPath+" first")
	case err != nil:
		return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, adapter.CodeOriginUnavailable, "the storage of media does not answer at the moment")
	}
	_ = content.Close()
	return nil
}

// secret looks up the credential. Where it is kept is told to nobody.
func (u handovers) secret(ctx context.Context, h flow.Handover) (autopost.Secret, *autopost.Error) {
	secret, err := u.vault.Credential(ctx, h.Workspace, h.AuthRef, h.Platform)
	if refused, ok := errors.AsType[*credential.Refused](err); ok {
		return secret, &refused.Failure
	}
	switch {
	case errors.Is(err, credential.ErrNone):
		return secret, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing,
			fmt.Sprintf("credential %q is not bound for %s, or bound to nothing: see autopost credential list", h.AuthRef, h.Platform))
	case err != nil:
		return secret, adapter.Refusal(autopost.Transient, autopost.ScopePlatform, autopost.CodeCredentialUnavailable, "the credential cannot be looked up at the moment")
	}
	return secret, nil
}
