package main

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

	"autopost/internal/blueprint"
	"autopost/internal/pg"
)

func configCommand() *cobra.Command {
	return family("config", "Export the configuration as a file, compare and apply one", configExportCommand(), configDiffCommand(), configApplyCommand())
}

func workspacesFlag(cmd *cobra.Command, workspaces *[]string) {
	cmd.Flags().StringArrayVar(workspaces, "workspace", nil, "only this workspace, and no settings; repeatable (default all)")
}

func configExportCommand() *cobra.Command {
	var workspaces []string
	var out string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the configuration of all workspaces as YAML",
		Long: `Write the settings and the configuration of all workspaces as YAML: credentials,
limits of rate groups, templates, channels, quotas, budgets, sources, endpoints, result
webhooks and targets of alerts, without what is at its default. There are no secrets in
it, only where they are kept, unless the address of a source holds one. The same
configuration is always the same bytes, so that it can be kept under version control.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				file, err := exported(ctx, store, workspaces)
				if err != nil {
					return err
				}
				var text bytes.Buffer
				if err := blueprint.Write(&text, file); err != nil {
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
	cmd.Flags().StringVar(&out, "out", "", "file to write instead of standard output")
	return cmd
}

// exported is the configuration of these workspaces, or of all and the settings.
func exported(ctx context.Context, store *pg.Store, workspaces []string) (blueprint.File, error) {
	file := blueprint.File{Settings: map[string]json.RawMessage{}}
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
		w := blueprint.Workspace{ID: id}
		for _, item := range items {
			w.Items = append(w.Items, blueprint.Item{Kind: item.Kind, ID: item.ID, Fields: item.Fields})
		}
		file.Workspaces = append(file.Workspaces, w)
	}
	return file, nil
}

// changedSettings are those that are not at their default.
func changedSettings(ctx context.Context, store *pg.Store) ([]pg.SettingRow, error) {
	list, err := store.ListSettings(ctx)
	return slices.DeleteFunc(list, func(s pg.SettingRow) bool { return bytes.Equal(s.Value, s.Default) }), err
}

// comparing is what diff and apply take.
type comparing struct {
	applying

	workspaces []string
	prune      bool
}

func (c *comparing) flags(cmd *cobra.Command) {
	workspacesFlag(cmd, &c.workspaces)
	cmd.Flags().BoolVar(&c.prune, "prune", false, "put out of use what is there and not in the file: disabled, never deleted; quotas, budgets and credentials stay")
}

// read reads the file, as far as it is about the chosen workspaces.
func (c *comparing) read(name string) (blueprint.File, error) {
	from, err := os.Open(name)
	if err != nil {
		return blueprint.File{}, misuse{err}
	}
	defer func() { _ = from.Close() }() // it was only read
	file, err := blueprint.Read(name, from)
	if err != nil {
		return file, misuse{err}
	}
	if len(c.workspaces) == 0 {
		return file, nil
	}
	for _, id := range c.workspaces {
		if !slices.ContainsFunc(file.Workspaces, func(w blueprint.Workspace) bool { return w.ID == id }) {
			return file, misuse{fmt.Errorf("%s says nothing of workspace %s", name, id)}
		}
	}
	file.Settings = nil
	file.Workspaces = slices.DeleteFunc(file.Workspaces, func(w blueprint.Workspace) bool { return !slices.Contains(c.workspaces, w.ID) })
	return file, nil
}

// plan says what the file would change.
func (c *comparing) plan(ctx context.Context, store *pg.Store, file blueprint.File) (*plan, error) {
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
		p.workspaces[len(p.workspaces)-1].leave(rest)
	}
	if len(c.workspaces) > 0 {
		return p, nil
	}
	return p, p.addOthers(ctx, store, act, file, c.prune)
}

// notInFile is what a workspace holds and the file does not name, as items that put it out of use.
func notInFile(ctx context.Context, store *pg.Store, w blueprint.Workspace) ([]blueprint.Item, error) {
	there, err := store.ExportConfig(ctx, w.ID)
	if errors.Is(err, pg.ErrNoWorkspace) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rest []blueprint.Item
	for _, item := range there {
		named := slices.ContainsFunc(w.Items, func(i blueprint.Item) bool { return i.Kind == item.Kind && sameID(i, item.ID) })
		if !named {
			rest = append(rest, blueprint.Item{Kind: item.Kind, ID: item.ID, Retire: true})
		}
	}
	return rest, nil
}

// sameID reports whether an item of a file has this id: "digest/*" is the template "digest".
func sameID(item blueprint.Item, id string) bool {
	return item.ID == id || item.Kind == "template" && item.ID == id+"/*"
}

func configDiffCommand() *cobra.Command {
	c := comparing{}
	var exitCode bool
	cmd := &cobra.Command{
		Use:   "diff FILE.yaml",
		Short: "Say what applying a file would change",
		Args:  oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := c.read(args[0])
			if err != nil {
				return err
			}
			c.act = pg.Act{Operator: "diff", Reason: "diff", DryRun: true} // nothing is written
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
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit 1 when there is something to change")
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print JSON")
	return cmd
}

func configApplyCommand() *cobra.Command {
	c := comparing{}
	cmd := &cobra.Command{
		Use:   "apply FILE.yaml",
		Short: "Make the configuration what a file says",
		Long: `Make the configuration what a file says, a workspace at a time and each of them
wholly or not at all. What would change is shown first, and asked about. A field that
the file leaves out is at its default; what the file does not name is left as it is,
unless --prune puts it out of use.`,
		Args: oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := c.read(args[0])
			if err != nil {
				return err
			}
			if c.act.Reason == "" {
				c.act.Reason = "config apply " + filepath.Base(args[0])
			}
			if err := c.known(cmd); err != nil {
				return err
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				p, err := c.plan(ctx, store, file)
				if err != nil {
					return err
				}
				return c.carryOut(ctx, store, p)
			})
		},
	}
	c.flags(cmd)
	c.applying.flags(cmd)
	return cmd
}
