package cli

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"autopost/internal/demo"
)

const demoListen = "127.0.0.1:8080"

func demoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run autopost with simulated platforms on this machine",
		Long: `Run autopost with simulated platforms on this machine, in about five minutes. The demo
starts a private PostgreSQL, simulated platforms and the daemon. It seeds forty
channels, posts by webhook and by feed, and checks the four demo criteria. It prints the
evidence of each. It ignores DATABASE_URL and connects only to this machine.

The data is in a new directory, which the demo removes at the end. If AUTOPOST_DATA_DIR
is set, the demo uses and keeps that directory.

With --database the demo runs on the server of DATABASE_URL, such as a Citus cluster. The
database must be empty, and keeps the data of the demo.`,
		Example: `  autopost demo
  autopost demo --once
  DATABASE_URL=postgres://localhost/autopost_demo autopost demo --once --database`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Fixed = cmd.Flags().Changed("listen")
			if err := loopbackOnly(o.Listen); err != nil {
				return usageError{err}
			}
			err := demo.Run(cmd.Context(), o)
			if errors.Is(err, demo.ErrUnmet) {
				return errSilent
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "exit after the criteria: 0 if all are met, else 1")
	cmd.Flags().BoolVar(&o.Database, "database", false, "use the empty database of DATABASE_URL, not a private PostgreSQL")
	cmd.Flags().StringVar(&o.Listen, "listen", demoListen, "loopback host:port of the daemon; if the default is in use, a free port")
	return cmd
}

// loopbackOnly rejects addresses that other machines can reach, because the secrets of
// the demo are public.
func loopbackOnly(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen must be host:port, got %q: write it like %s", address, demoListen)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen must be a loopback address, got %q: the secrets of the demo are public", address)
	}
	return nil
}
