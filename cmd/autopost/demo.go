package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"
)

const demoListen = "127.0.0.1:8080"

// demoOptions are the flags of the demo.
type demoOptions struct {
	once   bool
	listen string
	// fixed says that the address was asked for: a taken one is then an error.
	fixed bool
}

func demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "The five-minute run: everything on this machine, then the four criteria",
		Long: `The five-minute run. Starts a private PostgreSQL, simulated platforms and the
daemon, seeds forty channels, posts by webhook and by feed, and then meets the four
demo criteria, each printed with its evidence. DATABASE_URL is not looked at, and no
address outside this machine is.

The data is in a new directory that is removed at the end, or in AUTOPOST_DATA_DIR
where that is set, and then it is kept.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.fixed = cmd.Flags().Changed("listen")
			if err := loopbackOnly(o.listen); err != nil {
				return misuse{err}
			}
			return runDemo(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.once, "once", false, "end after the criteria: exit 0 when all are met, else 1")
	cmd.Flags().StringVar(&o.listen, "listen", demoListen, "loopback address of the daemon; when the default is taken, a free port")
	return cmd
}

// loopbackOnly refuses addresses that others could reach: the demo's secrets are in its source.
func loopbackOnly(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen %q is no host:port: write it like %s", address, demoListen)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %q is no loopback address: the demo is for this machine alone", address)
	}
	return nil
}

func runDemo(ctx context.Context, o demoOptions) (err error) {
	report := newDemoReport(os.Stdout)
	report.line("autopost demo: starting PostgreSQL, the simulated platforms and the daemon")
	house, err := openDemoHouse(ctx, o)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() {
		report.line("stopping")
		err = errors.Join(err, house.close(err != nil && ctx.Err() == nil))
	}()
	alive := house.watch(ctx)
	report.line("  daemon      http://%s  (/healthz, /openapi.json)", house.daemon.Addr())
	report.line("  simulators  %s/_control/", house.simURL)
	report.line("  data        %s", house.dir)

	d := &demo{demoHouse: house, report: report, run: demoRunID()}
	for _, part := range d.parts() {
		report.part(alive, part)
		if alive.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return errors.New("demo: interrupted before it was done")
	}
	unmet := report.finish()
	if !o.once && alive.Err() == nil {
		d.invite()
		<-alive.Done()
	}
	switch {
	case ctx.Err() == nil && alive.Err() != nil:
		return errors.New("demo: the daemon ended before it was asked to")
	case unmet > 0:
		return errSilent
	}
	return nil
}

// demo is one run of the demo in its house.
type demo struct {
	*demoHouse
	report *demoReport
	// run is in every text and id of this run, so that a data directory that is
	// kept does not make the next run's posts repeats.
	run string
	// added is the channel that the first criterion adds.
	added string
}

// invite says where to look, while it all stays up.
func (d *demo) invite() {
	d.report.line("\nLook at what arrived:  %s/_control/", d.simURL)
	d.report.line("and at the daemon:     http://%s/healthz  http://%s/openapi.json", d.daemon.Addr(), d.daemon.Addr())
	d.report.line("Post something:        curl -H 'Authorization: Bearer %s' -d '{\"text\": \"Привет\"}' http://%s/hooks/push", demoSecret, d.daemon.Addr())
	d.report.line("Ctrl-C stops it all.")
}

// parts are what the demo shows, in order.
func (d *demo) parts() []demoPart {
	return []demoPart{
		{"25 posts to 40 channels", d.load},
		{"Idle latency", d.latency},
		{"1. Config-driven channel: one row, and the next post goes there", d.criterionNewChannel},
		{"2. 429 with retry_after: waited out, retried, sent", d.criterionRetryAfter},
		{"3. Per-channel dedup: two channels get it, a repeat is suppressed", d.criterionDedup},
		{"4. Bad channel: paused, then disabled; the others go on", d.criterionBadChannel},
		{"Invariants of the database", d.verify},
	}
}
