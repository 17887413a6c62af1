package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/problem"
)

func postsReplaceCommand() *cobra.Command {
	var m operatorFlags
	var edit postEdit
	cmd := &cobra.Command{
		Use:   "replace ID [FILE.json]",
		Short: "Replace the content of a post",
		Long: `Replace the content of a post: by the whole post in FILE.json ("-" is standard input), or
some of its fields by flags. Where the post waits, the new content takes its channels and
times; in moderated channels it waits for a decision. Where it was sent, the sent post is
edited, on platforms that can.`,
		Example: `  autopost posts replace 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --text "Sale from Friday on" --reason "wrong day"
  autopost posts replace 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa post.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				args = args[:1]
			}
			return oneID("post", "autopost posts list --wide")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m.subject = "post " + args[0]
			var whole, changes json.RawMessage
			var err error
			switch {
			case len(args) == 2 && edit.file+edit.text+edit.parseMode+edit.link != "":
				err = usageError{errors.New("FILE must not be used with flags of the post: remove one of the two")}
			case len(args) == 2:
				whole, err = readPost(args[1])
			default:
				changes, err = edit.changes()
			}
			if err != nil {
				return err
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				if whole != nil {
					return m.printReplaced(pg.Decode[replacedPost](store.ReplacePost(ctx, m.act, args[0], whole)))
				}
				return m.printReplaced(pg.Decode[replacedPost](store.EditPost(ctx, m.act, args[0], changes, "")))
			})
		},
	}
	edit.flags(cmd)
	m.flags(cmd)
	return cmd
}

// readPost reads a post from a file; "-" is standard input.
func readPost(name string) (json.RawMessage, error) {
	raw, err := readInput(name)
	if err != nil {
		return nil, err
	}
	if !json.Valid(raw) {
		return nil, usageError{fmt.Errorf("%s must contain JSON: write {\"text\": \"…\"}", inputName(name))}
	}
	return raw, nil
}

// replacedPost is the answer of replace_post and edit_post.
type replacedPost struct {
	Applied   bool            `json:"applied"`
	DryRun    bool            `json:"dry_run"`
	MessageID *string         `json:"message_id,omitempty"`
	Requested int             `json:"requested"`
	Replaced  int             `json:"replaced"`
	Pending   int             `json:"pending"`
	Refused   int             `json:"refused"`
	Reason    string          `json:"reason,omitempty"`
	Errors    []problem.Fault `json:"errors,omitempty"`
	Results   []replacedPart  `json:"results"`
}

// replacedPart is the result for a delivery, or for a part of the post that waited for a decision.
type replacedPart struct {
	DeliveryID      string   `json:"delivery_id,omitempty"`
	ChannelID       string   `json:"channel_id,omitempty"`
	Applied         bool     `json:"applied"`
	Change          string   `json:"change,omitempty"`
	Reason          string   `json:"reason,omitempty"`
	Message         string   `json:"message,omitempty"`
	ActID           string   `json:"act_id,omitempty"`
	NewDeliveryID   string   `json:"new_delivery_id,omitempty"`
	MessageID       string   `json:"message_id,omitempty"`
	SubmissionID    string   `json:"submission_id,omitempty"`
	NewSubmissionID string   `json:"new_submission_id,omitempty"`
	Channels        []string `json:"channels,omitempty"`
}

// printReplaced prints which channels were replaced and edited. It fails if one was refused.
func (m *operatorFlags) printReplaced(a replacedPost, err error) error {
	switch {
	case err != nil:
		return asUsageError(err)
	case a.Reason == "invalid":
		return fmt.Errorf("nothing was changed\n%s", fieldErrorLines(a.Errors))
	case a.Reason != "":
		return fmt.Errorf("nothing was changed: %s", reasonText(a.Reason, m.subject))
	}
	if m.asJSON {
		if err := printJSON(a); err != nil {
			return err
		}
	} else {
		if m.act.DryRun {
			fmt.Fprintln(os.Stdout, dryRunHeading)
		}
		rows := make([][]any, 0, len(a.Results))
		for _, r := range a.Results {
			change := r.Change
			if change == "" && r.Applied {
				change = "edited"
			}
			rows = append(rows, []any{r.ChannelID + strings.Join(r.Channels, ", "), change, r.Message, r.DeliveryID})
		}
		if err := printTable([]string{"channel", "change", "why not", "delivery"}, rows); err != nil {
			return err
		}
		say("%d replaced, %d waiting for a decision, %d edits of sent posts requested", a.Replaced, a.Pending, a.Requested)
	}
	if a.Refused > 0 {
		return fmt.Errorf("%d of %s could not be changed", a.Refused, countedDeliveries(len(a.Results)))
	}
	return nil
}
