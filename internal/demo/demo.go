// Package demo runs autopost with simulated platforms and shows the four demo criteria.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Options are the flags of the command.
type Options struct {
	// Once ends the run after the criteria.
	Once bool
	// Listen is the loopback address of the daemon.
	Listen string
	// Fixed makes a taken address an error; otherwise the daemon gets a free port.
	Fixed bool
	// Database uses the database of DATABASE_URL, which must be empty, instead of a private PostgreSQL.
	Database bool
}

// ErrUnmet means that a criterion was not met; the report names it.
var ErrUnmet = errors.New("a criterion of the demo was not met")

// Run starts the installation, shows each criterion and stops everything. Without Once it
// waits for the end of ctx before it stops.
func Run(ctx context.Context, o Options) (err error) {
	report := newReport(os.Stdout)
	report.line("autopost demo: starting PostgreSQL, the simulated platforms and the daemon")
	inst, err := openInstallation(ctx, o)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() {
		report.line("stopping")
		err = errors.Join(err, inst.close(err != nil && ctx.Err() == nil))
	}()
	alive := inst.watch(ctx)
	report.line("  daemon      http://%s  (/healthz, /openapi.json)", inst.daemon.Addr())
	report.line("  simulators  %s/_control/", inst.simURL)
	report.line("  data        %s", inst.dir)

	d := &demo{installation: inst, report: report, run: newRunID()}
	for _, part := range d.parts() {
		report.part(alive, part)
		if alive.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return errors.New("demo: interrupted before the end")
	}
	unmet := report.finish()
	if !o.Once && alive.Err() == nil {
		d.invite(ctx)
		<-alive.Done()
	}
	switch {
	case ctx.Err() == nil && alive.Err() != nil:
		return errors.New("demo: the daemon ended unexpectedly")
	case unmet > 0:
		return ErrUnmet
	}
	return nil
}

// demo is one run of the demo.
type demo struct {
	*installation
	report *report
	// run is part of every text and id of this run. In a kept data directory the posts of
	// the next run would otherwise be duplicates.
	run string
	// added is the channel of the first criterion.
	added string
}

// invite prints the addresses while the installation runs.
func (d *demo) invite(ctx context.Context) {
	d.report.line("\nReceived messages:  %s/_control/", d.simURL)
	d.report.line("Daemon:             http://%s/healthz  http://%s/openapi.json", d.daemon.Addr(), d.daemon.Addr())
	if link, err := d.signIn(ctx); err != nil {
		d.report.line("Pages:              http://%s/login  (%v)", d.daemon.Addr(), err)
	} else {
		d.report.line("Pages:              %s  (signs you in, once; then %s with the password %q)", link, demoEmail, demoPassword)
	}
	d.report.line("Send a post:        curl -H 'Authorization: Bearer %s' -d '{\"text\": \"Привет\"}' http://%s/hooks/push", endpointSecret, d.daemon.Addr())
	d.report.line("Press Ctrl-C to stop everything.")
}

// parts returns the parts of the demo in their order.
func (d *demo) parts() []part {
	return []part{
		{"25 posts to 40 channels", d.load},
		{"Idle latency", d.latency},
		{"1. Config-driven channel: insert a row, and it gets the next post", d.criterionNewChannel},
		{"2. 429 with retry_after: waited out, retried, sent", d.criterionRetryAfter},
		{"3. Per-channel dedup: two channels get it, a repeat is suppressed", d.criterionDedup},
		{"4. Bad channel: paused, then disabled; the others keep sending", d.criterionBadChannel},
		{"Domain event: waits for a decision, is approved, arrives once", d.decision},
		{"A file job: released by an approval file, it becomes one video", d.fileJob},
		{"The shop bot: a question and a return; a repeated update is answered once", d.conversation},
		{"Invariants of the database", d.verify},
	}
}
