package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"autopost/internal/outbound"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  autopost version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "autopost "+outbound.Version())
			return nil
		},
	}
}
