package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"autopost/internal/configfile"
	"autopost/internal/pg"
)

func configCommand() *cobra.Command {
	return parentCommand("config", "Export, compare and apply the configuration as a file", configExportCommand(), configDiffCommand(), configApplyCommand())
}

func workspacesFlag(cmd *cobra.Command, workspaces *[]string) {
	cmd.Flags().StringArrayVar(workspaces, "workspace", nil, "`id` of a workspace: only this workspace, without settings; repeatable (default: all)")
}

func configExportCommand() *cobra.Command {
	var workspaces []string
	var out string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the configuration of all workspaces as YAML",
		Long: `Write the settings and the configuration of all workspaces as YAML: credentials, rate
groups, templates, channels, quotas, budgets, retry policies, sources, endpoints, result
webhooks, alert targets and rules of the bot. Values at their default are left out. The file
contains no secrets, only their references. A source URL with a key in it is written as it
is. The same configuration gives the same bytes, so the file suits version control.`,
		Example: `  autopost config export --out autopost.yaml`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				file, err := exported(ctx, store, workspaces)
				if err != nil {
					return err
				}
				var text bytes.Buffer
				if err := configfile.Write(&text, file); err != nil {
					return err
				}
				if out == "" {
					_, err = os.Stdout.Write(text.Bytes())
					return err
				}
				return os.WriteFile(out, text.Bytes(), 0o600)
			})
		},
	}
	workspacesFlag(cmd, &workspaces)
	cmd.Flags().StringVar(&out, "out", "", "`file` to write (default: stdout)")
	return cmd
}

// exported returns the configuration of the workspaces. Without names it returns all
// workspaces and the settings.
func exported(ctx context.Context, store *pg.Store, workspaces []string) (configfile.File, error) {
	file := configfile.File{Settings: map[string]json.RawMessage{}}
	if len(workspaces) == 0 {
		changed, err := changedSettings(ctx, store)
		if err != nil {
			return file, err
		}
		for _, s := range changed {
			file.Settings[s.Key] = s.Value
		}
		list, err := everyWorkspace(ctx, store)
		if err != nil {
			return file, err
		}
		for _, w := range list {
			workspaces = append(workspaces, w.WorkspaceID)
		}
	}
	for _, id := range workspaces {
		items, err := store.ExportConfig(ctx, id)
		if err != nil {
			return file, err
		}
		w := configfile.Workspace{ID: id}
		for _, item := range items {
			w.Items = append(w.Items, configfile.Item{Kind: item.Kind, ID: item.ID, Fields: item.Fields})
		}
		file.Workspaces = append(file.Workspaces, w)
	}
	return file, nil
}

// changedSettings returns the settings that differ from their defaults.
func changedSettings(ctx context.Context, store *pg.Store) ([]pg.SettingRow, error) {
	list, err := store.ListSettings(ctx)
	return slices.DeleteFunc(list, func(s pg.SettingRow) bool { return bytes.Equal(s.Value, s.Default) }), err
}

// fileFlags are the flags of config diff and config apply.
type fileFlags struct {
	applyFlags

	workspaces []string
	prune      bool
}

func (c *fileFlags) flags(cmd *cobra.Command) {
	workspacesFlag(cmd, &c.workspaces)
	cmd.Flags().BoolVar(&c.prune, "prune", false, "disable (never delete) what the file does not name; quotas, budgets and credentials stay")
}

// read reads the part of the file that concerns the chosen workspaces.
func (c *fileFlags) read(name string) (configfile.File, error) {
	from, err := os.Open(name)
	if err != nil {
		return configfile.File{}, usageError{err}
	}
	defer func() { _ = from.Close() }() // it was only read
	file, err := configfile.Read(name, from)
	if err != nil {
		return file, usageError{err}
	}
	if len(c.workspaces) == 0 {
		return file, nil
	}
	for _, id := range c.workspaces {
		if !slices.ContainsFunc(file.Workspaces, func(w configfile.Workspace) bool { return w.ID == id }) {
			return file, usageError{fmt.Errorf("%s must contain workspace %s: add it, or correct --workspace", name, id)}
		}
	}
	file.Settings = nil
	file.Workspaces = slices.DeleteFunc(file.Workspaces, func(w configfile.Workspace) bool { return !slices.Contains(c.workspaces, w.ID) })
	return file, nil
}

