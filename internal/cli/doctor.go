package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and print remedies",
		Long: `Check the installation: the database, the media store, the credentials, the daemons, the
disks and the open alerts. The command prints a remedy for each failed check and exits 1
if a check fails.`,
		Example: "  autopost doctor",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), func(ctx context.Context, cfg config.Config, db *daemon.Database) error {
				return doctor(ctx, cfg, db, asJSON)
			})
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func doctor(ctx context.Context, cfg config.Config, db *daemon.Database, asJSON bool) error {
	store, err := db.Open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	checks, err := store.Diagnose(ctx)
	if err != nil {
		return err
	}
	checks = append(checks, diagnoseMedia(ctx, cfg))
	if store.Ready(ctx) == nil {
		restored, err := diagnoseRestore(ctx, store)
		if err != nil {
			return err
		}
		credentials, err := diagnoseCredentials(ctx, cfg, store)
		if err != nil {
			return err
		}
		installation, err := diagnoseInstallation(ctx, cfg, store)
		if err != nil {
			return err
		}
		alerts, err := diagnoseAlerts(ctx, store)
		if err != nil {
			return err
		}
		rates, err := diagnoseRates(ctx, store)
		if err != nil {
			return err
		}
		checks = slices.Concat(checks, restored, credentials, installation, rates, alerts)
	}
	rows := make([][]any, 0, len(checks))
	failed := 0
	for _, c := range checks {
		if !c.OK {
			failed++
		}
		rows = append(rows, []any{c.Name, c.OK, c.Found, c.Remedy})
	}
	if err := table.Print(os.Stdout, asJSON, []string{"check", "ok", "found", "remedy"}, rows); err != nil {
		return err
	}
	if failed > 0 {
		return errSilent
	}
	return nil
}

// diagnoseRestore checks that this database may send.
func diagnoseRestore(ctx context.Context, store *pg.Store) ([]pg.Check, error) {
	restored, err := store.NoteCluster(ctx)
	if err != nil || !restored {
		return []pg.Check{{Name: "restored copy", OK: true, Found: "no"}}, err
	}
	return []pg.Check{{Name: "restored copy", Found: "this database was restored from a backup and sends nothing", Remedy: daemon.RestoreRemedy}}, nil
}

// diagnoseRates names each rate group above the limit of its platform. That is a warning.
func diagnoseRates(ctx context.Context, store *pg.Store) ([]pg.Check, error) {
	workspaces, err := store.ListAllWorkspaces(ctx)
	if err != nil {
		return nil, err
	}
	var checks []pg.Check
	for _, workspace := range workspaces {
		groups, err := store.ListRateGroups(ctx, workspace, listLimit)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			if g.EnabledChannels > 0 && g.PlatformRPS > 0 && (g.RateRPS == 0 || g.RateRPS > g.PlatformRPS) {
				checks = append(checks, pg.Check{
					Name: fmt.Sprintf("rate of %s/%s/%s", workspace, g.Platform, g.RateGroup), OK: true,
					Found: fmt.Sprintf("limit %v, the platform takes %v messages a second: autopost group set %s --platform %s --rate-rps %[2]v --workspace %[5]s --reason limit",
						limitOrNone(g.RateRPS), g.PlatformRPS, g.RateGroup, g.Platform, workspace),
				})
			}
		}
	}
	if len(checks) == 0 {
		checks = []pg.Check{{Name: "rates", OK: true, Found: "no rate group is above the limit of its platform"}}
	}
	return checks, nil
}

// diagnoseAlerts returns a check for each open alert of all workspaces. A warning is OK.
func diagnoseAlerts(ctx context.Context, store *pg.Store) ([]pg.Check, error) {
	workspaces, err := store.ListAllWorkspaces(ctx)
	if err != nil {
		return nil, err
	}
	var checks []pg.Check
	for _, workspace := range workspaces {
		alerts, err := store.ListAlerts(ctx, workspace, doctorAlerts)
		if err != nil {
			return nil, err
		}
		for _, a := range alerts {
			if a.EndedAt == nil {
				checks = append(checks, pg.Check{Name: "alert " + workspace + "/" + a.Kind, OK: a.Severity == "warning", Found: a.What, Remedy: a.Remedy})
			}
		}
	}
	if len(checks) == 0 {
		checks = []pg.Check{{Name: "alerts", OK: true, Found: "no open alert"}}
	}
	return checks, nil
}

// doctorAlerts is the largest number of alerts that doctor reads from a workspace.
const doctorAlerts = 100
