package db_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"autopost/db"
	"autopost/internal/testing/pgtest"
)

// publicFunctions are those that callers see: security definer, no trigger (which acts on
// rows that row-level security let through already).
const publicFunctions = `from pg_proc p where p.pronamespace = 'autopost'::regnamespace and p.prosecdef and p.prorettype <> 'trigger'::regtype`

// engineOnly are public functions that n8n, psql and scripts may not call: they
// return the locations of secrets, or change settings of all workspaces.
var engineOnly = []string{
	"add_data_key", "apply_config", "apply_settings", "begin_media_removal", "begin_raw", "begin_refresh", "create_raw_link", "get_data_key", "list_data_keys", "name_rejected", "raw_kept_since",
	"rewrap_data_key", "use_raw_link", "begin_request", "begin_subscription", "write_once", "list_served_workspaces",
	"check_installation", "claim_notices", "claim_sources", "claim_webhooks", "commit_webhook", "commit_webhook_batch", "confirm_restore", "create_api_key", "disable_api_key", "drop_event_partitions", "due_stages",
	"end_media_removal", "enqueue_webhooks", "ensure_event_partitions", "export_config", "fail_refresh", "finish_notice", "finish_refresh",
	"finish_subscription", "forget_media_origin", "get_credential", "get_source", "list_alert_targets",
	"list_api_keys", "list_daemons", "list_due_subscriptions", "list_master_keys", "list_media_removals",
	"list_sealed_secrets", "list_unasked_chats", "list_unknown_media", "note_cluster", "observe_clock", "put_alert_target", "confirm_alert_target", "put_credential_binding",
	"put_sealed_secret", "queue_metrics", "x_post_metrics", "bot_metrics", "ready_webhook_workspaces", "record_chat_rights", "record_credential_check", "record_upload", "refresh_statistics",
	"release_lost", "touch_run", "remove_alert_target", "remove_media_origin", "report_duty", "resolve_api_key", "resolve_signed_endpoint", "rewrap_secret", "rotate_api_key",
	"set_event_strictness", "stream_items", "test_alert_target", "touch_api_key",
	"ready_bot_workspaces", "bot_release_lost", "purge_conversations",
	"admit_person", "begin_credential_link", "create_workspace", "discover_chats", "end_own_session", "remove_credential", "take_credential_link",
	"ready_moderation_workspaces", "claim_moderation", "finish_moderation", "list_moderation_chats", "put_moderation_chat", "remove_moderation_chat",
	"claim_file_source", "end_file_scan", "follow_publish_jobs", "list_file_sources", "put_job_artifact", "record_job_files",
	// People and their sessions.
	"accept_invitation", "begin_first_link", "begin_session", "confirm_session", "create_owner", "end_session", "end_sessions", "get_invitation", "get_login",
	"invite_user", "list_invitations", "list_members", "list_users", "put_membership", "put_user", "resolve_session", "revoke_invitation",
	"refuse_file", "start_publish_job",
	"get_draft", "list_drafts", "put_draft", "remove_draft", "submit_draft", "list_due_recurrences", "put_recurrence", "remove_recurrence", "move_occurrence",
}

// crossWorkspace are the public functions without a workspace as their first
// argument. Each of them returns only workspaces of the caller, or does not use data of
// workspaces.
var crossWorkspace = []string{
	"accept_invitation", "admit_person", "apply_settings", "begin_dispatch", "begin_first_link", "begin_media_removal", "begin_session", "bot_metrics", "check_installation",
	"confirm_restore", "confirm_session", "describe_workspaces", "drop_event_partitions", "due_stages", "end_dispatch", "end_media_removal", "end_own_session",
	"end_session", "end_sessions", "ensure_event_partitions", "functions_digest", "get_invitation", "get_login", "list_all_workspaces", "list_daemons",
	"list_file_sources", "list_master_keys", "list_media_removals", "list_served_workspaces", "list_settings", "list_unknown_media", "list_users", "list_workspaces", "note_cluster",
	"observe_clock", "put_user", "queue_metrics", "raw_kept_since", "ready_act_workspaces", "ready_bot_workspaces", "ready_fanout_workspaces",
	"ready_moderation_workspaces", "ready_recurrence_workspaces", "ready_sources", "ready_submission_workspaces", "ready_webhook_workspaces", "ready_work",
	"ready_workspaces", "refresh_statistics", "report_duty", "resolve_api_key", "resolve_endpoint", "resolve_session", "resolve_signed_endpoint", "set_event_strictness",
	"stream_items", "take_credential_link", "touch_run", "x_post_metrics",
}

