package db_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// history makes many posts to 4000 channels that are over, a few of which failed, and
// what stands around them, without a trigger.
const history = `
set session_replication_role = replica;
insert into autopost.messages (workspace_id, message_id, content_hash, payload, created_at, last_seen_at)
select 'w', autopost.uuid_v7_of(now() - n * interval '1 second', n::text), md5(n::text), jsonb_build_object('text', 'post ' || n), now() - n * interval '1 second', now()
from generate_series(1, %[1]d / 4) n;
insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, attempt, sent_at, provider_message_id, last_error, finished_at,
	next_retry_at, created_at)
select 'w', autopost.uuid_v7_of(now() - m * interval '1 second', n::text), autopost.uuid_v7_of(now() - m * interval '1 second', m::text), 'c' || n %% 4000, 1, md5(m::text), s.status, 1,
	case when s.status = 'sent' then now() end, case when s.status = 'sent' then n::text end,
	case when s.status <> 'sent' then jsonb_build_object('code', 'http_' || 400 + n %% 7) end, now(), case when s.status = 'retry' then now() end, now() - m * interval '1 second'
from generate_series(1, %[1]d) n
cross join lateral (select (n + 3) / 4 as m, case n %% 1000 when 1 then 'dead' when 2 then 'failed_permanent' when 3 then 'retry' else 'sent' end as status) s;
insert into autopost.ingest_runs (workspace_id, run_id, kind, source_id, started_at)
select 'w', autopost.uuid_v7_of(now() - n * interval '1 second', n::text), case when n %% 5000 = 0 then 'file' else 'pull' end, 's' || n %% 100, now() - n * interval '1 second'
from generate_series(1, %[1]d / 4) n;
insert into autopost.admin_audit_log (workspace_id, id, ts, operator, action, reason, subject, before, after, seq, prev_hash, hash)
select 'w', autopost.uuid_v7_of(now() - n * interval '1 second', n::text), now(), 'o' || n %% 500, 'a' || n %% 500, 'r', 's' || n %% 500, '{}', '{}', n, '', ''
from generate_series(1, %[1]d / 8) n;
insert into autopost.events (workspace_id, id, delivery_id, message_id, ts, action, result, attempt)
select 'w', autopost.new_id(), d.delivery_id, d.message_id, d.created_at, 'sent', 'ok', 1 from autopost.deliveries d;
insert into autopost.post_acts (workspace_id, act_id, delivery_id, message_id, channel_id, lane, kind, due_at, status, next_at, operator, reason, created_at, updated_at, finished_at)
select 'w', d.delivery_id, d.delivery_id, d.message_id, d.channel_id, 'telegram/bot', 'delete', now(), 'done', now(), 'o', 'r', now(), now(), now() from autopost.deliveries d;
set session_replication_role = default;
analyze`

