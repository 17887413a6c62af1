package races_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/internal/testing/wait"
)

// crowd is everybody who works on one workspace at once, and the receiver's log: what may have reached a platform.
type crowd struct {
	t    *testing.T
	db   *pgtest.DB
	pool *pgxpool.Pool
	ops  atomic.Int64

	begun    atomic.Int64 // calls to platforms
	replaced atomic.Int64 // deliveries of new content that replacements made

	mu     sync.Mutex
	copies map[string]int // delivery -> calls that began and did not definitely fail
	counts map[string]int // what was done, and how often
}

// newCrowd is a workspace of channels in four groups, some limited, some holding what is unknown, with waits and leases short
// enough for a test to see their ends.
func newCrowd(t *testing.T, channels, sessions int) *crowd {
	t.Helper()
	c := &crowd{t: t, db: pgtest.New(t), copies: map[string]int{}, counts: map[string]int{}}
	posttest.Workspace(c.db, "w")
	c.db.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss')`)
	c.db.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('w', 'feed', 'pull_source', 'feed')`)
	c.db.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ('autopost_caller', 'w')`)
	c.db.Exec(`update autopost.retry_policies set base_ms = 20, cap_ms = 100, ladder_ms = '{}', kind = 'exponential', max_attempts = 8`)
	for key, value := range map[string]int{"sending_lease_seconds": 3, "pause_on_permanent_seconds": 1, "platform_cooldown_seconds": 1, "event_partition_days": 1} {
		c.db.Exec(`update autopost.settings set value = to_jsonb($2::int) where key = $1`, key, value)
	}
	c.db.Exec(`select autopost.ensure_event_partitions()`)
	for n := range channels {
		options := []posttest.ChannelOption{posttest.Group(fmt.Sprint("g", n%4)), posttest.MaxParallel(1 + n%4)}
		if n%3 == 0 {
			options = append(options, posttest.Rate(500))
		}
		posttest.Channel(c.db, "w", fmt.Sprintf("c%03d", n), options...)
	}
	c.db.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'g0', 2000)`)
	c.db.Exec(`update autopost.channels set on_unknown = 'hold' where rate_group = 'g1'`)
	c.db.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) select 'w', 'key' || n, 'telegram', 'env:KEY' from generate_series(0, 9) n`)
	config, err := pgxpool.ParseConfig(c.db.URL("engine"))
	require.NoError(t, err)
	config.MaxConns = int32(sessions)
	c.pool, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(c.pool.Close)
	return c
}

// ask calls for one JSON answer; what PostgreSQL refuses is a finding: a function answers, it does not fail.
func (c *crowd) ask(what, sql string, args ...any) map[string]any {
	rows, err := c.pool.Query(context.Background(), sql, args...)
	if err == nil {
		var answers []map[string]any
		if answers, err = pgx.CollectRows(rows, pgx.RowTo[map[string]any]); err == nil {
			c.count(what)
			if len(answers) > 0 {
				return answers[0]
			}
			return nil
		}
	}
	c.complain(what, err)
	return nil
}

func (c *crowd) complain(what string, err error) {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		err = fmt.Errorf("%w: %s %s", err, refused.Detail, refused.Where)
	}
	c.t.Errorf("%s: %v", what, err)
}

func (c *crowd) count(what string) {
	c.ops.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

type claimed struct{ id, token, channel string }

func (c *crowd) claim(run string, limit int) (work []claimed) {
	rows, err := c.pool.Query(context.Background(), `select delivery_id::text, claim_token, channel_id from autopost.claim_deliveries('w', $1, $2)`, run, limit)
	if err == nil {
		work, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (w claimed, err error) {
			return w, row.Scan(&w.id, &w.token, &w.channel)
		})
	}
	if err != nil {
		c.complain("claim", err)
	}
	c.count("claim")
	return work
}

// fate is what comes of a call, and how likely; the outcome "" is a worker that dies.
type fate struct {
	percent  int
	outcome  string
	definite bool // the platform did not take it
}

var fates = []fate{
	{53, sent, false},
	{10, `{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "http_502"}}`, true},
	{6, `{"ok": false, "error": {"category": "TRANSIENT", "scope": "channel", "code": "http_429", "retry_after_ms": 50}}`, true},
	{2, `{"ok": false, "error": {"category": "TRANSIENT", "scope": "platform", "code": "http_429", "retry_after_ms": 50}}`, true},
	{17, timedOut, false},
	{6, `{"ok": false, "error": {"category": "PERMANENT", "scope": "delivery", "code": "http_400"}}`, true},
	{1, forbidden, true},
	{5, "", false},
}

// work processes one claimed delivery: it starts the call and commits the outcome, releases the claim, or dies.
func (c *crowd) work(w claimed) {
	switch rand.IntN(20) {
	case 0:
		return // died before the call
	case 1:
		c.ask("release", `select autopost.release_claims('w', array[$1])`, w.token)
		return
	}
	if c.ask("start", `select autopost.start_call('w', $1, $2)`, w.id, w.token)["applied"] != true {
		return
	}
	c.begun.Add(1)
	roll, f := rand.IntN(100), fate{}
	for _, f = range fates {
		if roll -= f.percent; roll < 0 {
			break
		}
	}
	if !f.definite {
		c.mu.Lock()
		c.copies[w.id]++
		c.mu.Unlock()
	}
	if rand.IntN(8) == 0 {
		c.ask("extend", `select autopost.extend_lease('w', $1, $2, 5)`, w.id, w.token)
	}
	if f.outcome != "" {
		c.ask("commit", `select autopost.commit_outcome('w', $1, $2, $3::jsonb)`, w.id, w.token, f.outcome)
	}
	if rand.IntN(10) == 0 && f.outcome != "" {
		c.ask("commit again", `select autopost.commit_outcome('w', $1, $2, $3::jsonb)`, w.id, w.token, f.outcome)
	}
}

