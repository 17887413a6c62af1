package bench

import (
	"context"
	"errors"
	"fmt"
)

// walByTable says which table the log of a stretch was written for, by the first
// page that each record names; full-page images stand apart, since they follow the
// checkpoints and not the rows.
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
		return result, fmt.Errorf("what is written for whom is read by the extension pg_walinspect, which belongs to PostgreSQL: %w", err)
	}
	q, err := b.queue(ctx, base, "wal", everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	tables := map[string][]float64{}
	var lean, events, whole, images, enqueued []float64
	for round := range b.rounds {
		s, err := b.walOfRound(ctx, q)
		if err != nil {
			return result, err
		}
		b.say("  round %d of %d: %s bytes a row, of them events %s", round+1, b.rounds, number(s.bytes+s.tables["events"]), number(s.tables["events"]))
		lean, events, images = append(lean, s.bytes), append(events, s.tables["events"]), append(images, s.images)
		whole, enqueued = append(whole, s.bytes+s.tables["events"]), append(enqueued, s.enqueue)
		for table, bytes := range s.tables {
			tables[table] = append(tables[table], bytes)
		}
	}
	result.Checks = []Check{atMost(4096, figure("without events: enqueue, claim, start, commit", "B/row", lean...))}
	result.Figures = []Figure{
		figure("with events (send_attempt and sent)", "B/row", whole...),
		figure("of it events", "B/row", events...),
		figure("of it the enqueue", "B/row", enqueued...),
		figure("full-page images beside it", "B/row", images...),
	}
	for _, table := range []string{"deliveries", "channel_gates", "channels", "messages", "commits and other"} {
		result.Figures = append(result.Figures, figure("for "+table, "B/row", tables[table]...))
	}
	return result, nil
}

// walSample is in bytes per delivered row.
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

// lsn is where the log ends, all of it written.
func (q *queue) lsn(ctx context.Context) (string, error) {
	var at string
	err := q.base.admin.QueryRow(ctx, `select pg_current_wal_flush_lsn()::text`).Scan(&at)
	return at, err
}
