package bench

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// shape describes the channels of a workspace.
type shape struct {
	channels int
	groups   int
	parallel int
	// rate of a channel and groupRate of a group are in calls per second; 0 means no limit.
	rate, groupRate float64
	windowed        bool
}

// everyLimit returns a shape with all limits, so high that none of them delays a call. It
// shows the cost of the checks.
func everyLimit(channels int) shape {
	return shape{channels: channels, groups: min(channels, 8), parallel: 1000, rate: 1e6, groupRate: 1e7, windowed: true}
}

// accounts are the credentials of the channels.
func (s shape) accounts() []string {
	names := make([]string, max(1, s.groups))
	for n := range names {
		names[n] = fmt.Sprint("bot-", n)
	}
	return names
}

const allWeek = `{"mon": [["00:00", "24:00"]], "tue": [["00:00", "24:00"]], "wed": [["00:00", "24:00"]], "thu": [["00:00", "24:00"]],
	"fri": [["00:00", "24:00"]], "sat": [["00:00", "24:00"]], "sun": [["00:00", "24:00"]]}`

// workspace inserts a workspace with its channels, endpoint and limits.
func (b *base) workspace(ctx context.Context, name string, s shape) error {
	return pgx.BeginFunc(ctx, b.owner, func(tx pgx.Tx) error {
		statements := []struct {
			sql  string
			args []any
		}{
			{`insert into autopost.workspaces (workspace_id) values ($1)`, []any{name}},
			{`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
				values ($1::text, 'bench', 'webhook_push', encode(sha256(convert_to($1::text, 'UTF8')), 'hex'))`, []any{name}},
			{`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps)
				select $1::text, 'telegram', 'bot-' || n, nullif($3::numeric, 0) from generate_series(0, $2::int - 1) n`, []any{name, max(1, s.groups), s.groupRate}},
			{`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel,
					timezone, window_mode, posting_window)
				select $1::text, 'channel-' || lpad(n::text, 6, '0'), 'telegram', '@channel_' || n, 'bot-' || n % $3::int, 'bot-' || n % $3::int, nullif($4::numeric, 0), $5::int,
					case when $6::boolean then 'Europe/Moscow' end, case when $6::boolean then 'windowed' else 'immediate' end, case when $6::boolean then $7::jsonb end
				from generate_series(1, $2::int) n`, []any{name, s.channels, max(1, s.groups), s.rate, max(1, s.parallel), s.windowed, allWeek}},
		}
		for _, s := range statements {
			if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
				return fmt.Errorf("%.60s…: %w", s.sql, err)
			}
		}
		return nil
	})
}

var lastPost atomic.Int64

// text returns the text of an ordinary post. Each text is different.
func text() string {
	return fmt.Sprintf("<b>Post %d-%d</b>\n\n%s", time.Now().UnixNano(), lastPost.Add(1),
		strings.Repeat("One post in, many channels out, once for each of them. ", 6))
}

// clone copies rows of a table of autopost. The given columns get an expression; all others
// are copied from the row t. from selects the rows.
func (b *base) clone(ctx context.Context, into, table string, columns map[string]string, from string, args ...any) (int64, error) {
	names, err := value[[]string](ctx, b, `select array_agg(a.attname::text order by a.attnum) from pg_attribute a
		where a.attrelid = ('autopost.' || $1)::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''`, table)
	if err != nil {
		return 0, err
	}
	expressions := make([]string, len(names))
	for i, name := range names {
		expressions[i] = "t." + name
		if e, ok := columns[name]; ok {
			expressions[i] = e
		}
	}
	done, err := b.owner.Exec(ctx, fmt.Sprintf(`insert into %s (%s) select %s %s`,
		into, strings.Join(names, ", "), strings.Join(expressions, ", "), from), args...)
	if err != nil {
		return 0, fmt.Errorf("copy rows of %s: %w", table, err)
	}
	return done.RowsAffected(), nil
}

// backlog adds due deliveries of new posts and opens their gates. The rows are copies of the
// pattern message and its deliveries t that fulfil the condition.
func (b *base) backlog(ctx context.Context, workspace, pattern string, posts int, condition string) (int64, error) {
	made, err := b.copies(ctx, workspace, pattern, posts, condition, nil)
	if err != nil {
		return 0, err
	}
	return made, b.exec(ctx, `select autopost.arm_gates($1, array(select distinct t.channel_id from autopost.deliveries t
		where t.workspace_id = $1 and t.message_id = $2 and (`+condition+`)), now())`, workspace, pattern)
}

// sentLongAgo are the columns of history: deliveries that were sent before any dedup window.
var sentLongAgo = map[string]string{
	"status": `'sent'`, "sent_at": `now() - interval '200 days'`, "finished_at": `now() - interval '200 days'`,
	"created_at": `now() - interval '200 days'`, "provider_message_id": `t.channel_id`, "attempt": `1`,
}