// One finding is let pass: the implicit cast of a text. In PL/pgSQL a bare literal
// is a text, so that v_errors jsonb := '[]' is one; a wrong literal fails at its
// first use, whatever the data.
func TestFunctionsPassPlpgsqlCheck(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	if err := base.Err(`create extension plpgsql_check with schema public`); err != nil {
		t.Fatalf("plpgsql_check is missing (make setup installs it): %v", err)
	}
	found := pgtest.Column[string](base, `
		select format('%s line %s: %s %s %s', p.oid::regprocedure, c.lineno, c.level, c.message, c.detail)
		from pg_proc p
		join pg_language l on l.oid = p.prolang
		left join pg_trigger t on t.tgfoid = p.oid and not t.tgisinternal
		cross join lateral plpgsql_check_function_tb(p.oid, relid => coalesce(t.tgrelid, 0),
			oldtable => t.tgoldtable, newtable => t.tgnewtable, fatal_errors => false,
			performance_warnings => false, extra_warnings => true, security_warnings => true) c
		where p.pronamespace = 'autopost'::regnamespace and l.lanname = 'plpgsql'
		and not (c.sqlstate = '42804' and c.detail like 'cast "text" value to %')
		order by 1`)
	require.Empty(t, found)
}

func TestWorkspaceTablesAreIsolated(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	tables := `
		select c.oid, c.relname from pg_class c
		join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
		where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p')`
	require.Greater(t, pgtest.Value[int](base, `select count(*)::int from (`+tables+`) t`), 20)
	require.Empty(t, pgtest.Column[string](base, `
		select t.relname::text from (`+tables+`) t join pg_class c on c.oid = t.oid
		where not c.relrowsecurity or not c.relforcerowsecurity
		or (select count(*) from pg_policy p where p.polrelid = t.oid) < 2 order by 1`), "row-level security is not forced")
	// role_workspaces and secret_lookup are asked before the workspace is known.
	require.Equal(t, []string{"role_workspaces", "secret_lookup"}, pgtest.Column[string](base, `
		select t.relname::text from (`+tables+`) t
		left join pg_index i on i.indrelid = t.oid and i.indisprimary
		left join pg_attribute a on a.attrelid = t.oid and a.attnum = i.indkey[0]
		where a.attname is distinct from 'workspace_id' order by 1`), "the primary key does not begin with the workspace")
	require.Empty(t, pgtest.Column[string](base, `
		select conrelid::regclass || ' ' || conname from pg_constraint k
		where k.contype = 'f' and k.connamespace = 'autopost'::regnamespace
		and exists (select 1 from pg_attribute a where a.attrelid = k.confrelid and a.attname = 'workspace_id')
		and not exists (
			select 1 from unnest(k.conkey, k.confkey) u (here, there)
			join pg_attribute h on h.attrelid = k.conrelid and h.attnum = u.here and h.attname = 'workspace_id'
			join pg_attribute t on t.attrelid = k.confrelid and t.attnum = u.there and t.attname = 'workspace_id')
		order by 1`), "a reference may leave the workspace")
	require.Empty(t, pgtest.Column[string](base, `
		select i.indexrelid::regclass::text from (`+tables+`) t
		join pg_index i on i.indrelid = t.oid and i.indisunique
		where t.relname not in ('role_workspaces', 'secret_lookup')
		and not exists (select 1 from pg_attribute a where a.attrelid = t.oid and a.attname = 'workspace_id' and a.attnum = any (i.indkey))
		order by 1`), "a key is unique across workspaces")
}

