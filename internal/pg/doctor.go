package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost/internal/api"
	"autopost/internal/telemetry"
)

// Check is the result of one check of the doctor.
type Check struct {
	Name string `json:"check"`
	// OK means that no action is needed.
	OK bool `json:"ok"`
	// Found is the found value; Remedy is the action, "" if OK.
	Found  string `json:"found"`
	Remedy string `json:"remedy"`
}

// diagnosis is a check by one query.
type diagnosis struct {
	name   string
	sql    string // returns (ok boolean, found text)
	remedy string
}

var diagnoses = []diagnosis{
	{"version", `select current_setting('server_version_num')::int >= 150000, current_setting('server_version')`,
		"upgrade to PostgreSQL 15 or newer"},
	{"encoding", `select getdatabaseencoding() = 'UTF8', getdatabaseencoding()`,
		"create the database with encoding UTF8"},
	{"collation", `select exists (select 1 from pg_collation where collname = 'und-x-icu'), coalesce((select 'und-x-icu ' || coalesce(collversion, '') from pg_collation where collname = 'und-x-icu'), 'no ICU')`,
		"use a PostgreSQL with ICU: it folds hashtags and tags"},
	{"isolation", `select current_setting('default_transaction_isolation') = 'read committed', current_setting('default_transaction_isolation')`,
		"alter role or database set default_transaction_isolation = 'read committed'"},
	{"durability", `select current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on', 'fsync ' || current_setting('fsync') || ', full_page_writes ' || current_setting('full_page_writes')`,
		"set both to on: what is acknowledged must survive a power cut"},
	{"commits", `select current_setting('synchronous_commit') <> 'off', 'synchronous_commit ' || current_setting('synchronous_commit')`,
		"set synchronous_commit = on for the role and the database: functions switch it off where it is safe"},
	{"autovacuum", `select current_setting('autovacuum') = 'on' and current_setting('track_counts') = 'on', 'autovacuum ' || current_setting('autovacuum') || ', track_counts ' || current_setting('track_counts')`,
		"set both to on: queues of dead rows make claims slow"},
	{"statement timeout", `select t.ms = 0 or t.ms >= 30000, case when t.ms = 0 then 'none' else t.ms || ' ms' end from (select setting::int from pg_settings where name = 'statement_timeout') t (ms)`,
		"set statement_timeout to 0 or to 30s and more for this role: calls bring their own deadlines"},
	{"connections", `select u.used < u.most * 0.9, u.used || ' of ' || u.most || ' in use' from (select (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as used, current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as most) u`,
		"raise max_connections, or put a pooler before the database; each daemon takes up to 16 and one for LISTEN"},
	{"owner", `select exists (select 1 from pg_roles where rolname = 'autopost_owner' and not rolsuper and (not rolcanlogin or exists (select 1 from pg_extension where extname = 'citus'))), coalesce((select 'login ' || rolcanlogin || ', superuser ' || rolsuper from pg_roles where rolname = 'autopost_owner'), 'missing')`,
		"run autopost migrate; then alter role autopost_owner nologin nosuperuser (in a Citus cluster it needs login)"},
	{"roles", `select count(*) = 0, coalesce('missing: ' || string_agg(u.name, ', ' order by u.name), 'all exist') from unnest('{autopost_owner,autopost_engine,autopost_caller,autopost_reader}'::text[]) u (name) where to_regrole(u.name) is null`,
		"let a superuser run: autopost migrate --print-roles | psql -d DATABASE; a dump must be restored after that (docs/operate/backup.md)"},
	{"owner of the tables", `select count(*) = 0, coalesce(count(*) || ' relations belong to ' || min(pg_get_userbyid(c.relowner)), '') from pg_class c where c.relnamespace = to_regnamespace('autopost') and c.relkind in ('r', 'p', 'v') and pg_get_userbyid(c.relowner) <> 'autopost_owner'`,
		"the dump was restored without the roles: restore it again as docs/operate/backup.md says"},
	{"daemon role", `select not rolsuper and not rolbypassrls, current_user from pg_roles where rolname = current_user`,
		"connect directly (not through a pooler), or as a login that is a member of autopost_engine and not a superuser"},
	{"caller timeouts", `select count(*) = 0, coalesce('missing for ' || string_agg(r.rolname, ', ' order by r.rolname), 'set') from pg_roles r where r.rolcanlogin and not r.rolsuper and r.rolname <> 'autopost_caller' and pg_has_role(r.oid, to_regrole('autopost_caller'), 'member') and not pg_has_role(r.oid, to_regrole('autopost_engine'), 'member') and (select count(distinct substring(c from '^[a-z]+')) from pg_db_role_setting s cross join unnest(s.setconfig) c where s.setrole in (0, r.oid) and s.setdatabase in (0, (select oid from pg_database where datname = current_database())) and c ~ '^(statement_timeout|idle_session_timeout|idle_in_transaction_session_timeout)=[^0]') < 2`,
		"alter role … set statement_timeout = '30s', and set idle_in_transaction_session_timeout = '30s': external callers must not hold locks for long"},
	{"row security", `select count(*) filter (where not c.relforcerowsecurity) = 0, count(*) filter (where c.relforcerowsecurity) || ' tables' from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' where c.relnamespace = to_regnamespace('autopost') and c.relkind in ('r', 'p')`,
		"run autopost migrate; a table with workspace_id must have forced row-level security"},
	{"partitions", `select count(*) > 1, count(*) || ' days ahead' from pg_class c where c.relnamespace = to_regnamespace('autopost') and c.relname ~ '^events_\d{8}$' and c.relname > 'events_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')`,
		"let a daemon run the monitor stage, or select autopost.ensure_event_partitions() as the engine"},
}

