// Command autopost publishes posts to many channels. See internal/cli.
package main

import (
	"os"

	"autopost/internal/cli"
)

func main() {
	os.Exit(cli.Main())
}