func TestDefinerFunctionsAreSafe(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	require.Empty(t, pgtest.Column[string](base, `
		select p.proname::text from pg_proc p where p.pronamespace = 'autopost'::regnamespace and p.prosecdef
		and not coalesce(p.proconfig @> array['search_path=autopost, pg_temp'], false) order by 1`), "search_path is not pinned")
	require.Empty(t, pgtest.Column[string](base, `
		select p.proname::text from pg_proc p where p.pronamespace = 'autopost'::regnamespace and p.prosecdef
		and p.prosrc !~ '^\s*-- \w' order by 1`), "no header inside the body")
	for _, f := range pgtest.Column[[]string](base, `select array[p.proname::text, coalesce(p.proargnames[1], ''), p.prosrc] `+publicFunctions) {
		name, first, body := f[0], f[1], f[2]
		if first == "p_workspace_id" {
			// Some do nothing but call another form, which enters the workspace.
			require.Regexp(t, `autopost\.enter_(new_)?workspace\(p_workspace_id\)|begin\s+return autopost\.\w+_batch\(p_workspace_id|`+
				`begin\s+return query select c\.\* from autopost\.claim_and_start\(p_workspace_id`, body, name)
		} else {
			require.Contains(t, crossWorkspace, name, "%s has no p_workspace_id", name)
		}
	}
	require.Equal(t, crossWorkspace, pgtest.Column[string](base, `
		select distinct p.proname::text `+publicFunctions+` and p.proargnames[1] is distinct from 'p_workspace_id' order by 1`))
}

func TestRightsAreWhatTheCataloguePromises(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	granted := func(role string) []string {
		return pgtest.Column[string](base, `
			select distinct p.proname::text from pg_proc p
			where p.pronamespace = 'autopost'::regnamespace and has_function_privilege($1, p.oid, 'execute') order by 1`, role)
	}
	public := pgtest.Column[string](base, `select distinct p.proname::text `+publicFunctions+` order by 1`)
	require.Equal(t, public, granted("autopost_engine"))
	require.Equal(t, slices.DeleteFunc(slices.Clone(public), func(name string) bool { return slices.Contains(engineOnly, name) }), granted("autopost_caller"))
	require.Subset(t, public, engineOnly)
	require.Empty(t, granted("public"))
	require.Empty(t, granted("autopost_reader"))

	for _, role := range []string{"public", "autopost_engine", "autopost_caller", "autopost_reader"} {
		require.Empty(t, pgtest.Column[string](base, `
			select c.relname::text from pg_class c
			where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p', 'S')
			and has_table_privilege($1, c.oid, 'select, insert, update, delete, truncate, references, trigger') order by 1`, role), "%s may touch tables", role)
	}
	require.Empty(t, pgtest.Column[string](base, `
		select x.name from (
			select c.relname::text as name, c.relowner as owner from pg_class c where c.relnamespace = 'autopost'::regnamespace
			union all select p.oid::regprocedure::text, p.proowner from pg_proc p where p.pronamespace = 'autopost'::regnamespace
			union all select y.typname, y.typowner from pg_type y where y.typnamespace = 'autopost'::regnamespace
			union all select n.nspname, n.nspowner from pg_namespace n where n.nspname = 'autopost') x
		where x.owner <> 'autopost_owner'::regrole order by 1`), "owned by somebody else")
	require.Equal(t, []string{"autopost_caller", "autopost_engine", "autopost_owner", "autopost_reader"}, pgtest.Column[string](base, `
		select r.rolname::text from pg_roles r where r.rolname ~ '^autopost_'
		and not r.rolcanlogin and not r.rolsuper and not r.rolbypassrls and not r.rolcreaterole and not r.rolcreatedb order by 1`))
}

var gateQuery = regexp.MustCompile(`(?s)from autopost\.channel_gates g\s+where .*?(limit|group by|;)`)

// The index of the gates holds the armed ones alone: a query by ready_at that does
// not say so reads every gate of the workspace, and gives the same answer slowly.
func TestQueriesByReadyAtCanUseTheIndex(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	queries := 0
	for _, f := range pgtest.Column[[]string](base, `select array[p.proname::text, p.prosrc] from pg_proc p where p.pronamespace = 'autopost'::regnamespace`) {
		for _, query := range gateQuery.FindAllString(f[1], -1) {
			if strings.Contains(query, "rate_group") || strings.Contains(query, "g.ready_at <") {
				queries++
				require.Contains(t, query, `g.ready_at < 'infinity'`, f[0])
			}
		}
	}
	require.GreaterOrEqual(t, queries, 3)
}

var viewRead = regexp.MustCompile(`(?:from|join) autopost\.(list_\w+|queue_snapshot)\s`)