// together runs n of the same kind until the time is over, and on a slow machine until enough calls have begun.
func (c *crowd) together(group *sync.WaitGroup, n int, until time.Time, act func(n int)) {
	enough := int64(300)
	if pgtest.Long() {
		enough = 800
	}
	for i := range n {
		group.Go(func() {
			for now := time.Now(); now.Before(until) || c.begun.Load() < enough && now.Before(until.Add(wait.Bound)); now = time.Now() {
				act(i)
			}
		})
	}
}

// post enqueues texts by one of the functions for input, alone or in an array, each with a new source_ref of refs.
func (c *crowd) post(refs *atomic.Int64, texts ...string) map[string]any {
	var raw, items []map[string]any
	for _, text := range texts {
		ref := fmt.Sprint(refs.Add(1))
		raw = append(raw, map[string]any{"text": text, "source_ref": ref})
		items = append(items, map[string]any{"source_ref": ref, "payload": map[string]any{"text": text}})
	}
	array := func(v any) string {
		text, err := json.Marshal(v)
		require.NoError(c.t, err)
		return string(text)
	}
	switch rand.IntN(3) {
	case 0:
		return c.ask("enqueue", `select jsonb_build_object('results', autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api', $1::jsonb))`, array(raw))
	case 1:
		return c.ask("push", `select autopost.receive_push('w', 'in', $1::jsonb)`, array(raw))
	default:
		return c.ask("pull", `select autopost.ingest_pull_chunk('w', 'feed', 'feed', $1::jsonb)`, array(items))
	}
}

// operate is one act of an operator or of the monitor, by chance.
func (c *crowd) operate(int) {
	channel, group := fmt.Sprintf("c%03d", rand.IntN(12)), fmt.Sprint("g", rand.IntN(4))
	some := func(statuses string) string {
		return `coalesce((select array_agg(delivery_id) from (select delivery_id from autopost.list_deliveries('w', jsonb_build_object('status', '` + statuses + `'), 200) order by random() limit 5) d), array[gen_random_uuid()])`
	}
	switch rand.IntN(18) {
	case 0:
		c.ask("pause", `select autopost.pause_channel('w', $1, 1, 'olga', 'a test', false)`, channel)
	case 1, 2:
		c.ask("resume", `select autopost.resume_channel('w', $1, 'olga', 'a test', false)`, channel)
	case 3:
		c.ask("disable", `select autopost.disable_group('w', null, $1, 'olga', 'a test', false)`, group)
		c.ask("enable", `select autopost.enable_group('w', null, $1, 'olga', 'a test', false)`, group)
	case 4:
		c.ask("rotate", `select autopost.rotate_auth('w', $1, 'key' || (random() * 9)::int, $2, 'olga', 'a test', false)`, channel, group)
	case 5:
		c.ask("requeue", `select autopost.manual_requeue('w', `+some("failed_permanent")+`, 'olga', 'a test')`)
	case 6:
		c.ask("requeue", `select autopost.manual_requeue('w', `+some("dead")+`, 'olga', 'a test')`)
	case 7:
		c.ask("skip", `select autopost.skip_deliveries('w', `+some("retry")+`, 'olga', 'a test', false)`)
	case 8:
		if err := c.db.Err(`update autopost.channels c set max_parallel = 1 + (random() * 4)::int, title = 'edited' where c.channel_id = $1`, channel); err != nil {
			c.complain("plain edit", err)
		}
		c.count("plain edit")
	case 9, 10:
		c.ask("recover", `select autopost.recover_sending_leases('w')`)
	case 12:
		c.ask("shift", `select autopost.shift_deliveries('w', `+some("queued")+`, $1, 'olga', 'a test', false)`, 1-2*rand.IntN(2))
	case 13:
		c.ask("move", `select autopost.reschedule('w', `+some("queued")+`, now() + random() * interval '1 second', 'olga', 'a test', false)`)
	case 14:
		c.ask("next free", `select autopost.reschedule('w', `+some("retry")+`, null, 'olga', 'a test', false)`)
	case 15, 16:
		answer := c.ask("replace", `select autopost.replace_post('w', coalesce((select d.message_id from autopost.list_deliveries('w', '{"status": "queued"}', 200) d order by random() limit 1),
			gen_random_uuid()), jsonb_build_object('text', $1::text), 'olga', 'a test', false)`, fmt.Sprint("post ", rand.IntN(300)))
		if n, ok := answer["replaced"].(float64); ok {
			c.replaced.Add(int64(n))
		}
	case 11:
		c.ask("rearm", `select autopost.rearm_gates('w')`)
	default:
		c.ask("touch", `select autopost.touch_run('run-' || (random() * 3)::int)`)
	}
}
