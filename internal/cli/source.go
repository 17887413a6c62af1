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
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/problem"
)

func sourceCommand() *cobra.Command {
	return parentCommand("source", "Manage feeds, APIs, databases and folders",
		sourceAddCommand(), sourceSetCommand(), sourceListCommand(), sourceShowCommand(), sourceWhyCommand(),
		sourceSwitchCommand("enable", "Enable the polls of a source", true), sourceSwitchCommand("disable", "Disable the polls of a source; its posts stay", false),
		sourceFetchCommand(), sourceTestCommand(), sourceImportCommand())
}

// sourceFlags are the flags that describe a source.
type sourceFlags struct {
	kind, url, endpoint, config, template string
	interval                              time.Duration
	backfill                              int
	tags, include, exclude                []string
}

func (f *sourceFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kind, "kind", "", "rss, api, db or filebus (default: rss)")
	cmd.Flags().StringVar(&f.url, "url", "", "URL of a feed or an API")
	durationFlag(cmd, &f.interval, "interval", 0, "time between polls, like 10m or 1d (default: 5m, or the hint of the source)")
	cmd.Flags().IntVar(&f.backfill, "backfill", 0, "number of newest items to publish at the first poll")
	cmd.Flags().StringVar(&f.template, "template", "", "text of a post, like '{title}\\n\\n{link}'")
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "tag of all posts; repeatable")
	cmd.Flags().StringArrayVar(&f.include, "include", nil, "keyword or /regular expression/ that an item must contain; repeatable")
	cmd.Flags().StringArrayVar(&f.exclude, "exclude", nil, "keyword or /regular expression/ that an item must not contain; repeatable")
	cmd.Flags().StringVar(&f.config, "config", "", `more keys of config_json as JSON, @FILE, or - for stdin; null removes a key`)
}

// fields returns the fields of the given flags.
func (f *sourceFlags) fields(cmd *cobra.Command) (pg.SourceFields, error) {
	config := map[string]any{}
	if f.config != "" {
		raw, err := textOf(f.config)
		if err != nil {
			return pg.SourceFields{}, err
		}
		if err := json.Unmarshal(raw, &config); err != nil || config == nil {
			return pg.SourceFields{}, usageError{errors.New(`--config must be a JSON object: write it like {"key": "value"}`)}
		}
	}
	for flag, key := range map[string]struct {
		name  string
		value any
	}{
		"url": {"url", f.url}, "interval": {"interval_seconds", int(f.interval / time.Second)}, "backfill": {"backfill_items", f.backfill},
		"template": {"template", strings.ReplaceAll(f.template, `\n`, "\n")}, "tag": {"tags", f.tags}, "include": {"include", f.include}, "exclude": {"exclude", f.exclude},
	} {
		if cmd.Flags().Changed(flag) {
			config[key.name] = key.value
		}
	}
	fields := pg.SourceFields{Kind: f.kind, EndpointID: f.endpoint}
	if len(config) == 0 {
		return fields, nil
	}
	var err error
	fields.Config, err = json.Marshal(config)
	return fields, err
}

// textOf returns the argument, the content of its @FILE, or standard input for "-".
func textOf(argument string) ([]byte, error) {
	name, isFile := strings.CutPrefix(argument, "@")
	if isFile || argument == "-" {
		return readInput(name)
	}
	return []byte(argument), nil
}

func sourceAddCommand() *cobra.Command {
	var m operatorFlags
	var f sourceFlags
	cmd := &cobra.Command{
		Use:   "add ID",
		Short: "Add a source and its endpoint",
		Long: `Add a source and the endpoint that its posts are recorded for. A running daemon polls the
source at once. Check the flags first with autopost source test.

The key auth_ref of --config names a credential: of platform http for the key of an API,
of platform postgres for the address (DSN) of a database.`,
		Example: `  autopost source add news --url https://example.org/feed --reason "city feed"
  autopost source add shop --kind api --reason "offers" \
    --config '{"url": "https://example.org/api", "items": "/data", "map": {"id": "/id", "text": "/body"}}'
  autopost source add crm --kind db --reason "events" \
    --config '{"auth_ref": "crm", "cursor_column": "id", "query": "select id, text from posts where $1::bigint is null or id > $1"}'`,
		Args: oneArgument("source id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.kind == "" {
				f.kind = "rss"
			}
			return m.putSource(cmd, &f, args[0], false)
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.endpoint, "endpoint", "", "endpoint id (default: the source id)")
	m.flags(cmd)
	return cmd
}

