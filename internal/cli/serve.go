package cli

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/telemetry"
)

func serveCommand() *cobra.Command {
	var only []string
	stages := strings.Join(daemon.Stages, ", ")
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: `Run the daemon. It accepts posts, sends them and monitors both.

Without DATABASE_URL it starts a private PostgreSQL under AUTOPOST_DATA_DIR. Several
daemons may share one database. While there are no people, it prints a link to create the
first account. After SIGTERM the daemon starts no new calls, finishes
those that are running, releases all other claims and exits.`,
		Example: `  autopost serve
  DATABASE_URL=postgres://autopost@db/autopost autopost serve --only dispatch,monitor`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, stage := range only {
				if !slices.Contains(daemon.Stages, stage) {
					return usageError{fmt.Errorf("--only must name stages of %s, got %q", stages, stage)}
				}
			}
			return serve(cmd.Context(), only)
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", nil, "stages to run, separated by commas: "+stages+" (default: all)")
	return cmd
}

// gcPercent is how far the heap may grow before a garbage collection, in percent of the
// live heap. A daemon waits more than it computes, so memory is worth more than
// processor time. The variable GOGC overrides it.
const gcPercent = 50

func serve(ctx context.Context, only []string) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return withNewDatabase(ctx, func(ctx context.Context, cfg config.Config, db *daemon.Database) error {
		log := telemetry.NewLogger(os.Stderr, cfg.LogLevel)
		d, err := daemon.New(ctx, cfg, db, only, log)
		if err != nil {
			return err
		}
		defer d.Close()
		log.Info("daemon.started", "listen", "http://"+d.Addr(), "stages", only, "private_postgres", db.Private != nil)
		link, err := d.FirstLink(ctx)
		if err != nil {
			return err
		}
		if link != "" {
			fmt.Fprintf(os.Stderr, "There are no people yet. Create the first account: %s\n", link)
		}
		err = d.Run(ctx)
		log.Info("daemon.stopped")
		return err
	})
}
