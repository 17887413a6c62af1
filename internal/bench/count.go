package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost/internal/bench/live"
)

// walByTable attributes the WAL between two positions to tables, by the first page of each
// record. Full-page images are separate, because they depend on the checkpoints.
const walByTable = `
select case when c.relname is null then 'commits and other'
		when coalesce(t.relname, c.relname) like 'events%' then 'events'
		else coalesce(t.relname, c.relname) end::text,
	count(*)::float8, sum(r.record_length - r.fpi_length)::float8, sum(r.fpi_length)::float8
from pg_get_wal_records_info($1::pg_lsn, $2::pg_lsn) r
left join pg_class c on c.relkind <> 'v' and pg_relation_filenode(c.oid) = substring(r.block_ref from 'rel \d+/\d+/(\d+)')::oid
left join pg_index i on i.indexrelid = c.oid
left join pg_class t on t.oid = i.indrelid
group by 1 order by 3 desc`

// wal is P10: enqueue and delivery of the same rows.
func (b *bench) wal(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "wal")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	if _, err := base.admin.Exec(ctx, `create extension pg_walinspect`); err != nil {
		return result, fmt.Errorf("create the extension pg_walinspect, which is part of PostgreSQL: %w", err)
	}
	q, err := b.queue(ctx, base, "wal", everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	tables := map[string][]float64{}
	var lean, events, all, images, enqueued []float64
	for round := range b.rounds {
		s, err := b.walOfRound(ctx, q)
		if err != nil {
			return result, err
		}
		b.printf("  round %d of %d: %s bytes per row, %s of them for events", round+1, b.rounds, number(s.bytes+s.tables["events"]), number(s.tables["events"]))
		lean, events, images = append(lean, s.bytes), append(events, s.tables["events"]), append(images, s.images)
		all, enqueued = append(all, s.bytes+s.tables["events"]), append(enqueued, s.enqueue)
		for table, bytes := range s.tables {
			tables[table] = append(tables[table], bytes)
		}
	}
	result.Checks = []Check{atMost(3400, figure("without events: enqueue, claim, start, commit", "B/row", lean...))}
	result.Figures = []Figure{
		figure("with events (send_attempt and sent)", "B/row", all...),
		figure("  of it events", "B/row", events...),
		figure("  of it the enqueue", "B/row", enqueued...),
		figure("full-page images in addition", "B/row", images...),
	}
	for _, table := range []string{"deliveries", "channel_gates", "channels", "messages", "commits and other"} {
		if len(tables[table]) > 0 {
			result.Figures = append(result.Figures, figure("for "+table, "B/row", tables[table]...))
		}
	}
	return result, nil
}

// walSample is the WAL per delivered row, in bytes.
type walSample struct {
	tables                 map[string]float64
	bytes, images, enqueue float64
}

func (b *bench) walOfRound(ctx context.Context, q *queue) (walSample, error) {
	s := walSample{tables: map[string]float64{}}
	if err := q.base.settle(ctx); err != nil {
		return s, err
	}
	posts := max(1, b.drain/q.shape.channels)
	begin, err := q.lsn(ctx)
	if err != nil {
		return s, err
	}
	for range posts {
		if _, err := q.base.post(ctx, q.workspace, text()); err != nil {
			return s, err
		}
	}
	middle, err := q.lsn(ctx)
	if err != nil {
		return s, err
	}
	d := b.drainer(q, int64(posts*q.shape.channels))
	if _, err := d.run(ctx); err != nil {
		return s, err
	}
	end, err := q.lsn(ctx)
	if err != nil {
		return s, err
	}
	err = q.base.admin.QueryRow(ctx, `select ($1::pg_lsn - $2::pg_lsn)::float8`, middle, begin).Scan(&s.enqueue)
	if err != nil {
		return s, err
	}
	s.enqueue /= float64(d.total)
	return s, q.attribute(ctx, &s, begin, end, float64(d.total))
}

func (q *queue) attribute(ctx context.Context, s *walSample, begin, end string, rows float64) error {
	found, err := q.base.admin.Query(ctx, walByTable, begin, end)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var table string
		var records, bytes, images float64
		if err := found.Scan(&table, &records, &bytes, &images); err != nil {
			return err
		}
		s.tables[table] += bytes / rows
		s.images += images / rows
		if table != "events" {
			s.bytes += bytes / rows
		}
	}
	return found.Err()
}

