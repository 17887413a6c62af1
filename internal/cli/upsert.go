package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/configfile"
	"autopost/internal/pg"
	"autopost/internal/problem"
	"autopost/internal/table"
)

// upsert is a command that writes one row of configuration. Its fields come from flags or a file.
type upsert struct {
	operatorFlags

	kind  configfile.Resource
	given map[string]*fieldFlag
	unset []string
	from  string
	// fixed are the fields of a command without field flags; nil for others.
	fixed pg.Fields
	// fill adds fields that need the database. It may be nil.
	fill func(ctx context.Context, store *pg.Store, fields pg.Fields) error
}

// newUpsert returns the command for a kind of configfile.Kinds.
func newUpsert(kind string) *upsert {
	return &upsert{kind: configfile.KindOf(kind), given: map[string]*fieldFlag{}}
}

func flagOf(field string) string { return strings.ReplaceAll(field, "_", "-") }

// fieldFlag is the flag of a field. It implements pflag.Value. The text is parsed later, so
// that a wrong value is reported like one of a file.
type fieldFlag struct {
	field configfile.Field
	text  string
}

func (f *fieldFlag) String() string { return f.text }

func (f *fieldFlag) Set(text string) error {
	f.text = text
	return nil
}

// Type returns the type that help prints.
func (f *fieldFlag) Type() string {
	return map[configfile.FieldType]string{
		configfile.Text: "text", configfile.Number: "number", configfile.Boolean: "bool", configfile.List: "a,b,c", configfile.Object: "json",
	}[f.field.Type]
}

// flags adds one flag for each field of the kind, and the flags of an operator action.
func (p *upsert) flags(cmd *cobra.Command) {
	for _, f := range p.kind.Fields {
		p.given[f.Name] = &fieldFlag{field: f}
		flag := cmd.Flags().VarPF(p.given[f.Name], flagOf(f.Name), "", f.Help)
		if f.Type == configfile.Boolean {
			flag.NoOptDefVal = "true"
		}
	}
	for _, rate := range []string{"rate-rps", "rps"} {
		if cmd.Flags().Lookup(rate) != nil {
			rateNames(cmd, rate)
		}
	}
	cmd.Flags().StringArrayVar(&p.unset, "unset", nil, "`field` to reset to its default; repeatable")
	cmd.Flags().StringVar(&p.from, "from", "", "`file` with the fields as a JSON object, instead of flags; - reads stdin")
	p.changeFlags(cmd)
}

// fields returns the fields of the flags, or of the file.
func (p *upsert) fields(cmd *cobra.Command) (pg.Fields, error) {
	if p.fixed != nil {
		return p.fixed, nil
	}
	fields := pg.Fields{}
	for _, f := range p.kind.Fields {
		if !cmd.Flags().Changed(flagOf(f.Name)) {
			continue
		}
		named := f
		named.Name = "--" + flagOf(f.Name)
		value, err := named.Value(p.given[f.Name].text)
		if err != nil {
			return nil, usageError{err}
		}
		fields[f.Name] = value
	}
	for _, name := range p.unset {
		name = strings.ReplaceAll(name, "-", "_")
		if _, ok := p.kind.Field(name); !ok {
			return nil, usageError{fmt.Errorf("--unset must be one of %s, got %q", strings.Join(p.kind.Names(), ", "), name)}
		}
		if _, twice := fields[name]; twice {
			return nil, usageError{fmt.Errorf("--unset %s must not name a field that is also set: remove one of the two flags", name)}
		}
		fields[name] = json.RawMessage("null")
	}
	if p.from == "" {
		return fields, nil
	}
	if len(fields) > 0 {
		return nil, usageError{errors.New("--from must not be used with field flags: remove one of the two")}
	}
	return readFields(p.from)
}

// readFields reads a JSON object from a file, or from standard input if the name is "-".
func readFields(name string) (pg.Fields, error) {
	raw, err := readInput(name)
	if err != nil {
		return nil, err
	}
	var fields pg.Fields
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, usageError{fmt.Errorf("%s must contain a JSON object: write {\"field\": value}", inputName(name))}
	}
	return fields, nil
}

// switchCommands returns the commands that enable and disable a row of a kind. put is the method that writes it.
func switchCommands(kind, name string, put func(*pg.Store, context.Context, pg.OperatorAction, string, any) (pg.Written, error), enable, disable string) []*cobra.Command {
	commands := make([]*cobra.Command, 0, 2)
	for _, enabled := range []bool{true, false} {
		verb, short := "enable", enable
		if !enabled {
			verb, short = "disable", disable
		}
		p := newUpsert(kind)
		p.fixed = pg.Fields{"enabled": jsonBool(enabled)}
		kind := strings.ReplaceAll(kind, "_", " ")
		cmd := &cobra.Command{
			Use: verb + " ID", Short: short, Args: oneArgument(kind + " id"),
			Example: fmt.Sprintf("  autopost %s %s %s", kind, verb, name),
			RunE: func(cmd *cobra.Command, args []string) error {
				return p.write(cmd, kind+" "+args[0], mustExist, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
					return pg.Decode[pg.PutAnswer](put(store, ctx, act, args[0], fields))
				})
			},
		}
		p.operatorFlags.flags(cmd)
		commands = append(commands, cmd)
	}
	return commands
}

