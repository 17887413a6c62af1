package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

// webhookSend is one event that is queued for a result webhook, or was sent to it.
type webhookSend struct {
	ID          string     `json:"id"`
	TS          time.Time  `json:"ts"`
	Type        string     `json:"type"`
	Status      string     `json:"status"`
	Attempt     int        `json:"attempt"`
	DueAt       *time.Time `json:"due_at"`
	HTTPStatus  *int       `json:"http_status"`
	Error       *string    `json:"error"`
	AttemptedAt *time.Time `json:"attempted_at"`
	FinishedAt  *time.Time `json:"finished_at"`
}

var sendStatuses = []string{"pending", "sending", "delivered", "dead"}

func webhookSends(ctx context.Context, store *pg.Store, workspace string, filter map[string]any, limit int) ([]webhookSend, error) {
	return pg.List[webhookSend](ctx, store, pg.Query{Function: "list_webhook_deliveries", Workspace: workspace, Filter: filter, Limit: limit})
}

func webhookDeliveriesCommand() *cobra.Command {
	var f readFlags
	var status string
	var limit int
	cmd := &cobra.Command{
		Use:     "deliveries ID",
		Short:   "List the events of a result webhook, newest first",
		Example: "  autopost webhook deliveries crm --status dead",
		Args:    oneArgument("result webhook id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if status != "" && !slices.Contains(sendStatuses, status) {
				return usageError{fmt.Errorf("--status must be %s, got %q", oneOf(sendStatuses), status)}
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				if _, err := findWebhook(ctx, store, workspace, args[0]); err != nil {
					return err
				}
				filter := map[string]any{"webhook_id": args[0]}
				if status != "" {
					filter["status"] = status
				}
				list, err := webhookSends(ctx, store, workspace, filter, limit)
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(list))
				for _, s := range list {
					rows = append(rows, []any{s.TS, s.Type, s.Status, s.HTTPStatus, s.Error, s.ID, s.Attempt, s.DueAt})
				}
				return f.rows(list, table.Table{
					Columns: []string{"when", "type", "status", "http", "why", "event_id", "attempt", "next_attempt"},
					Details: []string{"event_id", "attempt", "next_attempt"}, Optional: []string{"http", "why"}, Rows: rows,
					Empty: "No event for this webhook yet: run autopost webhook test " + args[0] + " to send one.",
				})
			})
		},
	}
	cmd.Flags().StringVar(&status, "status", "", oneOf(sendStatuses)+" (default: all)")
	limitFlag(cmd, &limit)
	f.add(cmd)
	return cmd
}

func webhookTestCommand() *cobra.Command {
	var m operatorFlags
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "test ID",
		Short:   "Send a signed test event and print the answer",
		Example: `  autopost webhook test crm --reason "new receiver"`,
		Args:    oneArgument("result webhook id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				if m.act.DryRun {
					return usageError{errors.New("--dry-run must not be used with test: the test event changes no configuration and is sent once")}
				}
				test, err := pg.Decode[pg.WebhookTest](store.TestWebhook(ctx, m.act, args[0]))
				if err != nil {
					return err
				}
				if test.Reason != "" {
					return refusedWebhook(args[0], test.Reason)
				}
				return m.awaitTest(ctx, store, args[0], test.EventID, wait)
			})
		},
	}
	m.flags(cmd)
	durationFlag(cmd, &wait, "wait", 30*time.Second, "largest time to wait for the answer")
	return cmd
}

// awaitTest waits for the result of the test event and prints it.
func (m *operatorFlags) awaitTest(ctx context.Context, store *pg.Store, webhook, event string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		list, err := webhookSends(ctx, store, m.act.Workspace, map[string]any{"webhook_id": webhook, "id": event}, 1)
		if err == nil && len(list) == 1 && list[0].FinishedAt != nil {
			return m.printTest(list[0])
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer within %s: check that a daemon with the stage dispatch runs, and run autopost webhook deliveries %s", wait, webhook)
		case <-ticker.C:
		}
	}
}

func (m *operatorFlags) printTest(s webhookSend) error {
	if m.asJSON {
		if err := printJSON(s); err != nil {
			return err
		}
	}
	if s.Status != "delivered" {
		return fmt.Errorf("event %s was not accepted: %s", s.ID, textOr(s.Error))
	}
	if !m.asJSON {
		fmt.Fprintf(os.Stdout, "event %s was accepted: HTTP %d\n", s.ID, *s.HTTPStatus)
	}
	return nil
}

func webhookReplayCommand() *cobra.Command {
	var m operatorFlags
	var selection pg.WebhookReplay
	cmd := &cobra.Command{
		Use:   "replay ID",
		Short: "Send events to a result webhook again",
		Long: `Send events to a result webhook again, with the same ids: those of a period, or some by
id. A period includes events that were never sent to this webhook, as far back as events
are kept. --failed-only sends only events that the receiver did not accept.`,
		Example: `  autopost webhook replay crm --since 2026-12-01T00:00:00Z --failed-only --reason "receiver was down"`,
		Args:    oneArgument("result webhook id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (selection.Since == "") == (len(selection.EventIDs) == 0) {
				return usageError{errors.New("one of --since and --event must be set: pass a period or event ids")}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				return m.replay(ctx, store, args[0], selection)
			})
		},
	}
	cmd.Flags().StringVar(&selection.Since, "since", "", "`time` of the start of the period, like 2026-12-01T10:00:00+03:00")
	cmd.Flags().StringVar(&selection.Until, "until", "", "`time` of the end of the period (default: now)")
	cmd.Flags().StringArrayVar(&selection.EventIDs, "event", nil, "`id` of an event (the webhook-id header); repeatable")
	cmd.Flags().BoolVar(&selection.FailedOnly, "failed-only", false, "only events that the receiver did not accept")
	m.flags(cmd)
	return cmd
}

// replay queues the events in several calls until all are queued.
func (m *operatorFlags) replay(ctx context.Context, store *pg.Store, webhook string, selection pg.WebhookReplay) error {
	var all pg.WebhookReplayed
	for {
		answer, err := pg.Decode[pg.WebhookReplayed](store.ReplayWebhook(ctx, m.act, webhook, selection))
		if err != nil {
			return err
		}
		queued := all.Queued + answer.Queued
		all = answer
		all.Queued = queued
		if answer.NextSince == "" {
			break
		}
		selection.Since = answer.NextSince
	}
	if all.Queued == 0 {
		return refusedWebhook(webhook, all.Reason)
	}
	all.Applied, all.Reason = true, ""
	if m.asJSON {
		return printJSON(all)
	}
	for _, id := range all.Unknown {
		fmt.Fprintf(os.Stdout, "event %s is unknown or too old\n", id)
	}
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
	}
	fmt.Fprintf(os.Stdout, "queued: %d\n", all.Queued)
	return nil
}
