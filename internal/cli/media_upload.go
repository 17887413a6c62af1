package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/api"
	"autopost/internal/daemon"
	"autopost/internal/media"
	"autopost/internal/pg"
)

var mediaKinds = []string{string(autopost.MediaImage), string(autopost.MediaVideo), string(autopost.MediaAudio), string(autopost.MediaFile), string(autopost.MediaAnimation)}

func mediaUploadCommand() *cobra.Command {
	var m operatorFlags
	var h api.Handover
	var platform, kind string
	cmd := &cobra.Command{
		Use:   "upload BLOB_REF",
		Short: "Upload a medium to a platform and print its token",
		Long: `Upload a medium from the media store to a platform without a post, and print the
platform's token. A medium that the platform already has is not uploaded again.
Deliveries use the same token. The platforms max and x support this. On telegram, youtube
and webhook media are only uploaded with a post.`,
		Example: `  autopost media upload sha256:9f86d081… --platform max --auth-ref max-bot --kind video --reason "warm up"`,
		Args:    oneArgument("blob_ref (see autopost media list)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.requireAudit(cmd); err != nil {
				return err
			}
			if err := media.CheckRef(args[0]); err != nil {
				return usageError{fmt.Errorf("%w: see autopost media list", err)}
			}
			if platform == "" || h.AuthRef == "" || !slices.Contains(mediaKinds, kind) {
				return usageError{fmt.Errorf("--platform, --auth-ref and --kind must be set: pass one of %s as --kind", strings.Join(mediaKinds, ", "))}
			}
			h.Platform, h.Medium.BlobRef, h.Medium.Type = autopost.Platform(platform), args[0], autopost.MediaKind(kind)
			return withCredentials(cmd.Context(), func(ctx context.Context, d credentialTools) error { return d.upload(ctx, m, h) })
		},
	}
	workspaceFlag(cmd, &m.act.Workspace)
	m.auditFlags(cmd)
	cmd.Flags().StringVar(&platform, "platform", "", "platform: max or x (required)")
	cmd.Flags().StringVar(&h.AuthRef, "auth-ref", "", "credential name (required)")
	cmd.Flags().StringVar(&kind, "kind", "", "kind of the medium: "+strings.Join(mediaKinds, ", ")+" (required)")
	cmd.Flags().StringVar(&h.Medium.Alt, "alt", "", "alternative text, if the platform keeps it with the medium (x)")
	return cmd
}

// upload does the same as POST /api/v1/media/proxy of a daemon.
func (d credentialTools) upload(ctx context.Context, m operatorFlags, h api.Handover) error {
	var err error
	if m.act.Workspace, err = chooseWorkspace(ctx, d.store, m.act.Workspace); err != nil {
		return err
	}
	h.Workspace = m.act.Workspace
	adapters, err := daemon.Adapters(d.cfg)
	if err != nil {
		return err
	}
	bucket, err := daemon.OpenMedia(ctx, d.cfg)
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }()
	proxy := daemon.NewMediaProxy(adapters, d.vault, d.store, bucket)
	uploaded, failure := proxy.Upload(ctx, h)
	if failure != nil {
		return fmt.Errorf("%s: %s", failure.Code, failure.Message)
	}
	token, err := pg.Decode[pg.UploadToken](d.store.RecordUpload(ctx, m.act, media.BlobKey{Provider: string(h.Platform), AuthRef: h.AuthRef, BlobRef: h.Medium.BlobRef, Kind: uploaded.Kind}, uploaded.Used))
	switch {
	case err != nil:
		return err
	case !token.Applied:
		return fmt.Errorf("the platform accepted the medium, but the token was not saved: %s", strings.ReplaceAll(token.Reason, "_", " "))
	}
	if m.asJSON {
		return printJSON(token)
	}
	fmt.Fprintln(os.Stdout, token.FileID)
	return nil
}
