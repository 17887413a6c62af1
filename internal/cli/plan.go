package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func planCommand() *cobra.Command {
	var input postInput
	var f readFlags
	var at string
	cmd := &cobra.Command{
		Use:   "plan [FILE.json]",
		Short: "Show which channels would get a post, when and why not",
		Long: `Show what "autopost post" would do with a post, for each channel, and write nothing. The
enqueue function itself decides, in a transaction that is rolled back. The times are
estimates, because the duration of calls is unknown.`,
		Example: `  autopost plan --text "Hello" --tag sport
  autopost plan post.json --at 2026-12-01T10:00:00+03:00`,
		Args: atMostOneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at != "" {
				if _, err := parseInstant("at", at); err != nil {
					return err
				}
			}
			post, err := input.read(args)
			if err != nil {
				return err
			}
			if file := post.firstFile(); file != "" {
				return usageError{fmt.Errorf("--media must be a URL, because a plan stores nothing, got %s: use a URL, or the command autopost post", file)}
			}
			encoded, err := post.encode()
			if err != nil {
				return err
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.Plan(ctx, workspace, encoded, at)
				if err != nil {
					return err
				}
				return printPlan(raw, f.asJSON)
			})
		},
	}
	input.flags(cmd)
	cmd.Flags().StringVar(&at, "at", "", "`time` to plan for, like 2026-12-01T10:00:00+03:00 (default: now)")
	f.add(cmd)
	return cmd
}

// waitReason is a reason why a delivery does not start yet.
type waitReason struct {
	Gate  string
	Until *time.Time
	Lifts string
	// Ahead is the number of deliveries before it in the queue.
	Ahead int
}

func (w waitReason) String() string {
	text := strings.ReplaceAll(w.Gate, "_", " ")
	if w.Gate == "queue" {
		text = fmt.Sprintf("%d before it", w.Ahead)
	}
	if w.Until != nil {
		text += " until " + w.Until.Format(time.RFC3339)
	}
	return text
}

func waitReasonsText(reasons []waitReason) string {
	texts := make([]string, 0, len(reasons))
	for _, r := range reasons {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, ", ")
}

func printPlan(raw json.RawMessage, asJSON bool) error {
	var p struct {
		verdict

		Counts struct {
			Channels, Queued, Deduped, Invalid, Skipped, Disabled int
			NotRouted                                             int `json:"not_routed"`
		}
		FirstAt  *time.Time `json:"first_at"`
		LastAt   *time.Time `json:"last_at"`
		Notes    []string
		Channels []struct {
			ChannelID string       `json:"channel_id"`
			SendAt    *time.Time   `json:"send_at"`
			HeldBy    []waitReason `json:"held_by"`
			Platform  string
			Verdict   string
			Reason    string
			Text      string
		}
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("decode the plan: %w", err)
	}
	if asJSON {
		fmt.Fprintln(os.Stdout, string(raw))
		return p.check()
	}
	if err := p.check(); err != nil {
		return err
	}
	rows := make([][]any, 0, len(p.Channels))
	for _, c := range p.Channels {
		why := c.Reason
		if c.Verdict == "queued" {
			why = waitReasonsText(c.HeldBy)
		}
		rows = append(rows, []any{c.ChannelID, c.Platform, strings.ReplaceAll(c.Verdict, "_", " "), instantOr(c.SendAt, ""), excerptOf(c.Text), why})
	}
	if err := table.Print(os.Stdout, false, []string{"channel", "platform", "verdict", "when", "text", "why, or held by"}, rows); err != nil {
		return err
	}
	if p.Counts.Channels > len(p.Channels) {
		fmt.Fprintf(os.Stdout, "the first %d of %d channels\n", len(p.Channels), p.Counts.Channels)
	}
	fmt.Fprintf(os.Stdout, "%d of %d channels would get it", p.Counts.Queued, p.Counts.Channels)
	if p.FirstAt != nil {
		fmt.Fprintf(os.Stdout, ", from %s to %s", p.FirstAt.Format(time.RFC3339), p.LastAt.Format(time.RFC3339))
	}
	fmt.Fprintf(os.Stdout, "; %d duplicates, %d invalid, %d skipped, %d not routed, %d disabled\n",
		p.Counts.Deduped, p.Counts.Invalid, p.Counts.Skipped, p.Counts.NotRouted, p.Counts.Disabled)
	for _, note := range p.Notes {
		fmt.Fprintln(os.Stderr, "autopost: "+note)
	}
	return nil
}
