package pg_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/dispatch"
	"autopost/internal/media"
	"autopost/internal/monitor"
	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
	"autopost/internal/worker"
)

const setUp = `
update autopost.platforms set group_rps = null;
insert into autopost.workspaces (workspace_id) values ('w');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash) values ('w', 'e', 'webhook_push', repeat('a', 64));
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
values ('w', 'c', 'telegram', '-1001', 'bot', 'bot', null);`

func open(t *testing.T, url string) *pg.Store {
	t.Helper()
	store, err := pg.Open(t.Context(), pg.Options{URL: url})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return store
}

func push(t *testing.T, store *pg.Store, text string) {
	t.Helper()
	items, err := json.Marshal([]map[string]string{{"text": text}})
	require.NoError(t, err)
	_, err = store.ReceivePush(t.Context(), "w", "e", items)
	require.NoError(t, err)
}

func TestOnePostThroughTheStore(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp)
	store := open(t, db.URL("engine"))
	ctx := t.Context()
	require.NoError(t, store.Ready(ctx))

	work, err := store.ReadyWork(ctx, "", 10, nil)
	require.NoError(t, err)
	require.Empty(t, work.Ready)
	require.Nil(t, work.NextIn)
	push(t, store, "hello")
	work, err = store.ReadyWork(ctx, "", 10, []dispatch.Capacity{{Platform: autopost.MAX, Free: 0}})
	require.NoError(t, err)
	require.Equal(t, []dispatch.ClaimKey{{WorkspaceID: "w", Platform: autopost.Telegram}}, work.Ready)
	require.Zero(t, *work.NextIn)

	claimed, err := store.ClaimAndStart(ctx, "w", "run", 10, []dispatch.Capacity{{Platform: autopost.Telegram, Free: 0}}, nil)
	require.NoError(t, err)
	require.Empty(t, claimed)
	d := claimOne(t, store)
	require.Equal(t, "hello", d.RenderedText)
	require.Equal(t, []autopost.Step{{Name: "text", Text: true}}, d.RenderMeta.Steps)
	require.Nil(t, d.SendAt)

	stale := dispatch.Claim{DeliveryID: d.DeliveryID, ClaimToken: "another"}
	starts, err := store.StartCallBatch(ctx, "w", []dispatch.Claim{stale, {DeliveryID: d.DeliveryID, ClaimToken: d.ClaimToken}, stale})
	require.NoError(t, err)
	require.Equal(t, dispatch.Start{Reason: "stale"}, starts[0])
	require.True(t, starts[1].Applied)
	require.Equal(t, starts[0], starts[2])
	require.Greater(t, starts[1].Deadline, 4*time.Minute)
	commit := commitOne(t, store, d, autopost.Sent("77", time.Now(), nil))
	require.Equal(t, dispatch.Commit{Applied: true, Status: "sent"}, commit)
	require.Equal(t, commit, commitOne(t, store, d, autopost.Sent("77", time.Now(), nil)))
}

// A slot may have passed when it is returned; the caller must then ask again.
func TestPoolSizeIsTakenFromTheURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct {
		url  string
		size int
		err  string
	}{
		"postgres://u:p@h/d?sslmode=disable":                  {url: "postgres://u:p@h/d?sslmode=disable"},
		"postgres://u:p@h/d?pool_max_conns=8&sslmode=disable": {url: "postgres://u:p@h/d?sslmode=disable", size: 8},
		"postgres://u:p@h/d?pool_max_conns=1":                 {err: `pool_max_conns must be between 2 and 1000, got "1"`},
		"postgres://u:p@h/d?pool_max_conns=all":               {err: `got "all"`},
	} {
		url, size, err := pg.PoolSize(raw)
		if want.err != "" {
			require.ErrorContains(t, err, want.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want.url, url)
		require.Equal(t, want.size, size)
	}
}

