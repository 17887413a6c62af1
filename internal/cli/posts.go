package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func postsCommand() *cobra.Command {
	show := showing("post", "Show a post with all its channels", "autopost posts list", (*pg.Store).GetMessage)
	return parentCommand("posts", "Manage posts with all their channels", postsListCommand(), show, postsRescheduleCommand(), postsReplaceCommand(), postsSkipCommand())
}

func postsSkipCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "skip ID",
		Short: "End the waiting deliveries of a post without sending",
		Long: `End the waiting deliveries of a post (queued, retry, held) in all channels without
sending them. What was sent stays: autopost deliveries delete removes it.`,
		Example: `  autopost posts skip 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "outdated"`,
		Args:    oneID("post", "autopost posts list --wide"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.subject = "post " + args[0]
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error { return m.skipPost(ctx, store, args[0]) })
		},
	}
	m.flags(cmd)
	m.requireReason(cmd)
	return cmd
}

// skippedPost is the answer of skip_post.
type skippedPost struct {
	Applied bool   `json:"applied"`
	DryRun  bool   `json:"dry_run"`
	Skipped int    `json:"skipped"`
	Waiting int    `json:"waiting"`
	Reason  string `json:"reason,omitempty"`
}

// skipPost calls the database until no delivery of the post waits. A dry run counts in one call.
func (m *operatorFlags) skipPost(ctx context.Context, store *pg.Store, message string) error {
	var all skippedPost
	for {
		answer, err := pg.Decode[skippedPost](store.SkipPost(ctx, m.act, message))
		if err != nil {
			return err
		}
		if !answer.Applied {
			if all.Skipped == 0 {
				return fmt.Errorf("nothing was changed: %s", reasonText(answer.Reason, m.subject))
			}
			break
		}
		answer.Skipped += all.Skipped
		all = answer
		if m.act.DryRun {
			all.Skipped, all.Waiting = all.Skipped+all.Waiting, 0
		}
		if all.Waiting == 0 {
			break
		}
	}
	if m.asJSON {
		return printJSON(all)
	}
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
	}
	say("skipped: %s", countedDeliveries(all.Skipped))
	return nil
}

func postsListCommand() *cobra.Command {
	return reading{
		short:    "List posts, newest first",
		example:  "  autopost posts list --status dead",
		function: "list_messages",
		filters: []filterFlag{
			{name: "status", key: "status", usage: "only posts with a delivery in this status", values: statusNames()},
			{name: "channel", key: "channel_id", usage: "only posts to this channel"},
			{name: "search", key: "text", usage: "only posts with words that begin like these"}, sinceFlag,
		},
		columns: []column{
			timeColumn("when", "created_at"), {name: "status", of: countsOf}, fieldColumn("media", "media"), excerptColumn("excerpt"),
			detail(fieldColumn("message_id", "message_id")),
		},
		empty: "No post: run autopost post --text \"Hello\" to enqueue the first one.",
	}.command(noteSubmissions)
}

// countsOf prints the deliveries of a post by status, as in "3 sent, 1 retry".
func countsOf(row map[string]any) any {
	counts, _ := row["counts"].(map[string]any)
	text := ""
	for _, status := range deliveryStatuses {
		if n, ok := counts[string(status)]; ok {
			text += fmt.Sprintf(", %v %s", n, status)
		}
	}
	if text == "" {
		return "no deliveries"
	}
	return text[2:]
}

// noteSubmissions names the posts that are not in the list, because they are not queued yet.
func noteSubmissions(ctx context.Context, store *pg.Store, workspace string) error {
	for _, status := range []string{"fetching", "pending", "failed"} {
		list, err := store.List(ctx, pg.Query{Function: "list_submissions", Workspace: workspace, Filter: map[string]string{"status": status}, Limit: listLimit})
		if err != nil {
			return err
		}
		if len(list) > 0 {
			note("not listed: %d %s: run autopost submissions list --status %s", len(list), map[string]string{
				"fetching": "waiting for their media", "pending": "waiting for a decision", "failed": "failed before they were queued",
			}[status], status)
		}
	}
	return nil
}
