package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func restoreCommand() *cobra.Command {
	return parentCommand("restore", "Let a restored database send", restoreConfirmCommand())
}

func restoreConfirmCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "confirm",
		Short: "Confirm that this restored database may send",
		Long: `Confirm that this restored database may send. A database that was restored into another
cluster sends nothing until then, because the original may still run. Stop the original
first. The outcome of posts that were due is unknown, because the original may have sent
them after the backup: on_unknown of each channel decides (docs/operate/backup.md).`,
		Example: `  autopost restore confirm --dry-run --reason "the server burnt down"
  autopost restore confirm --reason "the server burnt down"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := m.requireAudit(cmd); err != nil {
				return err
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				return m.confirmRestore(ctx, store)
			})
		},
	}
	m.changeFlags(cmd)
	return cmd
}

func (m *operatorFlags) confirmRestore(ctx context.Context, store *pg.Store) error {
	total := pg.RestoreAnswer{}
	for {
		answer, err := store.ConfirmRestore(ctx, m.act)
		if err != nil {
			return err
		}
		total.Applied, total.Reason, total.DryRun, total.More = answer.Applied, answer.Reason, answer.DryRun, answer.More
		total.Unknown += answer.Unknown
		if !answer.More || m.act.DryRun {
			break
		}
	}
	switch {
	case m.asJSON:
		return json.NewEncoder(os.Stdout).Encode(total)
	case !total.Applied:
		fmt.Fprintln(os.Stdout, "nothing to confirm: this database is not a restored copy")
	case m.act.DryRun && total.More:
		fmt.Fprintln(os.Stdout, "dry run: nothing was changed; the outcome of more than 1000 posts would be unknown")
	case m.act.DryRun:
		fmt.Fprintf(os.Stdout, "dry run: nothing was changed; the outcome of %d posts would be unknown\n", total.Unknown)
	default:
		fmt.Fprintf(os.Stdout, "this database sends now; the outcome of %d posts is unknown: autopost deliveries list --status retry\n", total.Unknown)
	}
	return nil
}
