package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func settingCommand() *cobra.Command {
	return family("setting", "List and change the values that hold for the whole installation", settingListCommand(), settingSetCommand())
}

func settingListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the settings with their defaults, their bounds and what they mean",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				list, err := store.ListSettings(ctx)
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(list))
				for _, s := range list {
					if asJSON {
						rows = append(rows, []any{s.Key, s.Value, s.Default, s.Least, s.Most, s.Meaning})
					} else {
						rows = append(rows, []any{s.Key, shown(s.Value), shown(s.Default), shown(s.Least), shown(s.Most), s.Meaning})
					}
				}
				return printTable(os.Stdout, asJSON, []string{"key", "value", "default", "least", "most", "meaning"}, rows)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func settingSetCommand() *cobra.Command {
	var m manual
	var reset bool
	cmd := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change a setting, or put it back to its default",
		Long: `Change a value that holds for the whole installation. Of the settings that serve's
environment names too, serve writes the environment's value when it starts.
What changes is in the audit log of the workspace that the setting operator_workspace
names, or else of the oldest one.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && !reset || len(args) == 1 && reset {
				return nil
			}
			return misuse{fmt.Errorf("%s takes KEY and VALUE, or KEY and --default\nsee %s --help", cmd.CommandPath(), cmd.CommandPath())}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			value, typed := json.RawMessage("null"), "--default"
			if !reset {
				value, typed = json.RawMessage(args[1]), args[1]
			}
			if !json.Valid(value) {
				return misuse{fmt.Errorf("%q is no JSON value: write a number such as 5", args[1])}
			}
			m.act.Reason = cmp.Or(m.act.Reason, "setting set "+args[0]+" "+typed)
			if err := m.known(cmd); err != nil {
				return err
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				changes, err := store.ApplySettings(ctx, m.act, pg.Fields{args[0]: value})
				if err != nil {
					return misuseOf(err)
				}
				return tellSettings(args[0], changes, m.act.DryRun, m.asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&reset, "default", false, "put it back to its default")
	m.whoFlags(cmd)
	cmd.Flags().Lookup("reason").Usage = "why, for the audit log (default what was typed)"
	return cmd
}

func tellSettings(key string, changes []pg.SettingChange, dryRun, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(append([]pg.SettingChange{}, changes...))
	}
	if len(changes) == 0 {
		fmt.Fprintf(os.Stdout, "nothing to change: setting %s is so already\n", key)
	}
	for _, c := range changes {
		if dryRun {
			fmt.Fprint(os.Stdout, "dry run: nothing was changed; this is what would be ")
		}
		fmt.Fprintf(os.Stdout, "changed setting %s: %s -> %s\n", c.Key, c.Before, c.After)
	}
	return nil
}
