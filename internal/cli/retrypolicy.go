package cli

import (
	"context"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func retryPolicyCommand() *cobra.Command {
	list := reading{
		short:    "List the retry policies and their waits",
		example:  "  autopost retry-policy list",
		function: "list_configuration",
		kind:     "retry_policy",
		columns: []column{
			fieldColumn("policy", "retry_policy_id"), fieldColumn("kind", "kind"), fieldColumn("base_ms", "base_ms"), fieldColumn("factor", "factor"),
			fieldColumn("cap_ms", "cap_ms"), fieldColumn("ladder_ms", "ladder_ms"), fieldColumn("jitter", "jitter"),
			fieldColumn("max_attempts", "max_attempts"), fieldColumn("costs_attempt", "costs_attempt"), fieldColumn("own", "own"),
		},
	}.command(nil)
	return parentCommand("retry-policy", "Set how failures are retried", list, retryPolicySetCommand())
}

func retryPolicySetCommand() *cobra.Command {
	p := newUpsert("retry_policy")
	cmd := &cobra.Command{
		Use:   "set PLATFORM/CODE",
		Short: "Set how a workspace retries a failure",
		Long: `Set how a workspace retries failures of a platform with a code. "*" means all codes, or
all platforms; result_webhook is the platform of result webhooks. The most specific
policy applies. --unset FIELD restores the inherited value. The new policy applies from
the next failure.`,
		Example: `  autopost retry-policy set 'x/*' --ladder-ms '[60000, 300000]' --max-attempts 3 --reason "calls are paid for"`,
		Args:    oneArgument("policy, as PLATFORM/CODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "retry policy "+args[0], mayExist, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.PutRetryPolicy(ctx, act, args[0], fields))
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}
