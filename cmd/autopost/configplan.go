package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/blueprint"
	"autopost/internal/pg"
)

// applying is a command that shows what it would change, asks, and does it.
type applying struct {
	manual

	yes bool
}

func (a *applying) flags(cmd *cobra.Command) {
	a.whoFlags(cmd)
	cmd.Flags().BoolVar(&a.yes, "yes", false, "do not ask")
}

// plan is what would change.
type plan struct {
	settings   []pg.SettingChange
	values     pg.Fields // of all settings that are written
	left       []string  // settings and workspaces that are there and not in the file
	workspaces []planned
}

// planned is what would change of one workspace.
type planned struct {
	act   pg.Act
	items []blueprint.Item
	// changes are those of the items that are not so already.
	changes []pg.ConfigChange
	// left are things that are there and not in the file, by kind and id.
	left []string
}

// leave notes what the file does not name, but for what is put out of use by it.
func (w *planned) leave(rest []blueprint.Item) {
	for _, item := range rest {
		changed := slices.ContainsFunc(w.changes, func(c pg.ConfigChange) bool { return c.Kind == item.Kind && c.ID == item.ID })
		if !changed {
			w.left = append(w.left, item.Kind+" "+item.ID)
		}
	}
}

// refusal is what the database has against an item of a file, where it is written.
func refused(items []blueprint.Item, answer pg.ConfigAnswer) error {
	item := items[answer.Item]
	lines := make([]string, 0, len(answer.Errors))
	for _, e := range answer.Errors {
		lines = append(lines, fmt.Sprintf("%s: %s %s: %s %s: %s", item.Where(e.Field), item.Kind, item.ID, e.Field, e.Reason, e.Remedy))
	}
	return errors.New(strings.Join(lines, "\n"))
}

func configItems(items []blueprint.Item) []pg.ConfigItem {
	list := make([]pg.ConfigItem, 0, len(items))
	for _, i := range items {
		list = append(list, pg.ConfigItem{Kind: i.Kind, ID: i.ID, Fields: i.Fields, Retire: i.Retire})
	}
	return list
}

// add asks what items would change in the workspace that the act names.
func (p *plan) add(ctx context.Context, store *pg.Store, act pg.Act, items []blueprint.Item) error {
	dry := act
	dry.DryRun = true
	answer, err := store.ApplyConfig(ctx, dry, configItems(items))
	if err != nil {
		return err
	}
	if answer.Reason == "invalid" {
		return refused(items, answer)
	}
	p.workspaces = append(p.workspaces, planned{act: act, items: items, changes: answer.Items})
	return nil
}

// addSettings asks what the settings of a file would change; of those that it does
// not name, pruning puts back to their defaults what is not.
func (p *plan) addSettings(ctx context.Context, store *pg.Store, act pg.Act, file blueprint.File, prune bool) error {
	known, err := store.ListSettings(ctx)
	if err != nil {
		return err
	}
	var keys []string
	for _, s := range known {
		keys = append(keys, s.Key)
	}
	p.values = pg.Fields{}
	maps.Copy(p.values, file.Settings)
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		if !slices.Contains(keys, key) {
			return misuse{blueprint.Unknown(file.WhereSetting(key), "setting", key, keys)}
		}
	}
	changed, err := changedSettings(ctx, store)
	if err != nil {
		return err
	}
	for _, s := range changed {
		if _, named := p.values[s.Key]; named {
			continue
		}
		if prune {
			p.values[s.Key] = json.RawMessage("null")
		} else {
			p.left = append(p.left, "setting "+s.Key)
		}
	}
	act.DryRun = true
	p.settings, err = store.ApplySettings(ctx, act, p.values)
	if errors.Is(err, pg.ErrArgument) {
		for key := range file.Settings {
			if strings.Contains(err.Error(), " "+key+" ") {
				return fmt.Errorf("%s: %w", file.WhereSetting(key), err)
			}
		}
	}
	return err
}