func TestAStepReturnsItsSlot(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp)
	db.Exec(`update autopost.channels set settings = '{"long_text": "split"}'`)
	store := open(t, db.URL("engine"))
	push(t, store, strings.Repeat("In parts. ", 600))
	d := claimOne(t, store)
	require.Greater(t, len(d.RenderMeta.Steps), 1)
	startOne(t, store, d)
	record := func() dispatch.Progress {
		progress, err := store.RecordSeriesProgress(t.Context(), "w", d.DeliveryID, d.ClaimToken, autopost.Acknowledged{Step: d.RenderMeta.Steps[0].Name, IDs: []string{"7"}})
		require.NoError(t, err)
		return progress
	}
	require.Equal(t, dispatch.Progress{Applied: true}, record())
	db.Exec(`update autopost.channels set rate_rps = 1000`)
	progress := record()
	require.True(t, progress.Limited)
	require.LessOrEqual(t, progress.SendIn, time.Duration(0), "a slot was free at once")
}

func TestAHeldDeliveryHasNoRetryTime(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp + `update autopost.channels set on_unknown = 'hold';`)
	store := open(t, db.URL("engine"))
	push(t, store, "hello")
	d := claimOne(t, store)
	startOne(t, store, d)
	commit := commitOne(t, store, d, autopost.Failed(autopost.Error{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: "x", Known: false}))
	require.Equal(t, dispatch.Commit{Applied: true, Status: "retry"}, commit)
}

func TestOurErrorsHaveSentinels(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp)
	store := open(t, db.URL("engine"))
	_, err := store.ClaimAndStart(t.Context(), "w", "run", 0, nil, nil)
	require.ErrorIs(t, err, pg.ErrArgument)
	require.ErrorContains(t, err, "limit")
	require.ErrorIs(t, err, worker.ErrRefused)
	_, err = store.ClaimAndStart(t.Context(), "nowhere", "run", 1, nil, nil)
	require.ErrorIs(t, err, pg.ErrNoWorkspace)
}

