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

	"autopost"
	"autopost/internal/pg"
)

// afterwardsCommands are those about posts that were sent.
func afterwardsCommands() []*cobra.Command {
	var edit draftEdit
	editing := afterwardsCommand(autopost.ActEdit, "Have posts that were sent say something else",
		`Have posts that were sent say something else: deliveries by their ids, or a message
in all its channels. What is given takes the place of what was said; the rest stays,
and so do the messages that were sent, in number and media. The new text is judged and
rendered as a new post would be. Telegram, MAX and YouTube (title and description)
edit, X does not.`, edit.changes)
	edit.flags(editing)
	none := func() (json.RawMessage, error) { return nil, nil }
	return []*cobra.Command{
		editing,
		afterwardsCommand(autopost.ActDelete, "Take down posts that were sent",
			`Take down posts that were sent: deliveries by their ids, or a message in all its
channels, now or at a time. Telegram lets a bot do so for 48 hours, later only where
it has the right to delete messages.`, none),
		afterwardsCommand(autopost.ActPin, "Pin posts that were sent", `Put the first message of posts that were sent to the top of their chats.`, none),
		afterwardsCommand(autopost.ActUnpin, "Unpin posts that were sent", `Take the first message of posts that were sent from the top of their chats.`, none),
		actsCommand(),
		cancelCommand(),
	}
}

// draftEdit is what an edit says, by flags.
type draftEdit struct {
	file, text, parseMode, link string
}

func (e *draftEdit) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&e.text, "text", "", "the new text")
	cmd.Flags().StringVar(&e.parseMode, "parse-mode", "", "HTML, Markdown or None")
	cmd.Flags().StringVar(&e.link, "link", "", "the new link")
	cmd.Flags().StringVar(&e.file, "file", "", "JSON file of the fields that change, as of a post; null takes one away")
}

func (e *draftEdit) changes() (json.RawMessage, error) {
	if e.file != "" {
		if e.text+e.parseMode+e.link != "" {
			return nil, misuse{errors.New("an edit comes from a file or from flags, not from both")}
		}
		raw, err := os.ReadFile(e.file)
		if err != nil {
			return nil, misuse{err}
		}
		if !json.Valid(raw) {
			return nil, misuse{fmt.Errorf("%s holds no JSON: give {\"text\": \"…\"}", e.file)}
		}
		return raw, nil
	}
	if e.text+e.parseMode+e.link == "" {
		return nil, misuse{errors.New("an edit needs --text, --link or --file: what the post is to say")}
	}
	return json.Marshal(struct {
		Text      string `json:"text,omitempty"`
		ParseMode string `json:"parse_mode,omitempty"`
		Link      string `json:"link,omitempty"`
	}{e.text, e.parseMode, e.link})
}

func afterwardsCommand(kind autopost.ActKind, short, long string, changes func() (json.RawMessage, error)) *cobra.Command {
	var m manual
	var message, at string
	cmd := &cobra.Command{
		Use:   string(kind) + " [ID...]",
		Short: short,
		Long:  long,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case message == "":
				return deliveryIDs(cmd, args)
			case len(args) > 0:
				return misuse{errors.New("name deliveries, or a message with --message, not both")}
			case uuid.Validate(message) != nil || len(message) != 36:
				return misuse{fmt.Errorf("%q is no id of a message", message)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			m.subject = "message " + message
			request := pg.ActRequest{Kind: kind, MessageID: message, DeliveryIDs: ids}
			if at != "" {
				when, err := time.Parse(time.RFC3339, at)
				if err != nil {
					return misuse{fmt.Errorf("--at %q is no time with an offset: write 2026-12-01T18:00:00+03:00", at)}
				}
				request.At = &when
			}
			var err error
			if request.Changes, err = changes(); err != nil {
				return err
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.RequestActs(ctx, m.act, request)
				if err != nil {
					return err
				}
				return m.tellAsked(answer)
			})
		},
	}
	cmd.Flags().StringVar(&message, "message", "", "all channels of this message")
	cmd.Flags().StringVar(&at, "at", "", "at this instant, as in 2026-12-01T18:00:00+03:00 (default now)")
	m.flags(cmd)
	return cmd
}

// tellAsked prints what was asked for; what was refused, or found nothing, is a failure.
func (m *manual) tellAsked(a pg.ActAnswer) error {
	if m.asJSON {
		fmt.Fprintln(os.Stdout, string(a.Raw))
	} else if len(a.Results) > 0 {
		head := "asked for: the daemon does it; autopost deliveries acts shows how far it is"
		if m.act.DryRun {
			head = "dry run: nothing was asked for; this is what would be"
		}
		fmt.Fprintln(os.Stdout, head)
		rows := make([][]any, 0, len(a.Results))
		for _, r := range a.Results {
			rows = append(rows, []any{r.DeliveryID, r.ChannelID, r.ActID, r.Message})
		}
		if err := printTable(os.Stdout, false, []string{"delivery", "channel", "act", "why not"}, rows); err != nil {
			return err
		}
	}
	var counts struct{ Requested, Refused int }
	if err := json.Unmarshal(a.Raw, &counts); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	switch {
	case counts.Refused > 0:
		return fmt.Errorf("%d of %d deliveries were refused", counts.Refused, counts.Requested+counts.Refused)
	case a.Reason != "":
		return fmt.Errorf("nothing was asked for: %s", refusal(a, m.subject))
	case counts.Requested == 0:
		return errors.New("nothing was asked for: no channel has this message")
	}
	return nil
}

func cancelCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "cancel ACT...",
		Short: "Call off what waits to be done to posts that were sent",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse{errors.New("name the acts: autopost deliveries acts shows them")}
			}
			for _, id := range args {
				if err := isID(id, "an act", "autopost deliveries acts"); err != nil {
					return err
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return store.CancelActs(ctx, act, ids)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func actsCommand() *cobra.Command {
	var workspace, delivery, message string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "acts",
		Short: "List what was and is to be done to posts that were sent, the newest first",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, chosen string) error {
				filter := map[string]any{}
				for key, value := range map[string]string{"delivery_id": delivery, "message_id": message} {
					if value != "" {
						filter[key] = value
					}
				}
				list, err := store.List(ctx, "list_acts", chosen, "", filter, limit)
				if err != nil {
					return err
				}
				return printActs(list, asJSON)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().StringVar(&delivery, "delivery", "", "only of this delivery")
	cmd.Flags().StringVar(&message, "message", "", "only of this message")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most, 1 to 10000")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printActs(list []json.RawMessage, asJSON bool) error {
	if asJSON {
		out, err := json.Marshal(list)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, string(out))
		return nil
	}
	rows := make([][]any, 0, len(list))
	for _, raw := range list {
		var a struct {
			ActID      string `json:"act_id"`
			DeliveryID string `json:"delivery_id"`
			ChannelID  string `json:"channel_id"`
			Kind       string
			Status     string
			Attempt    int
			NextAt     time.Time `json:"next_at"`
			LastError  *struct {
				Code, Message string
			} `json:"last_error"`
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			return fmt.Errorf("decode an act: %w", err)
		}
		var next, failure string
		if a.Status == "queued" || a.Status == "retry" {
			next = a.NextAt.Format(time.RFC3339)
		}
		if a.LastError != nil {
			failure = a.LastError.Code + ": " + a.LastError.Message
		}
		rows = append(rows, []any{a.ActID, a.ChannelID, a.Kind, a.Status, a.Attempt, next, failure, a.DeliveryID})
	}
	return printTable(os.Stdout, false, []string{"act", "channel", "kind", "status", "attempt", "next", "last failure", "delivery"}, rows)
}
