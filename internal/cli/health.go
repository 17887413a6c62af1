package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func healthCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Show the health of a workspace",
		Long: `Show the health of a workspace: its queue, failures, credentials, sources, alerts and
last posts.`,
		Example: "  autopost health --workspace news",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.HealthSnapshot(ctx, workspace)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(raw)
				}
				return f.printHealth(raw)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// snapshot is the part of the health of a workspace that the command prints.
type snapshot struct {
	Queue          map[string]int64
	OldestDueAt    *time.Time `json:"oldest_due_at"`
	PausedChannels int64      `json:"paused_channels"`
	Submissions    map[string]int64
	Failed24h      int64 `json:"failed_24h"`
	TopErrors      []struct {
		Code  string
		Count int64
	} `json:"top_errors"`
	Credentials []struct {
		AuthRef    string     `json:"auth_ref"`
		ValidUntil *time.Time `json:"valid_until"`
		LostAt     *time.Time `json:"lost_at"`
	}
	Sources []struct {
		SourceID string `json:"source_id"`
		Failures int64
		Stopped  bool
	}
	Alerts    map[string]int64
	LastPosts []struct {
		MessageID  string    `json:"message_id"`
		CreatedAt  time.Time `json:"created_at"`
		Deliveries map[string]int64
	} `json:"last_posts"`
}

func (o output) printHealth(raw json.RawMessage) error {
	var h snapshot
	if err := json.Unmarshal(raw, &h); err != nil {
		return fmt.Errorf("decode the health: %w", err)
	}
	failed := fmt.Sprintf("%d in 24 hours", h.Failed24h)
	for _, e := range h.TopErrors {
		failed += fmt.Sprintf(", %d x %s", e.Count, e.Code)
	}
	err := printFields([][]any{
		{"queue", h.queueText()}, {"paused", counted(h.PausedChannels, "channel")}, {"failed", failed},
		{"alerts", withRemedy(countsText(h.Alerts), "autopost alert list --open")}, {"credentials", h.credentialText()}, {"sources", h.sourceText()},
		{"submissions", withRemedy(countsText(h.Submissions), "autopost submissions list")},
	})
	if err != nil {
		return err
	}
	rows := [][]any{}
	for _, p := range h.LastPosts {
		rows = append(rows, []any{p.CreatedAt, countsText(p.Deliveries), p.MessageID})
	}
	fmt.Fprintln(os.Stdout)
	return o.rows(nil, table.Table{
		Columns: []string{"last_posts", "deliveries", "message_id"}, Details: []string{"message_id"}, Rows: rows,
		Empty: "No post yet: run autopost post to enqueue the first one.",
	})
}

// countsText formats counts by name, like "2 queued, 1 retry".
func countsText(counts map[string]int64) string {
	parts := []string{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
		}
	}
	return strings.Join(parts, ", ")
}

// withRemedy adds the command that shows more to a text. Without a text it returns none.
func withRemedy(text, command string) string {
	if text == "" {
		return "none"
	}
	return text + ": run " + command
}

func (h snapshot) queueText() string {
	text := countsText(h.Queue)
	if text == "" {
		return "empty"
	}
	if h.OldestDueAt != nil {
		text += "; the oldest is due since " + table.Time(*h.OldestDueAt)
	}
	return text
}

func (h snapshot) credentialText() string {
	parts := []string{}
	for _, c := range h.Credentials {
		switch {
		case c.LostAt != nil:
			parts = append(parts, c.AuthRef+" is refused since "+table.Time(*c.LostAt))
		case c.ValidUntil != nil:
			parts = append(parts, c.AuthRef+" is valid until "+table.Time(*c.ValidUntil))
		}
	}
	if len(parts) == 0 {
		return "none refused or about to expire"
	}
	return withRemedy(strings.Join(parts, ", "), "autopost credential list")
}

func (h snapshot) sourceText() string {
	parts := []string{}
	for _, s := range h.Sources {
		state := counted(s.Failures, "failure")
		if s.Stopped {
			state = "stopped"
		}
		parts = append(parts, s.SourceID+" ("+state+")")
	}
	if len(parts) == 0 {
		return "none failing"
	}
	return withRemedy(strings.Join(parts, ", "), "autopost source list")
}
