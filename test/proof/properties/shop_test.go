package properties

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"autopost/internal/testing/pgtest"
)

const setup = `
create schema test;
grant usage on schema test to public;
create table test.clock (now timestamptz not null);
insert into test.clock values ('2026-06-01 12:00:00+00');
grant select on test.clock to public;
create or replace function autopost.now_ts() returns timestamptz language sql volatile as $$ select c.now from test.clock c $$`

// fixture is a database with a clock. Each check has its own workspace in it.
type fixture struct {
	session *pgtest.Session
	shops   int
	now     time.Time
}

func open(t *testing.T) *fixture {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(setup)
	return &fixture{session: db.Session("shop", ""), now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
}

// rows runs a statement; what PostgreSQL refuses fails the check, so that it is made small.
func (h *fixture) rows(t *rapid.T, sql string, args ...any) [][]any {
	t.Helper()
	pending := h.session.Start(sql, args...)
	if err := pending.Err(); err != nil {
		t.Fatalf("%s %v: %v", sql, args, err)
	}
	return pending.Wait()
}

// answer runs a statement for one object.
func (h *fixture) answer(t *rapid.T, sql string, args ...any) map[string]any {
	t.Helper()
	object, ok := h.rows(t, sql, args...)[0][0].(map[string]any)
	if !ok {
		t.Fatalf("%s: no object", sql)
	}
	return object
}

func (h *fixture) tick(t *rapid.T, by time.Duration) {
	t.Helper()
	h.now = h.now.Add(by)
	h.rows(t, `update test.clock set now = $1`, h.now)
}

// channel is the configuration of a channel, and its slots and sent posts.
type channel struct {
	id, policy  string
	rate        float64 // 0: no limit
	maxParallel int
	ttl         time.Duration
	spans       [][2]string // of every day, by the clock of Berlin; none: immediate
	slots       []slot      // handed out at the present rate
	sent        map[int]time.Time
}

// slot is when a call may leave, and how much of the rate it costs.
type slot struct {
	at   time.Time
	cost int
}

// row is a delivery as the database has it.
type row struct {
	channel, status           string
	content                   int
	attempt, granted, unknown int
	held, leased              bool
	requeues, absents, copies int
	wait                      time.Time // not before this, by what was answered
	steps, acked              int
	token                     string
}

func (r row) final() bool {
	return r.status == "sent" || r.status == "failed_permanent" || r.status == "dead" || r.status == "deduped"
}

// call is a claim of a worker, and its result.
type call struct {
	id      uuid.UUID
	token   string
	channel *channel
	started bool
	outcome string
}

// shop is the workspace of one check.
type shop struct {
	*fixture
	workspace string
	channels  []*channel
	mood      string
	groupRate float64
	group     []slot
	rowsByID  map[uuid.UUID]*row
	order     []uuid.UUID
	calls     []*call
	tokens    map[string]bool
	freed     map[uuid.UUID]bool // an operator requeued it with this command
}

const images = 2

func (h *fixture) opens(t *rapid.T) *shop {
	h.shops++
	s := &shop{fixture: h, workspace: fmt.Sprint("w", h.shops), rowsByID: map[uuid.UUID]*row{},
		tokens: map[string]bool{}, freed: map[uuid.UUID]bool{}}
	s.rows(t, `insert into autopost.workspaces (workspace_id) values ($1)`, s.workspace)
	s.rows(t, `insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
		values ($1, 'in', 'webhook_push', encode(sha256(convert_to($1::text, 'UTF8')), 'hex'))`, s.workspace)
	s.rows(t, `insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
		select $1, 'sha256:' || repeat(n::text, 64), 'file:///' || n, 10 from generate_series(1, $2::int) n`, s.workspace, images)
	s.mood = rapid.SampledFrom(moods).Draw(t, "mood")
	s.groupRate = rapid.SampledFrom([]float64{0, 0, 3}).Draw(t, "group rate")
	s.rows(t, `insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ($1, 'telegram', 'bot', nullif($2::numeric, 0))`, s.workspace, s.groupRate)
	for i, policy := range []string{"reconcile", "hold", "resend"} {
		c := &channel{id: fmt.Sprint("c", i), policy: policy, rate: 1, maxParallel: 1, ttl: 168 * time.Hour, sent: map[int]time.Time{}}
		s.channels = append(s.channels, c)
		s.rows(t, `insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel, on_unknown, timezone)
			values ($1, $2, 'telegram', '@' || $2, 'bot', 'bot', 1, 1, $3, 'Europe/Berlin')`, s.workspace, c.id, policy)
		if policy == "resend" {
			c.spans = [][2]string{{"09:00", "18:00"}}
			s.window(t, c)
		}
	}
	return s
}

// text of a post: an even one is short, an odd one long, so that with its images it
// is sent in two steps.
func text(content int) string {
	if content%2 == 0 {
		return fmt.Sprint("short ", content)
	}
	return strings.Repeat(fmt.Sprint("long ", content, " "), 200)
}

// payload of a post, as its source gives it.
func payload(content int) map[string]any {
	p := map[string]any{"text": text(content)}
	if content%2 == 1 {
		var media []any
		for n := 1; n <= images; n++ {
			media = append(media, map[string]any{"type": "image", "blob_ref": "sha256:" + strings.Repeat(fmt.Sprint(n), 64)})
		}
		p["media"] = media
	}
	return p
}

func (s *shop) channelOf(id string) *channel {
	for _, c := range s.channels {
		if c.id == id {
			return c
		}
	}
	return nil
}
