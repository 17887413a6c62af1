package cli

import (
	"context"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func moderationCommand() *cobra.Command {
	return parentCommand("moderation", "Decide about posts that wait for a decision", moderationListCommand(), moderationShowCommand(),
		decisionCommand("approve", "Approve a post that waits for a decision", `--reason "checked"`),
		decisionCommand("reject", "Reject a post that waits for a decision", `--reason "off topic"`), moderationEditCommand(), moderationChatCommand())
}

func moderationListCommand() *cobra.Command {
	cmd := reading{
		short:    "List posts that wait for a decision",
		example:  "  autopost moderation list",
		function: "list_submissions",
		filters: []filterFlag{
			{name: "status", key: "status", usage: "only this status", values: []string{"pending", "enqueued", "rejected", "expired"}}, sinceFlag,
		},
		columns: []column{
			timeColumn("when", "created_at"), fieldColumn("status", "status"), timeColumn("expires", "expires_at"),
			fieldColumn("decided by", "decided_by"), excerptColumn("excerpt"), fieldColumn("submission_id", "submission_id"),
		},
		empty: "no post waits for a decision: set moderated for an endpoint or a channel, or pass --status",
	}.command(nil)
	flag := cmd.Flags().Lookup("status")
	flag.DefValue = "pending"
	_ = flag.Value.Set("pending") // a text accepts every value
	return cmd
}

func moderationShowCommand() *cobra.Command {
	cmd := showing("submission", "Show what a decision is about", "autopost moderation list", (*pg.Store).GetSubmission)
	cmd.Example = "  autopost moderation show 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa"
	return cmd
}

func decisionCommand(decision, short, flags string) *cobra.Command {
	var m operatorFlags
	var digest string
	cmd := &cobra.Command{
		Use:   decision + " ID",
		Short: short,
		Long: short + `. The first decision wins. With --digest it counts
only if the post is still as it was shown.`,
		Example: "  autopost moderation " + decision + " 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa " + flags,
		Args:    oneID("submission", "autopost moderation list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.subject = "submission " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				approval := map[string]any{"source": "command", "digest": nil}
				if digest != "" {
					approval["digest"] = digest
				}
				return pg.Decode[pg.ActAnswer](store.DecideSubmission(ctx, act, args[0], decision, approval))
			})
		},
	}
	workspaceFlag(cmd, &m.act.Workspace)
	m.auditFlags(cmd)
	cmd.Flags().StringVar(&digest, "digest", "", "digest of the plan that you saw")
	return cmd
}

func moderationEditCommand() *cobra.Command {
	var m operatorFlags
	var edit postEdit
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Edit a post that waits for a decision",
		Long: `Edit a post that waits for a decision. Given fields replace the old ones. Approvals
given before become void.`,
		Example: `  autopost moderation edit 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --text "Corrected" --reason "typo"`,
		Args:    oneID("submission", "autopost moderation list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := edit.changes()
			if err != nil {
				return err
			}
			return m.put(cmd, "submission "+args[0], func(ctx context.Context, store *pg.Store) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.EditSubmission(ctx, m.act, args[0], changes))
			})
		},
	}
	m.flags(cmd)
	edit.flags(cmd)
	return cmd
}