// The views of readers have a barrier, past which no order and no limit is planned:
// what functions read are those below them.
func TestFunctionsReadBelowTheViewsOfReaders(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	reads := 0
	for _, f := range pgtest.Column[[]string](base, `select array[p.proname::text, p.prosrc] from pg_proc p where p.pronamespace = 'autopost'::regnamespace`) {
		for _, m := range viewRead.FindAllStringSubmatch(f[1], -1) {
			reads++
			require.True(t, strings.HasSuffix(m[1], "_rows") || m[1] == "list_api_keys", "%s reads %s: read %[2]s_rows", f[0], m[1])
		}
	}
	require.Greater(t, reads, 15)
}

var definition = regexp.MustCompile(`(?m)^create or replace function autopost\.(\w+)`)

var viewDefinition = regexp.MustCompile(`(?m)^create or replace view autopost\.(\w+)`)

// TestViewsAndFilesAgree checks that a file holds one read model: the view of its name and the
// one with _rows.
func TestViewsAndFilesAgree(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(db.Functions, "views/*.sql")
	require.NoError(t, err)
	var defined []string
	for _, file := range files {
		text, err := fs.ReadFile(db.Functions, file)
		require.NoError(t, err)
		name := strings.TrimSuffix(strings.TrimPrefix(file, "views/"), ".sql")
		for _, m := range viewDefinition.FindAllStringSubmatch(string(text), -1) {
			require.Equal(t, name, strings.TrimSuffix(m[1], "_rows"))
			defined = append(defined, m[1])
		}
	}
	slices.Sort(defined)
	require.Equal(t, defined, pgtest.Column[string](pgtest.New(t), `
		select c.relname::text from pg_class c where c.relnamespace = 'autopost'::regnamespace and c.relkind = 'v' order by 1`))
}

// helperFolders hold helpers of several stages and no public function.
var helperFolders = []string{"core", "post", "queue"}

// One public function a file, named for it (overloads, and the _batch sibling,
// stand beside it), and nothing in the catalogue that no file defines.
func TestFunctionsAndFilesAgree(t *testing.T) {
	t.Parallel()
	inFiles := map[string]string{}
	require.NoError(t, fs.WalkDir(db.Functions, "functions", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".sql") {
			return err
		}
		text, err := fs.ReadFile(db.Functions, path)
		for _, m := range definition.FindAllStringSubmatch(string(text), -1) {
			if first, ok := inFiles[m[1]]; ok && first != path {
				t.Errorf("%s is defined in %s and %s", m[1], first, path)
			}
			inFiles[m[1]] = path
		}
		return err
	}))
	base := pgtest.New(t)
	var defined []string
	for name := range inFiles {
		defined = append(defined, name)
	}
	slices.Sort(defined)
	require.Equal(t, defined, pgtest.Column[string](base, `
		select distinct p.proname::text from pg_proc p where p.pronamespace = 'autopost'::regnamespace order by 1`))
	for _, name := range pgtest.Column[string](base, `select distinct p.proname::text `+publicFunctions+` order by 1`) {
		path := inFiles[name]
		for _, folder := range helperFolders {
			require.NotContains(t, path, "/"+folder+"/", "%s is public", name)
		}
		require.True(t, strings.HasSuffix(path, "/"+strings.TrimSuffix(name, "_batch")+".sql"), "%s stands in %s", name, path)
	}
	install, err := os.ReadFile("functions/install.sql")
	require.NoError(t, err)
	for _, path := range inFiles {
		require.Contains(t, string(install), `\ir `+strings.TrimPrefix(path, "functions/")+"\n")
	}
}

