package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"autopost/internal/bench/live"
)

// drainByDaemons is P3e: the drain of P3 through daemons, adapters and real HTTP. What
// each part takes of the processors says how fast it could be at most where all of
// them share the machine.
func (b *bench) drainByDaemons(ctx context.Context) (result Result, err error) {
	w, err := b.whole(ctx, "whole")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	const workspace = "whole"
	q, err := b.queue(ctx, w.base, workspace, everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	if err := w.bots(ctx, workspace); err != nil {
		return result, err
	}
	if _, err := w.admin.Exec(ctx, `alter database `+w.name+` set track_functions = 'pl'`); err != nil {
		return result, fmt.Errorf("count calls of functions: %w", err)
	}
	var bySQL, byOne, byTwo spent
	drained := func(daemons int, s *spent) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) { return w.drained(ctx, q, daemons, s) }
	}
	samples, err := b.interleave(ctx, func(context.Context) error { return nil },
		subject{"SQL alone", "rows/s", func(ctx context.Context) (float64, error) {
			made, err := q.fill(ctx, b.drain)
			if err != nil {
				return 0, err
			}
			d := b.drainer(q, made)
			rate := 0.0
			err = w.spending(ctx, nil, &bySQL, float64(made), func() (err error) {
				rate, err = perSecond(d.total)(d.run(ctx))
				return err
			})
			return rate, err
		}},
		subject{"one daemon", "rows/s", drained(1, &byOne)}, subject{"two daemons", "rows/s", drained(2, &byTwo)})
	if err != nil {
		return result, err
	}
	best := make([]float64, len(samples["one daemon"]))
	for i := range best {
		best[i] = max(samples["one daemon"][i], samples["two daemons"][i])
	}
	result.Checks = []Check{atLeast(0.7, ratio("from end to end / SQL alone", best, samples["SQL alone"]))}
	result.Figures = []Figure{
		figure(fmt.Sprintf("SQL alone, %d connections, batches of %d", claimers, b.batch), "rows/s", samples["SQL alone"]...),
		figure("one daemon", "rows/s", samples["one daemon"]...),
		figure("two daemons", "rows/s", samples["two daemons"]...),
	}
	result.Figures = append(result.Figures, bySQL.figures("SQL alone")...)
	result.Figures = append(result.Figures, byOne.figures("one daemon")...)
	result.Figures = append(result.Figures, byTwo.figures("two daemons")...)
	result.Notes = []string{fmt.Sprintf("daemons and platform run on the %d processors that the database runs on; the rest of a drain with SQL alone is its client", runtime.NumCPU())}
	return result, nil
}

// spent is what a drain took, a sample a drain: processor times of a row in microseconds, and how many rows
// a claim, a start and a commit had.
type spent struct {
	database, daemons, rest []float64
	together                [3][]float64
}

// stages are the functions that take rows through.
var stages = [3]string{"claim", "start", "commit"}

// figures tell them, and how many rows a second the processors would do with nothing else to do.
func (s *spent) figures(who string) []Figure {
	var most []float64
	for i := range s.database {
		most = append(most, float64(runtime.NumCPU())*1e6/(s.database[i]+s.daemons[i]+s.rest[i]))
	}
	all := []Figure{figure(who+": of a processor, the database", "µs/row", s.database...)}
	if s.daemons[0] > 0 {
		all = append(all, figure(who+": the daemons", "µs/row", s.daemons...))
	}
	all = append(all, figure(who+": the benchmark itself", "µs/row", s.rest...), figure(who+": what the processors have room for", "rows/s", most...))
	for i, stage := range stages {
		all = append(all, figure(who+": rows a "+stage, "", s.together[i]...))
	}
	return all
}

// spending runs what takes rows through, and notes what that took of the processors.
func (w *whole) spending(ctx context.Context, daemons []*live.Daemon, s *spent, rows float64, through func() error) error {
	before, err := w.taken(ctx, daemons)
	if err != nil {
		return err
	}
	if err := through(); err != nil {
		return err
	}
	after, err := w.taken(ctx, daemons)
	if err != nil {
		return err
	}
	for i := range stages {
		s.together[i] = append(s.together[i], rows/max(1, after.calls[i]-before.calls[i]))
	}
	each := func(part int) float64 { return float64((after.times[part] - before.times[part]).Microseconds()) / rows }
	s.database, s.daemons, s.rest = append(s.database, each(0)), append(s.daemons, each(1)), append(s.rest, each(2))
	return nil
}

// taken is what the database, the daemons and this process have taken so far, and how often the stages were called.
type taken struct {
	times [3]time.Duration
	calls [3]float64
}

func (w *whole) taken(ctx context.Context, daemons []*live.Daemon) (t taken, err error) {
	backend, err := value[int](ctx, w.base, `select pg_backend_pid()`)
	if err != nil {
		return t, err
	}
	times, err := live.TimesOf(backend)
	if err != nil {
		return t, fmt.Errorf("the server must be one of this machine: %w", err)
	}
	if t.times[0], err = live.Family(times.Parent); err != nil {
		return t, err
	}
	for _, d := range daemons {
		usage, err := d.Usage()
		if err != nil {
			return t, err
		}
		t.times[1] += usage.Processor
	}
	if times, err = live.TimesOf(os.Getpid()); err != nil {
		return t, err
	}
	t.times[2] = times.Own
	for i, stage := range stages {
		t.calls[i], err = value[float64](ctx, w.base, `select coalesce(sum(calls), 0)::float8 from pg_stat_user_functions where funcname ~ '^`+stage+`_(deliveries|within|call_batch|outcome_batch)$'`)
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// drained starts daemons and gives them rows that are due, when they have sent some and
// their connections have compiled what they call: calls a second from the first to the last.
func (w *whole) drained(ctx context.Context, q *queue, daemons int, s *spent) (rate float64, err error) {
	running, stop, err := w.serve(ctx, daemons, q.workspace)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	patience, cancel := context.WithTimeout(ctx, stuckAfter+time.Duration(w.bench.drain)*10*time.Millisecond)
	defer cancel()
	warm, err := w.fillAtOnce(ctx, q, q.shape.channels)
	if err != nil {
		return 0, err
	}
	if _, err := w.platform.Arrivals(patience, "", warm); err != nil {
		return 0, err
	}
	rows, err := w.fillAtOnce(ctx, q, w.bench.drain)
	if err != nil {
		return 0, err
	}
	calls, err := w.platform.Arrivals(patience, "", 1)
	if err != nil {
		return 0, err
	}
	err = w.spending(ctx, running, s, float64(rows-len(calls)), func() (err error) {
		calls, err = w.platform.Arrivals(patience, "", rows)
		return err
	})
	if err != nil {
		return 0, err
	}
	return float64(rows-1) / calls[rows-1].At.Sub(calls[0].At).Seconds(), nil
}

// fillAtOnce gives daemons that run all rows at the same moment, and forgets the calls of before.
func (w *whole) fillAtOnce(ctx context.Context, q *queue, rows int) (int, error) {
	const status = `update autopost.workspaces set status = $2 where workspace_id = $1`
	if err := w.exec(ctx, status, q.workspace, "paused"); err != nil {
		return 0, err
	}
	made, err := q.fill(ctx, rows)
	if err != nil {
		return 0, err
	}
	w.platform.Reset()
	return int(made), w.exec(ctx, status, q.workspace, "active")
}
