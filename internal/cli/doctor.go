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
	var out output
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
				return doctor(ctx, cfg, db, out)
			})
		},
	}
	out.add(cmd)
	return cmd
}

func doctor(ctx context.Context, cfg config.Config, db *daemon.Database, out output) error {
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
		checks = append(checks, diagnoseWork(ctx, cfg, store)...)
	}
	if err := out.printDiagnosis(checks); err != nil {
		return err
	}
	if slices.ContainsFunc(checks, func(c pg.Check) bool { return !c.OK }) {
		return errSilent
	}
	return nil
}

// diagnoseWork runs the checks that need the functions of this binary. A check that fails to run is a failed check, so that
// the others still help: a node of a cluster may be down.
func diagnoseWork(ctx context.Context, cfg config.Config, store *pg.Store) []pg.Check {
	var checks []pg.Check
	for _, part := range []struct {
		name string
		run  func() ([]pg.Check, error)
	}{
		{"restored copy", func() ([]pg.Check, error) { return diagnoseRestore(ctx, store) }},
		{"credentials", func() ([]pg.Check, error) { return diagnoseCredentials(ctx, cfg, store) }},
		{"installation", func() ([]pg.Check, error) { return diagnoseInstallation(ctx, cfg, store) }},
		{"moderation", func() ([]pg.Check, error) { return diagnoseModeration(ctx, cfg.PublicURL, store) }},
		{"rates", func() ([]pg.Check, error) { return diagnoseRates(ctx, store) }},
		{"folders", func() ([]pg.Check, error) { return diagnoseFolders(ctx, store) }},
		{"alerts", func() ([]pg.Check, error) { return diagnoseAlerts(ctx, store) }},
	} {
		done, err := part.run()
		checks = append(checks, done...)
		if err != nil {
			checks = append(checks, pg.Check{Name: part.name, Found: err.Error(), Remedy: "follow the other remedies, then run autopost doctor again"})
		}
	}
	return checks
}

// diagnoseRestore checks that this database may send.
func diagnoseRestore(ctx context.Context, store *pg.Store) ([]pg.Check, error) {
	restored, err := store.NoteCluster(ctx)
	if err != nil || !restored {
		return []pg.Check{{Name: "restored copy", OK: true, Found: "no"}}, err
	}
	return []pg.Check{{Name: "restored copy", Found: "this database was restored from a backup and sends nothing", Remedy: daemon.RestoreRemedy}}, nil
}

// printDiagnosis prints the checks that succeeded, then those with a remedy. Equal checks share a row.
func (o output) printDiagnosis(checks []pg.Check) error {
	if o.asJSON {
		return printItems(checks)
	}
	groups := groupChecks(checks)
	fine, rows := [][]any{}, [][]any{}
	failed := 0
	for _, g := range groups {
		switch {
		case !g.OK:
			failed += g.count
			rows = append(rows, []any{g.Name, "FAILED", g.Found, g.Remedy})
		case g.Remedy != "":
			rows = append(rows, []any{g.Name, "warning", g.Found, g.Remedy})
		default:
			fine = append(fine, []any{g.Name, "ok", g.Found})
		}
	}
	if err := o.rows(nil, table.Table{Columns: []string{"check", "state", "found"}, Rows: fine}); err != nil {
		return err
	}
	if len(rows) > 0 {
		fmt.Fprintln(os.Stdout)
		if err := o.rows(nil, table.Table{Columns: []string{"check", "state", "found", "remedy"}, Rows: rows}); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stdout)
	if failed > 0 {
		say("%s failed: follow the remedies", counted(failed, "check"))
	} else {
		say("%s succeeded", counted(len(checks), "check"))
	}
	return nil
}

// namedChecks is how many equal checks are named.
const namedChecks = 3

// equalChecks are checks with the same result.
type equalChecks struct {
	pg.Check

	count int
}

func groupChecks(checks []pg.Check) []equalChecks {
	var groups []equalChecks
	for _, c := range checks {
		i := slices.IndexFunc(groups, func(g equalChecks) bool { return g.OK == c.OK && g.Found == c.Found && g.Remedy == c.Remedy })
		if i < 0 {
			groups = append(groups, equalChecks{c, 1})
			continue
		}
		groups[i].count++
		if groups[i].count <= namedChecks {
			groups[i].Name += ", " + c.Name
		}
	}
	for i, g := range groups {
		if g.count > namedChecks {
			groups[i].Name += fmt.Sprintf(" and %d more", g.count-namedChecks)
		}
	}
	return groups
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
					Found:  fmt.Sprintf("limit %v, the platform takes %v messages a second", limitOrNone(g.RateRPS), g.PlatformRPS),
					Remedy: fmt.Sprintf("run autopost group set %s --platform %s --rate-rps %v --workspace %s", g.RateGroup, g.Platform, g.PlatformRPS, workspace),
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
