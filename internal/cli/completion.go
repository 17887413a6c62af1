package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/localpg"
	"autopost/internal/pg"
)

// completionTimeout limits the wait after the Tab key.
const completionTimeout = 3 * time.Second

// names lists the possible values of an argument or flag. The workspace is empty if the
// command line does not name it.
type names func(context.Context, *pg.Store, string) ([]string, error)

// completeNames adds shell completion for workspace, channel and template names.
func completeNames(root *cobra.Command) {
	for _, parent := range root.Commands() {
		for _, cmd := range append(parent.Commands(), parent) {
			for flag, list := range map[string]names{"workspace": workspaceNames, "channel": channelNames} {
				if cmd.Flags().Lookup(flag) != nil {
					_ = cmd.RegisterFlagCompletionFunc(flag, completeFrom(cmd, list)) // the flag exists
				}
			}
			list := map[string]names{"workspace": workspaceNames, "channel": channelNames, "template": templateNames}[parent.Name()]
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

// completeFrom completes from the database. It completes nothing if the database is not
// running; completion never starts one.
func completeFrom(cmd *cobra.Command, list names) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		workspace := ""
		if flag := cmd.Flags().Lookup("workspace"); flag != nil {
			workspace = flag.Value.String()
		}
		found, err := withRunningStore(ctx, func(store *pg.Store) ([]string, error) { return list(ctx, store, workspace) })
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func withRunningStore(ctx context.Context, ask func(*pg.Store) ([]string, error)) (found []string, err error) {
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return nil, err
	}
	if cfg.DatabaseURL.IsZero() && !localpg.Running(filepath.Join(cfg.DataDir, "pg")) {
		return nil, nil
	}
	err = withDatabase(ctx, func(ctx context.Context, _ config.Config, db *daemon.Database) error {
		store, err := db.Open(ctx)
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
