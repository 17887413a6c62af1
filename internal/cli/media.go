package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/monitor"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func mediaCommand() *cobra.Command {
	return parentCommand("media", "Manage the media store", mediaListCommand(), mediaUploadCommand(), mediaSweepCommand(), mediaOrphansCommand())
}

func mediaListCommand() *cobra.Command {
	var f readFlags
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the media of a workspace, last used first",
		Example: "  autopost media list --limit 100",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				list, err := store.ListMediaOrigins(ctx, workspace, limit)
				if err != nil {
					return err
				}
				return f.printMedia(list)
			})
		},
	}
	limitFlag(cmd, &limit)
	f.add(cmd)
	return cmd
}

func (f *readFlags) printMedia(list []pg.HeldMedium) error {
	rows := make([][]any, 0, len(list))
	for _, m := range list {
		size, going := "", ""
		if m.Width > 0 {
			size = fmt.Sprintf("%d x %d", m.Width, m.Height)
		}
		if m.Forgotten {
			going = "being removed"
		}
		rows = append(rows, []any{m.LastSeenAt, m.Kind, m.ContentType, m.SizeBytes, m.Messages, m.BlobRef, size, going})
	}
	return f.rows(list, table.Table{
		Columns: []string{"last_used", "kind", "content_type", "bytes", "messages", "blob_ref", "pixels", "state"},
		Details: []string{"blob_ref", "pixels", "state"}, Rows: rows,
		Empty: "No medium: posts with media fill this list. Run autopost post --text TEXT --media FILE.",
	})
}

func mediaSweepCommand() *cobra.Command {
	var dryRun bool
	var out output
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Remove unused media of all workspaces",
		Long: `Remove unused media of all workspaces, like the monitor of a daemon does. Media are
unused if no message and no waiting post refers to them and their retention is over
(settings origin_retention_days and origin_retention_large_video_days). The command also
removes objects without a row and files of interrupted writes, if they are a day old, and
raw payloads after raw_retention_days.`,
		Example: `  autopost media sweep --dry-run
  autopost media sweep`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withMedia(cmd.Context(), func(ctx context.Context, sweep *monitor.MediaSweep) error {
				return runSweeps(ctx, dryRun, out, []mediaDuty{
					{name: "unreferenced", sweep: sweep.SweepUnreferenced}, {name: "orphans", sweep: sweep.SweepStrays}, {name: "temporary", sweep: sweep.SweepTemporary},
					{name: "raw_payloads", sweep: sweep.SweepRaw, quiet: true},
				})
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be removed, and remove nothing")
	out.add(cmd)
	return cmd
}

func mediaOrphansCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "Count objects without a row and interrupted writes",
		Long: `Count the objects in the media store that have no row, and the files of interrupted
writes, if they are a day old. autopost media sweep removes them.`,
		Example: "  autopost media orphans",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withMedia(cmd.Context(), func(ctx context.Context, sweep *monitor.MediaSweep) error {
				return runSweeps(ctx, true, out, []mediaDuty{{name: "orphans", sweep: sweep.SweepStrays}, {name: "temporary", sweep: sweep.SweepTemporary}})
			})
		},
	}
	out.add(cmd)
	return cmd
}

// mediaDuty removes one kind of unused objects.
type mediaDuty struct {
	name  string
	sweep func(ctx context.Context, dryRun bool) (monitor.Swept, error)
	// quiet means that there is no row if nothing was found.
	quiet bool
}

// runSweeps runs all duties and prints a row for each. A failed duty does not stop the others.
func runSweeps(ctx context.Context, dryRun bool, out output, duties []mediaDuty) error {
	type done struct {
		What    string `json:"what"`
		Count   int    `json:"count"`
		Bytes   int64  `json:"bytes"`
		Removed bool   `json:"removed"`
	}
	items := make([]done, 0, len(duties))
	rows := make([][]any, 0, len(duties))
	var failed []error
	for _, duty := range duties {
		swept, err := duty.sweep(ctx, dryRun)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", duty.name, err))
		}
		if duty.quiet && swept.Count == 0 {
			continue
		}
		items = append(items, done{duty.name, swept.Count, swept.Bytes, !dryRun})
		rows = append(rows, []any{duty.name, swept.Count, swept.Bytes, !dryRun})
	}
	if err := out.rows(items, table.Table{Columns: []string{"what", "count", "bytes", "removed"}, Rows: rows}); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// withMedia calls work with the configured media store.
func withMedia(ctx context.Context, work func(context.Context, *monitor.MediaSweep) error) error {
	return withConfiguredStore(ctx, func(ctx context.Context, cfg config.Config, store *pg.Store) error {
		bucket, err := daemon.OpenMedia(ctx, cfg)
		if err != nil {
			return err
		}
		defer func() { _ = bucket.Close() }()
		return work(ctx, &monitor.MediaSweep{Store: store, Bucket: bucket})
	})
}

// diagnoseMedia writes, reads, lists and deletes an object in the media store.
func diagnoseMedia(ctx context.Context, cfg config.Config) pg.Check {
	check := pg.Check{Name: "media origin", OK: true, Found: "written, read, listed and deleted"}
	bucket, err := daemon.OpenMedia(ctx, cfg)
	if err == nil {
		defer func() { _ = bucket.Close() }()
		inTime, cancel := context.WithTimeout(ctx, mediaCheckTimeout)
		defer cancel()
		err = bucket.Probe(inTime)
	}
	if err != nil {
		check.OK, check.Found = false, err.Error()
		check.Remedy = "correct AUTOPOST_BLOB_URL, or grant this user or these credentials the right to read, write, list and delete; " +
			"create the S3 bucket first"
	}
	return check
}

// mediaCheckTimeout limits the check of the media store.
const mediaCheckTimeout = 30 * time.Second
