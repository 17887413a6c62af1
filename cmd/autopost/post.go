package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func postCommand() *cobra.Command {
	var d draft
	var workspace, endpoint string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "post [FILE.json]",
		Short: "Enqueue a post from a file, standard input or flags",
		Long: `Enqueue one post: from FILE.json, from standard input (no FILE, or "-"), or from
flags. The JSON is what /hooks/push takes. A running daemon sends it; media given
by URL are fetched first. A channel that has the same content already does not get
it again.`,
		Args: draftFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			post, err := d.read(args)
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				chosen, err := chooseWorkspace(ctx, store, workspace)
				if err != nil {
					return err
				}
				raw, err := store.SubmitPost(ctx, chosen, endpoint, "command", post)
				if errors.Is(err, pg.ErrArgument) {
					return misuse{err}
				}
				if err != nil {
					return err
				}
				return tellPosted(raw, asJSON)
			})
		},
	}
	d.flags(cmd)
	workspaceFlag(cmd, &workspace)
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "endpoint that the post is booked on (default the only enabled one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// verdict is what plans and enqueues say of a post as a whole.
type verdict struct {
	Status   string         `json:"status"`
	Errors   []payloadError `json:"errors"`
	Warnings []string       `json:"warnings"`
}

type payloadError struct{ Field, Reason, Remedy string }

// check tells what is odd about the post on standard error, and fails when it was rejected.
func (v verdict) check() error {
	if len(v.Warnings) > 0 {
		fmt.Fprintln(os.Stderr, "autopost: this means nothing here: "+strings.Join(v.Warnings, ", "))
	}
	if v.Status != "rejected" {
		return nil
	}
	lines := make([]string, 0, len(v.Errors))
	for _, e := range v.Errors {
		lines = append(lines, fmt.Sprintf("%s %s: %s", e.Field, e.Reason, e.Remedy))
	}
	return fmt.Errorf("the post is rejected\n%s", strings.Join(lines, "\n"))
}

func tellPosted(raw json.RawMessage, asJSON bool) error {
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
		fmt.Fprintf(os.Stdout, "accepted as submission %s: its media are fetched first\n", a.SubmissionID)
		return nil
	}
	rows := make([][]any, 0, len(a.Deliveries))
	for _, d := range a.Deliveries {
		rows = append(rows, []any{d.ChannelID, d.Status, d.DeliveryID, d.Reason})
	}
	if err := printTable(os.Stdout, false, []string{"channel", "status", "delivery", "why"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%d enqueued, %d had it already, %d invalid, %d skipped; run %s\n", a.Enqueued, a.Deduped, a.Invalid, a.Skipped, a.RunID)
	return nil
}
