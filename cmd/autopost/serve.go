package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/telemetry"
)

func serveCommand() *cobra.Command {
	var only []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: `Run the daemon: take posts in, send them, watch over both.

Without DATABASE_URL it starts a private PostgreSQL under AUTOPOST_DATA_DIR. Any
number of daemons may run against one database. SIGTERM drains: nothing new is
begun, what was begun is finished, the rest is handed back.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, stage := range only {
				if !slices.Contains(stages, stage) {
					return misuse{fmt.Errorf("--only: there is no stage %q; stages are %s", stage, strings.Join(stages, ", "))}
				}
			}
			return serve(cmd.Context(), only)
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", nil, "stages to run, of "+strings.Join(stages, ", ")+" (default all)")
	return cmd
}

// collectAt is how far the heap may grow over what is in use before it is cleared, in percent: a daemon
// waits more than it computes, and memory is what people have least of. GOGC overrules it.
const collectAt = 50

func serve(ctx context.Context, only []string) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	return withDatabase(ctx, func(ctx context.Context, cfg config.Config, db *database) error {
		log := telemetry.NewLogger(os.Stderr, cfg.LogLevel)
		d, err := newDaemon(ctx, cfg, db, only, log)
		if err != nil {
			return err
		}
		defer d.Close()
		log.Info("daemon.started", "listen", "http://"+d.Addr(), "stages", only, "private_postgres", db.private != nil)
		err = d.Run(ctx)
		log.Info("daemon.stopped")
		return err
	})
}
