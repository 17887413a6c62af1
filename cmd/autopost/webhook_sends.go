package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

// webhookSend is something that a result webhook was told, or is to be.
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

// sendStatuses are those that it can have.
var sendStatuses = []string{"pending", "sending", "delivered", "dead"}

func webhookSends(ctx context.Context, store *pg.Store, workspace string, filter map[string]any, limit int) ([]webhookSend, error) {
	list, err := store.List(ctx, "list_webhook_deliveries", workspace, "", filter, limit)
	sends := make([]webhookSend, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &sends[i]); err != nil {
			return nil, fmt.Errorf("decode the answer: %w", err)
		}
	}
	return sends, err
}

func webhookDeliveriesCommand() *cobra.Command {
	var workspace, status string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "deliveries ID",
		Short: "List what a result webhook was told and is to be told, the newest event first",
		Args:  oneArgument("id of a result webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if status != "" && !slices.Contains(sendStatuses, status) {
				return misuse{fmt.Errorf("there is no status %q; they are %s", status, strings.Join(sendStatuses, ", "))}
			}
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
				if _, err := oneWebhook(ctx, store, workspace, args[0]); err != nil {
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
					var answered any = ""
					if s.HTTPStatus != nil {
						answered = *s.HTTPStatus
					}
					rows = append(rows, []any{s.TS.Format(time.RFC3339), s.Type, s.ID, s.Status, s.Attempt, answered, instantOr(s.DueAt, ""), textOr(s.Error)})
				}
				return printTable(os.Stdout, asJSON, []string{"ts", "type", "event_id", "status", "attempt", "http_status", "due_at", "error"}, rows)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().StringVar(&status, "status", "", "only these: "+strings.Join(sendStatuses, ", "))
	cmd.Flags().IntVar(&limit, "limit", 50, "how many rows at most, 1 to 10000")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func webhookTestCommand() *cobra.Command {
	var m manual
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "test ID",
		Short: "Have the daemon send a signed test event, and tell what came back",
		Args:  oneArgument("id of a result webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				if m.act.DryRun {
					return misuse{errors.New("a test has no dry run: it changes nothing at your side, and nothing is tried twice")}
				}
				event, reason, err := store.TestWebhook(ctx, m.act, args[0])
				if err != nil {
					return err
				}
				if reason != "" {
					return refusedWebhook(args[0], reason)
				}
				return m.tellTest(ctx, store, args[0], event, wait)
			})
		},
	}
	m.flags(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long to wait for the answer")
	return cmd
}

// tellTest waits until the test was sent.
func (m *manual) tellTest(ctx context.Context, store *pg.Store, webhook, event string, wait time.Duration) error {
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
			return fmt.Errorf("no answer within %s: is a daemon with the stage dispatch running? see autopost webhook deliveries %s", wait, webhook)
		case <-ticker.C:
		}
	}
}

func (m *manual) printTest(s webhookSend) error {
	if m.asJSON {
		raw, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
		fmt.Fprintln(os.Stdout, string(raw))
	}
	if s.Status != "delivered" {
		return fmt.Errorf("event %s was not taken: %s", s.ID, textOr(s.Error))
	}
	if !m.asJSON {
		fmt.Fprintf(os.Stdout, "event %s was taken: %d\n", s.ID, *s.HTTPStatus)
	}
	return nil
}

func webhookReplayCommand() *cobra.Command {
	var m manual
	var what pg.WebhookReplay
	cmd := &cobra.Command{
		Use:   "replay ID",
		Short: "Tell a result webhook again, under the same ids",
		Long: `Tell a result webhook again, under the same ids: what happened in a time, or some
events. By time it is told, too, what it was not told then, as far back as events are
kept; with --failed-only no more than what it did not take.`,
		Args: oneArgument("id of a result webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (what.Since == "") == (len(what.EventIDs) == 0) {
				return misuse{fmt.Errorf("%s needs --since or --event", cmd.CommandPath())}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				return m.replay(ctx, store, args[0], what)
			})
		},
	}
	cmd.Flags().StringVar(&what.Since, "since", "", "from this instant on, as in 2026-12-01T10:00:00+03:00")
	cmd.Flags().StringVar(&what.Until, "until", "", "before this instant (default now)")
	cmd.Flags().StringArrayVar(&what.EventIDs, "event", nil, "id of an event, its webhook-id; repeatable")
	cmd.Flags().BoolVar(&what.FailedOnly, "failed-only", false, "only what was not taken")
	m.flags(cmd)
	return cmd
}

// replay goes on until all of it is queued.
func (m *manual) replay(ctx context.Context, store *pg.Store, webhook string, what pg.WebhookReplay) error {
	var all pg.WebhookReplayed
	for {
		answer, err := store.ReplayWebhook(ctx, m.act, webhook, what)
		if err != nil {
			return err
		}
		queued := all.Queued + answer.Queued
		all = answer
		all.Queued = queued
		if answer.NextSince == "" {
			break
		}
		what.Since = answer.NextSince
	}
	if all.Queued == 0 {
		return refusedWebhook(webhook, all.Reason)
	}
	all.Applied, all.Reason = true, ""
	if m.asJSON {
		raw, err := json.Marshal(all)
		if err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
		fmt.Fprintln(os.Stdout, string(raw))
		return nil
	}
	for _, id := range all.Unknown {
		fmt.Fprintf(os.Stdout, "event %s is not known here, or was too long ago\n", id)
	}
	verb := "queued"
	if m.act.DryRun {
		verb = "dry run: nothing was queued; these would be"
	}
	fmt.Fprintf(os.Stdout, "%s: %d\n", verb, all.Queued)
	return nil
}
