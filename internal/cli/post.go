package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/problem"
	"autopost/internal/table"
)

func postCommand() *cobra.Command {
	var input postInput
	var f readFlags
	var endpoint string
	cmd := &cobra.Command{
		Use:   "post [FILE.json]",
		Short: "Enqueue a post from a file, stdin or flags",
		Long: `Enqueue one post from FILE.json, from standard input (no FILE, or "-"), or from flags.
The JSON has the format of /hooks/push. A running daemon sends the post. It first
downloads media that are given by URL. A channel does not get content that it already
has.`,
		Example: `  autopost post --text "Hello" --channel city
  autopost post post.json`,
		Args: atMostOneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			post, err := input.read(args)
			if err != nil {
				return err
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := pg.Decode[json.RawMessage](store.SubmitPost(ctx, pg.OperatorAction{Workspace: workspace}, endpoint, "command", post))
				if err != nil {
					return err
				}
				return printPosted(raw, f.asJSON)
			})
		},
	}
	input.flags(cmd)
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "endpoint that the post is recorded for (default: the only enabled one)")
	f.add(cmd)
	return cmd
}

// verdict is the part of a plan or enqueue answer that concerns the whole post.
type verdict struct {
	Status   string          `json:"status"`
	Errors   []problem.Fault `json:"errors"`
	Warnings []string        `json:"warnings"`
}

// check prints ignored fields to standard error and fails if the post was rejected.
func (v verdict) check() error {
	if len(v.Warnings) > 0 {
		fmt.Fprintln(os.Stderr, "autopost: ignored unknown fields: "+strings.Join(v.Warnings, ", "))
	}
	if v.Status != "rejected" {
		return nil
	}
	return fmt.Errorf("the post is rejected\n%s", fieldErrorLines(v.Errors))
}

func printPosted(raw json.RawMessage, asJSON bool) error {
	var a struct {
		verdict

		RunID                               string `json:"run_id"`
		SubmissionID                        string `json:"submission_id"`
		Enqueued, Deduped, Invalid, Skipped int
		Fanout                              string
		Deliveries                          []struct {
			ChannelID  string `json:"channel_id"`
			DeliveryID string `json:"delivery_id"`
			Status     string
			Reason     string
		}
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	if asJSON {
		fmt.Fprintln(os.Stdout, string(raw))
		return a.check()
	}
	if err := a.check(); err != nil {
		return err
	}
	if a.SubmissionID != "" {
		fmt.Fprintf(os.Stdout, "accepted as submission %s; it is enqueued after its media are downloaded\n", a.SubmissionID)
		return nil
	}
	rows := make([][]any, 0, len(a.Deliveries))
	for _, d := range a.Deliveries {
		rows = append(rows, []any{d.ChannelID, d.Status, d.DeliveryID, d.Reason})
	}
	if err := table.Print(os.Stdout, false, []string{"channel", "status", "delivery", "why"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%d enqueued, %d duplicates, %d invalid, %d skipped; run %s\n", a.Enqueued, a.Deduped, a.Invalid, a.Skipped, a.RunID)
	return nil
}