// copies adds copies of the pattern message, each with copies of its deliveries that fulfil
// the condition.
func (b *base) copies(ctx context.Context, workspace, pattern string, posts int, condition string, columns map[string]string) (int64, error) {
	mark := lastPost.Add(1)
	_, err := b.clone(ctx, "autopost.messages", "messages", map[string]string{
		"message_id": `autopost.new_id()`, "content_hash": `encode(sha256((t.message_id || ' ' || $3::bigint || ' ' || n)::bytea), 'hex')`,
		"source_ref": `'bench ' || $3::bigint`, "last_seen_at": `now()`, "seen_count": `1`,
	}, `from autopost.messages t, generate_series(1, $4::int) n where t.workspace_id = $1 and t.message_id = $2`, workspace, pattern, mark, posts)
	if err != nil {
		return 0, err
	}
	all := map[string]string{
		"delivery_id": `autopost.uuid_v7_of(now(), m.message_id || t.channel_id)`, "message_id": `m.message_id`, "content_hash": `m.content_hash`,
		"render_meta": `t.render_meta - 'series_progress'`, "status": `'queued'`, "attempt": `0`, "not_before": `now()`, "created_at": `now()`, "updated_at": `now()`,
		"sent_at": `null`, "finished_at": `null`, "provider_message_id": `null`, "last_call_at": `null`, "settled": `null`,
		"claimed_at": `null`, "claimed_by": `null`, "claim_token": `null`, "sending_started_at": `null`, "sending_lease_until": `null`, "send_at": `null`,
	}
	for name, expression := range columns {
		all[name] = expression
	}
	// A separate small table is much faster than a search for the pattern's rows for each post.
	err = b.exec(ctx, `drop table if exists bench.pattern; create table bench.pattern (like autopost.deliveries including generated)`)
	if err != nil {
		return 0, err
	}
	channels, err := b.clone(ctx, "bench.pattern", "deliveries", nil, `from autopost.deliveries t where t.workspace_id = $1 and t.message_id = $2 and (`+condition+`)`,
		workspace, pattern)
	if err != nil {
		return 0, err
	}
	add := func() (int64, error) {
		return b.clone(ctx, "autopost.deliveries", "deliveries", all, `from autopost.messages m, bench.pattern t
			where m.workspace_id = $1 and m.source_ref = 'bench ' || $2::bigint`, workspace, mark)
	}
	if int64(posts)*channels < manyRows {
		return add()
	}
	return b.withoutIndexes(ctx, add)
}

// manyRows is the number of rows from which it is faster to create the indexes afterwards.
const manyRows = 100_000

// withoutIndexes adds many deliveries. It creates the indexes afterwards. If the login is
// allowed to, it also disables the checks of references, because copies of valid rows are
// valid.
func (b *base) withoutIndexes(ctx context.Context, add func() (int64, error)) (int64, error) {
	const those = `from pg_index i where i.indrelid = 'autopost.deliveries'::regclass
		and not exists (select 1 from pg_constraint k where k.conindid = i.indexrelid)`
	indexes, err := value[[]string](ctx, b, `select array_agg(pg_get_indexdef(i.indexrelid)) `+those)
	if err != nil {
		return 0, err
	}
	names, err := value[[]string](ctx, b, `select array_agg(i.indexrelid::regclass::text) `+those)
	if err != nil {
		return 0, err
	}
	_, err = b.owner.Exec(ctx, `reset role; set session_replication_role = replica`)
	if err != nil && !lacksRights(err) {
		return 0, err
	}
	if err := b.exec(ctx, `set role autopost_owner; set maintenance_work_mem = '512MB'; drop index `+strings.Join(names, ", ")); err != nil {
		return 0, err
	}
	made, err := add()
	if err != nil {
		return 0, err
	}
	if err := b.exec(ctx, strings.Join(indexes, ";")); err != nil {
		return 0, err
	}
	_, err = b.owner.Exec(ctx, `reset role; set session_replication_role = origin`)
	if err != nil && !lacksRights(err) {
		return 0, err
	}
	return made, b.exec(ctx, `set role autopost_owner`)
}

// post enqueues a text with the public function and runs its fan-out.
func (b *base) post(ctx context.Context, workspace, text string) (message string, err error) {
	var fanout string
	err = b.engine.QueryRow(ctx, `select a ->> 'message_id', a ->> 'fanout'
		from autopost.enqueue_messages_and_deliveries($1, 'bench', 'api', jsonb_build_object('text', $2::text)) a`, workspace, text).Scan(&message, &fanout)
	if err != nil {
		return "", fmt.Errorf("enqueue: %w", err)
	}
	for fanout == "running" {
		err := b.engine.QueryRow(ctx, `select autopost.run_fanout($1, 1000000) ->> 'status'`, workspace).Scan(&fanout)
		if err != nil {
			return "", fmt.Errorf("fan-out: %w", err)
		}
	}
	if fanout != "done" {
		return "", fmt.Errorf("the fan-out must be done, got %q", fanout)
	}
	return message, nil
}
