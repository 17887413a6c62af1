package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/api"
	"autopost/internal/pg"
)

// targetTime is the new time of deliveries from flags.
type targetTime struct {
	at       string
	nextFree bool
}

func (t *targetTime) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.at, "scheduled-for", "", "new `time`, like 2026-12-01T10:00:00+03:00, or +2h and -30m from the planned one")
	cmd.Flags().BoolVar(&t.nextFree, "next-free", false, "take the next free slot of each channel")
}

// move returns the new time as a move. A difference has a sign.
func (t *targetTime) move() (api.Move, error) {
	switch {
	case t.nextFree && t.at != "":
		return api.Move{}, usageError{errors.New("--scheduled-for must not be used with --next-free: remove one of the two")}
	case t.nextFree:
		return api.Move{NextFree: true}, nil
	case t.at == "":
		return api.Move{}, usageError{errors.New("one of --scheduled-for and --next-free must be set: pass a time, a difference like +2h, or --next-free")}
	case t.at[0] == '+' || t.at[0] == '-':
		var by duration
		if err := by.Set(t.at[1:]); err != nil || time.Duration(by) < time.Second {
			return api.Move{}, usageError{fmt.Errorf("--scheduled-for must be a time or a difference, got %q: write 2026-12-01T10:00:00+03:00, +2h or -30m", t.at)}
		}
		seconds := int(time.Duration(by) / time.Second)
		if t.at[0] == '-' {
			seconds = -seconds
		}
		return api.Move{ShiftSeconds: seconds}, nil
	}
	when, err := time.Parse(time.RFC3339, t.at)
	if err != nil {
		return api.Move{}, usageError{fmt.Errorf("--scheduled-for must be a time with an offset or a difference with a sign, got %q: write 2026-12-01T10:00:00+03:00, +2h or -30m", t.at)}
	}
	return api.Move{At: when.Format(time.RFC3339Nano)}, nil
}

func postsRescheduleCommand() *cobra.Command {
	cmd := rescheduleCommand("post", func(m *api.Move, ids []string) { m.MessageID = ids[0] })
	cmd.Use, cmd.Args = "reschedule ID", oneID("post", "autopost posts list --wide")
	cmd.Short = "Move a post in all channels where it waits"
	cmd.Long = `Move the deliveries of a post that wait to another time: a time, a difference from the
planned one, or the next free slot of each channel. What has begun stays. Posting
windows, rates, quotas and budgets hold as for a new post.`
	cmd.Example = `  autopost posts reschedule 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --scheduled-for 2026-12-01T10:00:00+03:00
  autopost posts reschedule 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --scheduled-for +2h
  autopost posts reschedule 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --next-free`
	return cmd
}

func deliveriesRescheduleCommand() *cobra.Command {
	cmd := rescheduleCommand("deliveries", func(m *api.Move, ids []string) { m.DeliveryIDs = ids })
	cmd.Use, cmd.Args = "reschedule ID...", deliveryIDs
	cmd.Short = "Move deliveries that wait to another time"
	cmd.Long = `Move deliveries that wait to another time: a time, a difference from the planned one, or
the next free slot of their channels. What has begun stays.`
	cmd.Example = `  autopost deliveries reschedule 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --scheduled-for +2h`
	return cmd
}

// rescheduleCommand is a command that moves the subjects that choose sets.
func rescheduleCommand(what string, choose func(m *api.Move, ids []string)) *cobra.Command {
	var m operatorFlags
	var to targetTime
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, ids []string) error {
		m.subject = what + " " + strings.Join(ids, ", ")
		move, err := to.move()
		if err != nil {
			return err
		}
		choose(&move, ids)
		return m.with(cmd, func(ctx context.Context, store *pg.Store) error { return m.reschedule(ctx, store, move) })
	}}
	to.flags(cmd)
	m.flags(cmd)
	return cmd
}

// movedPosts is the answer of reschedule.
type movedPosts struct {
	Applied bool            `json:"applied"`
	DryRun  bool            `json:"dry_run"`
	Moved   int             `json:"moved"`
	Refused int             `json:"refused"`
	Reason  string          `json:"reason,omitempty"`
	More    bool            `json:"more,omitempty"`
	Results []movedDelivery `json:"results"`
}

type movedDelivery struct {
	DeliveryID   string     `json:"delivery_id"`
	ChannelID    string     `json:"channel_id,omitempty"`
	Status       string     `json:"status"`
	Reason       string     `json:"reason,omitempty"`
	Message      string     `json:"message,omitempty"`
	Before       *time.Time `json:"before,omitempty"`
	ScheduledFor *time.Time `json:"scheduled_for,omitempty"`
	OpensAt      *time.Time `json:"opens_at,omitempty"`
}

// reschedule calls the database until all deliveries of the subject were tried, and prints the results. It fails if one was refused.
func (m *operatorFlags) reschedule(ctx context.Context, store *pg.Store, move api.Move) error {
	var all movedPosts
	for {
		answer, err := pg.Decode[movedPosts](store.Reschedule(ctx, m.act, move))
		if err != nil {
			return asUsageError(err)
		}
		if answer.Reason != "" && len(all.Results)+len(answer.Results) == 0 {
			return fmt.Errorf("nothing was changed: %s", reasonText(answer.Reason, m.subject))
		}
		answer.Applied = answer.Applied || all.Applied
		answer.Moved += all.Moved
		answer.Refused += all.Refused
		answer.Results = append(all.Results, answer.Results...)
		all = answer
		if !all.More {
			break
		}
		move.After = all.Results[len(all.Results)-1].DeliveryID
	}
	if m.asJSON {
		if err := printJSON(all); err != nil {
			return err
		}
	} else if err := m.printMoved(all); err != nil {
		return err
	}
	if all.Refused > 0 {
		return fmt.Errorf("%d of %s could not be moved", all.Refused, countedDeliveries(len(all.Results)))
	}
	return nil
}

func (m *operatorFlags) printMoved(all movedPosts) error {
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
	}
	rows := make([][]any, 0, len(all.Results))
	for _, r := range all.Results {
		rows = append(rows, []any{r.ChannelID, timeOrNil(r.Before), timeOrNil(r.ScheduledFor), timeOrNil(r.OpensAt), r.Message, r.DeliveryID})
	}
	return printTable([]string{"channel", "before", "after", "window open", "why not", "delivery"}, rows)
}

// timeOrNil returns the time as a cell of a table; nil is an empty cell.
func timeOrNil(at *time.Time) any {
	if at == nil {
		return nil
	}
	return *at
}
