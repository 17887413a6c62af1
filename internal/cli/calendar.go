package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func calendarCommand() *cobra.Command {
	var f readFlags
	var from, until, channel string
	cmd := &cobra.Command{
		Use:   "calendar",
		Short: "Show what was sent and what waits in an interval",
		Long: `Show the calendar of a workspace: the posts that were sent in an interval, and those that
wait for a time in it. The default is from now on for 30 days.`,
		Example: `  autopost calendar --from 2026-12-01T00:00:00+03:00 --until 2027-01-01T00:00:00+03:00
  autopost calendar --channel news-ru`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			start, end := time.Now(), time.Time{}
			var err error
			if from != "" {
				if start, err = parseInstant("from", from); err != nil {
					return err
				}
			}
			if end = start.AddDate(0, 0, 30); until != "" {
				if end, err = parseInstant("until", until); err != nil {
					return err
				}
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.Calendar(ctx, workspace, start.Format(time.RFC3339Nano), end.Format(time.RFC3339Nano), channel)
				if err != nil {
					return asUsageError(err)
				}
				if f.asJSON {
					return printJSON(raw)
				}
				return f.printCalendar(raw)
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "start `time`, like 2026-12-01T00:00:00+03:00 (default: now)")
	cmd.Flags().StringVar(&until, "until", "", "end `time`, at most 100 days later (default: 30 days later)")
	cmd.Flags().StringVar(&channel, "channel", "", "only this channel")
	f.add(cmd)
	return cmd
}

func (o output) printCalendar(raw json.RawMessage) error {
	var c struct {
		Items []struct {
			At           time.Time
			Kind         string
			MessageID    string `json:"message_id"`
			RecurrenceID string `json:"recurrence_id"`
			Channels     int
		}
		More bool
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("decode the calendar: %w", err)
	}
	rows := make([][]any, 0, len(c.Items))
	for _, i := range c.Items {
		rows = append(rows, []any{i.At, i.Kind, i.Channels, i.MessageID, i.RecurrenceID})
	}
	if err := o.rows(nil, table.Table{
		Columns: []string{"when", "kind", "channels", "post", "recurrence"}, Details: []string{"recurrence"}, Rows: rows,
		Empty: "Nothing was sent or waits in this interval: run autopost calendar with another --from.",
	}); err != nil {
		return err
	}
	if c.More {
		note("more items are not shown: choose a shorter interval")
	}
	return nil
}

func slotsCommand() *cobra.Command {
	var f readFlags
	var after string
	var limit int
	cmd := &cobra.Command{
		Use:   "slots CHANNEL",
		Short: "Show the next free slots of a channel",
		Long: `Show the next free slots of a channel: times in its posting window that keep its smallest
distance, its quotas and its budget with all that is planned. Nothing is reserved:
autopost posts reschedule --next-free and "slot": "next_free" in a post take a slot.`,
		Example: "  autopost slots news-ru --after 2026-12-01T00:00:00+03:00",
		Args:    oneArgument("channel"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if after != "" {
				if _, err := parseInstant("after", after); err != nil {
					return err
				}
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.NextFreeSlots(ctx, workspace, args[0], after, limit)
				if err != nil {
					return asUsageError(err)
				}
				if f.asJSON {
					return printJSON(raw)
				}
				return f.printSlots(raw)
			})
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "earliest `time`, like 2026-12-01T00:00:00+03:00 (default: now)")
	cmd.Flags().IntVar(&limit, "limit", 10, "how many slots, 1 to 100")
	f.add(cmd)
	return cmd
}

func (o output) printSlots(raw json.RawMessage) error {
	var s struct{ Items []struct{ At time.Time } }
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("decode the slots: %w", err)
	}
	rows := make([][]any, 0, len(s.Items))
	for _, i := range s.Items {
		rows = append(rows, []any{i.At})
	}
	return o.rows(nil, table.Table{Columns: []string{"when"}, Rows: rows, Empty: "The channel has no free slot: look at its window, quotas and budget with autopost channel show."})
}
