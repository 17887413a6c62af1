package cli

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

	"autopost"
	"autopost/internal/configfile"
	"autopost/internal/pg"
)

// applyFlags are the flags of a command that prints its changes and asks before it applies them.
type applyFlags struct {
	operatorFlags

	yes bool
}

func (a *applyFlags) flags(cmd *cobra.Command) {
	a.changeFlags(cmd)
	cmd.Flags().BoolVar(&a.yes, "yes", false, "apply without a question")
}

// plan is the changes that a file would make.
type plan struct {
	settings []pg.SettingChange
	// values are all settings of the file.
	values pg.Fields
	// unnamed are the changed settings and the workspaces that the file does not name.
	unnamed    []string
	workspaces []workspacePlan
}

// workspacePlan is the changes of one workspace.
type workspacePlan struct {
	act     pg.OperatorAction
	items   []configfile.Item
	changes []pg.ConfigChange
	// unnamed are the rows that the file does not name, as kind and id.
	unnamed []string
}

// noteUnnamed records the rows that the file does not name and that the plan does not disable.
func (w *workspacePlan) noteUnnamed(rest []configfile.Item) {
	for _, item := range rest {
		changed := slices.ContainsFunc(w.changes, func(c pg.ConfigChange) bool { return c.Kind == item.Kind && c.ID == item.ID })
		if !changed {
			w.unnamed = append(w.unnamed, item.Kind+" "+item.ID)
		}
	}
}

// invalidItem returns the errors of an item with their places in the file.
func invalidItem(items []configfile.Item, answer pg.ConfigAnswer) error {
	item := items[answer.Item]
	lines := make([]string, 0, len(answer.Errors))
	for _, e := range answer.Errors {
		lines = append(lines, fmt.Sprintf("%s: %s %s: %s %s: %s", item.PlaceOf(e.Field), item.Kind, item.ID, e.Field, e.Reason, e.Remedy))
	}
	return errors.New(strings.Join(lines, "\n"))
}

func configItems(items []configfile.Item) []pg.ConfigItem {
	list := make([]pg.ConfigItem, 0, len(items))
	for _, i := range items {
		list = append(list, pg.ConfigItem{Kind: i.Kind, ID: i.ID, Fields: i.Fields, Retire: i.Retire})
	}
	return list
}

// add plans the items of the workspace of the action.
func (p *plan) add(ctx context.Context, store *pg.Store, act pg.OperatorAction, items []configfile.Item) error {
	dry := act
	dry.DryRun = true
	answer, err := pg.Decode[pg.ConfigAnswer](store.ApplyConfig(ctx, dry, configItems(items)))
	if err != nil {
		return err
	}
	if answer.Reason == "invalid" {
		return invalidItem(items, answer)
	}
	p.workspaces = append(p.workspaces, workspacePlan{act: act, items: items, changes: answer.Items})
	return nil
}

// addSettings plans the settings of a file. Pruning resets the settings that the file does
// not name.
func (p *plan) addSettings(ctx context.Context, store *pg.Store, act pg.OperatorAction, file configfile.File, prune bool) error {
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
			return usageError{configfile.Unknown(file.SettingPlace(key), "setting", key, keys)}
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
			p.unnamed = append(p.unnamed, "setting "+s.Key)
		}
	}
	act.DryRun = true
	answer, err := pg.Decode[pg.SettingsAnswer](store.ApplySettings(ctx, act, p.values))
	p.settings = answer.Changes
	if errors.Is(err, pg.ErrArgument) {
		for key := range file.Settings {
			if strings.Contains(err.Error(), " "+key+" ") {
				wrong, _ := errors.AsType[*autopost.ArgumentError](err) // ErrArgument has one
				return fmt.Errorf("%s: %s %s: %s", file.SettingPlace(key), wrong.Argument, wrong.Reason, wrong.Remedy)
			}
		}
	}
	return err
}

// addOthers records the workspaces that a file does not name. Pruning disables them.
func (p *plan) addOthers(ctx context.Context, store *pg.Store, act pg.OperatorAction, file configfile.File, prune bool) error {
	list, err := everyWorkspace(ctx, store)
	if err != nil {
		return err
	}
	for _, w := range list {
		if slices.ContainsFunc(file.Workspaces, func(named configfile.Workspace) bool { return named.ID == w.WorkspaceID }) {
			continue
		}
		if !prune || w.Status == "disabled" {
			p.unnamed = append(p.unnamed, "workspace "+w.WorkspaceID)
			continue
		}
		act.Workspace = w.WorkspaceID
		disabled := configfile.Item{Kind: "workspace", ID: w.WorkspaceID, Fields: pg.Fields{"status": json.RawMessage(`"disabled"`)}}
		if err := p.add(ctx, store, act, []configfile.Item{disabled}); err != nil {
			return err
		}
	}
	return nil
}

// changes counts the changes.
func (p *plan) changes() int {
	n := len(p.settings)
	for _, w := range p.workspaces {
		n += len(w.changes)
	}
	return n
}

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
	for _, name := range p.unnamed {
		fmt.Fprintf(os.Stdout, "not in the file: %s\n", name)
	}
	if p.changes() == 0 {
		fmt.Fprintln(os.Stdout, "nothing to change")
	}
	return nil
}

func (w workspacePlan) print() {
	if len(w.changes)+len(w.unnamed) == 0 {
		return
	}
	fmt.Fprintf(os.Stdout, "workspace %s: %d of %d are unchanged\n", w.act.Workspace, len(w.items)-len(w.changes), len(w.items))
	for _, c := range w.changes {
		sign := "~"
		if c.Created {
			sign = "+"
		}
		fmt.Fprintf(os.Stdout, "  %s %s %s\n", sign, c.Kind, c.ID)
		for _, field := range configfile.KindOf(c.Kind).Ordered(c.Before, c.After) {
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
	for _, name := range w.unnamed {
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
	}{append([]pg.SettingChange{}, p.settings...), []workspace{}, append([]string{}, p.unnamed...)}
	for _, w := range p.workspaces {
		out.Workspaces = append(out.Workspaces, workspace{w.act.Workspace, append([]pg.ConfigChange{}, w.changes...), append([]string{}, w.unnamed...)})
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// apply prints a plan, asks, and applies it.
func (a *applyFlags) apply(ctx context.Context, store *pg.Store, p *plan) error {
	if err := p.print(a.asJSON); err != nil {
		return err
	}
	if p.changes() == 0 || a.act.DryRun {
		return nil
	}
	if !a.yes && !confirmed() {
		return errors.New("aborted: not confirmed (--yes skips the question)")
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
		answer, err := pg.Decode[pg.ConfigAnswer](store.ApplyConfig(ctx, w.act, configItems(w.items)))
		if err != nil {
			return err
		}
		if answer.Reason == "invalid" {
			return invalidItem(w.items, answer)
		}
	}
	fmt.Fprintln(os.Stderr, "autopost: applied")
	return nil
}

// confirmed asks on the terminal and reports whether the answer is yes.
func confirmed() bool {
	fmt.Fprint(os.Stderr, "Apply these changes? Type yes: ")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err == nil && strings.TrimSpace(line) == "yes"
}