// The signatures that scripts and workflows hold on to, as the project's surface
// states them: name, arguments with their types, result.
const promised = `
bot_claim_replies(p_workspace_id text, p_run_id text, p_limit integer) SETOF claimed_reply
bot_commit_reply(p_workspace_id text, p_reply_id uuid, p_claim_token text, p_outcome jsonb) jsonb
bot_receive(p_workspace_id text, p_endpoint_id text, p_update jsonb) jsonb
bot_recover(p_workspace_id text) jsonb
bot_start_reply(p_workspace_id text, p_reply_id uuid, p_claim_token text) jsonb
begin_dispatch(p_run_id text, p_lease_seconds integer) jsonb
claim_deliveries(p_workspace_id text, p_run_id text, p_limit integer) SETOF claimed_delivery
claim_submissions(p_workspace_id text, p_run_id text, p_limit integer) SETOF claimed_submission
commit_outcome(p_workspace_id text, p_delivery_id uuid, p_claim_token text, p_outcome jsonb) jsonb
commit_submission(p_workspace_id text, p_submission_id uuid, p_claim_token text, p_outcome jsonb) jsonb
disable_group(p_workspace_id text, p_platform text, p_rate_group text, p_operator text, p_reason text, p_dry_run boolean) jsonb
enable_group(p_workspace_id text, p_platform text, p_rate_group text, p_operator text, p_reason text, p_dry_run boolean) jsonb
end_dispatch(p_run_id text) jsonb
enqueue_messages_and_deliveries(p_workspace_id text, p_endpoint_id text, p_kind text, p_raw_payload jsonb, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone) jsonb
enqueue_messages_and_deliveries_batch(p_workspace_id text, p_endpoint_id text, p_kind text, p_items jsonb, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone) jsonb
extend_lease(p_workspace_id text, p_delivery_id uuid, p_claim_token text, p_seconds integer) jsonb
fail_permanent(p_workspace_id text, p_delivery_id uuid, p_claim_token text, p_error jsonb) jsonb
guard_ingress(p_workspace_id text, p_endpoint_id text, p_bytes integer, p_items integer) jsonb
ingest_pull_chunk(p_workspace_id text, p_source_id text, p_endpoint_id text, p_items jsonb, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone) jsonb
list_due_sources(p_workspace_id text, p_limit integer) SETOF due_source
list_due_sources_of(p_workspace_id text, p_kinds text[], p_limit integer) SETOF due_source
manual_requeue(p_workspace_id text, p_delivery_ids uuid[], p_operator text, p_reason text) jsonb
manual_requeue_preview(p_workspace_id text, p_delivery_ids uuid[]) jsonb
mark_sent(p_workspace_id text, p_delivery_id uuid, p_claim_token text, p_provider_message_id text, p_sent_at timestamp with time zone, p_raw_meta jsonb) jsonb
pause_channel(p_workspace_id text, p_channel_id text, p_seconds integer, p_operator text, p_reason text, p_dry_run boolean) jsonb
plan(p_workspace_id text, p_raw_payload jsonb, p_now timestamp with time zone) jsonb
ready_workspaces(p_limit integer) SETOF text
receive_push(p_workspace_id text, p_endpoint_id text, p_items jsonb) jsonb
record_series_progress(p_workspace_id text, p_delivery_id uuid, p_claim_token text, p_delta jsonb) jsonb
recover_claimed_leases(p_workspace_id text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone) jsonb
recover_sending_leases(p_workspace_id text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone) jsonb
release_claims(p_workspace_id text, p_claim_tokens text[]) jsonb
release_stale(p_workspace_id text, p_older_than_seconds integer, p_operator text, p_reason text, p_dry_run boolean) jsonb
resolve_endpoint(p_kind text, p_secret_hash text) jsonb
resolve_unknown(p_workspace_id text, p_delivery_id uuid, p_verdict text, p_provider_message_id text, p_operator text, p_reason text) jsonb
resume_channel(p_workspace_id text, p_channel_id text, p_operator text, p_reason text, p_dry_run boolean) jsonb
rotate_auth(p_workspace_id text, p_channel_id text, p_new_auth_ref text, p_new_rate_group text, p_operator text, p_reason text, p_dry_run boolean) jsonb
schedule_retry(p_workspace_id text, p_delivery_id uuid, p_claim_token text, p_error jsonb, p_not_before timestamp with time zone DEFAULT NULL::timestamp with time zone) jsonb
set_pull_cursor(p_workspace_id text, p_source_id text, p_cursor jsonb) jsonb
decide_publish_job(p_workspace_id text, p_job_id text, p_platform text, p_decision text, p_approval jsonb, p_operator text, p_reason text) jsonb
import_publish_state(p_workspace_id text, p_source_id text, p_state jsonb) jsonb
list_publish_jobs(p_workspace_id text, p_filter jsonb, p_limit integer) SETOF list_publish_jobs
put_publish_job(p_workspace_id text, p_source_id text, p_payload jsonb) jsonb
receive_approval(p_workspace_id text, p_source_id text, p_approval jsonb) jsonb
put_retry_policy(p_workspace_id text, p_platform text, p_code text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean) jsonb
set_event_strictness(p_on boolean) jsonb
replace_post(p_workspace_id text, p_message_id uuid, p_raw_payload jsonb, p_operator text, p_reason text, p_dry_run boolean) jsonb
reschedule(p_workspace_id text, p_delivery_ids uuid[], p_at timestamp with time zone, p_operator text, p_reason text, p_dry_run boolean) jsonb
skip_deliveries(p_workspace_id text, p_delivery_ids uuid[], p_operator text, p_reason text, p_dry_run boolean) jsonb
start_call(p_workspace_id text, p_delivery_id uuid, p_claim_token text) jsonb
touch_run(p_run_id text, p_host text DEFAULT NULL::text, p_ended boolean DEFAULT false) jsonb
verify(p_workspace_id text) SETOF verify_finding
why(p_workspace_id text, p_delivery_id uuid) jsonb
`

