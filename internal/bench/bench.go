// Package bench measures autopost against the goals of the project, against bare SQL with
// the same rows, and against River, a queue in Go on the same server.
//
// Absolute figures mean little on a shared machine. So the sides of a comparison run in the
// same interleaved rounds, ratios are taken within a round, and counts (buffers, WAL) are
// preferred over times.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Options select the goals, the sizes and the server.
type Options struct {
	// URL is a server to use. The benchmark creates its databases there and drops them again;
	// the login must be allowed to create databases and roles. Empty means a private server.
	URL string
	// BinDir is the folder of initdb and postgres for the private server; empty means search.
	BinDir string
	// Only names the goals to measure; empty means all.
	Only []string
	// Quick selects small sizes, Full the largest.
	Quick, Full bool
	// Profile adds the time of each function to P3. The login must be a superuser.
	Profile bool
	// Rounds of each interleaved comparison; 0 means the number of the sizes.
	Rounds int
	// Program is the path of the autopost binary to run as the daemon.
	Program string
	// Progress gets the progress messages. Required.
	Progress io.Writer
}

// sizes are the sizes of the measurements.
type sizes struct {
	name     string
	rounds   int
	batch    int // of a claim, a start, a commit
	channels int // of a workspace
	drain    int // deliveries of a drain

	fan                        int   // channels of the widest post
	littleHistory, muchHistory int   // old sent rows
	planned                    int   // rows of the calendar, sent and waiting
	due, blocked               int   // rows that can be claimed, and rows that cannot
	spreads                    []int // numbers of channels of those rows
	deepest                    int   // a second number of blocked rows, of 1000 channels; 0 for none
	backlogs                   []int // sizes of the backlog for the buffers of a claim
	workspaces                 int
	hold, paced                time.Duration // duration of the held snapshot, and of the binding rates
	posts                      int           // posts for latencies
	idle                       time.Duration // observation time of an idle daemon
}

func (o Options) sizes() sizes {
	size := sizes{name: "usual", rounds: 5, batch: 1000, channels: 1000, drain: 20_000,
		fan: 20_000, littleHistory: 10_000, muchHistory: 1_000_000, planned: 10_000_000, due: 10_000, blocked: 1_000_000, spreads: []int{40, 1000, 20_000},
		backlogs: []int{10_000, 1_000_000}, workspaces: 1000, hold: 30 * time.Second, paced: 10 * time.Second, posts: 400, idle: time.Minute}
	switch {
	case o.Full:
		size.name, size.rounds, size.drain = "full", 9, 100_000
		size.backlogs, size.hold, size.paced = append(size.backlogs, 10_000_000), 3*time.Minute, time.Minute
		size.deepest = 10_000_000
	case o.Quick:
		size = sizes{name: "quick", rounds: 1, batch: 50, channels: 20, drain: 100,
			fan: 100, littleHistory: 100, muchHistory: 1000, planned: 1000, due: 100, blocked: 1000, spreads: []int{20},
			backlogs: []int{100, 1000}, workspaces: 30, hold: 500 * time.Millisecond, paced: 500 * time.Millisecond, posts: 10, idle: time.Second}
	}
	if o.Rounds > 0 {
		size.rounds = o.Rounds
	}
	return size
}

// bench is one run.
type bench struct {
	*server
	sizes
	profiled bool
	program  string
	progress io.Writer
}

type goal struct {
	id, title string
	measure   func(*bench, context.Context) (Result, error)
}

var goals = []goal{
	{"P1", "one post to very many channels, against the bare insert of its rows", (*bench).fanOut},
	{"P2", "the same plans with much history", (*bench).history},
	{"P3", "processor time of a drain with all limits, against tuned River", (*bench).drainAgainstRiver},
	{"P3e", "the same with daemons, over HTTP to a platform", (*bench).drainByDaemons},
	{"P4", "drain, against the floor: bare statements with the same promises", (*bench).drainAgainstFloor},
	{"P5", "due rows behind blocked due rows", (*bench).behindBacklog},
	{"P6", "shared buffers of a claimed, started and committed row", (*bench).claimBuffers},
	{"P7", "four claimers against one", (*bench).fourClaimers},
	{"P8", "latency of a post to an idle daemon", (*bench).idleLatency},
	{"P9", "many workspaces, one in a hundred with work", (*bench).manyWorkspaces},
	{"P10", "WAL of a delivered row", (*bench).wal},
	{"P11", "drain while a transaction holds a snapshot", (*bench).heldSnapshot},
	{"P13", "an idle daemon", (*bench).idleDaemon},
	{"fan", "one post to very many channels, until the last call", (*bench).fanOutLive},
	{"results", "events to result webhooks", (*bench).resultWebhooks},
	{"isolation", "posts of healthy workspaces while others have failures", (*bench).isolation},
	{"ingress", "pushed posts to forty channels, against a bare insert of the body", (*bench).ingress},
	{"calendar", "the calendar of a month", (*bench).calendar},
	{"rate", "binding rates of channels and groups", (*bench).bindingRates},
}

// Goals returns the names of all goals.
func Goals() []string {
	var names []string
	for _, g := range goals {
		names = append(names, g.id)
	}
	return names
}

// Run measures the goals. After an error the report contains the results so far.
func Run(ctx context.Context, o Options) (report Report, err error) {
	for _, name := range o.Only {
		if !slices.Contains(Goals(), name) {
			return report, fmt.Errorf("goal must be one of %s, got %q", strings.Join(Goals(), ", "), name)
		}
	}
	s, err := openServer(ctx, o)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b := &bench{server: s, sizes: o.sizes(), profiled: o.Profile, program: o.Program, progress: o.Progress}
	report = Report{Sizes: b.name, Rounds: b.rounds}
	err = s.admin.QueryRow(ctx, `select 'PostgreSQL ' || current_setting('server_version') || ', shared_buffers ' || current_setting('shared_buffers')
		|| ', fsync ' || current_setting('fsync')`).Scan(&report.Server)
	if err != nil {
		return report, err
	}
	for _, g := range goals {
		if len(o.Only) > 0 && !slices.Contains(o.Only, g.id) {
			continue
		}
		b.printf("%s: %s", g.id, g.title)
		began := time.Now()
		result, err := g.measure(b, ctx)
		if err != nil {
			return report, fmt.Errorf("%s: %w", g.id, err)
		}
		result.Goal, result.Says, result.Seconds = g.id, g.title, time.Since(began).Seconds()
		report.Results = append(report.Results, result)
	}
	return report, nil
}

func (b *bench) printf(format string, args ...any) {
	fmt.Fprintf(b.progress, format+"\n", args...)
}

// subject is one side of a comparison. Each round gives one sample.
type subject struct {
	name, unit string
	sample     func(ctx context.Context) (float64, error)
}

// interleave measures the subjects in rounds, with the opposite order in every second one.
// It prepares each round first. It returns the samples by the name of the subject.
func (b *bench) interleave(ctx context.Context, prepare func(context.Context) error, subjects ...subject) (map[string][]float64, error) {
	samples := map[string][]float64{}
	for round := range b.rounds {
		line := fmt.Sprintf("  round %d of %d:", round+1, b.rounds)
		if err := prepare(ctx); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
		for i := range subjects {
			s := subjects[i]
			if round%2 == 1 {
				s = subjects[len(subjects)-1-i]
			}
			sample, err := s.sample(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			samples[s.name] = append(samples[s.name], sample)
			line += fmt.Sprintf("  %s %s %s", s.name, number(sample), s.unit)
		}
		b.printf("%s", line)
	}
	return samples, nil
}

func lacksRights(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "42501"
}