// A page of any list reads rows in the measure of the page, not of the history:
// counted by the rows that the tables gave, which no busy machine changes.
func TestPagesDoNotReadTheHistory(t *testing.T) {
	t.Parallel()
	rows := 20_000
	if pgtest.Long() {
		rows = 200_000
	}
	base := pgtest.New(t)
	posttest.Workspace(base, "w")
	base.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
		select 'w', 'c' || n, 'telegram', '@' || n, 'bot', 'bot' from generate_series(0, 3999) n`)
	base.Exec(fmt.Sprintf(history, rows))
	message := pgtest.Value[string](base, `select message_id::text from autopost.messages order by message_id limit 1`)
	middle := pgtest.Value[string](base, `select delivery_id::text from autopost.deliveries order by delivery_id offset $1 limit 1`, rows/2)

	session := base.Session("reader", "")
	for _, list := range []struct{ function, filter string }{
		{"list_deliveries", `{}`},
		{"list_deliveries", `{"before_id": "` + middle + `"}`},
		{"list_deliveries", `{"status": "sent"}`},
		{"list_deliveries", `{"status": "dead"}`},
		{"list_deliveries", `{"status": "deduped"}`},
		{"list_deliveries", `{"status": "queued"}`},
		{"list_deliveries", `{"channel_id": "c7"}`},
		{"list_deliveries", `{"channel_id": "nowhere"}`},
		{"list_deliveries", `{"channel_id": "c7", "status": "dead"}`},
		{"list_deliveries", `{"channel_id": "c7", "before_id": "` + middle + `"}`},
		{"list_deliveries", `{"error_code": "http_403"}`},
		{"list_deliveries", `{"error_code": "none"}`},
		{"list_deliveries", `{"message_id": "` + message + `"}`},
		{"list_deliveries", `{"since": "2999-01-01T00:00:00Z"}`},
		{"list_messages", `{}`},
		{"list_messages", `{"status": "sent"}`},
		{"list_messages", `{"status": "dead"}`},
		{"list_messages", `{"channel_id": "c7"}`},
		{"list_acts", `{}`},
		{"list_acts", `{"before_id": "` + middle + `"}`},
		{"list_acts", `{"delivery_id": "` + middle + `"}`},
		{"list_acts", `{"message_id": "` + message + `"}`},
		{"list_runs", `{}`},
		{"list_runs", `{"kind": "file"}`},
		{"list_runs", `{"kind": "api"}`},
		{"list_runs", `{"source_id": "s7"}`},
		{"list_audit", `{}`},
		{"list_audit", `{"action": "a7"}`},
		{"list_audit", `{"subject": "s7"}`},
		{"list_audit", `{"operator": "o7"}`},
		{"list_submissions", `{}`},
		{"list_submissions", `{"status": "failed"}`},
		{"list_submissions", `{"status": "fetching"}`},
		{"list_x_posts", `{}`},
		{"list_x_posts", `{"type": "image"}`},
		{"list_events", `{}`},
		{"list_events", `{"result": "error"}`},
		{"list_events", `{"message_id": "` + message + `"}`},
		{"list_events", `{"delivery_id": "` + middle + `"}`},
	} {
		session.Exec(`begin`)
		before := rowsRead(session)
		session.Exec(`select * from autopost.` + list.function + `('w', '` + list.filter + `', 51)`)
		read := rowsRead(session) - before
		session.Exec(`rollback`)
		assert.Less(t, read, int64(5000), "%s %s", list.function, list.filter)
		t.Logf("%s %s: %d rows read", list.function, list.filter, read)
	}
}

// A search among 100,000 messages reads rows in the measure of what it finds, for rare words and for a word of each
// message.
func TestSearchReadsTheIndex(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	posttest.Workspace(base, "w")
	base.Exec(`insert into autopost.messages (workspace_id, message_id, content_hash, payload, created_at, last_seen_at)
		select 'w', autopost.uuid_v7_of(now() - n * interval '5 minutes', n::text), md5(n::text), jsonb_build_object('text', 'story ' || n || case n % 1000 when 7 then ' bridge' else '' end),
			now() - n * interval '5 minutes', now()
		from generate_series(1, 100000) n`)
	base.Exec(`analyze`)
	session := base.Session("reader", "")
	for _, search := range []struct {
		filter string
		found  int64
	}{
		{`"text": "story 99999"`, 1},
		{`"text": "bridge"`, 50},
		{`"text": "nowhere"`, 0},
		{`"text": "sto"`, 50},
		{`"text": "story", "until": "` + pgtest.Value[string](base, `select to_char(now() - interval '300 days', 'YYYY-MM-DD"T00:00:00Z"')`) + `"`, 50},
	} {
		session.Exec(`begin`)
		before := rowsRead(session)
		found := session.Exec(`select count(*) from autopost.list_messages('w', '{` + search.filter + `}', 50)`)[0][0]
		read := rowsRead(session) - before
		session.Exec(`rollback`)
		assert.Equal(t, search.found, found, search.filter)
		assert.Less(t, read, int64(5000), search.filter)
		t.Logf("%s: %d rows read", search.filter, read)
	}
}

// rowsRead is how many rows the session's tables gave until now, by a scan or by an index.
func rowsRead(session *pgtest.Session) int64 {
	return session.Exec(`select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables where schemaname = 'autopost'`)[0][0].(int64)
}
