package cli

import (
	"context"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func workspaceCommand() *cobra.Command {
	return parentCommand("workspace", "Manage workspaces",
		workspacePutCommand("add", "Add a workspace", `  autopost workspace add news --name "Newsroom" --reason "new customer"`, mustNotExist),
		workspacePutCommand("set", "Change a workspace", `  autopost workspace set news --name "City news" --reason "renamed"`, mustExist),
		workspaceListCommand(), workspaceShowCommand(),
		workspaceStatusCommand("pause", "Stop sending; new posts are accepted and wait", "paused"),
		workspaceStatusCommand("resume", "Activate a workspace; waiting posts are sent", "active"),
		workspaceStatusCommand("disable", "Stop sending and reject new posts", "disabled"),
		workspaceStatusCommand("enable", "Activate a workspace, like resume", "active"))
}

func workspacePutCommand(verb, short, example string, expected expectation) *cobra.Command {
	p := newUpsert("workspace")
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: example,
		Args:    oneArgument("workspace id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.act.Workspace = args[0]
			return p.write(cmd, "workspace "+args[0], expected, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.PutWorkspace(ctx, act, fields))
			})
		},
	}
	p.flags(cmd)
	return cmd
}

func workspaceListCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List all workspaces",
		Example: "  autopost workspace list",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				list, err := store.DescribeWorkspaces(ctx, listLimit)
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(list))
				for _, w := range list {
					rows = append(rows, []any{w.WorkspaceID, w.Name, w.Status, w.CreatedAt})
				}
				return out.rows(list, table.Table{
					Columns: []string{"workspace_id", "name", "status", "created"}, Details: []string{"created"}, Rows: rows,
					Empty: "No workspace: run autopost workspace add ID.",
				})
			})
		},
	}
	out.add(cmd)
	return cmd
}

func workspaceShowCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show a workspace and the size of its queue",
		Example: "  autopost workspace show news",
		Args:    oneArgument("workspace id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				raw, err := store.GetWorkspace(ctx, args[0])
				if err != nil {
					return err
				}
				return f.printObject(raw)
			})
		},
	}
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

func workspaceStatusCommand(verb, short, status string) *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: "  autopost workspace " + verb + ` news --reason "maintenance"`,
		Args:    oneArgument("workspace id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.act.Workspace = args[0]
			return m.put(cmd, "workspace "+args[0], func(ctx context.Context, store *pg.Store) (pg.PutAnswer, error) {
				return store.SetWorkspaceStatus(ctx, m.act, status)
			})
		},
	}
	m.changeFlags(cmd)
	return cmd
}
