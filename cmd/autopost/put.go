package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/blueprint"
	"autopost/internal/pg"
)

// putting is a command that writes one row of configuration, from flags or a file.
type putting struct {
	manual

	kind  blueprint.Kind
	given map[string]*string
	unset []string
	from  string
	// fill adds what the command knows besides, once the workspace is open; nil: nothing.
	fill func(ctx context.Context, store *pg.Store, fields pg.Fields) error
}

// newPutting is one for a kind of blueprint.Kinds.
func newPutting(kind string) *putting {
	return &putting{kind: blueprint.KindOf(kind), given: map[string]*string{}}
}

func flagOf(field string) string { return strings.ReplaceAll(field, "_", "-") }

// flags adds one for each field of the kind, and those that say who acts and why.
func (p *putting) flags(cmd *cobra.Command) {
	for _, f := range p.kind.Fields {
		p.given[f.Name] = cmd.Flags().String(flagOf(f.Name), "", f.Help)
	}
	cmd.Flags().StringArrayVar(&p.unset, "unset", nil, "put this field back to its default; repeatable")
	cmd.Flags().StringVar(&p.from, "from", "", "file with a JSON object of fields, - for standard input, instead of flags")
	p.whoFlags(cmd)
}

// fields are those that were given.
func (p *putting) fields(cmd *cobra.Command) (pg.Fields, error) {
	fields := pg.Fields{}
	for _, f := range p.kind.Fields {
		if !cmd.Flags().Changed(flagOf(f.Name)) {
			continue
		}
		value, err := f.Value(*p.given[f.Name])
		if err != nil {
			return nil, misuse{fmt.Errorf("--%s: %w", flagOf(f.Name), err)}
		}
		fields[f.Name] = value
	}
	for _, name := range p.unset {
		name = strings.ReplaceAll(name, "-", "_")
		if _, ok := p.kind.Field(name); !ok {
			return nil, misuse{fmt.Errorf("--unset: there is no field %q: use %s", name, strings.Join(p.kind.Names(), ", "))}
		}
		if _, twice := fields[name]; twice {
			return nil, misuse{fmt.Errorf("%s is set and unset", name)}
		}
		fields[name] = json.RawMessage("null")
	}
	if p.from == "" {
		return fields, nil
	}
	if len(fields) > 0 {
		return nil, misuse{errors.New("fields come from --from or from flags, not from both")}
	}
	return readFields(p.from)
}

// readFields reads a JSON object from a file, or from standard input ("-").
func readFields(from string) (pg.Fields, error) {
	var raw []byte
	var err error
	if from == "-" {
		raw, err = io.ReadAll(os.Stdin)
	} else {
		raw, err = os.ReadFile(from)
	}
	if err != nil {
		return nil, misuse{err}
	}
	var fields pg.Fields
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, misuse{fmt.Errorf("%s holds no JSON object of fields: give {\"field\": value}", from)}
	}
	return fields, nil
}

// put asks the function of a kind.
type put func(context.Context, *pg.Store, pg.Act, pg.Fields) (pg.PutAnswer, error)

// standing is what a command expects of the row that it writes.
type standing int

const (
	whatever standing = iota
	absent            // it adds one
	present           // it changes one
)

// write writes the row that subject names, in words, and tells what it changed.
func (p *putting) write(cmd *cobra.Command, subject string, expected standing, do put) error {
	fields, err := p.fields(cmd)
	if err != nil {
		return err
	}
	return p.with(cmd, func(ctx context.Context, store *pg.Store) error {
		if expected != whatever {
			dry := p.act
			dry.DryRun = true
			// Of one that is there, nothing changes by no fields; of one that is not, what it needs is missing.
			answer, err := do(ctx, store, dry, pg.Fields{})
			if err != nil {
				return err
			}
			if there := answer.Reason == "unchanged"; there && expected == absent {
				return fmt.Errorf("%s is there already: change it by %s set", subject, cmd.Parent().CommandPath())
			} else if !there && expected == present {
				return fmt.Errorf("there is no %s: add it by %s add", subject, cmd.Parent().CommandPath())
			}
		}
		if p.fill != nil {
			if err := p.fill(ctx, store, fields); err != nil {
				return err
			}
		}
		answer, err := do(ctx, store, p.act, fields)
		if err != nil {
			return err
		}
		return p.tellPut(subject, answer)
	})
}

