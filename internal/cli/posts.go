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
	return parentCommand("posts", "Show posts with all their channels", postsListCommand(), show)
}

func postsListCommand() *cobra.Command {
	return reading{
		short:    "List posts, newest first",
		example:  "  autopost posts list --status dead",
		function: "list_messages",
		filters: []filterFlag{
			{"status", "status", "only posts with a delivery in this status"}, {"channel", "channel_id", "only posts to this channel"}, sinceFlag,
		},
		columns: []column{
			timeColumn("when", "created_at"), fieldColumn("message_id", "message_id"), {"status", countsOf}, fieldColumn("media", "media"), fieldColumn("text", "excerpt"),
		},
	}.command(noteSubmissions)
}

// countsOf prints the deliveries of a post by status, as in "3 sent, 1 retry".
func countsOf(row map[string]any) string {
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
			fmt.Fprintf(os.Stderr, "not listed: %d %s: run autopost submissions list --status %s\n", len(list), map[string]string{
				"fetching": "waiting for their media", "pending": "waiting for a decision", "failed": "failed before they were queued",
			}[status], status)
		}
	}
	return nil
}
