package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func webhookCommand() *cobra.Command {
	return family("webhook", "Tell addresses of yours what becomes of posts: signed, tried again, and again on demand",
		webhookListCommand(), webhookPutCommand("add ID", "Add a result webhook", absent), webhookShowCommand(),
		webhookPutCommand("set ID", "Change a result webhook; the rest stays", present), webhookRemoveCommand(), webhookTestCommand(),
		webhookDeliveriesCommand(), webhookReplayCommand())
}

// webhookRow is what a list shows of a result webhook.
type webhookRow struct {
	WebhookID      string     `json:"webhook_id"`
	URL            string     `json:"url"`
	EventTypes     []string   `json:"event_types"`
	Enabled        bool       `json:"enabled"`
	FailingSince   *time.Time `json:"failing_since"`
	DisabledReason *string    `json:"disabled_reason"`
}

func webhookListCommand() *cobra.Command {
	return listing("List the result webhooks", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.List(ctx, "list_configuration", workspace, "webhook", nil, listLimit)
		rows := make([][]any, 0, len(list))
		for _, raw := range list {
			var w webhookRow
			if err := json.Unmarshal(raw, &w); err != nil {
				return nil, nil, fmt.Errorf("decode the answer: %w", err)
			}
			rows = append(rows, []any{w.WebhookID, w.URL, strings.Join(w.EventTypes, ","), w.Enabled, instantOr(w.FailingSince, ""), textOr(w.DisabledReason)})
		}
		return []string{"webhook_id", "url", "event_types", "enabled", "failing_since", "disabled_reason"}, rows, err
	})
}

func webhookPutCommand(use, short string, expected standing) *cobra.Command {
	p := newPutting("webhook")
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long: short + `. It is told what happens from the moment on when it is enabled;
autopost webhook replay tells what happened before. Give it another --signing-ref and
both keys sign for a day, so that the receiver can change over.`,
		Args: oneArgument("id of a result webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "webhook "+args[0], expected, func(ctx context.Context, store *pg.Store, act pg.Act, fields pg.Fields) (pg.PutAnswer, error) {
				answer, err := store.PutWebhook(ctx, act, args[0], fields)
				if answer.Bound != nil && !*answer.Bound && !act.DryRun {
					fmt.Fprintln(os.Stderr, "autopost: its signing_ref names no credential of platform webhook: nothing is sent until it does")
				}
				return answer, err
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

func webhookShowCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a result webhook, and since when its calls fail",
		Args:  oneArgument("id of a result webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := oneWebhook(ctx, store, workspace, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					fmt.Fprintln(os.Stdout, string(raw))
					return nil
				}
				return showObject(raw)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func oneWebhook(ctx context.Context, store *pg.Store, workspace, id string) (json.RawMessage, error) {
	list, err := store.List(ctx, "list_configuration", workspace, "webhook", map[string]any{"id": id}, 1)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, unknownWebhook(id)
	}
	return list[0], nil
}

func unknownWebhook(id string) error {
	return fmt.Errorf("there is no result webhook %s in this workspace: see autopost webhook list", id)
}

// refusedWebhook says why nothing was queued for a webhook.
func refusedWebhook(id, reason string) error {
	switch reason {
	case "unknown_webhook":
		return unknownWebhook(id)
	case "disabled":
		return fmt.Errorf("webhook %s is disabled: autopost webhook set %s --enabled true --reason …", id, id)
	case "nothing_to_replay":
		return errors.New("nothing of that is to be told again")
	default:
		return errors.New(strings.ReplaceAll(reason, "_", " "))
	}
}

func webhookRemoveCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a result webhook, with what it was and was to be told",
		Args:  oneArgument("id of a result webhook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.RemoveWebhook(ctx, m.act, args[0])
				if err != nil {
					return err
				}
				if answer.Reason != "" {
					return refusedWebhook(args[0], answer.Reason)
				}
				return m.tellPut("webhook "+args[0], answer)
			})
		},
	}
	m.flags(cmd)
	return cmd
}
