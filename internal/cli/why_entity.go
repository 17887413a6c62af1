package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func sourceWhyCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Explain why nothing comes from a source",
		Long: `Explain a source: whether it is polled, disabled, stopped or failing, its next poll and
its last error, and how to end each wait.`,
		Example: "  autopost source why news",
		Args:    oneArgument("source id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.WhySource(ctx, workspace, args[0])
				if err != nil {
					return err
				}
				if raw == nil {
					return unknownSource(args[0])
				}
				return printState(raw, "source "+args[0], f.asJSON)
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

func webhookWhyCommand() *cobra.Command {
	var f readFlags
	var event string
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Explain why a result webhook makes no calls",
		Long: `Explain a result webhook: whether it is disabled or failing, and its waiting calls.
With --event the call for one event: its last answer, its next try, or when it gave up.
Run autopost webhook deliveries ID for events.`,
		Example: "  autopost webhook why crm\n  autopost webhook why crm --event 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa",
		Args:    oneArgument("result webhook id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if event != "" {
				if err := checkID(event, "event", "autopost webhook deliveries "+args[0]); err != nil {
					return err
				}
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.WhyWebhook(ctx, workspace, args[0], event)
				if err != nil {
					return err
				}
				if raw == nil {
					if _, err := findWebhook(ctx, store, workspace, args[0]); err != nil {
						return err
					}
					return unknown("event "+event+" of the result webhook "+args[0], "autopost webhook deliveries "+args[0])
				}
				return printState(raw, "result webhook "+args[0], f.asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&event, "event", "", "only the call for this event, by its webhook-id")
	f.addOne(cmd)
	return cmd
}

// printState prints the explanation of something that is not a delivery.
func printState(raw json.RawMessage, name string, asJSON bool) error {
	if asJSON {
		return printJSON(raw)
	}
	var e explanation
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("decode the explanation: %w", err)
	}
	e.Now.Sentence = name + ": " + e.Now.Sentence
	e.Now.SendAt = nil // it is not a post
	if err := e.printNow(); err != nil {
		return err
	}
	say("last daemon activity: %s", instantOr(e.Now.DaemonSeenAt, "never"))
	return nil
}