// plan returns the changes that the file would make.
func (c *fileFlags) plan(ctx context.Context, store *pg.Store, file configfile.File) (*plan, error) {
	p := &plan{}
	act := c.act
	if file.Settings != nil {
		if err := p.addSettings(ctx, store, act, file, c.prune); err != nil {
			return nil, err
		}
	}
	for _, w := range file.Workspaces {
		act.Workspace = w.ID
		rest, err := notInFile(ctx, store, w)
		if err != nil {
			return nil, err
		}
		items := w.Items
		if c.prune {
			items = append(slices.Clone(items), rest...)
		}
		if err := p.add(ctx, store, act, items); err != nil {
			return nil, err
		}
		p.workspaces[len(p.workspaces)-1].noteUnnamed(rest)
	}
	if len(c.workspaces) > 0 {
		return p, nil
	}
	return p, p.addOthers(ctx, store, act, file, c.prune)
}

// notInFile returns the rows of a workspace that the file does not name, as items that
// disable them.
func notInFile(ctx context.Context, store *pg.Store, w configfile.Workspace) ([]configfile.Item, error) {
	current, err := store.ExportConfig(ctx, w.ID)
	if errors.Is(err, pg.ErrNoWorkspace) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rest []configfile.Item
	for _, item := range current {
		named := slices.ContainsFunc(w.Items, func(i configfile.Item) bool { return i.Kind == item.Kind && sameID(i, item.ID) })
		if !named {
			rest = append(rest, configfile.Item{Kind: item.Kind, ID: item.ID, Retire: true})
		}
	}
	return rest, nil
}

// sameID reports whether an item of a file has this id. "digest/*" names the template "digest".
func sameID(item configfile.Item, id string) bool {
	return item.ID == id || item.Kind == "template" && item.ID == id+"/*"
}

func configDiffCommand() *cobra.Command {
	c := fileFlags{}
	var exitCode bool
	cmd := &cobra.Command{
		Use:     "diff FILE.yaml",
		Short:   "Print the changes that a file would make",
		Example: "  autopost config diff autopost.yaml --exit-code",
		Args:    oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := c.read(args[0])
			if err != nil {
				return err
			}
			c.act = pg.OperatorAction{Operator: "diff", Reason: "diff", DryRun: true} // a dry run
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				p, err := c.plan(ctx, store, file)
				if err != nil {
					return err
				}
				if err := p.print(c.asJSON); err != nil {
					return err
				}
				if exitCode && p.changes() > 0 {
					return errSilent
				}
				return nil
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit 1 if there are changes")
	jsonFlag(cmd, &c.asJSON)
	return cmd
}

func configApplyCommand() *cobra.Command {
	c := fileFlags{}
	cmd := &cobra.Command{
		Use:   "apply FILE.yaml",
		Short: "Apply a configuration file",
		Long: `Apply a configuration file, one workspace after another. Each workspace is changed
completely or not at all. The command prints the changes and asks before it applies them.
A field that the file leaves out gets its default. Rows that the file does not name stay
unchanged, unless --prune disables them.`,
		Example: `  autopost config apply autopost.yaml
  autopost config apply autopost.yaml --prune --yes`,
		Args: oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := c.read(args[0])
			if err != nil {
				return err
			}
			if c.act.Reason == "" {
				c.act.Reason = "config apply " + filepath.Base(args[0])
			}
			if err := c.requireAudit(cmd); err != nil {
				return err
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				p, err := c.plan(ctx, store, file)
				if err != nil {
					return err
				}
				return c.apply(ctx, store, p)
			})
		},
	}
	c.flags(cmd)
	c.applyFlags.flags(cmd)
	return cmd
}