// addOthers notes the workspaces that a file does not name; pruning disables them.
func (p *plan) addOthers(ctx context.Context, store *pg.Store, act pg.Act, file blueprint.File, prune bool) error {
	list, err := everyWorkspace(ctx, store)
	if err != nil {
		return err
	}
	for _, w := range list {
		if slices.ContainsFunc(file.Workspaces, func(named blueprint.Workspace) bool { return named.ID == w.WorkspaceID }) {
			continue
		}
		if !prune || w.Status == "disabled" {
			p.left = append(p.left, "workspace "+w.WorkspaceID)
			continue
		}
		act.Workspace = w.WorkspaceID
		disabled := blueprint.Item{Kind: "workspace", ID: w.WorkspaceID, Fields: pg.Fields{"status": json.RawMessage(`"disabled"`)}}
		if err := p.add(ctx, store, act, []blueprint.Item{disabled}); err != nil {
			return err
		}
	}
	return nil
}

// changes counts what would change.
func (p *plan) changes() int {
	n := len(p.settings)
	for _, w := range p.workspaces {
		n += len(w.changes)
	}
	return n
}

// print tells what would change.
func (p *plan) print(asJSON bool) error {
	if asJSON {
		return p.printJSON()
	}
	if len(p.settings) > 0 {
		fmt.Fprintln(os.Stdout, "settings")
	}
	for _, s := range p.settings {
		fmt.Fprintf(os.Stdout, "  ~ %s: %s -> %s\n", s.Key, s.Before, s.After)
	}
	for _, w := range p.workspaces {
		w.print()
	}
	for _, name := range p.left {
		fmt.Fprintf(os.Stdout, "not in the file: %s\n", name)
	}
	if p.changes() == 0 {
		fmt.Fprintln(os.Stdout, "nothing to change")
	}
	return nil
}

func (w planned) print() {
	if len(w.changes)+len(w.left) == 0 {
		return
	}
	fmt.Fprintf(os.Stdout, "workspace %s: %d of %d are so already\n", w.act.Workspace, len(w.items)-len(w.changes), len(w.items))
	for _, c := range w.changes {
		sign := "~"
		if c.Created {
			sign = "+"
		}
		fmt.Fprintf(os.Stdout, "  %s %s %s\n", sign, c.Kind, c.ID)
		for _, field := range blueprint.KindOf(c.Kind).Ordered(c.Before, c.After) {
			if c.Created {
				fmt.Fprintf(os.Stdout, "      %s: %s\n", field, c.After[field])
			} else {
				fmt.Fprintf(os.Stdout, "      %s: %s -> %s\n", field, c.Before[field], c.After[field])
			}
		}
		if c.Note != "" {
			fmt.Fprintf(os.Stdout, "      ! %s\n", c.Note)
		}
	}
	for _, name := range w.left {
		fmt.Fprintf(os.Stdout, "  not in the file: %s\n", name)
	}
}

func (p *plan) printJSON() error {
	type workspace struct {
		Workspace string            `json:"workspace"`
		Changes   []pg.ConfigChange `json:"changes"`
		NotInFile []string          `json:"not_in_file"`
	}
	out := struct {
		Settings   []pg.SettingChange `json:"settings"`
		Workspaces []workspace        `json:"workspaces"`
		NotInFile  []string           `json:"not_in_file"`
	}{append([]pg.SettingChange{}, p.settings...), []workspace{}, append([]string{}, p.left...)}
	for _, w := range p.workspaces {
		out.Workspaces = append(out.Workspaces, workspace{w.act.Workspace, append([]pg.ConfigChange{}, w.changes...), append([]string{}, w.left...)})
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// carryOut shows a plan, asks, and does it.
func (a *applying) carryOut(ctx context.Context, store *pg.Store, p *plan) error {
	if err := p.print(a.asJSON); err != nil {
		return err
	}
	if p.changes() == 0 || a.act.DryRun {
		return nil
	}
	if !a.yes && !confirmed() {
		return errors.New("nothing was changed: nobody said yes; --yes does not ask")
	}
	if len(p.settings) > 0 {
		if _, err := store.ApplySettings(ctx, a.act, p.values); err != nil {
			return err
		}
	}
	for _, w := range p.workspaces {
		if len(w.changes) == 0 {
			continue
		}
		answer, err := store.ApplyConfig(ctx, w.act, configItems(w.items))
		if err != nil {
			return err
		}
		if answer.Reason == "invalid" {
			return refused(w.items, answer)
		}
	}
	fmt.Fprintln(os.Stderr, "autopost: applied")
	return nil
}

// confirmed asks on the terminal.
func confirmed() bool {
	fmt.Fprint(os.Stderr, "apply this? Type yes: ")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err == nil && strings.TrimSpace(line) == "yes"
}
