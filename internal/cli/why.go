package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func whyCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "why DELIVERY_ID",
		Short: "Explain the history and the waits of one delivery",
		Long: `Explain one delivery: its source, its events, the reasons why it waits, until when, and
how to end each wait. Run autopost deliveries list for ids. For a submission id the
command shows the download of its media, for a message id its fan-out, for a run id
its rejected posts.`,
		Example: "  autopost why 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa",
		Args:    oneID("delivery", "autopost deliveries list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.Why(ctx, workspace, args[0])
				if err != nil {
					return err
				}
				return printWhy(raw, workspace, args[0], f.asJSON)
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

// explanation is the part of the answer that the command prints.
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
		SendAt       *time.Time   `json:"send_at"`
		HeldBy       []waitReason `json:"held_by"`
		DaemonSeenAt *time.Time   `json:"daemon_seen_at"`
		Sentence     string
		Lifts        string
	}
}

func printWhy(raw json.RawMessage, workspace, id string, asJSON bool) error {
	var e explanation
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("decode the explanation: %w", err)
	}
	if asJSON {
		if err := printJSON(raw); err != nil {
			return err
		}
	}
	if !asJSON && slices.Contains([]string{"submission", "fanout", "run", "message"}, e.Status) {
		return e.printNow()
	}
	if e.Status == "unknown_delivery" {
		return unknown("delivery "+id+" in workspace "+workspace, "autopost deliveries list")
	}
	if asJSON {
		return nil
	}
	from := e.Source.EndpointID
	if e.Source.SourceID != "" {
		from = "source " + e.Source.SourceID
	}
	if e.Source.SourceRef != "" {
		from += ", source_ref " + e.Source.SourceRef
	}
	say("%s to %s (%s), attempt %d of %d: %s", e.Delivery.Status, e.Delivery.ChannelID, e.Delivery.Platform,
		e.Delivery.Attempt, e.Delivery.MaxAttempts, excerptOf(e.Delivery.Text))
	say("from %s %s, run %s", e.Source.Kind, from, e.Source.RunID)
	rows := make([][]any, 0, len(e.Chain))
	for _, step := range e.Chain {
		rows = append(rows, []any{step.TS, step.Action, step.Sentence})
	}
	if err := printTable([]string{"when", "event", "what happened"}, rows); err != nil {
		return err
	}
	return e.printNow()
}

// printNow prints the present state and the waits.
func (e *explanation) printNow() error {
	say("now: %s", e.Now.Sentence)
	if len(e.Now.HeldBy) > 0 {
		rows := make([][]any, 0, len(e.Now.HeldBy))
		for _, h := range e.Now.HeldBy {
			rows = append(rows, []any{h.String(), h.Lifts})
		}
		if err := printTable([]string{"held by", "lifted by"}, rows); err != nil {
			return err
		}
	}
	switch {
	case e.Now.Lifts != "":
		say("to do: %s", e.Now.Lifts)
	case e.Now.SendAt != nil:
		say("expected to be sent at %s", table.Time(*e.Now.SendAt))
	case len(e.Now.HeldBy) > 0 && e.Status == "found":
		say("it waits until an operator acts")
	}
	if e.Delivery.Status == "queued" || e.Delivery.Status == "retry" {
		say("last daemon activity: %s", instantOr(e.Now.DaemonSeenAt, "never"))
	}
	return nil
}

// excerptLength is the number of characters of a text in a sentence.
const excerptLength = 40

func excerptOf(text string) string {
	if runes := []rune(text); len(runes) > excerptLength {
		return string(runes[:excerptLength]) + "…"
	}
	return text
}
