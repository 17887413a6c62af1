package main

import (
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/admin"
)

func openapiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "openapi",
		Short: "Print the description of the API, OpenAPI 3.1",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			text, err := admin.Description()
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(text)
			return err
		},
	}
}
