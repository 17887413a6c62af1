package pages

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	nethtml "golang.org/x/net/html"

	"autopost/internal/testing/pgtest"
)

// corpora are the values that fill all fields, one after another. An address must begin with its scheme.
var corpora = []string{hostileText(), "javascript:alert(1)//", `\\evil.example\`}

// poisoning adds functions that fill columns. A mark after the value names its column.
const poisoning = `
create table public.poisoned (mark text primary key, field text not null, refused text);
create function public.poison(value jsonb, hostile text) returns jsonb language plpgsql as $$
begin
	return case jsonb_typeof(value)
		when 'string' then case when value #>> '{}' ~ '^[0-9a-f-]{36}$|^\d{4}-\d\d-\d\d|^\d\d:\d\d$' then value else to_jsonb(hostile) end
		when 'object' then (select coalesce(jsonb_object_agg(e.key, case
			when e.key in ('type', 'kind', 'parse_mode', 'category', 'scope', 'blob_ref', 'status', 'platform', 'mode', 'channel_id') then e.value else public.poison(e.value, hostile) end), '{}')
			from jsonb_each(value) e)
		when 'array' then (select coalesce(jsonb_agg(public.poison(e, hostile)), '[]') from jsonb_array_elements(value) e)
		else value end;
end $$;
-- Names that people choose get a hostile end in all tables.
create function public.rename_all(p_columns text[], p_end text) returns void language plpgsql as $$
declare
	v_column record;
begin
	perform set_config('session_replication_role', 'replica', true);
	for v_column in
		select a.attrelid::regclass as relation, a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
		where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
			and a.attname = any (p_columns) and a.atttypid = 'text'::regtype and a.attgenerated = ''
	loop
		execute format('update %s set %2$I = %2$I || $1 where %2$I is not null and %2$I <> ''''', v_column.relation, v_column.attname) using p_end;
	end loop;
end $$;
-- Fills each column that is not part of a key. A column that a constraint protects is recorded as refused.
create function public.poison_all(p_hostile text, p_kept text[]) returns void language plpgsql as $$
declare
	v_column record;
	v_mark   text;
	v_rows   bigint;
begin
	perform set_config('session_replication_role', 'replica', true);
	delete from public.poisoned;
	for v_column in
		select a.attrelid::regclass as relation, a.attname, format_type(a.atttypid, null) as type, c.relname || '.' || a.attname as field,
			row_number() over (order by c.relname, a.attname) as n
		from pg_attribute a join pg_class c on c.oid = a.attrelid
		where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
			and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
			and a.atttypid in ('text'::regtype, 'text[]'::regtype, 'jsonb'::regtype)
			and not exists (select from pg_constraint k where k.conrelid = a.attrelid and k.contype in ('p', 'u', 'f') and a.attnum = any (k.conkey))
			and not array[a.attname::text, c.relname::text, c.relname || '.' || a.attname] && p_kept
	loop
		v_mark := 'mark' || v_column.n || 'x';
		begin
			execute format('update %1$s set %2$I = %3$s', v_column.relation, v_column.attname, case v_column.type
				when 'text' then '$1' when 'text[]' then 'array[$1]' else format('public.poison(coalesce(%I, $2), $1)', v_column.attname) end)
			using p_hostile || v_mark, '{"message": "", "code": "", "text": "", "title": ""}'::jsonb;
			get diagnostics v_rows = row_count;
			insert into public.poisoned values (v_mark, v_column.field, case when v_rows = 0 then 'no row' end);
		exception when check_violation or unique_violation then
			insert into public.poisoned values (v_mark, v_column.field, sqlerrm);
		end;
	end loop;
end $$`

// people's names of rows. Each gets a hostile end in all tables.
var chosen = []string{"channel_id", "auth_ref", "rate_group", "endpoint_id", "source_id", "template_id", "webhook_id", "target_id", "chat_id", "rule_id", "avatar_id", "quota_id", "event"}

// decided are tables and columns whose words the engine sets and compares: no person writes them freely.
var decided = []string{
	"status", "kind", "platform", "provider", "timezone", "zone", "settled", "claim_token", "claimed_by", "language", "password_hash", "token_hash", "sessions", "dispatch_cursor", "dispatch_runs", "secret_lookup",
	"platforms", "settings.value", "settings.default_value", "installed_functions", "cluster_identity", "audit_heads", "data_keys", "drafts.author", "webhook_sends.body",
}

// shownFields are some of the columns that pages show, from each area.
var shownFields = []string{
	"admin_audit_log.reason", "alert_targets.address", "alerts.remedy", "api_keys.name", "avatars.name", "bot_logs.message_text", "bot_rules.response_template", "channels.title", "credential_health.account",
	"deliveries.last_error", "deliveries.rendered_text", "discovered_chats.title", "drafts.payload", "event_types.media_path", "events.error", "events.meta", "messages.payload", "moderation_chats.users",
	"post_acts.last_error", "publish_jobs.payload", "pull_cursors.last_error", "pull_sources.config_json", "recurrences.payloads", "result_webhooks.url", "settings.meaning", "submissions.plan", "submissions.raw_payload",
	"templates.body", "users.name", "webhook_sends.event_type", "workspaces.name",
}

// crawl opens pages and follows their links. It opens one page of each shape of address.
type crawl struct {
	p      *person
	seen   map[string]bool
	paths  []string
	shapes map[string]bool
	forms  map[string]filling
	// shown are the marks of columns that a page shows.
	shown map[string]bool
}

// filling is a form of a page as a browser would send it.
type filling struct {
	method, action string
	fields         url.Values
	// texts are the fields that a person writes.
	texts []string
}

var (
	plainSegment = regexp.MustCompile(`^[a-z-]{1,24}(\.html)?$`)
	mark         = regexp.MustCompile(`mark\d+x`)
)

// shapeOf returns an address without what rows put into it.
func shapeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	parts := strings.Split(u.EscapedPath(), "/")
	for i, part := range parts {
		if part != "" && !plainSegment.MatchString(part) {
			parts[i] = "*"
		}
	}
	var query []string
	for key, values := range u.Query() {
		if value := values[0]; key != "at" && plainSegment.MatchString(value) {
			key += "=" + value
		}
		query = append(query, key)
	}
	slices.Sort(query)
	return strings.Join(parts, "/") + "?" + strings.Join(query, "&")
}

// open opens a page and keeps its links and forms.
func (c *crawl) open(path string) {
	got := c.p.get(path)
	if got.status == http.StatusNotFound {
		return // a row that has another name now
	}
	c.shapes[shapeOf(path)] = true
	if got.status >= http.StatusInternalServerError {
		c.p.s.t.Errorf("%s: %d", path, got.status)
	}
	if !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
		return
	}
	c.judge(path, got)
	tree, err := nethtml.Parse(strings.NewReader(got.body))
	require.NoError(c.p.s.t, err)
	for n := range tree.Descendants() {
		switch n.Data {
		case "a":
			c.add(attributeOf(n, "href"))
		case "form":
			f := formIn(n, path)
			c.forms[f.method+" "+shapeOf(f.action)+" "+strings.Join(f.texts, ",")] = f
		}
		c.add(attributeOf(n, "hx-get"))
	}
}

// openAll opens all pages and what they lead to.
func (c *crawl) openAll() {
	clear(c.shapes)
	for n := 0; n < len(c.paths); n++ {
		if !c.shapes[shapeOf(c.paths[n])] {
			c.open(c.paths[n])
		}
	}
}

// judge checks an answer.
func (c *crawl) judge(path string, got answer) {
	for _, m := range mark.FindAllString(got.body, -1) {
		c.shown[m] = true
	}
	for _, fault := range harmful(got.body) {
		c.p.s.t.Errorf("%s: %s", path, fault)
	}
	if to := got.header.Get("Location"); !isSafe(to, false) {
		c.p.s.t.Errorf("%s: leads to %s", path, to)
	}
}

func (c *crawl) add(address string) {
	if !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "/assets/") || strings.HasPrefix(address, "/api/") || strings.HasPrefix(address, "/docs") || strings.HasPrefix(address, "/raw/") {
		return
	}
	address, _, _ = strings.Cut(address, "#")
	if !c.seen[address] {
		c.seen[address] = true
		c.paths = append(c.paths, address)
	}
}

func attributeOf(n *nethtml.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// formIn returns the form of an element of the page at path.
func formIn(n *nethtml.Node, path string) filling {
	f := filling{method: strings.ToUpper(attributeOf(n, "method")), action: attributeOf(n, "action"), fields: url.Values{}}
	if f.action == "" {
		f.action = path
	}
	for field := range n.Descendants() {
		name, value, kind := attributeOf(field, "name"), attributeOf(field, "value"), attributeOf(field, "type")
		switch {
		case name == "" || field.Type != nethtml.ElementNode:
		case field.Data == "textarea", field.Data == "input" && slices.Contains([]string{"", "text", "search", "email", "url", "number", "date", "datetime-local", "time"}, kind):
			f.texts = append(f.texts, name)
			f.fields.Set(name, value)
		case field.Data == "input" && kind != "file", field.Data == "button", field.Data == "select":
			f.fields.Set(name, value)
		}
	}
	return f
}

// endings are the forms that would end the session of the test.
var endings = regexp.MustCompile(`^/(logout|login|preferences|setup/people/(remove|disable|sign-out|role|unmake-owner))`)

// submit sends a form with a hostile value in each field of text.
func (c *crawl) submit(f filling, value string) {
	for _, name := range f.texts {
		f.fields.Set(name, value)
	}
	if f.fields.Has("current_password") {
		f.fields.Set("current_password", password)
	}
	var got answer
	if f.method == http.MethodPost {
		got = c.p.do(http.MethodPost, f.action, f.fields)
	} else {
		at, _, _ := strings.Cut(f.action, "?")
		got = c.p.get(at + "?" + f.fields.Encode())
	}
	require.Less(c.p.s.t, got.status, http.StatusInternalServerError, "%s %s", f.method, f.action)
	c.judge(f.action, got)
}

// poison fills all fields with hostile values and returns a person who crawls the pages.
func (s *site) poison() *crawl {
	s.t.Helper()
	p := s.owner()
	paths := s.paths()
	s.everyRow(p)
	s.Exec(poisoning)
	c := &crawl{p: p, seen: map[string]bool{}, shapes: map[string]bool{}, forms: map[string]filling{}, shown: map[string]bool{}}
	for _, path := range paths {
		c.add(path)
	}
	return c
}

// Hostile values in all fields of all rows stay text on every page, and so do those that people write into forms.
func TestHostileValuesStayText(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.poison()
	for _, corpus := range corpora {
		s.Exec(`select public.poison_all($1, $2)`, corpus, append(decided, chosen...))
		c.openAll()
	}
	s.Exec(`select public.rename_all($1, $2)`, chosen, hostile[1])
	s.Exec(`update autopost.x_post_config set config = jsonb_set(config, '{channel_id}', to_jsonb((config ->> 'channel_id') || $1::text))`, hostile[1])
	c.openAll()
	require.Greater(t, len(c.shapes), 150, "pages")
	require.Subset(t, pgtest.Column[string](s.DB, `select field from public.poisoned where mark = any ($1)`, slices.Collect(maps.Keys(c.shown))), shownFields)

	s.Exec(`update autopost.sessions set confirmed_at = now()`)
	require.Greater(t, len(c.forms), 100, "forms")
	for _, at := range slices.Sorted(maps.Keys(c.forms)) {
		if !endings.MatchString(c.forms[at].action) {
			c.submit(c.forms[at], hostile[1]+" "+hostile[4])
		}
	}
	require.Equal(t, http.StatusOK, c.p.get("/setup").status, "the session lasts")
}

// Markup of a hostile value is found wherever a page would put it.
func TestHostileMarkupIsFound(t *testing.T) {
	t.Parallel()
	for _, value := range hostile {
		if strings.HasPrefix(value, "{{") || strings.HasPrefix(value, "`") {
			continue // for templates that run in a browser; ours do not
		}
		found := harmful("<p>" + value + "</p>")
		for _, place := range []string{`<a href="%s">`, `<a href='%s'>`, `<input value="%s">`, `<textarea>%s</textarea>`, `<title>%s</title>`} {
			found = append(found, harmful(strings.ReplaceAll(place, "%s", value))...)
		}
		require.NotEmpty(t, found, value)
	}
	for _, address := range []string{"javascript:alert(1)", " JavaScript:alert(1)", "java\tscript:alert(1)", "data:text/html,x", "//evil.example/", `\\evil.example\`, `/\evil.example`, "https://evil.example/"} {
		require.NotEmpty(t, harmful(`<form action="`+address+`">`), address)
	}
	require.Empty(t, harmful(`<a href="https://example.org/?to=javascript:alert(1)">x</a><form action="/posts?q=//evil.example"><input value="javascript:alert(1)"></form>`))
}

// everyRow adds what the site does not have: a row of each kind that pages show.
func (s *site) everyRow(p *person) {
	s.t.Helper()
	sent := "/posts/" + s.ids["sent"]
	require.Equal(s.t, http.StatusSeeOther, p.post(sent+"/change/pin", "reason", "news").status)
	require.Equal(s.t, http.StatusOK, p.post("/setup/people/invite", "email", "bob@example.org", "role", "editor").status)
	for _, sql := range []string{
		`select autopost.put_draft('news', null, '{"payload": {"text": "a draft", "tags": ["a"], "link": "https://a.example", "buttons": [[{"text": "Open", "url": "https://a.example"}]]}}', 'user:' || (
			select user_id from autopost.users limit 1))`,
		`select autopost.put_recurrence('news', null, '{"endpoint_id": "in", "rule": "FREQ=DAILY", "zone": "UTC", "starts_at": "2026-12-01T10:00", "payloads": [{"text": "each day"}]}', 'ann', 'r', false)`,
		`insert into autopost.occurrences (workspace_id, occurrence_id, recurrence_id, local_at, at, updated_at)
			select 'news', autopost.new_id(), recurrence_id, localtimestamp + interval '2 hours', now() + interval '2 hours', now() from autopost.recurrences`,
		`insert into autopost.webhook_sends (workspace_id, webhook_id, event_id, event_type, event_at, body, status, due_at, http_status, error, created_at, finished_at)
			values ('news', 'crm', autopost.new_id(), 'delivery.sent', now(), '{}', 'dead', now(), 500, 'e', now(), now())`,
		`insert into autopost.pull_cursors (workspace_id, source_id, failures, last_error) values ('news', 'blog', 3, '{"message": "m"}') on conflict (workspace_id, source_id) do update set failures = 3, last_error = '{"message": "m"}'`,
		`update autopost.alerts set acknowledged_at = now()`,
		`update autopost.credential_health set checked_at = now(), rights = '[{"target": "t", "title": "t", "may_post": false, "reason": "r"}]'`,
		`update autopost.publish_jobs set status = 'published', published_at = now(), platform_post_id = 'p' where job_id = 'later'`,
		`insert into autopost.bot_subscriptions (workspace_id, endpoint_id, error) values ('news', 'editors', '{"message": "m"}')`,
		`insert into autopost.ingress_floods (workspace_id, endpoint_id, action, recorded, run_id, opened_at, meta) values ('news', 'editors', 'ingress_rate_limited', 5, autopost.new_id(), now(), '{"address": "a"}')`,
	} {
		s.Exec(sql)
	}
}
