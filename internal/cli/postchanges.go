package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/api"
	"autopost/internal/pg"
)

// postChangeCommands returns the commands that change sent posts.
func postChangeCommands() []*cobra.Command {
	var edit postEdit
	editing := postChangeCommand(autopost.ChangeEdit, "Edit sent posts",
		`Edit sent posts: some deliveries by id, or a message in all its channels. Given fields
replace the old ones. All others stay, and so do the number of messages and the media.
The new text is checked and rendered like a new post. Telegram, MAX and YouTube (title
and description) support edits; X does not.`,
		`  autopost deliveries edit --message 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --text "Corrected" --reason "typo"`, edit.changes)
	edit.flags(editing)
	none := func() (json.RawMessage, error) { return nil, nil }
	return []*cobra.Command{
		editing,
		postChangeCommand(autopost.ChangeDelete, "Delete sent posts",
			`Delete sent posts: some deliveries by id, or a message in all its channels, now or at a
given time. Telegram allows it for 48 hours; later the bot needs the right to delete
messages.`,
			`  autopost deliveries delete --message 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --at 2026-12-01T18:00:00+03:00 --reason "sale is over"`, none),
		postChangeCommand(autopost.ChangePin, "Pin sent posts", `Pin the first message of sent posts in their chats.`,
			`  autopost deliveries pin 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "announcement"`, none),
		postChangeCommand(autopost.ChangeUnpin, "Unpin sent posts", `Unpin the first message of sent posts in their chats.`,
			`  autopost deliveries unpin 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "announcement is over"`, none),
		deliveriesActsCommand(),
		deliveriesCancelCommand(),
	}
}

// postEdit is an edit from flags or a file.
type postEdit struct {
	file, text, parseMode, link string
}

func (e *postEdit) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&e.text, "text", "", "new text")
	cmd.Flags().StringVar(&e.parseMode, "parse-mode", "", "HTML, Markdown or None")
	cmd.Flags().StringVar(&e.link, "link", "", "new link")
	cmd.Flags().StringVar(&e.file, "file", "", "JSON `file` with the changed fields of the post; null removes a field")
}

func (e *postEdit) changes() (json.RawMessage, error) {
	if e.file != "" {
		if e.text+e.parseMode+e.link != "" {
			return nil, usageError{errors.New("--file must not be used with --text, --parse-mode or --link: remove one of the two")}
		}
		raw, err := os.ReadFile(e.file)
		if err != nil {
			return nil, usageError{err}
		}
		if !json.Valid(raw) {
			return nil, usageError{fmt.Errorf("%s must contain JSON: write {\"text\": \"…\"}", e.file)}
		}
		return raw, nil
	}
	if e.text+e.parseMode+e.link == "" {
		return nil, usageError{errors.New("one of --text, --link and --file must be set: pass what the post must contain")}
	}
	return json.Marshal(struct {
		Text      string `json:"text,omitempty"`
		ParseMode string `json:"parse_mode,omitempty"`
		Link      string `json:"link,omitempty"`
	}{e.text, e.parseMode, e.link})
}

func postChangeCommand(kind autopost.ChangeKind, short, long, example string, changes func() (json.RawMessage, error)) *cobra.Command {
	var m operatorFlags
	var message, at string
	cmd := &cobra.Command{
		Use:     string(kind) + " [ID...]",
		Short:   short,
		Long:    long,
		Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case message == "":
				return deliveryIDs(cmd, args)
			case len(args) > 0:
				return usageError{errors.New("--message must not be used with delivery ids: remove one of the two")}
			}
			return checkID(message, "message", "autopost deliveries list --json")
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			m.subject = "message " + message
			request := api.ActRequest{Kind: kind, MessageID: message, DeliveryIDs: ids}
			if at != "" {
				when, err := parseInstant("at", at)
				if err != nil {
					return err
				}
				request.At = when.Format(time.RFC3339Nano)
			}
			var err error
			if request.Changes, err = changes(); err != nil {
				return err
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.ActAnswer](store.RequestActs(ctx, m.act, request))
				if err != nil {
					return err
				}
				return m.printRequested(answer)
			})
		},
	}
	cmd.Flags().StringVar(&message, "message", "", "`id` of a message: change its posts in all channels")
	cmd.Flags().StringVar(&at, "at", "", "`time` of the change, like 2026-12-01T18:00:00+03:00 (default: now)")
	m.flags(cmd)
	if kind == autopost.ChangeDelete {
		m.requireReason(cmd)
	}
	return cmd
}

// printRequested prints the requested post changes. It fails if a delivery was refused or
// no delivery was found.
func (m *operatorFlags) printRequested(a pg.ActAnswer) error {
	if m.asJSON {
		if err := printJSON(a.Raw); err != nil {
			return err
		}
	} else if len(a.Results) > 0 {
		heading := "requested; a daemon makes the changes: run autopost deliveries acts to see the progress"
		if m.act.DryRun {
			heading = dryRunHeading
		}
		say("%s", heading)
		rows := make([][]any, 0, len(a.Results))
		for _, r := range a.Results {
			rows = append(rows, []any{r.ChannelID, r.Message, r.DeliveryID, r.ActID})
		}
		if err := printTable([]string{"channel", "why not", "delivery", "act"}, rows); err != nil {
			return err
		}
	}
	var counts struct{ Requested, Refused int }
	if err := json.Unmarshal(a.Raw, &counts); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	switch {
	case counts.Refused > 0:
		return fmt.Errorf("%d of %s refused", counts.Refused, countedDeliveries(counts.Requested+counts.Refused))
	case a.Reason != "":
		return fmt.Errorf("nothing was requested: %s", refusalText(a, m.subject))
	case counts.Requested == 0:
		return errors.New("nothing was requested: no channel has this message")
	}
	return nil
}

func deliveriesCancelCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:     "cancel ACT...",
		Short:   "Cancel waiting changes of sent posts",
		Example: `  autopost deliveries cancel 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "not needed"`,
		Args:    atLeastOneID("act", "autopost deliveries acts"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.CancelActs(ctx, act, ids))
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func deliveriesActsCommand() *cobra.Command {
	return reading{
		use:      "acts",
		short:    "List the changes of sent posts, newest first",
		example:  "  autopost deliveries acts --message 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa",
		function: "list_acts",
		filters:  []filterFlag{{name: "delivery", key: "delivery_id", usage: "only this delivery"}, {name: "message", key: "message_id", usage: "only this message"}},
		columns: []column{
			timeColumn("when", "created_at"), fieldColumn("channel", "channel_id"), fieldColumn("kind", "kind"), fieldColumn("status", "status"),
			errorColumn("why", "last_error"), detail(fieldColumn("act_id", "act_id")), detail(column{name: "next_attempt", of: nextAttempt}),
			detail(fieldColumn("attempt", "attempt")), detail(fieldColumn("delivery_id", "delivery_id")),
		},
		empty: "No change of a sent post: run autopost deliveries edit, delete or pin.",
	}.command(nil)
}

// nextAttempt returns when a waiting post change is tried, nil for others.
func nextAttempt(row map[string]any) any {
	if row["status"] != "queued" && row["status"] != "retry" {
		return nil
	}
	return instantOf(row, "next_at")
}
