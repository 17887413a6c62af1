package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// fixture is a database with workspace w, driven through the real functions by one
// session. What a test does may stand in a transaction that is rolled back.
type fixture struct {
	t       *testing.T
	db      *pgtest.DB
	session *pgtest.Session
}

// words makes the functions easy to call from a test. The engine's clock runs, and
// can be put ahead. Each function uses the delivery of a channel that is in flight.
const words = `
create schema test;
grant usage on schema test to autopost_owner;
create table test.clock (ahead interval not null);
insert into test.clock values ('0');
grant select on test.clock to autopost_owner;
create or replace function autopost.now_ts() returns timestamptz language sql volatile as
$$ select clock_timestamp() + c.ahead from test.clock c $$;

update autopost.platforms set group_rps = null;
insert into autopost.workspaces (workspace_id) values ('w'), ('other');
insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id, secret_hash) values
	('w', 'in', 'webhook_push', null, repeat('a', 64)), ('other', 'in', 'webhook_push', null, repeat('b', 64)), ('w', 'feed', 'pull_source', 'feed', null);

create function test.channel(p_channel_id text, p_workspace_id text default 'w') returns void language sql as $$
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
values (p_workspace_id, p_channel_id, 'telegram', '@' || p_channel_id, p_channel_id, p_channel_id, 1000)
$$;
create function test.say(p_channel_id text, p_text text, p_more jsonb default '{}', p_workspace_id text default 'w') returns jsonb language sql as $$
select autopost.enqueue_messages_and_deliveries(p_workspace_id, 'in', 'api',
	jsonb_build_object('text', p_text, 'routing', jsonb_build_object('include_channels', jsonb_build_array(p_channel_id))) || p_more)
$$;
create function test.claim(p_workspace_id text default 'w') returns bigint language sql as $$
select count(*) from autopost.claim_deliveries(p_workspace_id, 'run-1', 1000)
$$;
create function test.flying(p_channel_id text) returns autopost.deliveries language sql as $$
select d from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending' order by d.delivery_id desc limit 1
$$;
create function test.newest(p_channel_id text) returns autopost.deliveries language sql as $$
select d from autopost.deliveries d where d.channel_id = p_channel_id order by d.delivery_id desc limit 1
$$;
create function test.start(p_channel_id text) returns jsonb language sql as $$
select autopost.start_call(f.workspace_id, f.delivery_id, f.claim_token) from test.flying(p_channel_id) f where f.delivery_id is not null
$$;
create function test.commit(p_channel_id text, p_outcome jsonb) returns jsonb language sql as $$
select autopost.commit_outcome(f.workspace_id, f.delivery_id, f.claim_token, p_outcome) from test.flying(p_channel_id) f
$$;
create function test.sent(p_channel_id text) returns jsonb language sql as $$
select test.commit(p_channel_id, '{"ok": true, "provider_message_id": "77"}')
$$;
create function test.failed(p_channel_id text, p_error jsonb) returns jsonb language sql as $$
select test.commit(p_channel_id, jsonb_build_object('ok', false, 'error', p_error))
$$;
create function test.ask(p_channel_id text, p_kind text) returns jsonb language sql as $$
select autopost.request_acts('w', p_kind, null, array[(test.newest(p_channel_id)).delivery_id], case p_kind when 'edit' then '{"text": "better words"}'::jsonb end, null, 'ann', 'read it again', false)
$$;
create function test.doing(p_channel_id text) returns autopost.post_acts language sql as $$
select a from autopost.post_acts a where a.channel_id = p_channel_id and a.status = 'sending' order by a.act_id desc limit 1
$$;
create function test.start_act(p_channel_id text) returns jsonb language sql as $$
select autopost.start_act('w', a.act_id, a.claim_token) from test.doing(p_channel_id) a
$$;
create function test.end_act(p_channel_id text, p_outcome jsonb) returns jsonb language sql as $$
select autopost.commit_act('w', a.act_id, a.claim_token, p_outcome) from test.doing(p_channel_id) a
$$;`

// open returns a fixture without channels.
func open(t *testing.T) *fixture {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(words)
	return &fixture{t: t, db: db, session: db.Session("fixture", "")}
}

// rows runs a statement and returns its rows.
func (h *fixture) rows(sql string, args ...any) [][]any {
	h.t.Helper()
	pending := h.session.Start(sql, args...)
	if err := pending.Err(); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return pending.Wait()
}

