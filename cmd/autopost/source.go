package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func sourceCommand() *cobra.Command {
	return family("source", "Feeds, APIs and databases that posts are pulled from",
		sourceAddCommand(), sourceSetCommand(), sourceListCommand(), sourceShowCommand(),
		sourceSwitchCommand("enable", "Poll a source again", true), sourceSwitchCommand("disable", "Stop polling a source; what it brought stays", false),
		sourceFetchCommand(), sourceTestCommand(), sourceImportCommand())
}

// sourceFlags are a source as a command is given it.
type sourceFlags struct {
	kind, url, endpoint, config, template string
	interval, backfill                    int
	tags, include, exclude                []string
}

func (f *sourceFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kind, "kind", "", "rss, api or db (default rss)")
	cmd.Flags().StringVar(&f.url, "url", "", "address of a feed or an API")
	cmd.Flags().IntVar(&f.interval, "interval", 0, "seconds between polls (default 300, or what the source hints at)")
	cmd.Flags().IntVar(&f.backfill, "backfill", 0, "newest items to publish at first sight")
	cmd.Flags().StringVar(&f.template, "template", "", "text of a post, as in '{title}\\n\\n{link}'")
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "tag of every post; repeatable")
	cmd.Flags().StringArrayVar(&f.include, "include", nil, "keyword or /regular expression/ that an item must have; repeatable")
	cmd.Flags().StringArrayVar(&f.exclude, "exclude", nil, "keyword or /regular expression/ that an item must not have; repeatable")
	cmd.Flags().StringVar(&f.config, "config", "", `further keys of config_json as JSON, or @FILE, or - for standard input; null takes a key away`)
}

// fields are what the flags that were given change.
func (f *sourceFlags) fields(cmd *cobra.Command) (pg.SourceFields, error) {
	config := map[string]any{}
	if f.config != "" {
		raw, err := textOf(f.config)
		if err != nil {
			return pg.SourceFields{}, misuse{err}
		}
		if err := json.Unmarshal(raw, &config); err != nil || config == nil {
			return pg.SourceFields{}, misuse{fmt.Errorf(`--config is no JSON object: write {"key": "value"}`)}
		}
	}
	for flag, key := range map[string]struct {
		name  string
		value any
	}{
		"url": {"url", f.url}, "interval": {"interval_seconds", f.interval}, "backfill": {"backfill_items", f.backfill},
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

// textOf is an argument itself, the file it names by @, or standard input.
func textOf(argument string) ([]byte, error) {
	if argument == "-" {
		return io.ReadAll(os.Stdin)
	}
	if name, ok := strings.CutPrefix(argument, "@"); ok {
		return os.ReadFile(name)
	}
	return []byte(argument), nil
}

func sourceAddCommand() *cobra.Command {
	var m manual
	var f sourceFlags
	cmd := &cobra.Command{
		Use:   "add ID",
		Short: "Make a source and its endpoint",
		Long: `Make a source and the endpoint that its posts are booked on. A running daemon polls
it at once. Try it first with "autopost source test".

A feed: autopost source add news --url https://example.org/feed --reason "…"
An API: --kind api --config '{"url": "…", "items": "/data", "map": {"id": "/id", "text": "/body"}}'
A database: --kind db --config '{"auth_ref": "crm", "cursor_column": "id",
  "query": "select id, text from posts where $1::bigint is null or id > $1"}'
Credentials stand in credential_bindings (platform http for an API, postgres for a
DSN); auth_ref names them.`,
		Args: oneArgument("id of a source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.kind == "" {
				f.kind = "rss"
			}
			return m.putSource(cmd, &f, args[0], false)
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.endpoint, "endpoint", "", "id of its endpoint (default the id of the source)")
	m.flags(cmd)
	return cmd
}

func sourceSetCommand() *cobra.Command {
	var m manual
	var f sourceFlags
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Change what is named of a source",
		Args:  oneArgument("id of a source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.putSource(cmd, &f, args[0], true)
		},
	}
	f.flags(cmd)
	m.flags(cmd)
	return cmd
}

func (m *manual) putSource(cmd *cobra.Command, f *sourceFlags, id string, there bool) error {
	fields, err := f.fields(cmd)
	if err != nil {
		return err
	}
	return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
		source, err := store.GetSource(ctx, m.act.Workspace, id)
		if err != nil {
			return err
		}
		if (source != nil) != there {
			return fmt.Errorf("source %s %s", id, map[bool]string{true: "is not there: autopost source add makes it", false: "is there already: autopost source set changes it"}[there])
		}
		answer, err := store.PutSource(ctx, m.act, id, fields)
		if err != nil {
			return err
		}
		return m.tellSource(id, answer)
	})
}

func sourceSwitchCommand(use, short string, enabled bool) *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   use + " ID",
		Short: short,
		Args:  oneArgument("id of a source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.PutSource(ctx, m.act, args[0], pg.SourceFields{Enabled: &enabled})
				if err != nil {
					return err
				}
				return m.tellSource(args[0], answer)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func sourceFetchCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "fetch ID",
		Short: "Have a source polled now by a running daemon",
		Args:  oneArgument("id of a source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.PollSourceNow(ctx, m.act, args[0])
				if err != nil {
					return err
				}
				return m.tellSource(args[0], answer)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

// tellSource prints what changed of a source, or would; what changes nothing is no failure.
func (m *manual) tellSource(id string, a pg.SourceAnswer) error {
	if len(a.Errors) > 0 {
		return misuse{fieldErrors(a.Errors)}
	}
	if a.Reason != "" && a.Reason != "unchanged" {
		return fmt.Errorf("nothing was changed: %s", whyNot(a.Reason, "source "+id))
	}
	if m.asJSON {
		fmt.Fprintln(os.Stdout, string(a.Raw))
		return nil
	}
	switch {
	case a.Reason != "":
		fmt.Fprintln(os.Stdout, "it is like that already: nothing was changed")
		return nil
	case m.act.DryRun:
		fmt.Fprintln(os.Stdout, "dry run: nothing was changed; this is what would be")
	default:
		fmt.Fprintln(os.Stdout, "done")
	}
	rows, err := differences(a.Before, a.After)
	if err != nil {
		return err
	}
	return printChanges(rows)
}

// fieldErrors says what is wrong, a line for each field.
func fieldErrors(errs []pg.FieldError) error {
	lines := make([]string, 0, len(errs))
	for _, e := range errs {
		lines = append(lines, fmt.Sprintf("%s %s: %s", e.Field, e.Reason, e.Remedy))
	}
	return fmt.Errorf("nothing was changed\n%s", strings.Join(lines, "\n"))
}

// differences are the fields that differ, those of config_json one by one.
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
	words := map[string]string{}
	for key, value := range fields {
		words[key] = strings.Trim(string(value), `"`)
	}
	return words, nil
}