// lsn flushes the WAL and returns its end.
func (q *queue) lsn(ctx context.Context) (string, error) {
	// Claims commit asynchronously. A later synchronous commit flushes them, too.
	if _, err := q.base.admin.Exec(ctx, `begin; set local synchronous_commit = on; select pg_logical_emit_message(true, 'autopost bench', ''); commit`); err != nil {
		return "", fmt.Errorf("flush the log: %w", err)
	}
	var at string
	err := q.base.admin.QueryRow(ctx, `select pg_current_wal_flush_lsn()::text`).Scan(&at)
	return at, err
}

// cost is the cost of one statement and the functions that it calls, as EXPLAIN counts it.
type cost struct {
	ms, buffers, rows float64
}

func (c cost) plus(other cost) cost {
	return cost{c.ms + other.ms, c.buffers + other.buffers, c.rows}
}

// explain runs a call under EXPLAIN ANALYZE. buffers counts all requested pages, in memory or not.
func explain(ctx context.Context, b *base, sql string, args ...any) (cost, error) {
	var raw []byte
	if err := b.engine.QueryRow(ctx, `explain (analyze, buffers, timing off, format json) `+sql, args...).Scan(&raw); err != nil {
		return cost{}, err
	}
	var plans []struct {
		Plan struct {
			Hit  float64 `json:"Shared Hit Blocks"`
			Read float64 `json:"Shared Read Blocks"`
			Rows float64 `json:"Actual Rows"`
		}
		Time float64 `json:"Execution Time"`
	}
	if err := json.Unmarshal(raw, &plans); err != nil {
		return cost{}, err
	}
	p := plans[0]
	return cost{ms: p.Time, buffers: p.Plan.Hit + p.Plan.Read, rows: p.Plan.Rows}, nil
}

// claimStatement and fusedStatement are the claims of n8n and of a daemon.
const (
	claimStatement = `select * from autopost.claim_deliveries($1, $2, $3)`
	fusedStatement = `select * from autopost.claim_and_start($1, $2, $3, '[]', $4)`
)

// explainClaim claims, starts and commits deliveries under EXPLAIN. It returns the cost of each step. With fused, the
// claim starts the calls, as in a daemon.
func explainClaim(ctx context.Context, q *queue, batch int, fused bool) (claim, start, commit cost, err error) {
	run := fmt.Sprintf("explain-%d", lastPost.Add(1))
	statement, args := claimStatement, []any{q.workspace, run, batch}
	if fused {
		statement, args = fusedStatement, append(args, q.shape.accounts())
	}
	claim, err = explain(ctx, q.base, statement, args...)
	if err != nil || claim.rows == 0 {
		return claim, start, commit, errors.Join(err, errNothingClaimed(claim))
	}
	items := func(which string) (json.RawMessage, error) {
		return value[json.RawMessage](ctx, q.base, `select coalesce(jsonb_agg(jsonb_build_object('delivery_id', d.delivery_id,
				'claim_token', d.claim_token, 'outcome', jsonb_build_object('ok', true, 'provider_message_id', d.channel_id))), '[]')
			from autopost.deliveries d where d.workspace_id = $1 and d.status = 'sending' and d.claimed_by = $2 and `+which, q.workspace, run)
	}
	unstarted, err := items(`d.call_begun_at is null`)
	if err != nil {
		return claim, start, commit, err
	}
	if string(unstarted) != "[]" {
		if start, err = explain(ctx, q.base, `select autopost.start_call_batch($1, $2)`, q.workspace, unstarted); err != nil {
			return claim, start, commit, err
		}
	}
	all, err := items(`true`)
	if err != nil {
		return claim, start, commit, err
	}
	commit, err = explain(ctx, q.base, `select autopost.commit_outcome_batch($1, $2)`, q.workspace, all)
	return claim, start, commit, err
}

func errNothingClaimed(c cost) error {
	if c.rows > 0 {
		return nil
	}
	return errors.New("no delivery could be claimed")
}