// do runs a statement.
func (h *fixture) do(sql string, args ...any) {
	h.t.Helper()
	h.rows(sql, args...)
}

// all runs statements, each in a transaction of its own.
func (h *fixture) all(statements ...string) {
	h.t.Helper()
	for _, sql := range statements {
		h.do(sql)
	}
}

// ahead puts the clock ahead.
func (h *fixture) ahead(by string) {
	h.t.Helper()
	h.do(`update test.clock set ahead = ahead + $1::interval`, by)
}

// channels makes channels of workspace w.
func (h *fixture) channels(ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.do(`select test.channel($1)`, id)
	}
}

// fly claims what is due and begins the call of the channel's delivery. A start that a busy machine delays beyond its
// slot is refused with its claim released: it comes again later.
func (h *fixture) fly(channel string) {
	h.t.Helper()
	var started map[string]any
	for range 5 {
		h.do(`select test.claim()`)
		started = h.rows(`select test.start($1)`, channel)[0][0].(map[string]any)
		if started["reason"] != "rate" {
			break
		}
		h.ahead("2 seconds")
	}
	require.Equal(h.t, true, started["applied"], "start a call of %s: %v", channel, started)
}

// deliver says something new on a channel and sees it sent.
func (h *fixture) deliver(channel, text string) {
	h.t.Helper()
	h.do(`select test.say($1, $2)`, channel, text)
	h.fly(channel)
	h.settle(channel, "sent", `select test.sent($1)`, channel)
}

// act claims what is to be done to sent posts, and begins the call for that of a channel.
func (h *fixture) act(channel string) {
	h.t.Helper()
	h.do(`select * from autopost.claim_acts('w', 'run-1', 100)`)
	started := h.rows(`select test.start_act($1) ->> 'applied'`, channel)
	require.Equal(h.t, [][]any{{"true"}}, started, "begin an act on %s", channel)
}

// ends brings the act of a channel to an end.
func (h *fixture) ends(channel, becomes, outcome string) {
	h.t.Helper()
	h.settle(channel, becomes, `select test.end_act($1, $2::jsonb)`, channel, outcome)
}

// twoFly claims two posts of a channel and begins the call of the newer one.
func (h *fixture) twoFly(channel string) {
	h.t.Helper()
	h.do(`update autopost.channels set max_parallel = 2 where channel_id = $1`, channel)
	h.do(`select test.say($1, 'side'), test.say($1, 'by side')`, channel)
	h.fly(channel)
}

// windowEnding gives a channel a window in UTC that began an hour ago, every day, and
// ends about that long from now.
func (h *fixture) windowEnding(channel, in string) {
	h.t.Helper()
	h.do(`update autopost.channels set window_mode = 'windowed', posting_window = (
		select jsonb_object_agg(d, jsonb_build_array(jsonb_build_array(to_char(n.at - interval '1 hour', 'HH24:MI'), to_char(n.at + $2::interval, 'HH24:MI'))))
		from unnest('{mon,tue,wed,thu,fri,sat,sun}'::text[]) d, (select autopost.now_ts() at time zone 'UTC' as at) n)
		where channel_id = $1`, channel, in)
}

// beginFanout posts to more channels than one transaction takes, and works off one of them.
func (h *fixture) beginFanout() {
	h.t.Helper()
	h.all(`update autopost.settings set value = '1' where key = 'fanout_chunk_channels'`,
		`select test.say('plain', 'to two of us', '{"routing": {"include_channels": ["plain", "retry"]}}')`)
	require.Equal(h.t, [][]any{{"running"}}, h.rows(`select autopost.run_fanout('w', 1) ->> 'status'`))
}

// forgotten lets this time pass, while a daemon lives that takes everything else.
func (h *fixture) forgotten(by string) {
	h.t.Helper()
	h.ahead(by)
	h.all(`select autopost.recover_sending_leases('w')`, `select autopost.recover_claimed_leases('w')`, `select autopost.touch_run('run-1')`)
}

// fail begins the next call of a channel's delivery and lets it fail.
func (h *fixture) fail(channel, becomes, failure string) {
	h.t.Helper()
	h.fly(channel)
	h.settle(channel, becomes, `select test.failed($1, $2::jsonb)`, channel, failure)
}

func (h *fixture) settle(channel, becomes, sql string, args ...any) {
	h.t.Helper()
	answer := h.rows(sql, args...)[0][0].(map[string]any)
	require.Equal(h.t, becomes, answer["status"], "commit on %s: %v", channel, answer)
}