// promisedLater are names of the surface that no release has yet. A function that
// appears must move to promised, with its signature.
var promisedLater = []string{}

// promisedByName are names of the surface whose arguments it leaves open.
var promisedByName = []string{"finish_ingest_run", "get_media_blob", "next_free_slots", "put_media_blob", "put_media_origin", "start_ingest_run"}

const claimedDelivery = "workspace_id text, delivery_id uuid, message_id uuid, channel_id text, platform text, target_id text, auth_ref text, rate_group text, " +
	"attempt integer, claim_token text, sending_lease_until timestamp with time zone, send_at timestamp with time zone, rendered_text text, render_meta jsonb, " +
	"payload jsonb, settings jsonb, trace_id uuid, on_unknown text, unknown_outcomes integer, last_call_at timestamp with time zone, last_provider_message_id text"

func TestSignaturesAreThePromisedOnes(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	existing := pgtest.Column[string](base, `
		select replace(format('%s(%s) %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)), 'autopost.', '') `+publicFunctions+` order by 1`)
	for line := range strings.Lines(strings.TrimSpace(promised)) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, "(")
		here := slices.DeleteFunc(slices.Clone(existing), func(s string) bool { return !strings.HasPrefix(s, name+"(") })
		if diff := cmp.Diff([]string{line}, here); diff != "" {
			t.Errorf("%s (-promised +here):\n%s", name, diff)
		}
	}
	for _, signature := range existing {
		name, _, _ := strings.Cut(signature, "(")
		require.NotContains(t, promisedLater, name, "exists now: promise its signature")
	}
	for _, name := range promisedByName {
		require.True(t, slices.ContainsFunc(existing, func(s string) bool { return strings.HasPrefix(s, name+"(") }), name)
	}
	attributes := pgtest.Value[string](base, `
		select string_agg(format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum)
		from pg_attribute a where a.attrelid = 'autopost.claimed_delivery'::regclass`)
	require.True(t, strings.HasPrefix(attributes, claimedDelivery), "attributes of claimed_delivery may only be appended: %s", attributes)
}

var (
	sqlComment = regexp.MustCompile(`--[^\n]*`)
	sqlCall    = regexp.MustCompile(`autopost\.(\w+)\(`)
)

// TestHelpersOfAStageAreCalledByItAlone checks the rule of install.sql: a helper in the
// folder of a stage is called by that stage; admin and monitor/verify may call it too. Each
// stage that takes decisions calls moderation, and receive_update calls bot_receive.
func TestHelpersOfAStageAreCalledByItAlone(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	require.NoError(t, fs.WalkDir(db.Functions, "functions", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "/install.sql") {
			return err
		}
		text, err := fs.ReadFile(db.Functions, path)
		texts[strings.TrimPrefix(path, "functions/")] = sqlComment.ReplaceAllString(string(text), "")
		return err
	}))
	folders := map[string]string{}
	for path, text := range texts {
		folder, _, _ := strings.Cut(path, "/")
		for _, m := range definition.FindAllStringSubmatch(text, -1) {
			folders[m[1]] = folder
		}
	}
	for path, text := range texts {
		caller, _, _ := strings.Cut(path, "/")
		if caller == "admin" || caller == "moderation" || strings.HasPrefix(path, "monitor/verify/") {
			continue
		}
		for _, m := range sqlCall.FindAllStringSubmatch(text, -1) {
			folder := folders[m[1]]
			if folder != "" && folder != caller && folder != "moderation" && m[1] != "bot_receive" && !slices.Contains(helperFolders, folder) {
				t.Errorf("%s calls %s of %s/: move it to core, post or queue", path, m[1], folder)
			}
		}
	}
}