// Diagnose checks the database with the rights of the daemon.
func (s *Store) Diagnose(ctx context.Context) ([]Check, error) {
	cluster, err := s.diagnoseCluster(ctx)
	if err != nil {
		return nil, err
	}
	var checks []Check
	for _, d := range slices.Concat(diagnoses, cluster) {
		c := Check{Name: d.name, Remedy: d.remedy}
		if err := s.calls.QueryRow(ctx, d.sql).Scan(&c.OK, &c.Found); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, fmt.Errorf("check %s: %w", d.name, err)
		}
		checks = append(checks, c)
	}
	clock, err := s.diagnoseClock(ctx)
	if err != nil {
		return nil, err
	}
	schema := Check{Name: "schema", OK: true, Found: "of this binary", Remedy: "run autopost migrate"}
	if err := s.Ready(ctx); err != nil {
		schema.OK, schema.Found = false, err.Error()
	}
	checks = append(checks, clock, schema)
	for i := range checks {
		if checks[i].OK {
			checks[i].Remedy = ""
		}
	}
	return checks, nil
}

// diagnoseClock compares the clocks of the database and of this machine.
func (s *Store) diagnoseClock(ctx context.Context) (Check, error) {
	skew, trip, err := s.Skew(ctx)
	if err != nil {
		return Check{}, err
	}
	return Check{
		Name: "clock", OK: skew.Abs() <= time.Second+trip, Found: fmt.Sprintf("%s apart", skew.Abs().Round(time.Millisecond)),
		Remedy: "synchronize both machines by NTP; the clock of the database decides",
	}, nil
}

// QueueMetrics returns the queue of all workspaces as a few rows per platform and group.
func (s *Store) QueueMetrics(ctx context.Context) ([]telemetry.QueueLine, error) {
	return read[telemetry.QueueLine](ctx, s, "queue metrics", `
		select workspace_id, platform, rate_group, gate, channels, waiting, due, in_flight, oldest_due_at from autopost.queue_metrics()`)
}

// XPostMetrics returns the kept domain events of all workspaces as a few rows per type.
func (s *Store) XPostMetrics(ctx context.Context) ([]telemetry.XPostLine, error) {
	return read[telemetry.XPostLine](ctx, s, "x post metrics", `
		select event_type, status, reason, backfill, events, seconds::float8, buckets from autopost.x_post_metrics()`)
}

// BotMetrics returns the messages to the bots of all workspaces as a few rows per workspace.
func (s *Store) BotMetrics(ctx context.Context) ([]telemetry.BotLine, error) {
	return read[telemetry.BotLine](ctx, s, "bot metrics", `select workspace_id, line, messages from autopost.bot_metrics()`)
}

// Skew returns how far the clock of the database is ahead of this machine's. The error is at most half of the round trip.
func (s *Store) Skew(ctx context.Context) (skew, trip time.Duration, err error) {
	asked := time.Now()
	var theirs time.Time
	if err := s.calls.QueryRow(ctx, `select pg_catalog.clock_timestamp()`).Scan(&theirs); err != nil {
		return 0, 0, fmt.Errorf("ask for the clock: %w", translate(err))
	}
	trip = time.Since(asked)
	return theirs.Sub(asked.Add(trip / 2)), trip, nil
}

// ListDaemons returns the daemons of the last day, the most recent first.
func (s *Store) ListDaemons(ctx context.Context) ([]api.Daemon, error) {
	return read[api.Daemon](ctx, s, "list daemons", `select run_id, seen_at, alive, config, skew_ms, failing from autopost.list_daemons()`)
}
