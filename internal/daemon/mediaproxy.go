package daemon

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/singleflight"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/api"
	"autopost/internal/api/rest"
	"autopost/internal/credential"
	"autopost/internal/media"
	"autopost/internal/pg"
)

// MediaProxy give media of the origin to platforms without a post.
type MediaProxy struct {
	Adapters map[autopost.Platform]autopost.Adapter
	Vault    *credential.Vault
	Origin   *media.WorkspaceStore
	Library  media.Provider
	// Running merges equal uploads that run at the same time.
	Running *singleflight.Group
}

// NewMediaProxy returns a proxy from the media of a bucket to the adapters.
func NewMediaProxy(adapters map[autopost.Platform]autopost.Adapter, vault *credential.Vault, store *pg.Store, bucket *media.Store) MediaProxy {
	return MediaProxy{
		Adapters: adapters, Vault: vault, Running: new(singleflight.Group),
		Origin:  &media.WorkspaceStore{Store: bucket, Rows: store},
		Library: media.Provider{Store: bucket, Blobs: store},
	}
}

// Upload implements api.Platforms.
func (u MediaProxy) Upload(ctx context.Context, h api.Handover) (autopost.Uploaded, *autopost.Error) {
	type answer struct {
		uploaded autopost.Uploaded
		failure  *autopost.Error
	}
	got, _, _ := u.Running.Do(fmt.Sprintf("%#v", h), func() (any, error) {
		uploaded, failure := u.upload(ctx, h)
		return answer{uploaded, failure}, nil
	})
	a := got.(answer)
	return a.uploaded, a.failure
}

func (u MediaProxy) upload(ctx context.Context, h api.Handover) (autopost.Uploaded, *autopost.Error) {
	target, known := u.Adapters[h.Platform]
	uploader, can := target.(autopost.Uploader)
	switch {
	case !known:
		return autopost.Uploaded{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, fmt.Sprintf("there is no platform %q", h.Platform))
	case !can:
		return autopost.Uploaded{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, api.CodeNoUpload,
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
	materials := u.Library.MaterialsFor(of)
	return credential.Renewing(ctx, u.Vault, of, secret, func(secret autopost.Secret) (autopost.Uploaded, *autopost.Error) {
		return uploader.Upload(ctx, autopost.Upload{Secret: secret, Media: materials, Medium: h.Medium})
	})
}

// held says why the workspace cannot give the medium; nil when it can.
func (u MediaProxy) held(ctx context.Context, h api.Handover) *autopost.Error {
	content, err := u.Origin.Open(ctx, h.Workspace, h.Medium.BlobRef)
	switch {
	case errors.Is(err, autopost.ErrNoOrigin):
		return adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeMediaMissingOrigin, "the workspace holds no such medium: upload it to "+rest.MediaPath+" first")
	case err != nil:
		return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, adapter.CodeOriginUnavailable, "the storage of media does not answer at the moment")
	}
	_ = content.Close()
	return nil
}

// secret looks up the credential. The location of the secret is never returned.
func (u MediaProxy) secret(ctx context.Context, h api.Handover) (autopost.Secret, *autopost.Error) {
	secret, err := u.Vault.Credential(ctx, h.Workspace, h.AuthRef, h.Platform)
	if refused, ok := errors.AsType[*autopost.RenewalError](err); ok {
		return secret, &refused.Failure
	}
	switch {
	case errors.Is(err, autopost.ErrNoCredential):
		return secret, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing,
			fmt.Sprintf("credential %q is not bound for %s, or bound to nothing: see autopost credential list", h.AuthRef, h.Platform))
	case err != nil:
		return secret, adapter.Refusal(autopost.Transient, autopost.ScopePlatform, autopost.CodeCredentialUnavailable, "the credential cannot be looked up at the moment")
	}
	return secret, nil
}
