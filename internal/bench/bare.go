package bench

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// bareTables have the shape and the indexes of ours, without triggers, references,
// partitions and row-level security.
const bareTables = `
create table bench.deliveries (like autopost.deliveries including all) with (fillfactor = 80);
create table bench.events (like autopost.events including all);`

// The lifecycle of a delivery without anything that decides: what the claim, the
// start and the commit write.
const (
	bareClaim = `update bench.deliveries d
		set status = 'sending', attempt = d.attempt + 1, claimed_at = now(), claimed_by = $3, claim_token = md5($3 || d.delivery_id),
			sending_started_at = now(), sending_lease_until = now() + interval '300 seconds', updated_at = now()
		where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[])`
	bareStart = `insert into bench.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result, meta)
		select d.workspace_id, gen_random_uuid(), d.delivery_id, d.message_id, d.channel_id, now(), 'send_attempt', d.attempt, 'ok',
			jsonb_build_object('run_id', $3::text, 'trace_id', d.trace_id, 'idempotency_key', d.delivery_id)
		from bench.deliveries d where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[])`
	bareCommit = `update bench.deliveries d
		set status = 'sent', sent_at = now(), finished_at = now(), provider_message_id = '1', last_call_at = now(), updated_at = now(),
			settled = jsonb_build_object('token', d.claim_token, 'answer', jsonb_build_object('applied', true, 'status', 'sent', 'attempt', d.attempt)),
			claimed_at = null, claimed_by = null, claim_token = null, sending_started_at = null, sending_lease_until = null
		where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[]) and d.claimed_by = $3`
)

// bareLifecycle runs the same writes over the waiting rows of the bare table, by as
// many connections and in batches of the same size, and returns how long it took.
func bareLifecycle(ctx context.Context, b *base, workspace string, batch int) (time.Duration, error) {
	ids, err := value[[]string](ctx, b, `select coalesce(array_agg(d.delivery_id::text order by d.due_at, d.delivery_id), '{}')
		from bench.deliveries d where d.workspace_id = $1 and d.status = 'queued'`, workspace)
	if err != nil {
		return 0, err
	}
	pool, err := b.pool(ctx, "autopost_owner")
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	batches := make(chan []string, len(ids)/batch+1)
	for from := 0; from < len(ids); from += batch {
		batches <- ids[from:min(from+batch, len(ids))]
	}
	close(batches)
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for range claimers {
		group.Go(func() error {
			conn, err := pool.Acquire(ctx)
			if err != nil {
				return err
			}
			defer conn.Release()
			for ids := range batches {
				for _, sql := range []string{bareClaim, bareStart, bareCommit} {
					if _, err := conn.Exec(ctx, sql, workspace, ids, "bench"); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}
