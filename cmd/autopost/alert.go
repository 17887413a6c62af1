package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func alertCommand() *cobra.Command {
	return family("alert", "See what needs a person, and say who is told of it", alertListCommand(), alertAckCommand(),
		family("target", "List, add, change and try those who are told of alerts", alertTargetListCommand(),
			alertTargetPutCommand("add ID", "Add somebody who is told of alerts", absent),
			alertTargetPutCommand("set ID", "Change who is told of alerts, and when", present),
			alertTargetRemoveCommand(), alertTargetTestCommand()))
}

func alertListCommand() *cobra.Command {
	var open bool
	cmd := listing("List alerts with what to do, the open ones first", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.ListAlerts(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, a := range list {
			state := "open"
			switch {
			case a.EndedAt != nil:
				state = "over"
			case a.AcknowledgedBy != "":
				state = "acknowledged by " + a.AcknowledgedBy
			}
			if a.EndedAt == nil || !open {
				rows = append(rows, []any{a.AlertID, state, a.Severity, a.Kind, a.What, a.Remedy, instantOr(&a.RaisedAt, ""), instantOr(a.EndedAt, ""), instantOr(a.LastNotifiedAt, "nobody")})
			}
		}
		return []string{"alert_id", "state", "severity", "kind", "what", "remedy", "since", "until", "told"}, rows, err
	})
	cmd.Flags().BoolVar(&open, "open", false, "only those that are open")
	return cmd
}

func alertAckCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "ack ALERT_ID",
		Short: "Say that somebody looks after an alert",
		Long: `Say that somebody looks after an alert: nobody is reminded of it, until there is ten
times as much of it. It ends by itself. Of dead deliveries and unknown outcomes those that
are there now count no more, and the next one is told anew.`,
		Args: oneID("an alert", "autopost alert list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.AcknowledgeAlert(ctx, m.act, args[0])
				if err != nil {
					return err
				}
				return m.tellPut("alert "+args[0], answer)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func alertTargetListCommand() *cobra.Command {
	return listing("List who is told of alerts, and what came of the last try", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.ListAlertTargets(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, t := range list {
			rows = append(rows, []any{t.TargetID, t.Kind, t.Address, t.Enabled, t.MinSeverity, t.QuietHours, instantOr(t.ToldAt, "never"), t.Failures, t.LastError})
		}
		return []string{"target_id", "kind", "address", "enabled", "min_severity", "quiet_hours", "told", "failures", "last_error"}, rows, err
	})
}

func alertTargetPutCommand(use, short string, expected standing) *cobra.Command {
	p := newPutting("alert_target")
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  oneArgument("id of a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "alert target "+args[0], expected, func(ctx context.Context, store *pg.Store, act pg.Act, fields pg.Fields) (pg.PutAnswer, error) {
				return store.PutAlertTarget(ctx, act, args[0], fields)
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

func alertTargetRemoveCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Take away somebody who is told of alerts",
		Args:  oneArgument("id of a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.RemoveAlertTarget(ctx, m.act, args[0])
				if err != nil {
					return err
				}
				return m.tellPut("alert target "+args[0], answer)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func alertTargetTestCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "test ID",
		Short: "Have the daemon send a test message to a target",
		Long: `Have the daemon send a test message to a target, whatever its hours and limits. It goes out
within MONITOR_INTERVAL_SECONDS; autopost alert target list shows what came of it.`,
		Args: oneArgument("id of a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.TestAlertTarget(ctx, m.act, args[0])
				if err != nil {
					return err
				}
				if answer.Reason != "" || m.asJSON {
					return m.tellPut("alert target "+args[0], answer)
				}
				fmt.Fprintln(os.Stdout, "the daemon will send it soon; see: autopost alert target list")
				return nil
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func healthCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Show how a workspace is: its queue, failures, credentials, sources, alerts and last posts",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.HealthSnapshot(ctx, workspace)
				if err != nil {
					return err
				}
				if asJSON {
					fmt.Fprintln(os.Stdout, string(raw))
					return nil
				}
				return showObject(raw, "queue", "alerts")
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