func sourceSetCommand() *cobra.Command {
	var m operatorFlags
	var f sourceFlags
	cmd := &cobra.Command{
		Use:     "set ID",
		Short:   "Change a source",
		Example: `  autopost source set news --interval 10m --reason "fewer polls"`,
		Args:    oneArgument("source id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.putSource(cmd, &f, args[0], true)
		},
	}
	f.flags(cmd)
	m.flags(cmd)
	return cmd
}

func (m *operatorFlags) putSource(cmd *cobra.Command, f *sourceFlags, id string, mustExist bool) error {
	fields, err := f.fields(cmd)
	if err != nil {
		return err
	}
	return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
		source, err := store.GetSource(ctx, m.act.Workspace, id)
		if err != nil {
			return err
		}
		switch {
		case source == nil && mustExist:
			return fmt.Errorf("unknown source %s: run autopost source add to create it", id)
		case source != nil && !mustExist:
			return fmt.Errorf("source %s already exists: run autopost source set to change it", id)
		}
		answer, err := pg.Decode[pg.SourceAnswer](store.PutSource(ctx, m.act, id, fields))
		if err != nil {
			return err
		}
		return m.printSourceChange(id, answer)
	})
}

func sourceSwitchCommand(verb, short string, enabled bool) *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: "  autopost source " + verb + ` news --reason "site is being rebuilt"`,
		Args:    oneArgument("source id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.SourceAnswer](store.PutSource(ctx, m.act, args[0], pg.SourceFields{Enabled: &enabled}))
				if err != nil {
					return err
				}
				return m.printSourceChange(args[0], answer)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func sourceFetchCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:     "fetch ID",
		Short:   "Make a running daemon poll a source now",
		Example: `  autopost source fetch news --reason "breaking news"`,
		Args:    oneArgument("source id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.SourceAnswer](store.PollSourceNow(ctx, m.act, args[0]))
				if err != nil {
					return err
				}
				return m.printSourceChange(args[0], answer)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

// printSourceChange prints the changes of a source. An unchanged source is a success.
func (m *operatorFlags) printSourceChange(id string, a pg.SourceAnswer) error {
	if len(a.Errors) > 0 {
		return usageError{fieldErrors(a.Errors)}
	}
	if a.Reason != "" && a.Reason != "unchanged" {
		return fmt.Errorf("nothing was changed: %s", reasonText(a.Reason, "source "+id))
	}
	if m.asJSON {
		return printJSON(a.Raw)
	}
	switch {
	case a.Reason != "":
		fmt.Fprintln(os.Stdout, "nothing to change: source "+id+" already has these values")
		return nil
	case m.act.DryRun:
		fmt.Fprintln(os.Stdout, dryRunHeading)
	default:
		fmt.Fprintln(os.Stdout, "done")
	}
	rows, err := differences(a.Before, a.After)
	if err != nil {
		return err
	}
	return printChanges(rows)
}

func fieldErrors(errs []problem.Fault) error {
	return fmt.Errorf("nothing was changed\n%s", fieldErrorLines(errs))
}

// differences returns the fields that differ. The keys of config_json are separate fields.
func differences(before, after json.RawMessage) ([][]any, error) {
	old, err := flat(before)
	if err != nil {
		return nil, err
	}
	now, err := flat(after)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(old)
	maps.Copy(all, now)
	var rows [][]any
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if old[key] != now[key] {
			rows = append(rows, []any{key, old[key], now[key]})
		}
	}
	return rows, nil
}

// flat returns the fields of a source, with the keys of config_json beside them.
func flat(raw json.RawMessage) (map[string]string, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	config := map[string]json.RawMessage{}
	if inner, ok := fields["config_json"]; ok {
		if err := json.Unmarshal(inner, &config); err != nil {
			return nil, fmt.Errorf("decode the answer: %w", err)
		}
		delete(fields, "config_json")
	}
	maps.Copy(fields, config)
	texts := map[string]string{}
	for key, value := range fields {
		texts[key] = strings.Trim(string(value), `"`)
	}
	return texts, nil
}
