package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func submissionsCommand() *cobra.Command {
	return parentCommand("submissions", "Manage posts that are not queued yet", submissionsListCommand(), submissionsShowCommand(), submissionsRetryCommand())
}

func submissionsListCommand() *cobra.Command {
	return reading{
		short:    "List posts that wait for media or a decision",
		example:  "  autopost submissions list --status failed",
		function: "list_submissions",
		filters: []filterFlag{
			{name: "status", key: "status", usage: "only this status", values: []string{"new", "fetching", "pending", "skipped", "enqueued", "rejected", "expired", "failed"}}, sinceFlag,
		},
		columns: []column{
			timeColumn("when", "created_at"), fieldColumn("status", "status"), errorColumn("why", "last_error"), excerptColumn("excerpt"),
			detail(fieldColumn("submission_id", "submission_id")), detail(fieldColumn("attempt", "attempt")), detail(timeColumn("next_attempt", "next_attempt_at")),
		},
		empty: "No post waits for media or a decision. autopost posts list shows the queued ones.",
	}.command(nil)
}

func submissionsShowCommand() *cobra.Command {
	return showing("submission", "Show a submission with its post", "autopost submissions list", (*pg.Store).GetSubmission)
}

// showing is a command that prints one row, which get returns.
func showing(kind, short, list string, get func(s *pg.Store, ctx context.Context, workspace, id string) (json.RawMessage, error)) *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   short,
		Example: "  autopost " + kind + "s show 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa",
		Args:    oneID(kind, list),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := get(store, ctx, workspace, args[0])
				if err != nil {
					return err
				}
				if raw == nil {
					return unknown(kind+" "+args[0], list)
				}
				return f.printObject(raw)
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

func submissionsRetryCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Fetch the media of a failed submission again",
		Long: `Fetch the media of a failed submission again. It gets all its attempts back. A
submission that waits for its next attempt is tried at once.`,
		Example: `  autopost submissions retry 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "the picture is back"`,
		Args:    oneID("submission", "autopost submissions list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.put(cmd, "submission "+args[0], func(ctx context.Context, store *pg.Store) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.RetrySubmission(ctx, m.act, args[0]))
			})
		},
	}
	m.flags(cmd)
	return cmd
}
