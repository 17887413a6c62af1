package cli

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
	"autopost/internal/table"
)

func webhookCommand() *cobra.Command {
	return parentCommand("webhook", "Manage result webhooks, signed reports about posts", append(
		switchCommands("webhook", "crm", (*pg.Store).PutWebhook, "Send the events of a result webhook", "Stop the events of a result webhook"),
		webhookListCommand(), webhookPutCommand("add", "Add a result webhook",
			`  autopost webhook add crm --url https://crm.example.org/hook --signing-ref crm-key --reason "new CRM"`, mustNotExist), webhookShowCommand(),
		webhookPutCommand("set", "Change a result webhook", `  autopost webhook set crm --event-types 'post.*' --reason "less traffic"`, mustExist), webhookRemoveCommand(), webhookTestCommand(),
		webhookDeliveriesCommand(), webhookWhyCommand(), webhookReplayCommand())...)
}

// webhookRow is one row of the list.
type webhookRow struct {
	WebhookID      string     `json:"webhook_id"`
	URL            string     `json:"url"`
	EventTypes     []string   `json:"event_types"`
	Enabled        bool       `json:"enabled"`
	FailingSince   *time.Time `json:"failing_since"`
	DisabledReason *string    `json:"disabled_reason"`
}

func webhookListCommand() *cobra.Command {
	return listing("List the result webhooks", "  autopost webhook list", func(ctx context.Context, store *pg.Store, workspace string) ([]json.RawMessage, table.Table, error) {
		list, err := store.List(ctx, pg.Query{Function: "list_configuration", Workspace: workspace, Kind: "webhook", Limit: listLimit})
		rows := make([][]any, 0, len(list))
		for _, raw := range list {
			var w webhookRow
			if err := json.Unmarshal(raw, &w); err != nil {
				return nil, table.Table{}, fmt.Errorf("decode the answer: %w", err)
			}
			rows = append(rows, []any{w.WebhookID, w.URL, w.EventTypes, w.Enabled, w.FailingSince, w.DisabledReason})
		}
		return list, table.Table{
			Columns: []string{"webhook_id", "url", "event_types", "enabled", "failing_since", "disabled_reason"},
			Details: []string{"failing_since"}, Optional: []string{"disabled_reason"}, Rows: rows,
			Empty: "No result webhook: run autopost webhook add ID --url URL --signing-ref NAME.",
		}, err
	})
}

func webhookPutCommand(verb, short, example string, expected expectation) *cobra.Command {
	p := newUpsert("webhook")
	cmd := &cobra.Command{
		Use:   verb + " ID",
		Short: short,
		Long: short + `. It reports events from the time when it is enabled. autopost webhook
replay reports earlier events. After a change of --signing-ref both keys sign for a day,
so that the receiver can change its key.`,
		Example: example,
		Args:    oneArgument("result webhook id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "webhook "+args[0], expected, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				answer, err := pg.Decode[pg.PutAnswer](store.PutWebhook(ctx, act, args[0], fields))
				if answer.Bound != nil && !*answer.Bound && !act.DryRun {
					fmt.Fprintln(os.Stderr, "autopost: signing_ref must name a credential of platform webhook: until then nothing is sent")
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
	var f readFlags
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show the configuration and state of a result webhook",
		Example: "  autopost webhook show crm",
		Args:    oneArgument("result webhook id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := findWebhook(ctx, store, workspace, args[0])
				if err != nil {
					return err
				}
				return f.printObject(raw)
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

func findWebhook(ctx context.Context, store *pg.Store, workspace, id string) (json.RawMessage, error) {
	list, err := store.List(ctx, pg.Query{Function: "list_configuration", Workspace: workspace, Kind: "webhook", Filter: map[string]any{"id": id}, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, unknownWebhook(id)
	}
	return list[0], nil
}

func unknownWebhook(id string) error { return unknown("result webhook "+id, "autopost webhook list") }

// refusedWebhook explains why an action on a result webhook was refused.
func refusedWebhook(id, reason string) error {
	switch reason {
	case "unknown_webhook":
		return unknownWebhook(id)
	case "disabled":
		return fmt.Errorf("webhook %s is disabled: run autopost webhook enable %s", id, id)
	case "nothing_to_replay":
		return errors.New("no event matches: nothing was queued")
	default:
		return errors.New(strings.ReplaceAll(reason, "_", " "))
	}
}

func webhookRemoveCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:     "remove ID",
		Short:   "Remove a result webhook and its history",
		Example: `  autopost webhook remove crm --reason "CRM is gone"`,
		Args:    oneArgument("result webhook id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.PutAnswer](store.RemoveWebhook(ctx, m.act, args[0]))
				if err != nil {
					return err
				}
				if answer.Reason != "" {
					return refusedWebhook(args[0], answer.Reason)
				}
				return m.printPut("webhook "+args[0], answer)
			})
		},
	}
	m.flags(cmd)
	m.requireReason(cmd)
	return cmd
}
