package bench

import (
	"context"
	"fmt"
	"time"

	"autopost/internal/bench/live"
)

// The floor is what the promises of a delivery cost without any decision: bare statements that
// write its claim, its start record before the call, its outcome and two events. Its tables are
// fixed here, so that the floor does not move with the schema of autopost: columns that never
// change come first, no index mentions a column that a claim changes, and no trigger, reference,
// partition or row-level security exists.
const floorTables = `
create table bench.floor_deliveries (
	workspace_id text not null, delivery_id uuid not null, message_id uuid not null, channel_id text not null,
	hash_version int not null, content_hash text not null, not_before timestamptz not null, rendered_text text not null,
	render_meta jsonb not null, trace_id uuid, created_at timestamptz not null,
	status text not null, attempt int not null, due_at timestamptz not null,
	ended text generated always as (case when status in ('sent', 'dead') then status end) stored,
	provider_message_id text, sent_at timestamptz, claimed_at timestamptz, claimed_by text, claim_token text,
	sending_lease_until timestamptz, send_at timestamptz, call_begun_at timestamptz, last_call_at timestamptz,
	settled jsonb, finished_at timestamptz, updated_at timestamptz not null,
	primary key (workspace_id, delivery_id)
) with (fillfactor = 50);
create index on bench.floor_deliveries (workspace_id, channel_id, due_at, delivery_id) where ended is null;
create unique index on bench.floor_deliveries (workspace_id, content_hash, channel_id, hash_version) where ended is null;
create index on bench.floor_deliveries (workspace_id, content_hash, channel_id, hash_version, sent_at) where ended = 'sent';
create index on bench.floor_deliveries (workspace_id, channel_id, delivery_id) where ended is not null;
create index on bench.floor_deliveries (workspace_id, channel_id, sent_at) where ended = 'sent';
create index on bench.floor_deliveries (workspace_id, message_id);
create table bench.floor_events (
	workspace_id text not null, id uuid not null, delivery_id uuid, message_id uuid, channel_id text, ts timestamptz not null,
	action text not null, attempt int not null, result text not null, meta jsonb not null,
	primary key (workspace_id, ts, id)
);
create index on bench.floor_events (workspace_id, delivery_id, ts) where delivery_id is not null;
create index on bench.floor_events using brin (ts);`

// floorFill copies the waiting deliveries of autopost.
const floorFill = `insert into bench.floor_deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash,
		not_before, rendered_text, render_meta, trace_id, created_at, status, attempt, due_at, updated_at)
	select d.workspace_id, d.delivery_id, d.message_id, d.channel_id, d.hash_version, d.content_hash,
		d.not_before, d.rendered_text, d.render_meta, d.trace_id, d.created_at, 'queued', 0, d.due_at, d.updated_at
	from autopost.deliveries d where d.workspace_id = $1 and d.status = 'queued'`

const (
	floorPick = `select coalesce(array_agg(p.delivery_id::text), '{}') from (
		select d.delivery_id from bench.floor_deliveries d
		where d.workspace_id = $1 and d.ended is null and d.status = 'queued'
		order by d.channel_id, d.due_at limit $2 for no key update skip locked) p`
	floorClaim = `update bench.floor_deliveries d
		set status = 'sending', attempt = d.attempt + 1, claimed_at = now(), claimed_by = 'floor', claim_token = md5($3 || d.delivery_id),
			sending_lease_until = now() + interval '300 seconds', call_begun_at = null, updated_at = now()
		where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[])`
	floorMark  = `update bench.floor_deliveries d set call_begun_at = now() where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[])`
	floorBegun = `insert into bench.floor_events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result, meta)
		select d.workspace_id, gen_random_uuid(), d.delivery_id, d.message_id, d.channel_id, now(), 'send_attempt', d.attempt, 'ok',
			jsonb_build_object('run_id', d.claimed_by, 'trace_id', d.trace_id, 'idempotency_key', d.delivery_id)
		from bench.floor_deliveries d where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[])`
	floorSent = `update bench.floor_deliveries d
		set status = 'sent', sent_at = now(), finished_at = now(), provider_message_id = '1', last_call_at = d.call_begun_at, updated_at = now(),
			settled = jsonb_build_object('token', d.claim_token, 'answer', jsonb_build_object('applied', true, 'status', 'sent', 'attempt', d.attempt)),
			claimed_at = null, claimed_by = null, claim_token = null, sending_lease_until = null
		where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[])`
	floorLogged = `insert into bench.floor_events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result, meta)
		select d.workspace_id, gen_random_uuid(), d.delivery_id, d.message_id, d.channel_id, now(), 'sent', d.attempt, 'ok',
			jsonb_build_object('provider_message_id', d.provider_message_id, 'trace_id', d.trace_id, 'raw', '{}'::jsonb)
		from bench.floor_deliveries d where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[])`
)

// floor delivers the waiting rows of a workspace with the bare statements, in batches over one
// connection. It returns the processor time of the backend in microseconds per row.
func floor(ctx context.Context, b *base, workspace string, batch int) (float64, error) {
	if err := b.exec(ctx, `truncate bench.floor_deliveries, bench.floor_events`); err != nil {
		return 0, err
	}
	if err := b.exec(ctx, floorFill, workspace); err != nil {
		return 0, err
	}
	if err := b.exec(ctx, `analyze bench.floor_deliveries`); err != nil {
		return 0, err
	}
	if err := b.checkpoint(ctx); err != nil {
		return 0, err
	}
	backend := int(b.owner.PgConn().PID())
	began, err := live.Running(backend)
	if err != nil {
		return 0, err
	}
	rows := 0
	for {
		picked, err := floorBatch(ctx, b, workspace, batch)
		if err != nil {
			return 0, err
		}
		if picked == 0 {
			break
		}
		rows += picked
	}
	ended, err := live.Running(backend)
	if err != nil {
		return 0, err
	}
	if rows == 0 {
		return 0, fmt.Errorf("no row for the floor")
	}
	return micros(ended-began, rows), nil
}

// floorBatch claims, starts and commits a batch, each in its own transaction.
func floorBatch(ctx context.Context, b *base, workspace string, batch int) (int, error) {
	if err := b.exec(ctx, `begin`); err != nil {
		return 0, err
	}
	ids, err := value[[]string](ctx, b, floorPick, workspace, batch)
	if err != nil {
		return 0, err
	}
	if err := b.exec(ctx, floorClaim, workspace, ids, fmt.Sprint(time.Now().UnixNano())); err != nil {
		return 0, err
	}
	for _, sql := range []string{`commit; begin`, floorMark, floorBegun, `commit; begin`, floorSent, floorLogged, `commit`} {
		args := []any{workspace, ids}
		if sql[0] == 'c' {
			args = nil
		}
		if err := b.exec(ctx, sql, args...); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}
