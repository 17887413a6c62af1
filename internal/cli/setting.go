package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func settingCommand() *cobra.Command {
	return parentCommand("setting", "Manage the settings of the installation", settingListCommand(), settingSetCommand())
}

func settingListCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the settings with default, bounds and meaning",
		Example: "  autopost setting list",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				list, err := store.ListSettings(ctx)
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(list))
				for _, s := range list {
					rows = append(rows, []any{s.Key, valueText(s.Value), valueText(s.Default), s.Meaning, valueText(s.Least), valueText(s.Most), s.Internal})
				}
				return out.rows(list, table.Table{
					Columns: []string{"key", "value", "default", "meaning", "least", "most", "internal"},
					Details: []string{"default", "least", "most", "internal"}, Rows: rows,
				})
			})
		},
	}
	out.add(cmd)
	return cmd
}

func settingSetCommand() *cobra.Command {
	var m operatorFlags
	var reset bool
	cmd := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change a setting, or reset it to its default",
		Long: `Change a setting of the whole installation. A daemon overwrites the settings that its
environment sets, each time it starts. The audit entry is written to the workspace of
the setting operator_workspace, or else to the oldest workspace.`,
		Example: `  autopost setting set max_attempts 7
  autopost setting set max_attempts --default`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && !reset || len(args) == 1 && reset {
				return nil
			}
			return usageError{fmt.Errorf("KEY and VALUE, or KEY and --default, must be given: run %s --help", cmd.CommandPath())}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			value, typed := json.RawMessage("null"), "--default"
			if !reset {
				value, typed = json.RawMessage(args[1]), args[1]
			}
			if !json.Valid(value) {
				return usageError{fmt.Errorf("VALUE must be JSON, got %q: write a number like 5", args[1])}
			}
			m.act.Reason = cmp.Or(m.act.Reason, "setting set "+args[0]+" "+typed)
			if err := m.requireAudit(cmd); err != nil {
				return err
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.SettingsAnswer](store.ApplySettings(ctx, m.act, pg.Fields{args[0]: value}))
				if err != nil {
					return asUsageError(err)
				}
				return m.printSettings(args[0], answer.Changes)
			})
		},
	}
	cmd.Flags().BoolVar(&reset, "default", false, "reset the setting to its default")
	m.changeFlags(cmd)
	return cmd
}

func (m *operatorFlags) printSettings(key string, changes []pg.SettingChange) error {
	if m.asJSON {
		return printItems(changes)
	}
	if len(changes) == 0 {
		fmt.Fprintf(os.Stdout, "nothing to change: setting %s already has this value\n", key)
		return nil
	}
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
	}
	for _, c := range changes {
		fmt.Fprintf(os.Stdout, "changed setting %s: %s -> %s\n", c.Key, c.Before, c.After)
	}
	return nil
}
