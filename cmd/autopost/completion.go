package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/localpg"
	"autopost/internal/pg"
)

// completionPatience bounds what a person waits for at the Tab key.
const completionPatience = 3 * time.Second

// names lists what an argument or a flag may be, in a workspace ("" where none is named).
type names func(context.Context, *pg.Store, string) ([]string, error)

// completeNames lets the shell complete the ids of workspaces, channels and templates.
func completeNames(root *cobra.Command) {
	for _, family := range root.Commands() {
		for _, cmd := range append(family.Commands(), family) {
			for flag, list := range map[string]names{"workspace": workspaceNames, "channel": channelNames} {
				if cmd.Flags().Lookup(flag) != nil {
					_ = cmd.RegisterFlagCompletionFunc(flag, completeFrom(cmd, list)) // fails for no flag alone
				}
			}
			list := map[string]names{"workspace": workspaceNames, "channel": channelNames, "template": templateNames}[family.Name()]
			if _, argument, _ := strings.Cut(cmd.Use, " "); list != nil && (argument == "ID" || strings.HasPrefix(argument, "NAME")) {
				complete := completeFrom(cmd, list)
				cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
					if len(args) > 0 {
						return nil, cobra.ShellCompDirectiveDefault
					}
					return complete(cmd, args, typed)
				}
			}
		}
	}
}

// completeFrom answers what the database knows, and nothing where it is not reachable:
// no database is started for it.
func completeFrom(cmd *cobra.Command, list names) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
		defer cancel()
		workspace := ""
		if flag := cmd.Flags().Lookup("workspace"); flag != nil {
			workspace = flag.Value.String()
		}
		found, err := reachable(ctx, func(store *pg.Store) ([]string, error) { return list(ctx, store, workspace) })
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func reachable(ctx context.Context, ask func(*pg.Store) ([]string, error)) (found []string, err error) {
	cfg, err := loadConfig()
	if err != nil {
		return nil, err
	}
	if cfg.DatabaseURL.IsZero() && !localpg.Running(filepath.Join(cfg.DataDir, "pg")) {
		return nil, nil
	}
	err = withDatabase(ctx, func(ctx context.Context, _ config.Config, db *database) error {
		store, err := db.store(ctx)
		if err != nil {
			return err
		}
		defer store.Close()
		found, err = ask(store)
		return err
	})
	return found, err
}

func workspaceNames(ctx context.Context, store *pg.Store, _ string) ([]string, error) {
	list, err := store.DescribeWorkspaces(ctx, listLimit)
	found := make([]string, 0, len(list))
	for _, w := range list {
		found = append(found, w.WorkspaceID)
	}
	return found, err
}

func channelNames(ctx context.Context, store *pg.Store, named string) ([]string, error) {
	workspace, err := chooseWorkspace(ctx, store, named)
	if err != nil {
		return nil, err
	}
	list, err := store.ListChannels(ctx, workspace, listLimit)
	found := make([]string, 0, len(list))
	for _, c := range list {
		found = append(found, c.ChannelID)
	}
	return found, err
}

func templateNames(ctx context.Context, store *pg.Store, named string) ([]string, error) {
	workspace, err := chooseWorkspace(ctx, store, named)
	if err != nil {
		return nil, err
	}
	list, err := store.ListTemplates(ctx, workspace, listLimit)
	var found []string
	for _, t := range list {
		if len(found) == 0 || found[len(found)-1] != t.TemplateID {
			found = append(found, t.TemplateID)
		}
	}
	return found, err
}
