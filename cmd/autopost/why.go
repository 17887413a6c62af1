package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func whyCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "why DELIVERY_ID",
		Short: "The causal chain of one delivery and what holds it now",
		Long: `Explain one delivery: where it came from, what has happened to it, what holds it
now, until when, and what would lift that. "autopost deliveries list" shows ids. The id of
a submission tells how the fetch of its media stands, that of a message how far it
has fanned out.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || len(args[0]) != 36 || uuid.Validate(args[0]) != nil {
				return misuse{fmt.Errorf("%s takes the id of one delivery: autopost deliveries list shows them", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				chosen, err := chooseWorkspace(ctx, store, workspace)
				if err != nil {
					return err
				}
				raw, err := store.Why(ctx, chosen, args[0])
				if errors.Is(err, pg.ErrArgument) {
					return misuse{err}
				}
				if err != nil {
					return err
				}
				return tellWhy(raw, chosen, args[0], asJSON)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// explanation is what why answers, as far as a person is shown it.
type explanation struct {
	Status   string
	Delivery struct {
		ChannelID   string `json:"channel_id"`
		MaxAttempts int    `json:"max_attempts"`
		Platform    string
		Status      string
		Attempt     int
		Text        string
	}
	Source struct {
		RunID      string    `json:"run_id"`
		EndpointID string    `json:"endpoint_id"`
		SourceID   string    `json:"source_id"`
		SourceRef  string    `json:"source_ref"`
		StartedAt  time.Time `json:"started_at"`
		Kind       string
	}
	Chain []struct {
		TS       time.Time
		Action   string
		Sentence string
	}
	Now struct {
		SendAt       *time.Time `json:"send_at"`
		HeldBy       []hold     `json:"held_by"`
		DaemonSeenAt *time.Time `json:"daemon_seen_at"`
		Sentence     string
		Lifts        string
	}
}

func tellWhy(raw json.RawMessage, workspace, id string, asJSON bool) error {
	var e explanation
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("decode the explanation: %w", err)
	}
	if asJSON {
		fmt.Fprintln(os.Stdout, string(raw))
	}
	if !asJSON && (e.Status == "submission" || e.Status == "fanout") {
		return e.tellNow()
	}
	if e.Status == "unknown_delivery" {
		return fmt.Errorf("workspace %s has no delivery %s", workspace, id)
	}
	if asJSON {
		return nil
	}
	from := e.Source.EndpointID
	if e.Source.SourceID != "" {
		from = "source " + e.Source.SourceID
	}
	if e.Source.SourceRef != "" {
		from += ", there " + e.Source.SourceRef
	}
	fmt.Fprintf(os.Stdout, "%s to %s (%s), attempt %d of %d: %s\n", e.Delivery.Status, e.Delivery.ChannelID, e.Delivery.Platform,
		e.Delivery.Attempt, e.Delivery.MaxAttempts, excerptOf(e.Delivery.Text))
	fmt.Fprintf(os.Stdout, "from %s %s, run %s\n", e.Source.Kind, from, e.Source.RunID)
	rows := make([][]any, 0, len(e.Chain))
	for _, step := range e.Chain {
		rows = append(rows, []any{step.TS.Format("2006-01-02T15:04:05.000Z07:00"), step.Action, step.Sentence})
	}
	if err := printTable(os.Stdout, false, []string{"when", "event", "what happened"}, rows); err != nil {
		return err
	}
	return e.tellNow()
}

// tellNow says how things stand.
func (e *explanation) tellNow() error {
	fmt.Fprintln(os.Stdout, "now: "+e.Now.Sentence)
	if len(e.Now.HeldBy) > 0 {
		rows := make([][]any, 0, len(e.Now.HeldBy))
		for _, h := range e.Now.HeldBy {
			rows = append(rows, []any{h.String(), h.Lifts})
		}
		if err := printTable(os.Stdout, false, []string{"held by", "lifted by"}, rows); err != nil {
			return err
		}
	}
	switch {
	case e.Now.Lifts != "":
		fmt.Fprintln(os.Stdout, "what can be done: "+e.Now.Lifts)
	case e.Now.SendAt != nil:
		fmt.Fprintf(os.Stdout, "as far as is known it goes at %s\n", e.Now.SendAt.Format(time.RFC3339))
	case len(e.Now.HeldBy) > 0:
		fmt.Fprintln(os.Stdout, "time alone does not bring it")
	}
	if e.Delivery.Status == "queued" || e.Delivery.Status == "retry" {
		fmt.Fprintln(os.Stdout, "a daemon was last seen: "+instantOr(e.Now.DaemonSeenAt, "never"))
	}
	return nil
}
