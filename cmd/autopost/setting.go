package main

import (
	"context"
	"encoding/json"
	"errors"
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
	var reset, dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change a setting, or put it back to its default",
		Long: `Change a value that holds for the whole installation. Of the settings that serve's
environment names too, serve writes the environment's value when it starts.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && !reset || len(args) == 1 && reset {
				return nil
			}
			return misuse{fmt.Errorf("%s takes KEY and VALUE, or KEY and --default\nsee %s --help", cmd.CommandPath(), cmd.CommandPath())}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			value := json.RawMessage("null")
			if !reset {
				value = json.RawMessage(args[1])
			}
			if !json.Valid(value) {
				return misuse{fmt.Errorf("%q is no JSON value: write a number such as 5", args[1])}
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				changes, err := store.ApplySettings(ctx, pg.Fields{args[0]: value}, dryRun)
				if errors.Is(err, pg.ErrArgument) {
					return misuse{err}
				}
				if err != nil {
					return err
				}
				return tellSettings(args[0], changes, dryRun, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&reset, "default", false, "put it back to its default")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would change, and change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
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
