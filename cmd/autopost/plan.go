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

func planCommand() *cobra.Command {
	var d draft
	var workspace, at string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan [FILE.json]",
		Short: "Dry run of a post: who would get it, when, as what text, and who not and why",
		Long: `Say what "autopost post" would do with a post, channel by channel, and write
nothing. The enqueue itself decides it, inside a transaction that is undone. The
instants are as far as is known now: how long calls take is not.`,
		Args: draftFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			var instant time.Time
			if at != "" {
				var err error
				if instant, err = time.Parse(time.RFC3339, at); err != nil {
					return misuse{fmt.Errorf("--at %q is no time with an offset: write 2026-12-01T10:00:00+03:00", at)}
				}
			}
			post, err := d.read(args)
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				chosen, err := chooseWorkspace(ctx, store, workspace)
				if err != nil {
					return err
				}
				raw, err := store.Plan(ctx, chosen, post, instant)
				if errors.Is(err, pg.ErrArgument) {
					return misuse{err}
				}
				if err != nil {
					return err
				}
				return tellPlan(raw, asJSON)
			})
		},
	}
	d.flags(cmd)
	workspaceFlag(cmd, &workspace)
	cmd.Flags().StringVar(&at, "at", "", "as if it were this instant (default now)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// hold is one thing that holds a delivery.
type hold struct {
	Gate  string
	Until *time.Time
	Lifts string
	Ahead int
}

func (h hold) String() string {
	text := strings.ReplaceAll(h.Gate, "_", " ")
	if h.Gate == "queue" {
		text = fmt.Sprintf("%d before it", h.Ahead)
	}
	if h.Until != nil {
		text += " until " + h.Until.Format(time.RFC3339)
	}
	return text
}

func holdsText(holds []hold) string {
	texts := make([]string, 0, len(holds))
	for _, h := range holds {
		texts = append(texts, h.String())
	}
	return strings.Join(texts, ", ")
}

func tellPlan(raw json.RawMessage, asJSON bool) error {
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
			ChannelID string     `json:"channel_id"`
			SendAt    *time.Time `json:"send_at"`
			HeldBy    []hold     `json:"held_by"`
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
			why = holdsText(c.HeldBy)
		}
		rows = append(rows, []any{c.ChannelID, c.Platform, strings.ReplaceAll(c.Verdict, "_", " "), instantOr(c.SendAt, ""), excerptOf(c.Text), why})
	}
	if err := printTable(os.Stdout, false, []string{"channel", "platform", "verdict", "when", "text", "why, or held by"}, rows); err != nil {
		return err
	}
	if p.Counts.Channels > len(p.Channels) {
		fmt.Fprintf(os.Stdout, "the first %d of %d channels\n", len(p.Channels), p.Counts.Channels)
	}
	fmt.Fprintf(os.Stdout, "%d of %d channels would get it", p.Counts.Queued, p.Counts.Channels)
	if p.FirstAt != nil {
		fmt.Fprintf(os.Stdout, ", from %s to %s", p.FirstAt.Format(time.RFC3339), p.LastAt.Format(time.RFC3339))
	}
	fmt.Fprintf(os.Stdout, "; %d have it already, %d invalid, %d skipped, %d not routed, %d disabled\n",
		p.Counts.Deduped, p.Counts.Invalid, p.Counts.Skipped, p.Counts.NotRouted, p.Counts.Disabled)
	for _, note := range p.Notes {
		fmt.Fprintln(os.Stderr, "autopost: "+note)
	}
	return nil
}

func instantOr(at *time.Time, none string) string {
	if at == nil {
		return none
	}
	return at.Format(time.RFC3339)
}
