// Package bench measures the database of autopost by its public functions, against
// the goals of the project, against what PostgreSQL itself can do with the same
// rows, and against River, a queue in Go on the same server.
//
// Absolute figures are worth little on a machine that others use: what is compared
// runs in the same interleaved rounds, ratios are taken within a round, and where a
// count (buffers, WAL) says it, the count is taken.
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

// Options say what to measure, and on which server.
type Options struct {
	// URL of a server to use: databases are made there and dropped again. The login
	// must be allowed to make databases and roles. Empty: a private one is started.
	URL string
	// BinDir is the folder of initdb and postgres for the private one. Empty: the machine is searched.
	BinDir string
	// Only names the goals to measure; none means all.
	Only []string
	// Quick takes small sizes, for a look or a test; Full takes the largest.
	Quick, Full bool
	// Profile adds to P3 where the time of a drain goes, function by function; its login must be a superuser.
	Profile bool
	// Rounds of each interleaved comparison; 0 means that of the sizes.
	Rounds int
	// Program is the autopost to run as the daemon, where a goal wants one.
	Program string
	// Progress is told what happens. Required.
	Progress io.Writer
}

// sizes are what the measurements are done with.
type sizes struct {
	name     string
	rounds   int
	batch    int // of a claim, a start, a commit
	channels int // of a workspace where nothing else is said
	drain    int // deliveries of a drain

	fan                        int   // channels of the widest post
	littleHistory, muchHistory int   // rows sent long ago
	due, blocked               int   // rows that can be claimed behind rows that cannot
	spreads                    []int // channels over which those are spread
	backlogs                   []int // rows behind which the buffers of a claim are counted
	workspaces                 int
	hold, paced                time.Duration // how long a snapshot is held, how long rates bind
	posts                      int           // whose latency is taken
	quiet                      time.Duration // how long a daemon is watched that has nothing to do
}

func (o Options) sizes() sizes {
	size := sizes{name: "usual", rounds: 5, batch: 1000, channels: 1000, drain: 20_000,
		fan: 20_000, littleHistory: 10_000, muchHistory: 1_000_000, due: 10_000, blocked: 1_000_000, spreads: []int{40, 1000, 20_000},
		backlogs: []int{10_000, 1_000_000}, workspaces: 1000, hold: 30 * time.Second, paced: 10 * time.Second, posts: 400, quiet: time.Minute}
	switch {
	case o.Full:
		size.name, size.rounds, size.drain = "full", 9, 100_000
		size.backlogs, size.hold, size.paced = append(size.backlogs, 10_000_000), 3*time.Minute, time.Minute
	case o.Quick:
		size = sizes{name: "quick", rounds: 1, batch: 50, channels: 20, drain: 100,
			fan: 100, littleHistory: 100, muchHistory: 1000, due: 100, blocked: 1000, spreads: []int{20},
			backlogs: []int{100, 1000}, workspaces: 30, hold: 500 * time.Millisecond, paced: 500 * time.Millisecond, posts: 10, quiet: time.Second}
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
	id, says string
	measure  func(*bench, context.Context) (Result, error)
}

var goals = []goal{
	{"P1", "one post to very many channels, against the bare insert of its rows", (*bench).fanOut},
	{"P2", "no plan flips above much history", (*bench).history},
	{"P3", "drain with every limit on, against River tuned", (*bench).drainAgainstRiver},
	{"P3e", "the same through daemons and HTTP, to a platform", (*bench).drainByDaemons},
	{"P4", "drain against a bare lifecycle of the same writes", (*bench).drainAgainstBare},
	{"P5", "due rows behind due but blocked ones", (*bench).behindBacklog},
	{"P6", "shared buffers of a claimed row", (*bench).claimBuffers},
	{"P7", "four claimers against one", (*bench).fourClaimers},
	{"P8", "a post to an idle daemon", (*bench).idleLatency},
	{"P9", "many workspaces, one in a hundred with work", (*bench).manyWorkspaces},
	{"P10", "WAL of a delivered row", (*bench).wal},
	{"P11", "drain under a snapshot that somebody holds", (*bench).heldSnapshot},
	{"P13", "a daemon with nothing to do", (*bench).idleDaemon},
	{"fan", "one post to very many channels, until the last was called", (*bench).fanOutLive},
	{"results", "events that are told to result webhooks", (*bench).tellResults},
	{"isolation", "posts of calm workspaces while others are in trouble", (*bench).isolation},
	{"ingress", "posts by webhook to forty channels, against a bare insert of the body", (*bench).ingress},
	{"rate", "rates that bind: shared ceiling, per channel", (*bench).bindingRates},
}

// Goals names what can be measured.
func Goals() []string {
	var names []string
	for _, g := range goals {
		names = append(names, g.id)
	}
	return names
}

// Run measures. What was found before an error is in the report.
func Run(ctx context.Context, o Options) (report Report, err error) {
	for _, name := range o.Only {
		if !slices.Contains(Goals(), name) {
			return report, fmt.Errorf("no goal is called %q: there are %s", name, strings.Join(Goals(), ", "))
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
		b.say("%s: %s", g.id, g.says)
		began := time.Now()
		result, err := g.measure(b, ctx)
		if err != nil {
			return report, fmt.Errorf("%s: %w", g.id, err)
		}
		result.Goal, result.Says, result.Seconds = g.id, g.says, time.Since(began).Seconds()
		report.Results = append(report.Results, result)
	}
	return report, nil
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, format+"\n", args...)
}

// subject is one side of a comparison: each round gives one sample.
type subject struct {
	name, unit string
	sample     func(ctx context.Context) (float64, error)
}

// interleave measures the subjects in rounds, every second one in the opposite
// order, each time after the round was prepared, and returns the samples of each by its name.
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
		b.say("%s", line)
	}
	return samples, nil
}

func lacksRights(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "42501"
}