// tellPut prints what became of a row; nothing to change is no failure.
func (m *manual) tellPut(subject string, a pg.PutAnswer) error {
	if m.asJSON {
		fmt.Fprintln(os.Stdout, string(a.Raw))
	}
	switch a.Reason {
	case "":
	case "unchanged":
		if !m.asJSON {
			fmt.Fprintf(os.Stdout, "nothing to change: %s is so already\n", subject)
		}
		return nil
	case "invalid":
		return fmt.Errorf("%s is refused\n%s", subject, faults(a.Errors))
	case "referred_to":
		var by []string
		for _, what := range slices.Sorted(maps.Keys(a.References)) {
			by = append(by, fmt.Sprintf("%d %s", a.References[what], what))
		}
		return fmt.Errorf("%s stays: %s refer to it", subject, strings.Join(by, " and "))
	case "enabled":
		return fmt.Errorf("%s stays: it is enabled; disable it first", subject)
	default:
		return fmt.Errorf("nothing was changed: %s", whyNot(a.Reason, subject))
	}
	if a.Note != "" {
		fmt.Fprintln(os.Stderr, "autopost: "+a.Note)
	}
	if m.asJSON {
		return nil
	}
	verb := "changed "
	if a.Created {
		verb = "added "
	} else if len(a.After) == 0 {
		verb = "removed "
	}
	if m.act.DryRun {
		verb = "dry run: nothing was changed; this is what would be " + verb
	}
	fmt.Fprintln(os.Stdout, verb+subject)
	names := slices.Sorted(maps.Keys(a.Before))
	for _, name := range slices.Sorted(maps.Keys(a.After)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	rows := make([][]any, 0, len(names))
	for _, name := range names {
		rows = append(rows, []any{name, shown(a.Before[name]), shown(a.After[name])})
	}
	return printChanges(rows)
}

// faults says what is wrong, a line each.
func faults(errs []pg.FieldError) string {
	lines := make([]string, 0, len(errs))
	for _, e := range errs {
		lines = append(lines, fmt.Sprintf("%s %s: %s", e.Field, e.Reason, e.Remedy))
	}
	return strings.Join(lines, "\n")
}

// shown is a JSON value as a person reads it: a text without its quotes, nothing for null.
func shown(raw json.RawMessage) string {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return ""
	}
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		return text
	}
	return string(raw)
}

// showObject prints a JSON object for a person, a row a key; objects under one of
// the keys to open come key by key.
func showObject(raw json.RawMessage, open ...string) error {
	rows, err := objectRows(raw, open)
	if err != nil {
		return err
	}
	return printTable(os.Stdout, false, []string{"field", "value"}, rows)
}

func objectRows(raw json.RawMessage, open []string) ([][]any, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	var rows [][]any
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(open, key) {
			rows = append(rows, []any{key, shown(object[key])})
			continue
		}
		inner, err := objectRows(object[key], nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, inner...)
	}
	return rows, nil
}

// listing is a command that lists what is in a workspace.
func listing(short string, list func(context.Context, *pg.Store, string) ([]string, [][]any, error)) *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: short,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
				columns, rows, err := list(ctx, store, workspace)
				if err != nil {
					return err
				}
				if len(rows) == listLimit {
					fmt.Fprintf(os.Stderr, "autopost: there may be more than these %d\n", listLimit)
				}
				return printTable(os.Stdout, asJSON, columns, rows)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listLimit is how many rows a list shows at most, the most that a read function gives.
const listLimit = 10_000

// everyWorkspace is all there are; a file or a plan that says nothing of some would be wrong.
func everyWorkspace(ctx context.Context, store *pg.Store) ([]pg.WorkspaceRow, error) {
	list, err := store.DescribeWorkspaces(ctx, listLimit)
	if len(list) == listLimit {
		return nil, fmt.Errorf("there are more than %d workspaces: name them by --workspace", listLimit)
	}
	return list, err
}
