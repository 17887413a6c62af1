package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func planCommand() *cobra.Command {
	var input postInput
	var f readFlags
	var at string
	cmd := &cobra.Command{
		Use:   "plan [FILE.json]",
		Short: "Show which channels would get a post, when and why not",
		Long: `Show what "autopost post" would do with a post, for each channel, and write nothing. The
enqueue function itself decides, in a transaction that is rolled back. The times are
estimates, because the duration of calls is unknown.`,
		Example: `  autopost plan --text "Hello" --tag sport
  autopost plan post.json --at 2026-12-01T10:00:00+03:00`,
		Args: atMostOneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at != "" {
				if _, err := parseInstant("at", at); err != nil {
					return err
				}
			}
			post, err := input.read(args)
			if err != nil {
				return err
			}
			if file := post.firstFile(); file != "" {
				return usageError{fmt.Errorf("--media must be a URL, because a plan stores nothing, got %s: use a URL, or the command autopost post", file)}
			}
			encoded, err := post.encode()
			if err != nil {
				return err
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.Plan(ctx, workspace, encoded, at)
				if err != nil {
					return err
				}
				return f.printPlan(raw)
			})
		},
	}
	input.flags(cmd)
	cmd.Flags().StringVar(&at, "at", "", "`time` to plan for, like 2026-12-01T10:00:00+03:00 (default: now)")
	f.add(cmd)
	return cmd
}
