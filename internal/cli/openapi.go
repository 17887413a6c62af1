package cli

import (
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/api"
)

func openapiCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "openapi",
		Short:   "Print the OpenAPI 3.1 description of the API",
		Example: "  autopost openapi > openapi.json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			text, err := api.Description()
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(text)
			return err
		},
	}
}
