package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/media"
	"autopost/internal/monitor"
	"autopost/internal/pg"
)

func mediaCommand() *cobra.Command {
	return family("media", "List the media origin, hand media to platforms, and remove what nobody needs", mediaListCommand(), mediaUploadCommand(), mediaSweepCommand(), mediaOrphansCommand())
}

func mediaListCommand() *cobra.Command {
	var workspace string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what a workspace holds in the media origin, what was seen last first",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				chosen, err := chooseWorkspace(ctx, store, workspace)
				if err != nil {
					return err
				}
				list, err := store.ListMediaOrigins(ctx, chosen, limit)
				if errors.Is(err, pg.ErrArgument) {
					return misuse{err}
				}
				if err != nil {
					return err
				}
				return printMedia(list, asJSON)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most, 1 to 10000")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printMedia(list []pg.HeldMedium, asJSON bool) error {
	rows := make([][]any, 0, len(list))
	for _, m := range list {
		var seen any = m.LastSeenAt
		if !asJSON {
			seen = m.LastSeenAt.Format(time.RFC3339)
		}
		rows = append(rows, []any{m.BlobRef, m.Kind, m.ContentType, m.SizeBytes, m.Width, m.Height, m.Messages, seen, m.Forgotten})
	}
	columns := []string{"blob_ref", "kind", "content_type", "size_bytes", "width", "height", "messages", "last_seen_at", "forgotten"}
	return printTable(os.Stdout, asJSON, columns, rows)
}

func mediaSweepCommand() *cobra.Command {
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Remove from the media origin what nobody needs",
		Long: `Remove from the media origin, for all workspaces, what the daemon's monitor removes
by itself: media that no message and no waiting post refers to once their time is
over (settings origin_retention_days and origin_retention_large_video_days), objects
without a row, and what interrupted writes left, both once they are a day old.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withMedia(cmd.Context(), func(ctx context.Context, sweep *monitor.MediaSweep) error {
				return runSweeps(ctx, dryRun, asJSON, []mediaDuty{
					{"unreferenced", sweep.SweepUnreferenced}, {"orphans", sweep.SweepStrays}, {"temporary", sweep.SweepTemporary},
				})
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would go, and remove nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func mediaOrphansCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "Count the objects that no workspace has a row of, and what interrupted writes left",
		Long: `Count what has been in the media origin for a day and is nobody's: objects without a
row, and what interrupted writes left. Nothing is removed; media sweep does that.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withMedia(cmd.Context(), func(ctx context.Context, sweep *monitor.MediaSweep) error {
				return runSweeps(ctx, true, asJSON, []mediaDuty{{"orphans", sweep.SweepStrays}, {"temporary", sweep.SweepTemporary}})
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// mediaDuty is one kind of what may go.
type mediaDuty struct {
	what  string
	sweep func(ctx context.Context, dryRun bool) (monitor.Swept, error)
}

// runSweeps tells what each duty took away, also when another one failed.
func runSweeps(ctx context.Context, dryRun, asJSON bool, duties []mediaDuty) error {
	rows := make([][]any, 0, len(duties))
	var failed []error
	for _, duty := range duties {
		swept, err := duty.sweep(ctx, dryRun)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", duty.what, err))
		}
		rows = append(rows, []any{duty.what, swept.Count, swept.Bytes, !dryRun})
	}
	if err := printTable(os.Stdout, asJSON, []string{"what", "count", "bytes", "removed"}, rows); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// withMedia runs work over the configured database and media origin.
func withMedia(ctx context.Context, work func(context.Context, *monitor.MediaSweep) error) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	return withStore(ctx, func(ctx context.Context, store *pg.Store) error {
		bucket, err := openMedia(ctx, cfg)
		if err != nil {
			return err
		}
		defer func() { _ = bucket.Close() }()
		return work(ctx, mediaSweep(store, bucket))
	})
}

// openMedia opens the configured media origin.
func openMedia(ctx context.Context, cfg config.Config) (*media.Store, error) {
	bucket, err := media.OpenStore(ctx, cfg.BlobURL)
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_BLOB_URL: %w", err)
	}
	return bucket, nil
}

// diagnoseMedia does in the media origin what the daemon does there.
func diagnoseMedia(ctx context.Context, cfg config.Config) pg.Check {
	check := pg.Check{Name: "media origin", OK: true, Found: "written, read, listed and deleted"}
	bucket, err := openMedia(ctx, cfg)
	if err == nil {
		defer func() { _ = bucket.Close() }()
		inTime, cancel := context.WithTimeout(ctx, mediaPatience)
		defer cancel()
		err = bucket.Probe(inTime)
	}
	if err != nil {
		check.OK, check.Found = false, err.Error()
		check.Remedy = "correct AUTOPOST_BLOB_URL, or give this user, or these credentials, the right to read, write, list and delete there; " +
			"an S3 bucket must exist already"
	}
	return check
}

// mediaPatience is how long the media origin has to answer the doctor.
const mediaPatience = 30 * time.Second
