package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func deliveriesResolveCommand() *cobra.Command {
	var m operatorFlags
	var found string
	var absent bool
	cmd := &cobra.Command{
		Use:   "resolve ID",
		Short: "Record whether a post with an unknown outcome exists",
		Long: `Record whether the post of a delivery with an unknown outcome exists on the platform.
Look at the channel first. With --found the delivery becomes sent. With --absent it is
sent again.`,
		Example: `  autopost deliveries resolve 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --found 4711 --reason "seen in the channel"
  autopost deliveries resolve 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --absent --reason "not in the channel"`,
		Args: oneID("delivery", "autopost deliveries list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (found == "") == !absent {
				return usageError{errors.New("exactly one of --found and --absent must be set: look at the channel to decide")}
			}
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				verdict := "found"
				if absent {
					verdict = "absent"
				}
				return pg.Decode[pg.ActAnswer](store.ResolveUnknown(ctx, act, args[0], verdict, found))
			})
		},
	}
	cmd.Flags().StringVar(&found, "found", "", "the post exists: the platform's message id")
	cmd.Flags().BoolVar(&absent, "absent", false, "the post does not exist: send it")
	workspaceFlag(cmd, &m.act.Workspace)
	m.auditFlags(cmd)
	return cmd
}