func TestACallerHasRightsOnlyInItsWorkspaces(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp)
	url := db.URL("caller")
	// Through a pooler the login keeps its own role, which is not a member of autopost_engine.
	store, err := pg.Open(t.Context(), pg.Options{URL: url, Pooled: true})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	_, err = store.ClaimAndStart(t.Context(), "w", "run", 1, nil, nil)
	require.ErrorIs(t, err, pg.ErrNotAllowed)
	db.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ('autopost_caller', 'w')`)
	_, err = store.ClaimAndStart(t.Context(), "w", "run", 1, nil, nil)
	require.NoError(t, err)
	_, err = store.GetCredential(t.Context(), "w", "bot")
	require.ErrorContains(t, err, "permission denied")
}

// The calls of external callers have no deadline, so their logins need timeouts.
func TestDoctorNamesCallersWithoutTimeouts(t *testing.T) {
	db := pgtest.New(t)
	caller, err := pgx.ParseConfig(db.URL("caller"))
	require.NoError(t, err)
	store := open(t, db.URL("engine"))
	found := func() string {
		checks, err := store.Diagnose(t.Context())
		require.NoError(t, err)
		i := slices.IndexFunc(checks, func(c pg.Check) bool { return c.Name == "caller timeouts" })
		return checks[i].Found + checks[i].Remedy
	}
	require.Contains(t, found(), caller.User)
	require.Contains(t, found(), "alter role … set statement_timeout")
	db.Exec(`alter role ` + caller.User + ` set statement_timeout = '30s'`)
	require.Contains(t, found(), caller.User, "half of it")
	db.Exec(`alter role ` + caller.User + ` set idle_in_transaction_session_timeout = '30s'`)
	require.NotContains(t, found(), caller.User)
}

func TestCallsSurviveAFunctionWhoseResultTypeChanged(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp)
	store, err := pg.Open(t.Context(), pg.Options{URL: db.URL("engine"), MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	_, err = store.ReadyWork(t.Context(), "", 10, nil) // the plan is cached from here on
	require.NoError(t, err)
	db.Exec(`drop function autopost.ready_work(text, int, jsonb);
		create function autopost.ready_work(text, int, jsonb) returns json language sql as 'select ''{"next_wake_ms": 1500}''::json';
		grant execute on function autopost.ready_work(text, int, jsonb) to autopost_engine`)
	work, err := store.ReadyWork(t.Context(), "", 10, nil)
	require.NoError(t, err)
	require.Equal(t, 1500*time.Millisecond, *work.NextIn)
}

func TestListenWakesStages(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp)
	store := open(t, db.URL("engine"))
	wakeups := pg.NewWakeups()
	ctx := t.Context()
	go func() { _ = pg.Listen(ctx, db.URL("engine"), wakeups, discard()) }()
	waitFor(t, wakeups.Deliveries) // connected
	waitFor(t, wakeups.Submissions)
	push(t, store, "wake")
	waitFor(t, wakeups.Deliveries)
	items := json.RawMessage(`[{"media": [{"type": "image", "url": "https://example.com/a.png"}]}]`)
	_, err := store.ReceivePush(ctx, "w", "e", items)
	require.NoError(t, err)
	waitFor(t, wakeups.Submissions)
}

// Poll needs no listener. While the database is unavailable it wakes all stages.
func TestPollWakesStagesWithDueWork(t *testing.T) {
	db := pgtest.NewAlone(t)
	db.Exec(setUp)
	store := open(t, db.URL("engine"))
	push(t, store, "wake")
	wakeups := pg.NewWakeups()
	go func() { _ = pg.Poll(t.Context(), store, wakeups, 10*time.Millisecond, discard()) }()
	waitFor(t, wakeups.Deliveries)
	db.Exec(`update autopost.channels set enabled = false; insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss')`)
	waitFor(t, wakeups.Sources)
	require.Empty(t, wakeups.Fanout, "a stage without due work is not woken")
	require.Empty(t, wakeups.Webhooks)
	db.StopServer()
	defer db.StartServer()
	waitFor(t, wakeups.Fanout)
	waitFor(t, wakeups.Webhooks)
	waitFor(t, wakeups.PostChanges)
	waitFor(t, wakeups.Submissions)
}

func TestPurgesContinueWhereTheyStopped(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp)
	db.Exec(`insert into autopost.messages (workspace_id, message_id, content_hash, payload, created_at, last_seen_at)
		select 'w', gen_random_uuid(), n::text, '{}', t.at, t.at from generate_series(1, 1002) n, (select now() - interval '100 days' as at) t`)
	db.Exec(`insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, provider_message_id, sent_at, finished_at, created_at)
		select 'w', autopost.uuid_v7_of(m.created_at, c.n::text), m.message_id, 'c', 1, c.n::text, 'sent', '1', m.created_at, m.created_at, m.created_at
		from autopost.messages m, generate_series(1, 1001) c (n) where m.content_hash = '1'`)
	store := open(t, db.URL("engine"))
	ctx := t.Context()
	for _, duty := range []struct {
		once  func(ctx context.Context, workspace, after string) (int, string, error)
		first int
		rest  int
	}{{store.PurgeDeliveries, 1000, 1}, {store.PurgeMessages, 1000, 2}} {
		n, next, err := duty.once(ctx, "w", "")
		require.NoError(t, err)
		require.Equal(t, duty.first, n)
		require.NotEmpty(t, next)
		n, next, err = duty.once(ctx, "w", next)
		require.NoError(t, err)
		require.Equal(t, duty.rest, n)
		require.Empty(t, next)
	}
}

