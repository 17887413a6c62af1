package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"autopost/internal/api"
	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/table"
	"autopost/internal/telemetry"
)

// diagnoseInstallation checks the daemons, the queue, the public URL and the disks.
func diagnoseInstallation(ctx context.Context, cfg config.Config, store *pg.Store) ([]pg.Check, error) {
	daemons, err := store.ListDaemons(ctx)
	if err != nil {
		return nil, err
	}
	queue, err := store.QueueMetrics(ctx)
	if err != nil {
		return nil, err
	}
	checks := append(diagnoseDaemons(daemons, queue), diagnoseQueue(queue), diagnosePublicURL(ctx, cfg.PublicURL))
	return append(checks, diagnoseDisks(cfg)...), nil
}

// diagnoseDaemons checks that a daemon runs, that all daemons have the same configuration,
// and that the duties of their monitors succeed.
func diagnoseDaemons(daemons []api.Daemon, queue []telemetry.QueueLine) []pg.Check {
	alive := slices.DeleteFunc(slices.Clone(daemons), func(d api.Daemon) bool { return !d.Alive })
	var due int64
	for _, l := range queue {
		due += l.Due
	}
	serving := pg.Check{Name: "daemons", OK: len(alive) > 0 || due == 0, Found: fmt.Sprintf("%d alive", len(alive))}
	if len(alive) == 0 && len(daemons) > 0 {
		serving.Found += ", the last one was active at " + table.Time(daemons[0].SeenAt)
	}
	if !serving.OK {
		serving.Remedy = "run autopost serve: " + counted(due, "delivery is", "deliveries are") + " due and no daemon claims them"
	}
	configs := map[string]bool{}
	var failing []string
	for _, d := range alive {
		if d.Config != nil {
			configs[*d.Config] = true
		}
		for _, duty := range d.Failing {
			failing = append(failing, fmt.Sprintf("%s of run %s", duty, d.RunID))
		}
	}
	agree := pg.Check{Name: "daemon settings", OK: len(configs) < 2, Found: counted(len(configs), "configuration")}
	if !agree.OK {
		agree.Remedy = "give all daemons the same environment (docs/reference/config.md), and restart them"
	}
	duties := pg.Check{Name: "duties", OK: len(failing) == 0, Found: "all succeed"}
	if !duties.OK {
		duties.Found, duties.Remedy = strings.Join(failing, ", "), "read the error in the daemon's log: search for monitor.failed"
	}
	return []pg.Check{serving, agree, duties}
}

// overdue is the longest normal wait of a due delivery for its claim.
const overdue = 2 * time.Minute

// diagnoseQueue checks that due deliveries are claimed.
func diagnoseQueue(queue []telemetry.QueueLine) pg.Check {
	check := pg.Check{Name: "queue", OK: true}
	var waiting, lost, late int64
	for _, l := range queue {
		waiting += l.Waiting
		if l.Gate == "gate" {
			lost += l.Channels
		}
		if l.Gate == "ready" && l.OldestDueAt != nil && time.Since(*l.OldestDueAt) > overdue {
			late += l.Channels
		}
	}
	check.Found = countedDeliveries(waiting) + " waiting"
	switch {
	case late > 0:
		check.OK, check.Found = false, fmt.Sprintf("%s; deliveries of %s are due for more than %s", check.Found, counted(late, "channel"), overdue)
		check.Remedy = "check that a daemon with the stage dispatch runs, and read its log; start more daemons to share the work"
	case lost > 0:
		check.OK, check.Found = false, fmt.Sprintf("%s; %s closed without a wait reason", check.Found, counted(lost, "gate"))
		check.Remedy = "wait 30 s for a monitor to open them; if they stay closed, search for monitor.failed in its log"
	}
	return check
}

// publicURLTimeout limits the request to the public URL.
const publicURLTimeout = 10 * time.Second

// diagnosePublicURL requests the health page over the public URL, as platforms do.
func diagnosePublicURL(ctx context.Context, base string) pg.Check {
	check := pg.Check{Name: "public URL", OK: true, Found: "not set: the daemon does not subscribe bots to updates"}
	if base == "" {
		return check
	}
	check.Found = base + " answers"
	if err := askHealth(ctx, base); err != nil {
		check.OK, check.Found = false, err.Error()
		check.Remedy = "correct AUTOPOST_PUBLIC_URL, or the proxy from it to AUTOPOST_LISTEN, and check that a daemon runs"
	}
	return check
}

func askHealth(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, publicURLTimeout)
	defer cancel()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", base, err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10)) // only the status counts
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/healthz answers %d", base, response.StatusCode)
	}
	return nil
}

// diagnoseDisks checks the disk of the data directory, and the disk of the media folder if
// it is elsewhere on this machine.
func diagnoseDisks(cfg config.Config) []pg.Check {
	checks := diagnoseDisk("disk", cfg.DataDir)
	if dir, ok := daemon.MediaFolder(cfg.BlobURL); ok && !strings.HasPrefix(dir, cfg.DataDir+"/") {
		checks = append(checks, diagnoseDisk("media disk", dir)...)
	}
	return checks
}

// diagnoseDisk returns no check if the free space is unknown.
func diagnoseDisk(name, dir string) []pg.Check {
	free, size, ok := daemon.DiskSpace(dir)
	if !ok {
		return nil
	}
	check := pg.Check{Name: name, OK: !daemon.IsLow(free, size), Found: daemon.DescribeSpace(dir, free, size)}
	if !check.OK {
		check.Remedy = "free disk space or use a larger disk: docs/operate/disks.md lists what grows"
	}
	return []pg.Check{check}
}
