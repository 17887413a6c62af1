package conformance

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/proof/model"
)

// A short tick ends every wait and cooldown. A silence is longer than a heartbeat; hundreds of them fit into a lease. A
// long tick ends every lease and pause. The model has no rates, so a limit does not lower one.
const (
	setup = `
create schema test;
grant usage on schema test to public;
create table test.clock (now timestamptz not null);
insert into test.clock values ('2026-06-01 12:00:00+00');
grant select on test.clock to public;
create or replace function autopost.now_ts() returns timestamptz language sql volatile as $$ select c.now from test.clock c $$;
create or replace function autopost.slow_down(p_workspace_id text, p_channel autopost.channels, p_until timestamptz) returns void language sql as '';
update autopost.settings set value = '36000' where key in ('sending_lease_seconds', 'pause_on_permanent_seconds');
update autopost.retry_policies set base_ms = 1000, cap_ms = 4000 where platform = '*'`
	tick     = `update test.clock set now = now + $1::interval`
	short    = "15 seconds"
	silence  = "50 seconds"
	long     = "40000 seconds"
	operator = "'ann', 'looked at it'"
)

// fixture is the database of many walks, each in its own workspace.
type fixture struct {
	t       *testing.T
	session *pgtest.Session
	walks   int
}

func open(t *testing.T) *fixture {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(setup)
	return &fixture{t: t, session: db.Session("walk", "")}
}

// value runs a statement for its one value.
func (h *fixture) value(sql string, args ...any) any {
	h.t.Helper()
	rows := h.session.Exec(sql, args...)
	require.Len(h.t, rows, 1)
	return rows[0][0]
}

// walk is a model and the workspace that must match it.
type walk struct {
	*fixture
	config    model.Config
	state     model.State
	workspace string
	ids       []uuid.UUID
	tokens    [model.MaxWorkers]string
	lost      [model.MaxDeliveries]string // tokens of claims whose answer was lost
	temper    model.Outcome               // what most of its calls come to
	runs      int
	events    map[string]int
	steps     []string
}

// begin creates a workspace with one channel and the deliveries of the model.
func (h *fixture) begin(c model.Config) *walk {
	h.t.Helper()
	h.walks++
	w := &walk{fixture: h, config: c, state: c.Start(), workspace: fmt.Sprint("w", h.walks), events: map[string]int{}}
	h.session.Exec(`update autopost.settings set value = to_jsonb($1::int) where key = 'max_attempts'`, int(c.MaxAttempts))
	h.session.Exec(`insert into autopost.workspaces (workspace_id) values ($1)`, w.workspace)
	h.session.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
		values ($1::text, 'in', 'webhook_push', encode(sha256(convert_to($1::text, 'UTF8')), 'hex'))`, w.workspace)
	h.session.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group) values ($1, 'telegram', 'bot')`, w.workspace)
	h.session.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel, on_unknown)
		values ($1, 'c', 'telegram', '@c', 'bot', 'bot', null, $2, $3)`, w.workspace, c.MaxParallel, c.Policy.String())
	for n := range c.Deliveries {
		h.session.Exec(`select autopost.enqueue_messages_and_deliveries($1, 'in', 'api', jsonb_build_object('text', $2::text))`, w.workspace, fmt.Sprint("post ", n))
		h.session.Exec(tick, "1 second")
	}
	for _, row := range h.session.Exec(`select delivery_id from autopost.deliveries where workspace_id = $1 order by due_at`, w.workspace) {
		w.ids = append(w.ids, row[0].([16]byte))
	}
	require.Len(h.t, w.ids, c.Deliveries)
	return w
}

// seen is the state that is compared after each step.
type seen struct {
	Deliveries []row
	Shut       bool
	Disabled   bool
	Streak     int
	Cooling    bool
	InFlight   int
	Events     map[string]int
}

type row struct {
	Status                                string
	Attempt, Granted, Unknown, Allowance  int
	Due, Held, Token, Leased, CallStarted bool
}

// expected is the state of the model.
func (w *walk) expected() seen {
	s := seen{Events: map[string]int{}, Disabled: w.state.Channel.Disabled, Streak: int(w.state.Channel.Streak),
		Shut: w.state.Channel.Pause != model.Open, Cooling: w.state.Channel.Cooling}
	for i := range w.config.Deliveries {
		d := w.state.Deliveries[i]
		flies, waits := d.Status == model.Sending, d.Status == model.Queued || d.Status == model.Retry
		s.Deliveries = append(s.Deliveries, row{
			Status: d.Status.String(), Attempt: int(d.Attempt), Granted: int(d.Granted), Unknown: int(d.Unknown), Allowance: int(d.Allowance),
			Due: waits && d.Due == model.Now, Held: d.Held(), Token: flies, Leased: flies && d.Leased, CallStarted: flies && d.Started,
		})
		if flies {
			s.InFlight++
		}
	}
	for action, n := range w.events {
		s.Events[action] = n
	}
	return s
}

// found is the state of the database. Reading it moves the clock by a millisecond, so no two steps have the same time.
func (w *walk) found() seen {
	w.t.Helper()
	s := seen{Events: map[string]int{}}
	rows := w.session.Exec(`
		with tick as (update test.clock set now = now + interval '1 millisecond')
		select d.status, d.attempt, d.granted_attempts, d.unknown_outcomes, d.unknown_allowance, n.at >= d.due_at and d.status in ('queued', 'retry'),
			coalesce(d.next_retry_at = 'infinity', false), d.claim_token is not null, coalesce(d.sending_lease_until > n.at, false),
			d.status = 'sending' and autopost.call_started_at(d) is not null,
			coalesce(c.paused_until > n.at, false), not c.enabled, c.error_streak, coalesce(c.cooldown_until > n.at, false), g.inflight,
			(select jsonb_object_agg(e.action, e.n) from (select e.action, count(*) as n from autopost.events e
				where e.workspace_id = $1 and e.action <> 'enqueue' group by e.action) e)
		from autopost.deliveries d
		join autopost.channels c on c.workspace_id = d.workspace_id
		join autopost.channel_gates g on g.workspace_id = d.workspace_id
		cross join lateral (select autopost.now_ts() as at) n
		where d.workspace_id = $1 order by d.delivery_id`, w.workspace)
	for _, r := range rows {
		s.Deliveries = append(s.Deliveries, row{
			Status: r[0].(string), Attempt: number(r[1]), Granted: number(r[2]), Unknown: number(r[3]), Allowance: number(r[4]),
			Due: r[5].(bool), Held: r[6].(bool), Token: r[7].(bool), Leased: r[8].(bool), CallStarted: r[9].(bool),
		})
		s.Shut, s.Disabled, s.Streak, s.Cooling, s.InFlight = r[10].(bool), r[11].(bool), min(number(r[12]), 3), r[13].(bool), number(r[14])
		if events, any := r[15].(map[string]any); any {
			for action, n := range events {
				s.Events[action] = number(n)
			}
		}
	}
	return s
}

func number(v any) int {
	switch n := v.(type) {
	case int32:
		return int(n)
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	panic(fmt.Sprintf("%T is not a number", v))
}