// profile runs one more drain and returns the own time of each function, in microseconds per
// row. Inlined SQL counts for its caller.
func (b *bench) profile(ctx context.Context, q *queue) ([]Figure, error) {
	rows, err := q.fill(ctx, b.drain)
	if err != nil {
		return nil, err
	}
	profiled := *q.base
	if profiled.engine, err = q.base.pool(ctx, "autopost_engine", "track_functions", "all"); err != nil {
		return nil, err
	}
	d := b.drainer(&queue{base: &profiled, workspace: q.workspace}, rows)
	_, err = d.run(ctx)
	profiled.engine.Close() // a backend reports its statistics when it ends
	if err := errors.Join(err, pause(ctx, time.Second)); err != nil {
		return nil, err
	}
	found, err := q.base.admin.Query(ctx, `select f.funcname || ', ' || f.calls || ' calls', (f.self_time * 1000 / $1)::float8
		from pg_stat_user_functions f where f.schemaname = 'autopost' order by f.self_time desc limit 15`, rows)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (Figure, error) {
		var name string
		var micros float64
		err := row.Scan(&name, &micros)
		return figure("  in "+name, "µs/row", micros), err
	})
}

// spent is the processor time of drains in microseconds per row, one sample per drain.
type spent struct {
	database, daemons, rest []float64
	// batch is the number of rows per claim, start and commit.
	batch [3][]float64
}

// stages are the steps of a delivery in the database, each with the function that a daemon calls for it.
var stages = [3]struct{ name, function string }{
	{"claim", "claim_and_start"}, {"start", "start_call_batch"}, {"commit", "commit_outcome_batch"},
}

// figures returns the processor times, and the rate at which all processors are busy.
func (s *spent) figures(name string) []Figure {
	var most []float64
	for i := range s.database {
		most = append(most, float64(runtime.NumCPU())*1e6/(s.database[i]+s.daemons[i]+s.rest[i]))
	}
	all := []Figure{figure(name+": processor time of the database", "µs/row", s.database...)}
	all = append(all, figure(name+": processor time of the benchmark", "µs/row", s.rest...), figure(name+": rate with fully used processors", "rows/s", most...))
	if s.daemons[0] > 0 { // daemons choose their batches; with SQL only, the batch is fixed
		all = append(all, figure(name+": processor time of the daemons", "µs/row", s.daemons...))
		for i, stage := range stages {
			all = append(all, figure(name+": rows per "+stage.name, "", s.batch[i]...))
		}
	}
	return all
}

// measureSpent runs work and records the processor time per row.
func (w *endToEnd) measureSpent(ctx context.Context, daemons []*live.Daemon, s *spent, rows float64, work func() error) error {
	before, err := w.usage(ctx, daemons)
	if err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	after, err := w.usage(ctx, daemons)
	if err != nil {
		return err
	}
	for i := range stages {
		s.batch[i] = append(s.batch[i], rows/max(1, after.calls[i]-before.calls[i]))
	}
	each := func(part int) float64 { return float64((after.times[part] - before.times[part]).Microseconds()) / rows }
	s.database, s.daemons, s.rest = append(s.database, each(0)), append(s.daemons, each(1)), append(s.rest, each(2))
	return nil
}

// usage is the processor time of the database, the daemons and this process so far, and the
// number of calls of the stages.
type usage struct {
	times [3]time.Duration
	calls [3]float64
}

func (w *endToEnd) usage(ctx context.Context, daemons []*live.Daemon) (t usage, err error) {
	backend, err := value[int](ctx, w.base, `select pg_backend_pid()`)
	if err != nil {
		return t, err
	}
	times, err := live.TimesOf(backend)
	if err != nil {
		return t, fmt.Errorf("the server must run on this machine: %w", err)
	}
	if t.times[0], err = live.Family(times.Parent); err != nil {
		return t, err
	}
	for _, d := range daemons {
		used, err := d.Usage()
		if err != nil {
			return t, err
		}
		t.times[1] += used.Processor
	}
	if times, err = live.TimesOf(os.Getpid()); err != nil {
		return t, err
	}
	t.times[2] = times.Own
	for i, stage := range stages {
		t.calls[i], err = value[float64](ctx, w.base, `select coalesce(sum(calls), 0)::float8 from pg_stat_user_functions where funcname = $1`, stage.function)
		if err != nil {
			return t, err
		}
	}
	return t, nil
}