// overQuota sends three posts on plain, after what was claimed before is long over.
func (h *fixture) overQuota() {
	h.t.Helper()
	h.ahead("6 minutes")
	h.do(`select autopost.recover_sending_leases('w')`)
	for _, text := range []string{"first", "second", "one too many"} {
		h.deliver("plain", text)
	}
}

// raw edits rows without triggers and foreign keys.
func (h *fixture) raw(sql string) {
	h.t.Helper()
	h.all(`set session_replication_role = replica`, sql, `set session_replication_role = origin`)
}

// breaks replaces a piece of an installed function, which must have it once.
func (h *fixture) breaks(function, piece, by string) {
	h.t.Helper()
	source := h.rows(`select pg_get_functiondef(p.oid) from pg_proc p
		where p.pronamespace = 'autopost'::regnamespace and p.proname = $1 order by p.oid limit 1`, function)[0][0].(string)
	require.Equal(h.t, 1, strings.Count(source, piece), "%s does not have %q once", function, piece)
	h.do(strings.Replace(source, piece, by, 1))
}

// breaksEach replaces a piece of an installed function wherever it stands.
func (h *fixture) breaksEach(function, piece, by string) {
	h.t.Helper()
	source := h.rows(`select pg_get_functiondef(p.oid) from pg_proc p
		where p.pronamespace = 'autopost'::regnamespace and p.proname = $1 order by p.oid limit 1`, function)[0][0].(string)
	require.Contains(h.t, source, piece, function)
	h.do(strings.ReplaceAll(source, piece, by))
}

// dropChecks removes the check constraints of deliveries that mention a column.
func (h *fixture) dropChecks(column string) {
	h.t.Helper()
	names := h.rows(`select c.conname::text from pg_constraint c
		where c.conrelid = 'autopost.deliveries'::regclass and c.contype = 'c' and pg_get_constraintdef(c.oid) like '%' || $1 || '%'`, column)
	require.NotEmpty(h.t, names)
	for _, name := range names {
		h.do(`alter table autopost.deliveries drop constraint ` + name[0].(string))
	}
}

// finding is one row of verify.
type finding struct {
	Invariant  string
	Title      string
	Violations int64
	Sample     []any
}

func (f finding) String() string {
	return fmt.Sprintf("%s (%s): %d violations: %v", f.Invariant, f.Title, f.Violations, f.Sample)
}

// verify asks verify about workspace w; the findings with violations by invariant.
func (h *fixture) verify() (all []finding, broken map[string]finding) {
	h.t.Helper()
	broken = map[string]finding{}
	for _, row := range h.rows(`select v.invariant, v.title, v.violations, v.sample from autopost.verify('w') v`) {
		f := finding{row[0].(string), row[1].(string), row[2].(int64), row[3].([]any)}
		all = append(all, f)
		if f.Violations > 0 {
			broken[f.Invariant] = f
		}
	}
	return all, broken
}

// clean fails the test with every finding that verify has.
func (h *fixture) clean() {
	h.t.Helper()
	_, broken := h.verify()
	for _, f := range broken {
		h.t.Error(f)
	}
}

const (
	unknown   = `{"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}`
	transient = `{"category": "TRANSIENT", "scope": "delivery", "code": "http_502", "message": "https://example.org/bot123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc/sendMessage said no"}`
	limited   = `{"category": "TRANSIENT", "scope": "channel", "code": "429", "retry_after_ms": 30000}`
	patience  = `{"category": "TRANSIENT", "scope": "channel", "code": "429", "retry_after_ms": 1800000}` // longer than all cases take
	flooded   = `{"category": "TRANSIENT", "scope": "platform", "code": "429", "retry_after_ms": 30000}`
	forbidden = `{"category": "PERMANENT", "scope": "channel", "code": "forbidden"}`
	refused   = `{"category": "PERMANENT", "scope": "platform", "code": "unauthorized"}`
)

// outcomes of acts
const (
	acted    = `{"ok": true}`
	notActed = `{"ok": false, "error": ` + transient + `}`
	mayNot   = `{"ok": false, "error": ` + forbidden + `}`
)

func requeue(channel string) string {
	return fmt.Sprintf(`select autopost.manual_requeue('w', array[(test.newest('%s')).delivery_id], 'ann', 'looked at it')`, channel)
}

func resolve(channel, verdict string) string {
	return fmt.Sprintf(`select autopost.resolve_unknown('w', (test.newest('%s')).delivery_id, '%s', '78', 'ann', 'looked')`, channel, verdict)
}
