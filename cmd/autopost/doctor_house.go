package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"autopost/internal/config"
	"autopost/internal/outbound"
	"autopost/internal/pg"
)

// diagnoseHouse looks at what surrounds the database: daemons, queue, disk and the way in from outside.
func diagnoseHouse(ctx context.Context, cfg config.Config, store *pg.Store) ([]pg.Check, error) {
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

// diagnoseDaemons looks whether somebody serves the queue, whether all of those agree, and whether their monitors can do their duties.
func diagnoseDaemons(daemons []pg.DaemonRow, queue []pg.QueueLine) []pg.Check {
	alive := slices.DeleteFunc(slices.Clone(daemons), func(d pg.DaemonRow) bool { return !d.Alive })
	var due int64
	for _, l := range queue {
		due += l.Due
	}
	serving := pg.Check{Name: "daemons", OK: len(alive) > 0 || due == 0, Found: fmt.Sprintf("%d alive", len(alive))}
	if len(alive) == 0 && len(daemons) > 0 {
		serving.Found += ", the last one was seen at " + daemons[0].SeenAt.UTC().Format(time.RFC3339)
	}
	if !serving.OK {
		serving.Remedy = fmt.Sprintf("run autopost serve: %d deliveries are due and nobody claims them", due)
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
	agree := pg.Check{Name: "daemon settings", OK: len(configs) < 2, Found: fmt.Sprintf("%d configurations", len(configs))}
	if !agree.OK {
		agree.Remedy = "give all daemons the same environment (docs/reference/config.md), and restart them"
	}
	duties := pg.Check{Name: "duties", OK: len(failing) == 0, Found: "none fails"}
	if !duties.OK {
		duties.Found, duties.Remedy = strings.Join(failing, ", "), "look at the daemon's log for monitor.failed: it says what the duty met"
	}
	return []pg.Check{serving, agree, duties}
}

// overdue is how long a delivery that nothing holds may wait for its claim.
const overdue = 2 * time.Minute

// diagnoseQueue looks whether what could go does go.
func diagnoseQueue(queue []pg.QueueLine) pg.Check {
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
	check.Found = fmt.Sprintf("%d deliveries wait", waiting)
	switch {
	case late > 0:
		check.OK, check.Found = false, fmt.Sprintf("%s; %d channels could be served for %s and are not", check.Found, late, overdue)
		check.Remedy = "look whether a daemon with the stage dispatch runs, and at its log; more of them share the work"
	case lost > 0:
		check.OK, check.Found = false, fmt.Sprintf("%s; %d gates are shut though nothing holds them", check.Found, lost)
		check.Remedy = "a monitor opens them within 30 s; if they stay shut, look for monitor.failed in its log"
	}
	return check
}

// publicPatience is how long our own door has to answer through the public address.
const publicPatience = 10 * time.Second

// diagnosePublicURL comes in from outside, as platforms do.
func diagnosePublicURL(ctx context.Context, base string) pg.Check {
	check := pg.Check{Name: "public URL", OK: true, Found: "not set: bots are not subscribed to their updates"}
	if base == "" {
		return check
	}
	check.Found = base + " answers"
	if err := askHealth(ctx, base); err != nil {
		check.OK, check.Found = false, err.Error()
		check.Remedy = "correct AUTOPOST_PUBLIC_URL, or the proxy that leads from there to AUTOPOST_LISTEN; a daemon must run"
	}
	return check
}

func askHealth(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, publicPatience)
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

// diagnoseDisks looks at the disk of the data directory, and at that of media elsewhere on this machine.
func diagnoseDisks(cfg config.Config) []pg.Check {
	checks := diagnoseDisk("disk", cfg.DataDir)
	if dir, ok := mediaFolder(cfg.BlobURL); ok && !strings.HasPrefix(dir, cfg.DataDir+"/") {
		checks = append(checks, diagnoseDisk("media disk", dir)...)
	}
	return checks
}

// diagnoseDisk is nothing where the disk cannot be seen.
func diagnoseDisk(name, dir string) []pg.Check {
	free, size, ok := diskOf(dir)
	if !ok {
		return nil
	}
	check := pg.Check{Name: name, OK: !isLow(free, size), Found: spaceWords(dir, free, size)}
	if !check.OK {
		check.Remedy = "make room there, or give it a larger disk: docs/operate/disks.md says what grows"
	}
	return []pg.Check{check}
}
