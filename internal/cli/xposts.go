package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func xPostsCommand() *cobra.Command {
	return parentCommand("x-posts", "Manage the X channel of domain events", xPostsListCommand(), xPostsConfigCommand(), xPostsRetryCommand(), xPostsStatsCommand(), xPostsBackfillCommand())
}

func xPostsListCommand() *cobra.Command {
	return reading{
		short:    "List domain events and their posts",
		example:  "  autopost x-posts list --status pending",
		function: "list_x_posts",
		filters: []filterFlag{
			{name: "status", key: "status", usage: "only this status", values: []string{"pending", "approved", "posted", "failed", "skipped", "rejected", "expired"}},
			{name: "type", key: "type", usage: "image, video, combat, or the name of an own event type"},
		},
		columns: []column{
			timeColumn("when", "createdAt"), fieldColumn("type", "eventType"), fieldColumn("status", "status"),
			fieldColumn("why", "lastError"), fieldColumn("post", "tweetUrl"), excerptColumn("resolvedContent"), fieldColumn("id", "_id"),
		},
		empty: "no domain events: send one to /hooks/events",
	}.command(nil)
}

func xPostsConfigCommand() *cobra.Command {
	var m operatorFlags
	var file string
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show or change the configuration of domain events",
		Long: `Show the configuration of domain events, as stored and as it acts. With --file, change
the fields of a JSON file; missing fields stay, and null restores a default.`,
		Example: `  autopost x-posts config
  autopost x-posts config --file config.json --reason "fewer posts"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return withWorkspace(cmd.Context(), m.act.Workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
					raw, err := store.GetXPostConfig(ctx, workspace)
					if err != nil {
						return err
					}
					return printJSON(raw)
				})
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				return usageError{err}
			}
			if !json.Valid(raw) {
				return usageError{fmt.Errorf("%s must contain JSON: write {\"rate\": {\"perHour\": 6}}", file)}
			}
			return m.put(cmd, "configuration", func(ctx context.Context, store *pg.Store) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.PutXPostConfig(ctx, m.act, json.RawMessage(raw)))
			})
		},
	}
	m.flags(cmd)
	cmd.Flags().StringVar(&file, "file", "", "JSON `file` with the changed fields")
	return cmd
}

func xPostsRetryCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Retry a failed, skipped or expired event",
		Long: `Retry a failed, skipped or expired event. It is evaluated again, and goes out even in
mode shadow.`,
		Example: `  autopost x-posts retry 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "the picture is back"`,
		Args:    oneID("submission", "autopost x-posts list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.put(cmd, "submission "+args[0], func(ctx context.Context, store *pg.Store) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.RetrySubmission(ctx, m.act, args[0]))
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func xPostsStatsCommand() *cobra.Command {
	var workspace string
	cmd := &cobra.Command{
		Use:     "stats",
		Short:   "Show the events of the last seven days in numbers",
		Example: "  autopost x-posts stats",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.XPostStats(ctx, workspace)
				if err != nil {
					return err
				}
				return printJSON(raw)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	return cmd
}

func xPostsBackfillCommand() *cobra.Command {
	var m operatorFlags
	var endpoint string
	cmd := &cobra.Command{
		Use:   "backfill FILE",
		Short: "Record events that were posted before",
		Long: `Record events that were posted in the last seven days by another program. They count for
duplicates and in lists. Each line of the file is JSON with event, payload, posted_at
and tweet_id. If a line is wrong, nothing is recorded.`,
		Example: `  autopost x-posts backfill posted.jsonl --endpoint events --reason "move to autopost"`,
		Args:    oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			lines, err := jsonLines(args[0])
			if err != nil {
				return usageError{err}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				written, err := store.BackfillXPosts(ctx, m.act, endpoint, lines)
				if err != nil {
					return err
				}
				if err := printJSON(written.Answer); err != nil {
					return err
				}
				var answer struct{ Applied bool }
				if err := json.Unmarshal(written.Answer, &answer); err != nil {
					return fmt.Errorf("decode the answer: %w", err)
				}
				if !answer.Applied {
					return errors.New("nothing was recorded: correct the lines in errors")
				}
				return nil
			})
		},
	}
	m.flags(cmd)
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "endpoint of the events (required)")
	return cmd
}

// jsonLines reads a file with one JSON value per line.
func jsonLines(file string) ([]json.RawMessage, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var lines []json.RawMessage
	scanner := bufio.NewScanner(bytes.NewReader(raw))
	scanner.Buffer(nil, 1<<20)
	for n := 1; scanner.Scan(); n++ {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			return nil, fmt.Errorf("line %d of %s must be JSON: write one object per line", n, file)
		}
		lines = append(lines, bytes.Clone(line))
	}
	return lines, scanner.Err()
}
