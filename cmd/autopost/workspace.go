package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func workspaceCommand() *cobra.Command {
	return family("workspace", "Add, list, change, pause and disable workspaces",
		workspacePutCommand("add ID", "Add a workspace", absent), workspacePutCommand("set ID", "Change a workspace", present),
		workspaceListCommand(), workspaceShowCommand(),
		workspaceStatusCommand("pause ID", "Send nothing of a workspace; posts are taken in and wait", "paused"),
		workspaceStatusCommand("resume ID", "Serve a workspace; what waits goes", "active"),
		workspaceStatusCommand("disable ID", "Refuse posts to a workspace, and send nothing", "disabled"))
}

func workspacePutCommand(use, short string, expected standing) *cobra.Command {
	p := newPutting("workspace")
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  oneArgument("id of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.act.Workspace = args[0]
			return p.write(cmd, "workspace "+args[0], expected, func(ctx context.Context, store *pg.Store, act pg.Act, fields pg.Fields) (pg.PutAnswer, error) {
				return store.PutWorkspace(ctx, act, fields)
			})
		},
	}
	p.flags(cmd)
	return cmd
}

func workspaceListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all workspaces",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				list, err := store.DescribeWorkspaces(ctx, listLimit)
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(list))
				for _, w := range list {
					rows = append(rows, []any{w.WorkspaceID, w.Name, w.Status})
				}
				return printTable(os.Stdout, asJSON, []string{"workspace_id", "name", "status"}, rows)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func workspaceShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a workspace, its channels and queue in numbers",
		Args:  oneArgument("id of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				raw, err := store.GetWorkspace(ctx, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					fmt.Fprintln(os.Stdout, string(raw))
					return nil
				}
				return showObject(raw)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func workspaceStatusCommand(use, short, status string) *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  oneArgument("id of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.act.Workspace = args[0]
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.SetWorkspaceStatus(ctx, m.act, status)
				if err != nil {
					return err
				}
				return m.tellPut("workspace "+args[0], answer)
			})
		},
	}
	m.whoFlags(cmd)
	return cmd
}
