package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func alertCommand() *cobra.Command {
	return parentCommand("alert", "Manage alerts and their targets", alertListCommand(), alertAckCommand(),
		parentCommand("target", "Manage the chats, addresses and webhooks that get alerts", append(
			switchCommands("alert_target", "ops", (*pg.Store).PutAlertTarget, "Send alerts to a target", "Send no alerts to a target"), alertTargetListCommand(),
			alertTargetPutCommand("add", "Add an alert target",
				`  autopost alert target add ops --kind telegram --address -1001234 --auth-ref news-bot --reason "on call"`, mustNotExist),
			alertTargetPutCommand("set", "Change an alert target", `  autopost alert target set ops --quiet-hours 22:00-07:30 --reason "nights"`, mustExist),
			alertTargetRemoveCommand(), alertTargetTestCommand(), alertTargetConfirmCommand())...))
}

func alertListCommand() *cobra.Command {
	var open bool
	cmd := listing("List alerts and their remedies, open ones first", "  autopost alert list --open", func(ctx context.Context, store *pg.Store, workspace string) ([]pg.AlertRow, table.Table, error) {
		list, err := store.ListAlerts(ctx, workspace, listLimit)
		list = slices.DeleteFunc(list, func(a pg.AlertRow) bool { return open && a.EndedAt != nil })
		rows := make([][]any, 0, len(list))
		for _, a := range list {
			state := "open"
			switch {
			case a.EndedAt != nil:
				state = "over"
			case a.AcknowledgedBy != "":
				state = "acknowledged by " + a.AcknowledgedBy
			}
			rows = append(rows, []any{a.RaisedAt, state, a.Severity, a.Kind, a.What, a.Remedy, a.AlertID, a.EndedAt, a.LastNotifiedAt})
		}
		return list, table.Table{
			Columns: []string{"since", "state", "severity", "kind", "what", "remedy", "alert_id", "until", "notified"},
			Details: []string{"alert_id", "until", "notified"}, Rows: rows,
			Empty: "No alert. To get alerts in a chat, run autopost alert target add.",
		}, err
	})
	cmd.Flags().BoolVar(&open, "open", false, "only open alerts")
	return cmd
}

func alertAckCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "ack ALERT_ID",
		Short: "Acknowledge an alert",
		Long: `Acknowledge an alert. Its reminders stop until its count grows tenfold. The alert ends
when its cause ends. For dead deliveries and unknown outcomes, the present ones are no
longer counted, and the next one raises a new alert.`,
		Example: `  autopost alert ack 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "in progress"`,
		Args:    oneID("alert", "autopost alert list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.PutAnswer](store.AcknowledgeAlert(ctx, m.act, args[0]))
				if err != nil {
					return err
				}
				return m.printPut("alert "+args[0], answer)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func alertTargetListCommand() *cobra.Command {
	return listing("List the alert targets and their last result", "  autopost alert target list", func(ctx context.Context, store *pg.Store, workspace string) ([]pg.AlertTargetRow, table.Table, error) {
		list, err := store.ListAlertTargets(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, t := range list {
			rows = append(rows, []any{t.TargetID, t.Kind, t.Address, t.Enabled, t.MinSeverity, t.QuietHours, instantOr(t.ToldAt, "never"), t.Failures, t.LastError})
		}
		return list, table.Table{
			Columns: []string{"target_id", "kind", "address", "enabled", "min_severity", "quiet_hours", "notified", "failures", "last_error"},
			Details: []string{"quiet_hours", "failures"}, Optional: []string{"last_error"}, Rows: rows,
			Empty: "No alert target: run autopost alert target add.",
		}, err
	})
}

func alertTargetPutCommand(verb, short, example string, expected expectation) *cobra.Command {
	p := newUpsert("alert_target")
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: example,
		Args:    oneArgument("alert target id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "alert target "+args[0], expected, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.PutAlertTarget(ctx, act, args[0], fields))
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

func alertTargetRemoveCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:     "remove ID",
		Short:   "Remove an alert target",
		Example: `  autopost alert target remove ops --reason "team changed"`,
		Args:    oneArgument("alert target id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.PutAnswer](store.RemoveAlertTarget(ctx, m.act, args[0]))
				if err != nil {
					return err
				}
				return m.printPut("alert target "+args[0], answer)
			})
		},
	}
	m.flags(cmd)
	m.requireReason(cmd)
	return cmd
}

func alertTargetTestCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "test ID",
		Short: "Send a test message to an alert target",
		Long: `Send a test message to an alert target, without regard to its hours and limits. The
daemon sends it within MONITOR_INTERVAL_SECONDS. autopost alert target list prints the
result.`,
		Example: `  autopost alert target test ops --reason "new chat"`,
		Args:    oneArgument("alert target id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.PutAnswer](store.TestAlertTarget(ctx, m.act, args[0]))
				if err != nil {
					return err
				}
				if answer.Reason != "" || m.asJSON {
					return m.printPut("alert target "+args[0], answer)
				}
				fmt.Fprintln(os.Stdout, "queued; a daemon sends it soon: run autopost alert target list to see the result")
				return nil
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func alertTargetConfirmCommand() *cobra.Command {
	var m operatorFlags
	var code string
	cmd := &cobra.Command{
		Use:   "confirm ID",
		Short: "Confirm the mail address of an alert target",
		Long: `Confirm the mail address of an alert target with the code that was sent to it. Alerts go
there only after that. autopost alert target test sends another code.`,
		Example: `  autopost alert target confirm post --code 0123456789 --reason wanted`,
		Args:    oneArgument("alert target id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if code == "" {
				return usageError{errors.New("--code must be set: it is in the mail to the address")}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.PutAnswer](store.ConfirmAlertTarget(ctx, m.act, args[0], code))
				if err != nil {
					return err
				}
				if answer.Reason != "" || m.asJSON {
					return m.printPut("alert target "+args[0], answer)
				}
				fmt.Fprintf(os.Stdout, "alert target %s gets alerts now\n", args[0])
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&code, "code", "", "code of the mail (required)")
	m.flags(cmd)
	return cmd
}