func TestMonitorCallsThroughTheStore(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp)
	db.Exec(`update autopost.workspaces set status = 'paused'`)
	store := open(t, db.URL("engine"))
	ctx := t.Context()
	push(t, store, "hello")
	db.Exec(`update autopost.ingress_receipts set expires_at = now()`)

	all, err := store.ListAllWorkspaces(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"w"}, all)
	dropped, more, inDefault, err := store.DropEventPartitions(ctx)
	require.NoError(t, err)
	require.Zero(t, dropped+inDefault)
	require.False(t, more)
	for _, duty := range []struct {
		purge func(ctx context.Context, workspace string) (int, bool, error)
		count int
	}{{store.PurgeReceipts, 1}, {store.PurgeRuns, 0}, {store.PurgeSubmissions, 0}, {store.PurgeAuditLog, 0}} {
		n, more, err := duty.purge(ctx, "w")
		require.NoError(t, err)
		require.Equal(t, duty.count, n)
		require.False(t, more)
	}

	seq, hash, err := store.AuditHead(ctx, "w")
	require.NoError(t, err)
	require.Zero(t, seq)
	require.Len(t, hash, 64)
	_, err = store.PauseChannel(ctx, pg.OperatorAction{Workspace: "w", Operator: "olga", Reason: "to see"}, "c", time.Minute)
	require.NoError(t, err)
	seq, next, err := store.AuditHead(ctx, "w")
	require.NoError(t, err)
	require.EqualValues(t, 1, seq)
	require.NotEqual(t, hash, next)

	db.Exec(`select autopost.set_event_strictness(false)`)
	db.Exec(`insert into autopost.events (workspace_id, id, message_id, ts, action, result)
		values ('w', gen_random_uuid(), gen_random_uuid(), date_trunc('day', now(), 'UTC') - interval '1 hour', 'enqueue', 'ok')`)
	orphans, audit, err := store.CheckIntegrity(ctx, "w")
	require.NoError(t, err)
	require.Len(t, orphans, 1)
	require.Equal(t, `"events.message_id"`, field(t, orphans[0], "kind"))
	require.Empty(t, audit)
	alerts, err := store.ListAlerts(ctx, "w", 10)
	require.NoError(t, err)
	require.Len(t, alerts, 1)
	require.Equal(t, []string{"orphans", "events.message_id", "error"}, []string{alerts[0].Kind, alerts[0].Subject, alerts[0].Severity})
}

func TestUnreferencedMediaThroughTheStore(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(setUp)
	const ref = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	db.Exec(`insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes, last_seen_at) values ('w', $1, 'file:///1', 7, now() - interval '31 days')`, ref)
	store := open(t, db.URL("engine"))
	ctx := t.Context()
	list, err := store.ListUnreferencedOrigins(ctx, "w", 10)
	require.NoError(t, err)
	require.Equal(t, []monitor.Origin{{BlobRef: ref, OriginURL: "file:///1", SizeBytes: 7}}, list)
	token, reason, err := store.ForgetMediaOrigin(ctx, "w", ref)
	require.NoError(t, err)
	require.NotEmpty(t, token)
	require.Empty(t, reason)
	again, err := store.BeginMediaRemoval(ctx, ref)
	require.NoError(t, err)
	require.Empty(t, again, "one at a time")
	answer, err := store.PutMediaOrigin(ctx, "w", media.Origin{BlobRef: ref, OriginURL: "file:///1", Kind: "image", SizeBytes: 7})
	require.NoError(t, err)
	require.Equal(t, media.Registered{Reason: "being_removed"}, answer)
	late, err := store.ListMediaRemovals(ctx, 10)
	require.NoError(t, err)
	require.Empty(t, late)
	require.NoError(t, store.EndMediaRemoval(ctx, ref, token))
	require.NoError(t, store.RemoveMediaOrigin(ctx, "w", ref))
	_, reason, err = store.ForgetMediaOrigin(ctx, "w", ref)
	require.NoError(t, err)
	require.Equal(t, "unknown", reason)
	unknown, err := store.ListUnknownMedia(ctx, []string{ref})
	require.NoError(t, err)
	require.Equal(t, []string{ref}, unknown)
	held, err := store.GetMediaOrigin(ctx, "w", ref)
	require.NoError(t, err)
	require.False(t, held)
}
