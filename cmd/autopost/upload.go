package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/singleflight"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/admin/door"
	"autopost/internal/admin/flow"
	"autopost/internal/credential"
	"autopost/internal/media"
	"autopost/internal/pg"
)

// mediaKinds are the kinds of media of a post.
var mediaKinds = []string{string(autopost.MediaImage), string(autopost.MediaVideo), string(autopost.MediaAudio), string(autopost.MediaFile), string(autopost.MediaAnimation)}

func mediaUploadCommand() *cobra.Command {
	var m manual
	var h flow.Handover
	var platform, kind string
	cmd := &cobra.Command{
		Use:   "upload BLOB_REF",
		Short: "Hand a medium of the origin to a platform without posting it, and print its token",
		Long: `Hand a medium of the origin to a platform without posting it, and print its token.
What the platform has already is not sent again, and deliveries use the same token. max
and x take media so; telegram, youtube and webhook along with a post only.`,
		Args: oneArgument("blob_ref of a medium, as media list shows it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.known(cmd); err != nil {
				return err
			}
			if platform == "" || h.AuthRef == "" || !slices.Contains(mediaKinds, kind) {
				return misuse{fmt.Errorf("%s needs --platform, --auth-ref, and --kind: one of %s", cmd.CommandPath(), strings.Join(mediaKinds, ", "))}
			}
			h.Platform, h.Medium.BlobRef, h.Medium.Type = autopost.Platform(platform), args[0], autopost.MediaKind(kind)
			return withDesk(cmd.Context(), func(ctx context.Context, d desk) error { return d.handOver(ctx, m, h) })
		},
	}
	workspaceFlag(cmd, &m.act.Workspace)
	m.actorFlags(cmd)
	cmd.Flags().StringVar(&platform, "platform", "", "platform to hand it to")
	cmd.Flags().StringVar(&h.AuthRef, "auth-ref", "", "name of the credential")
	cmd.Flags().StringVar(&kind, "kind", "", "what it is for: "+strings.Join(mediaKinds, ", "))
	cmd.Flags().StringVar(&h.Medium.Alt, "alt", "", "alternative text, for a platform that keeps one with the medium (x)")
	return cmd
}

// handOver does by command what the daemon does for POST /api/v1/media/proxy.
func (d desk) handOver(ctx context.Context, m manual, h flow.Handover) error {
	var err error
	if m.act.Workspace, err = chooseWorkspace(ctx, d.store, m.act.Workspace); err != nil {
		return err
	}
	h.Workspace = m.act.Workspace
	speakers, err := adapters(d.cfg)
	if err != nil {
		return err
	}
	bucket, err := openMedia(ctx, d.cfg)
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }()
	uploads := handovers{
		speakers, d.vault, &media.Depository{Store: bucket, Rows: mediaRows{d.store}}, media.Library{Store: bucket, Blobs: mediaBlobs{d.store}}, new(singleflight.Group),
	}
	uploaded, failure := uploads.Upload(ctx, h)
	if failure != nil {
		return fmt.Errorf("%s: %s", failure.Code, failure.Message)
	}
	token, err := d.store.RecordUpload(ctx, m.act, pg.BlobKey{Provider: string(h.Platform), AuthRef: h.AuthRef, BlobRef: h.Medium.BlobRef, Kind: uploaded.Kind}, uploaded.Used)
	switch {
	case err != nil:
		return err
	case !token.Applied:
		return fmt.Errorf("the platform took the medium, and its token is not kept: %s", strings.ReplaceAll(token.Reason, "_", " "))
	}
	if m.asJSON {
		return json.NewEncoder(os.Stdout).Encode(token)
	}
	fmt.Fprintln(os.Stdout, token.FileID)
	return nil
}

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
