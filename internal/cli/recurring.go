package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/recurrence"
	"autopost/internal/table"
)

func recurringCommand() *cobra.Command {
	return parentCommand("recurring", "Manage posts that repeat", recurringListCommand(), recurringShowCommand(), recurringAddCommand(), recurringSetCommand(),
		recurringRemoveCommand(), recurringMoveCommand(), recurringSkipCommand())
}

func recurringListCommand() *cobra.Command {
	return reading{
		short:    "List posts that repeat",
		example:  "  autopost recurring list",
		function: "list_recurrences",
		columns: []column{
			timeColumn("next", "next_at"), fieldColumn("rule", "rule"), fieldColumn("zone", "zone"), fieldColumn("enabled", "enabled"), fieldColumn("posts", "posts"),
			errorColumn("why", "last_error"), fieldColumn("recurrence_id", "recurrence_id"),
		},
		empty: "No post repeats: autopost recurring add makes one.",
	}.command(nil)
}

// recurringShowCommand lists the occurrences of one recurrence.
func recurringShowCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show the occurrences of a post that repeats",
		Example: "  autopost recurring show 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa",
		Args:    oneID("recurrence", "autopost recurring list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				if rows, err := storedRecurrence(ctx, store, workspace, args[0]); err != nil || rows == nil {
					return errors.Join(err, unknown("recurrence "+args[0], "autopost recurring list"))
				}
				list, err := store.List(ctx, pg.Query{Function: "list_occurrences", Workspace: workspace, Filter: map[string]any{"recurrence_id": args[0]}, Limit: listLimit})
				if err != nil {
					return err
				}
				return reading{
					columns: []column{timeColumn("when", "at"), fieldColumn("status", "status"), fieldColumn("why", "reason"), fieldColumn("occurrence_id", "occurrence_id"),
						detail(fieldColumn("message_id", "message_id"))},
					empty: "No occurrence yet: a running daemon expands the rule.",
				}.print(list, false, f.output)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// storedRecurrence returns a recurrence; nil if there is none.
func storedRecurrence(ctx context.Context, store *pg.Store, workspace, id string) (json.RawMessage, error) {
	rows, err := store.List(ctx, pg.Query{Function: "list_recurrences", Workspace: workspace, Filter: map[string]any{"recurrence_id": id}, Limit: 1})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

func recurringAddCommand() *cobra.Command {
	p := newUpsert("recurrence")
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Repeat a post",
		Long: `Repeat a post by a rule of RFC 5545 in a time zone. The command shows the next ten
instants; with --dry-run it stores nothing. --payloads is a JSON array of posts, which are
taken in turn.`,
		Example: `  autopost recurring add --endpoint-id cms --rule 'FREQ=WEEKLY;BYDAY=MO,FR' --zone Europe/Moscow \
    --starts-at 2026-12-01T10:00 --payloads '[{"text": "The shop opens"}]' --dry-run`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return writeRecurrence(cmd, p, "") },
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

func recurringSetCommand() *cobra.Command {
	p := newUpsert("recurrence")
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Change a post that repeats",
		Long: `Change a post that repeats. A changed rule, zone or start forgets the expected
occurrences. --enabled=false pauses it; what would have been due meanwhile is skipped.`,
		Example: `  autopost recurring set 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --enabled=false --reason "summer"`,
		Args:    oneID("recurrence", "autopost recurring list"),
		RunE:    func(cmd *cobra.Command, args []string) error { return writeRecurrence(cmd, p, args[0]) },
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

// writeRecurrence checks the rule and shows the next instants before it writes.
func writeRecurrence(cmd *cobra.Command, p *upsert, id string) error {
	p.fill = func(ctx context.Context, store *pg.Store, fields pg.Fields) error {
		schedule, changes, err := scheduleAfter(ctx, store, p.act.Workspace, id, fields)
		if err != nil || !changes {
			return err
		}
		times, err := schedule.Upcoming(time.Now())
		if err != nil {
			return usageError{err}
		}
		instants, err := store.PreviewOccurrences(ctx, p.act.Workspace, schedule.Zone, times)
		if err != nil || p.asJSON {
			return err
		}
		for _, text := range instants {
			at, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				return err
			}
			say("%s", table.Time(at))
		}
		return nil
	}
	subject, expected := "recurrence "+id, mustExist
	if id == "" {
		subject, expected = "the recurrence", mayExist
	}
	return p.write(cmd, subject, expected, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
		return pg.Decode[pg.PutAnswer](store.PutRecurrence(ctx, act, id, fields))
	})
}

// scheduleAfter returns the schedule after a change, and whether the change has to do with it. What is missing is left to
// the database.
func scheduleAfter(ctx context.Context, store *pg.Store, workspace, id string, fields pg.Fields) (s recurrence.Schedule, changes bool, err error) {
	all := map[string]json.RawMessage{"zone": json.RawMessage(`"UTC"`)}
	if id != "" {
		row, err := storedRecurrence(ctx, store, workspace, id)
		if err != nil {
			return s, false, err
		}
		if err := json.Unmarshal(row, &all); err != nil {
			return s, false, err
		}
	}
	for _, name := range []string{"rule", "zone", "starts_at"} {
		_, named := fields[name]
		changes = changes || named || id == ""
	}
	maps.Copy(all, fields)
	if all["rule"] == nil || all["starts_at"] == nil {
		return s, false, nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return s, false, err
	}
	return s, changes, json.Unmarshal(raw, &s)
}

func recurringRemoveCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use: "remove ID", Short: "Delete a post that repeats; its posts stay",
		Example: `  autopost recurring remove 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "the shop closed"`,
		Args:    oneID("recurrence", "autopost recurring list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.subject = "recurrence " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.RemoveRecurrence(ctx, act, args[0]))
			})
		},
	}
	m.flags(cmd)
	m.requireReason(cmd)
	return cmd
}

func recurringMoveCommand() *cobra.Command {
	var at string
	cmd := occurrenceCommand("move", "Move one occurrence to another time", " --at 2027-01-01T12:00:00+03:00", func() (string, error) {
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			return "", usageError{fmt.Errorf("--at must be a time with an offset, got %q: write 2027-01-01T12:00:00+03:00", at)}
		}
		return at, nil
	})
	cmd.Flags().StringVar(&at, "at", "", "new `time`, like 2027-01-01T12:00:00+03:00 (required)")
	return cmd
}

func recurringSkipCommand() *cobra.Command {
	return occurrenceCommand("skip", "Skip one occurrence", "", func() (string, error) { return "", nil })
}

// occurrenceCommand moves one expected occurrence to the instant of at, or skips it if that is "".
func occurrenceCommand(use, short, flags string, at func() (string, error)) *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use: use + " ID OCCURRENCE", Short: short,
		Example: "  autopost recurring " + use + " 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa 0198c5a1-9c3e-7a51-9d56-0f3ac1d3b1aa" + flags,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{errors.New("a recurrence id and an occurrence id must be given: autopost recurring show lists them")}
			}
			return errors.Join(checkID(args[0], "recurrence", "autopost recurring list"), checkID(args[1], "occurrence", "autopost recurring show"))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			instant, err := at()
			if err != nil {
				return err
			}
			m.subject = "occurrence " + args[1]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.MoveOccurrence(ctx, act, args[0], args[1], instant))
			})
		},
	}
	m.flags(cmd)
	return cmd
}