// put calls the database function of a kind.
type put func(context.Context, *pg.Store, pg.OperatorAction, pg.Fields) (pg.PutAnswer, error)

// expectation defines whether the written row must exist.
type expectation int

const (
	mayExist     expectation = iota
	mustNotExist             // add commands
	mustExist                // set commands
)

// write writes a row and prints its changes. subject names the row in messages.
func (p *upsert) write(cmd *cobra.Command, subject string, expected expectation, do put) error {
	fields, err := p.fields(cmd)
	if err != nil {
		return err
	}
	return p.with(cmd, func(ctx context.Context, store *pg.Store) error {
		if expected != mayExist {
			dry := p.act
			dry.DryRun = true
			// A change without fields leaves an existing row unchanged. For a missing row, required fields are missing.
			answer, err := do(ctx, store, dry, pg.Fields{})
			if err != nil {
				return err
			}
			if exists := answer.Reason == "unchanged"; exists && expected == mustNotExist {
				return fmt.Errorf("%s already exists: run %s set to change it", subject, cmd.Parent().CommandPath())
			} else if !exists && expected == mustExist {
				return fmt.Errorf("unknown %s: run %s add to create it", subject, cmd.Parent().CommandPath())
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
		return p.printPut(subject, answer)
	})
}

// printPut prints the changes of a row. An unchanged row is a success.
func (m *operatorFlags) printPut(subject string, a pg.PutAnswer) error {
	if m.asJSON {
		if err := printJSON(a.Raw); err != nil {
			return err
		}
	}
	switch a.Reason {
	case "":
	case "unchanged":
		if !m.asJSON {
			fmt.Fprintf(os.Stdout, "nothing to change: %s already has these values\n", subject)
		}
		return nil
	case "invalid":
		return fmt.Errorf("nothing was changed: %s is not valid\n%s", subject, fieldErrorLines(a.Errors))
	case "referred_to":
		var by []string
		for _, what := range slices.Sorted(maps.Keys(a.References)) {
			by = append(by, counted(a.References[what], singular(what), what))
		}
		return fmt.Errorf("%s was not removed, because it is used by %s", subject, strings.Join(by, " and "))
	case "enabled":
		kind, id := subject[:strings.LastIndex(subject, " ")], subject[strings.LastIndex(subject, " ")+1:]
		return fmt.Errorf("%s was not removed, because it is enabled: run autopost %s disable %s first", subject, kind, id)
	case "duplicate":
		if a.DeliveryID != "" {
			return fmt.Errorf("nothing was changed: the channel has this content already, by delivery %s: run autopost why %s", a.DeliveryID, a.DeliveryID)
		}
		return fmt.Errorf("nothing was changed: submission %s has the same event: run autopost why %s", a.SubmissionID, a.SubmissionID)
	default:
		return fmt.Errorf("nothing was changed: %s", reasonText(a.Reason, subject))
	}
	if a.Note != "" {
		fmt.Fprintln(os.Stderr, "autopost: "+a.Note)
	}
	if m.asJSON {
		return nil
	}
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
	}
	verb := "changed "
	if a.Created {
		verb = "added "
	} else if len(a.After) == 0 {
		verb = "removed "
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
		rows = append(rows, []any{name, valueText(a.Before[name]), valueText(a.After[name])})
	}
	return printChanges(rows)
}

// fieldErrorLines returns one line per wrong field.
func fieldErrorLines(errs []problem.Fault) string {
	lines := make([]string, 0, len(errs))
	for _, e := range errs {
		lines = append(lines, fmt.Sprintf("%s %s: %s", e.Field, e.Reason, e.Remedy))
	}
	return strings.Join(lines, "\n")
}

// listing returns the list command of a kind of row. list returns the rows, and their table.
func listing[Row any](short, example string, list func(context.Context, *pg.Store, string) ([]Row, table.Table, error)) *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   short,
		Example: example,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				items, rows, err := list(ctx, store, workspace)
				if err != nil {
					return err
				}
				if len(items) == listLimit {
					note("the list stops at %d rows; there may be more", listLimit)
				}
				return f.rows(items, rows)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// everyWorkspace returns all workspaces. It fails if there are more than listLimit,
// because an incomplete configuration file or plan would be wrong.
func everyWorkspace(ctx context.Context, store *pg.Store) ([]pg.WorkspaceRow, error) {
	list, err := store.DescribeWorkspaces(ctx, listLimit)
	if len(list) == listLimit {
		return nil, fmt.Errorf("there are %d workspaces or more: pass --workspace ID", listLimit)
	}
	return list, err
}
