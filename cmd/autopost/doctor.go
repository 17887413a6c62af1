package main

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/pg"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the database, the media origin, the credentials and open alerts, and say what to do about what is wrong",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), func(ctx context.Context, cfg config.Config, db *database) error {
				return doctor(ctx, cfg, db, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func doctor(ctx context.Context, cfg config.Config, db *database, asJSON bool) error {
	store, err := db.store(ctx)
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
		credentials, err := diagnoseCredentials(ctx, cfg, store)
		if err != nil {
			return err
		}
		house, err := diagnoseHouse(ctx, cfg, store)
		if err != nil {
			return err
		}
		alerts, err := diagnoseAlerts(ctx, store)
		if err != nil {
			return err
		}
		checks = slices.Concat(checks, credentials, house, alerts)
	}
	rows := make([][]any, 0, len(checks))
	ill := 0
	for _, c := range checks {
		if !c.OK {
			ill++
		}
		rows = append(rows, []any{c.Name, c.OK, c.Found, c.Remedy})
	}
	if err := printTable(os.Stdout, asJSON, []string{"check", "ok", "found", "remedy"}, rows); err != nil {
		return err
	}
	if ill > 0 {
		return errSilent
	}
	return nil
}

// diagnoseAlerts shows the open alerts of all workspaces, or that there are none.
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
		checks = []pg.Check{{Name: "alerts", OK: true, Found: "none is open"}}
	}
	return checks, nil
}

// doctorAlerts is how many alerts of a workspace the doctor looks at.
const doctorAlerts = 100
