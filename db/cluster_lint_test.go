package db_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"autopost/internal/testing/pgtest"
)

// This lint finds what a cluster (Citus) refuses, answers wrongly or crashes on, in the functions and views of a
// migrated plain PostgreSQL. It reads the catalogue. A line that may keep its finding says "-- citus: ok, REASON".

// nodeTables are the tables that each node of a cluster has for itself, as db/distribute.sql makes them.
var nodeTables = []string{"clock_jumps", "clock_observers", "cluster_identity", "dispatch_cursor", "dispatch_runs", "monitor_duties"}

// finding is a violation of a rule in a line of a function's body, or in a view.
type finding struct {
	rule, object string
	line         int
	what         string
}

func (f finding) String() string {
	return fmt.Sprintf("%s: %s line %d: %s", f.rule, f.object, f.line, f.what)
}

// clusterLint reads one database.
type clusterLint struct {
	distributed, views map[string]bool
	relations          string            // alternatives of a pattern
	volatility         map[string]string // of our functions: i, s, v; the strongest of all overloads
	builtin            map[string]string
	callers            map[string]bool // functions that ask who called
	intervals          []string        // functions that return an interval
	relation           *regexp.Regexp  // a read of a relation: its name, its alias
	kept               string          // names the functions that keep their plans where there is no cluster
	found              []finding
}

type lintedFunction struct {
	name, body, clean, language, config string
	trigger, parameters, ofWorkspace    bool
}

var (
	commentOrLiteral = regexp.MustCompile(`'(?:[^']|'')*'|--[^\n]*`)
	exception        = regexp.MustCompile(`-- citus: ok`)
	reasoned         = regexp.MustCompile(`-- citus: ok, \w`)
	ourCall          = regexp.MustCompile(`\bautopost\.(\w+)\s*\(`)
	anyCall          = regexp.MustCompile(`\b(autopost\.)?(\w+)\s*\(`)
	statementEnd     = regexp.MustCompile(`[();]|\b(?:then|else|loop|begin|declare)\b`)
	caseWord         = regexp.MustCompile(`\bcase\b`)
	endWord          = regexp.MustCompile(`\bend\b`)
	caseOrEnd        = regexp.MustCompile(`\b(?:case|end)\b`)
	coalesceCall     = regexp.MustCompile(`\bcoalesce\s*\(`)
	valuesList       = regexp.MustCompile(`\bvalues\s*\(`)
	subselect        = regexp.MustCompile(`\(\s*select\b`)
	returningWord    = regexp.MustCompile(`\breturning\b`)
	endOfReturning   = regexp.MustCompile(`\n\t*\)|;`)
	toInstant        = regexp.MustCompile(`::(?:timestamptz|date|timestamp)\b`)
	constantBefore   = regexp.MustCompile(`'[^']*'$`)
	intervalName     = regexp.MustCompile(`\b([pv]_\w+)\s+interval\b`)
	itsWorkspace     = regexp.MustCompile(`\.workspace_id\s*=\s*(?:[pv]_\w+|new\.|old\.)`)
	roleTables       = regexp.MustCompile(`\bpg_(?:roles|authid|auth_members)\b`)
	asksWho          = regexp.MustCompile(`current_setting\('role'|\bsession_user\b|\bcurrent_user\b`)
	wholeRowOf       = regexp.MustCompile(`autopost\.\w+\((?:[^()]*, ?)?(?:new|old)[,)]`)
	triggerName      = regexp.MustCompile(`\btg_(?:table_name|relid|name)\b`)
	factor           = regexp.MustCompile(`^\s*(?:'[^']*'\s*)?[*/^]\s*[\w.]*`)
	simpleCase       = regexp.MustCompile(`\bcase [a-z_]+\.[a-z_]+ when\b`)
	doUpdate         = regexp.MustCompile(`\bdo update\s+set\b`)
	changeOf         = regexp.MustCompile(`\b(?:update|delete from)\s+autopost\.\w+\s+(?:as\s+)?(\w+)`)
	forbidden        = regexp.MustCompile(`\bctid\b|\bmerge into\b|\bcreate temp(?:orary)? table\b`)
	suppressed       = regexp.MustCompile(`\brow_count\b|\bfound\b`)
	rowArray         = regexp.MustCompile(`\bv_\w+ autopost\.\w+\[\]`)
	outerLateral     = regexp.MustCompile(`(?i)\bleft join lateral\b`)
	quotedInVoid     = regexp.MustCompile(`\braise\b[^;]*$`)
	beforeAnAlias    = regexp.MustCompile(`\b(?:of|into|update|as)\s+$|\)\s*$|to_jsonb\($|jsonb_agg\($|autopost\.\w+\s+(?:as\s+)?$`)
	beforeARow       = regexp.MustCompile(`(?:[(,]\s*|select\s+|then\s+|else\s+)$`)
	afterARow        = regexp.MustCompile(`^(?:\s*[,)]|\s+(?:from|into|as|end|order by)\b|\s*$|::)`)
)

// newClusterLint reads what the rules need to know of all functions and tables.
func newClusterLint(base *pgtest.DB) *clusterLint {
	l := &clusterLint{distributed: map[string]bool{}, views: map[string]bool{}, volatility: map[string]string{}, builtin: map[string]string{}, callers: map[string]bool{}}
	l.kept = pgtest.Value[string](base, `select prosrc from pg_proc where oid = 'autopost.keep_plans'::regproc`)
	var relations []string
	for _, r := range pgtest.Column[[]string](base, `
		select array[c.relname::text, c.relkind::text, coalesce(a.attnum = i.indkey[0], false)::text]
		from pg_class c
		left join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id'
		left join pg_index i on i.indrelid = c.oid and i.indisprimary
		where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p', 'v')`) {
		relations = append(relations, r[0])
		if r[1] == "v" {
			l.views[r[0]] = true
		} else if r[2] == "true" {
			l.distributed[r[0]] = true
		}
	}
	slices.SortFunc(relations, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	l.relations = strings.Join(relations, "|")
	l.relation = regexp.MustCompile(`\b(?:from|join|update|into|using|,)\s+(?:only\s+)?autopost\.(` + l.relations + `)\b(?:\s+(?:as\s+)?(\w+)\b)?`)
	for _, f := range pgtest.Column[[]string](base, `
		select array[p.proname::text, max(case p.provolatile when 'v' then 3 when 's' then 2 else 1 end)::text, p.pronamespace::regnamespace::text]
		from pg_proc p
		where p.pronamespace in ('autopost'::regnamespace, 'pg_catalog'::regnamespace) and p.prokind = 'f'
		group by p.proname, p.pronamespace
		having p.pronamespace = 'autopost'::regnamespace or count(distinct p.provolatile) = 1`) {
		kinds := l.builtin
		if f[2] == "autopost" {
			kinds = l.volatility
		}
		kinds[f[0]] = map[string]string{"1": "i", "2": "s", "3": "v"}[f[1]]
	}
	l.intervals = pgtest.Column[string](base, `
		select distinct p.proname::text from pg_proc p
		where p.pronamespace = 'autopost'::regnamespace and p.prorettype = 'interval'::regtype`)
	for range 2 { // and who asks those
		for _, f := range l.functions(base, "") {
			asks := asksWho.MatchString(f.body) || strings.HasPrefix(f.name, "may_") && slices.ContainsFunc(ourCall.FindAllStringSubmatch(f.body, -1), func(m []string) bool { return l.callers[m[1]] })
			l.callers[f.name] = l.callers[f.name] || asks
		}
	}
	return l
}

// check returns the findings in the functions and views, or only in those with a name.
func (l *clusterLint) check(base *pgtest.DB, only string) []finding {
	l.found = nil
	for _, f := range l.functions(base, only) {
		l.function(f)
	}
	for _, v := range pgtest.Column[[]string](base, `
		select array[c.relname::text, pg_get_viewdef(c.oid)] from pg_class c
		where c.relnamespace = 'autopost'::regnamespace and c.relkind = 'v' and ($1 = '' or c.relname = $1)`, only) {
		if outerLateral.MatchString(v[1]) {
			l.found = append(l.found, finding{"outer-lateral", v[0], 0, "joined or aggregated, it crashes a node: write a function that says p_workspace_id in each part"})
		}
	}
	slices.SortFunc(l.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.object, b.object), cmp.Compare(a.line, b.line))
	})
	return slices.Compact(l.found)
}

func (l *clusterLint) functions(base *pgtest.DB, only string) []lintedFunction {
	var functions []lintedFunction
	for _, f := range pgtest.Column[[]string](base, `
		select array[p.proname::text, p.prosrc, l.lanname::text, coalesce(array_to_string(p.proconfig, ','), ''),
			(p.prorettype = 'trigger'::regtype)::text, (p.pronargs > 0)::text,
			('p_workspace_id' = any (coalesce(p.proargnames, '{}')))::text]
		from pg_proc p join pg_language l on l.oid = p.prolang
		where p.pronamespace = 'autopost'::regnamespace and l.lanname in ('sql', 'plpgsql') and ($1 = '' or p.proname = $1)`, only) {
		functions = append(functions, lintedFunction{name: f[0], body: f[1], clean: blank(f[1]), language: f[2], config: f[3], trigger: f[4] == "true", parameters: f[5] == "true", ofWorkspace: f[6] == "true"})
	}
	return functions
}

// blank replaces comments and the contents of literals, so that positions stay.
func blank(body string) string {
	return commentOrLiteral.ReplaceAllStringFunc(body, func(m string) string {
		blanked := []byte(m)
		for i, c := range blanked {
			if c != '\n' && (m[0] == '-' || i > 0 && i < len(m)-1) {
				blanked[i] = ' '
			}
		}
		return string(blanked)
	})
}

// clause is a part of a body, with its position there.
type clause struct {
	at   int
	text string
}

// statements cuts a PL/pgSQL body at ; then else loop begin declare, outside brackets and CASE.
func statements(clean string) []clause {
	var parts []clause
	depth, start := 0, 0
	for _, m := range statementEnd.FindAllStringIndex(clean, -1) {
		switch word := clean[m[0]:m[1]]; {
		case word == "(":
			depth++
		case word == ")":
			depth--
		case depth == 0:
			inside := clean[start:m[0]]
			if word != ";" && len(caseWord.FindAllString(inside, -1)) > len(endWord.FindAllString(inside, -1)) {
				continue
			}
			parts = append(parts, clause{start, clean[start:m[1]]})
			start = m[1]
		}
	}
	return append(parts, clause{start, clean[start:]})
}

// closing returns the position behind the bracket that closes the one at open.
func closing(s string, open int) int {
	depth := 0
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// conditional returns the spans within CASE … END and COALESCE(…).
func conditional(s string) [][2]int {
	var spans [][2]int
	for _, m := range coalesceCall.FindAllStringIndex(s, -1) {
		spans = append(spans, [2]int{m[1] - 1, closing(s, m[1]-1)})
	}
	var opened []int
	for _, m := range caseOrEnd.FindAllStringIndex(s, -1) {
		if s[m[0]:m[1]] == "case" {
			opened = append(opened, m[0])
		} else if last := len(opened) - 1; last >= 0 {
			spans = append(spans, [2]int{opened[last], m[1]})
			opened = opened[:last]
		}
	}
	return spans
}

func (l *clusterLint) say(f lintedFunction, rule string, at int, what string) {
	line := strings.Count(f.clean[:min(at, len(f.clean))], "\n")
	text := strings.Split(f.body, "\n")[line]
	if reasoned.MatchString(text) {
		return
	}
	if exception.MatchString(text) {
		rule, what = "no-reason", "write -- citus: ok, and the reason"
	}
	l.found = append(l.found, finding{rule, f.name, line + 1, strings.Join(strings.Fields(what), " ")})
}

func (l *clusterLint) function(f lintedFunction) {
	b := f.clean
	if f.language == "sql" && f.parameters && l.relation.MatchString(b) {
		l.say(f, "sql-function", 0, "an SQL function with parameters over tables cannot be planned: write it in PL/pgSQL")
	}
	if strings.Contains(f.config, "force_generic_plan") && !strings.Contains(l.kept, "'"+f.name+"'") { // keep_plans removes those
		l.say(f, "generic-plan", 0, "parameters are unknown when it is planned: remove the setting")
	}
	for _, m := range forbidden.FindAllStringIndex(b, -1) {
		l.say(f, "forbidden", m[0], b[m[0]:m[1]]+" does not exist on a cluster")
	}
	if !f.ofWorkspace && l.relation.MatchString(b) {
		for _, m := range rowArray.FindAllStringIndex(b, -1) {
			l.say(f, "row-array", m[0], "beside a statement over all workspaces it has no type: use jsonb, or a function")
		}
	}
	if f.trigger {
		for _, m := range triggerName.FindAllStringIndex(b, -1) {
			if !quotedInVoid.MatchString(b[:m[0]]) {
				l.say(f, "trigger-name", m[0], "it is the name of the shard: pass an argument, tg_argv")
			}
		}
		for _, m := range wholeRowOf.FindAllStringIndex(b, -1) {
			l.say(f, "whole-row", m[0], b[m[0]:m[1]]+": write row(new.*)::autopost.TABLE")
		}
	}
	parts := statements(b)
	for i, s := range parts {
		next := ""
		if i+1 < len(parts) {
			next = parts[i+1].text
		}
		l.statement(f, s, next)
	}
}

// reference is a relation in a statement.
type reference struct {
	relation, alias string
	at              int
}

func (l *clusterLint) references(s string) []reference {
	var refs []reference
	for _, m := range l.relation.FindAllStringSubmatchIndex(s, -1) {
		if rest := s[m[1]:]; m[4] < 0 && strings.HasPrefix(strings.TrimLeft(rest, " \n\t"), "(") && !strings.HasPrefix(s[m[0]:], "into") {
			continue // a function with the name of a view
		}
		r := reference{relation: s[m[2]:m[3]], at: m[0]}
		if m[4] >= 0 {
			r.alias = s[m[4]:m[5]]
		}
		refs = append(refs, r)
	}
	return refs
}

func (l *clusterLint) statement(f lintedFunction, s clause, next string) {
	refs := l.references(s.text)
	if len(refs) == 0 {
		return
	}
	lead := s.at + len(s.text) - len(strings.TrimLeft(s.text, " \n\t"))
	ofWorkspaces, ofNode := false, ""
	for _, r := range refs {
		ofWorkspaces = ofWorkspaces || l.distributed[r.relation] || l.views[r.relation]
		if slices.Contains(nodeTables, r.relation) {
			ofNode = r.relation
		}
	}
	if ofWorkspaces && ofNode != "" {
		l.say(f, "node-table", lead, ofNode+" is of the node: read it into a variable before")
	}
	if !ofWorkspaces && ofNode != "" {
		return // a plain table
	}
	if roleTables.MatchString(s.text) {
		l.say(f, "roles", lead, "beside a table pg_roles is permission denied: write two statements")
	}
	l.wholeRows(f, s, refs)
	if strings.Contains(s.text, "with recursive") && !itsWorkspace.MatchString(s.text) {
		l.say(f, "recursion", lead, "across workspaces: write a plain aggregate or a loop")
	}
	if ofWorkspaces && !itsWorkspace.MatchString(s.text) {
		for _, m := range ourCall.FindAllStringSubmatchIndex(s.text, -1) {
			if name := s.text[m[2]:m[3]]; l.callers[name] {
				l.say(f, "who-calls", s.at+m[0], name+" runs on a shard as the owner: ask before, compare with own_workspaces()")
			}
		}
	}
	l.workspaces(f, s, refs)
	l.laterals(f, s)
	l.inserts(f, s, next)
	l.change(f, s)
}

// wholeRows finds rows of tables as arguments.
func (l *clusterLint) wholeRows(f lintedFunction, s clause, refs []reference) {
	for _, r := range refs {
		if r.alias == "" || l.views[r.relation] || slices.Contains([]string{"where", "set", "on", "order", "values", "limit", "for", "join", "left", "cross", "group"}, r.alias) {
			continue
		}
		for _, m := range regexp.MustCompile(`\b`+r.alias+`\b`).FindAllStringIndex(s.text, -1) {
			before, after := s.text[max(0, m[0]-40):m[0]], s.text[m[1]:min(len(s.text), m[1]+12)]
			if strings.HasSuffix(before, ".") || strings.HasPrefix(after, ".") || strings.HasPrefix(after, "(") || beforeAnAlias.MatchString(before) {
				continue
			}
			if beforeARow.MatchString(before) && afterARow.MatchString(after) {
				l.say(f, "whole-row", s.at+m[0], fmt.Sprintf("%s: write row(%[1]s.*)::autopost.%s", r.alias, r.relation))
			}
		}
	}
}

// workspaces finds references that do not name the workspace, in functions of one workspace.
func (l *clusterLint) workspaces(f lintedFunction, s clause, refs []reference) {
	if !f.ofWorkspace {
		return
	}
	for _, r := range refs {
		if !l.distributed[r.relation] && !l.views[r.relation] || strings.HasPrefix(s.text[r.at:], "into") {
			continue
		}
		named := regexp.MustCompile(`\b` + r.alias + `\.workspace_id = (?:[pv]_\w+|new\.|old\.)`)
		if r.alias == "" || !named.MatchString(s.text) {
			l.say(f, "workspace", s.at+r.at, fmt.Sprintf("%s %s: write %[2]s.workspace_id = p_workspace_id", r.relation, r.alias))
		}
	}
}

// laterals finds outer joins to subselects that take the workspace from another column.
func (l *clusterLint) laterals(f lintedFunction, s clause) {
	for _, m := range outerLateral.FindAllStringIndex(s.text, -1) {
		open := strings.IndexByte(s.text[m[1]:], '(')
		if open < 0 {
			continue
		}
		inside := s.text[m[1]:closing(s.text, m[1]+open)]
		if l.relation.MatchString(inside) && !itsWorkspace.MatchString(inside) {
			l.say(f, "outer-lateral", s.at+m[0], "it crashes a node: write workspace_id = p_workspace_id inside")
		}
	}
}

// inserts finds subselects in VALUES and RETURNING, and counts that include suppressed rows.
func (l *clusterLint) inserts(f lintedFunction, s clause, next string) {
	text := strings.TrimLeft(s.text, " \n\t")
	for _, m := range valuesList.FindAllStringIndex(s.text, -1) {
		if strings.HasPrefix(text, "insert") && subselect.MatchString(s.text[m[1]:closing(s.text, m[1]-1)]) {
			l.say(f, "values", s.at+m[0], "a subselect in VALUES is refused: use a variable")
		}
	}
	for _, m := range returningWord.FindAllStringIndex(s.text, -1) {
		list := endOfReturning.Split(s.text[m[1]:], 2)[0]
		if subselect.MatchString(list) {
			l.say(f, "returning", s.at+m[0], "a subselect in RETURNING gives null: join afterwards")
		}
		for _, call := range anyCall.FindAllStringSubmatch(list, -1) {
			if kind := l.kind(call[1] != "", call[2]); kind == "s" || kind == "v" {
				l.say(f, "returning", s.at+m[0], call[2]+" in RETURNING is refused: read the rows afterwards")
			}
		}
	}
	if at := strings.Index(s.text, "insert into"); at >= 0 && strings.Contains(text, "do nothing") && !valuesList.MatchString(text) && suppressed.MatchString(next) {
		l.say(f, "row-count", s.at+at, "INSERT … SELECT with DO NOTHING counts suppressed rows: exclude them with not exists")
	}
}

// change finds volatile functions in UPDATE, DELETE and ON CONFLICT, and stable ones of a column, in CASE or in COALESCE.
func (l *clusterLint) change(f lintedFunction, s clause) {
	for _, m := range changeOf.FindAllStringSubmatchIndex(s.text, -1) {
		l.oneChange(f, s, s.text[m[2]:m[3]], m[0])
	}
	for _, m := range doUpdate.FindAllStringIndex(s.text, -1) {
		l.oneChange(f, s, "excluded", m[0])
	}
}

// kind returns the volatility of a function of ours or of PostgreSQL; "" if it is unknown or if its overloads differ.
func (l *clusterLint) kind(ours bool, name string) string {
	if ours {
		return l.volatility[name]
	}
	return l.builtin[name]
}

// oneChange checks the change of the alias own that begins at start.
func (l *clusterLint) oneChange(f lintedFunction, s clause, own string, start int) {
	part := s.text[start:]
	if m := returningWord.FindStringIndex(part); m != nil {
		part = part[:m[0]]
	}
	inside := conditional(part)
	if own == "excluded" {
		inside = append(inside, [2]int{0, len(part)}) // of ON CONFLICT: immutable functions only
	}
	for _, m := range simpleCase.FindAllStringIndex(part, -1) {
		l.say(f, "simple-case", s.at+start+m[0], "CASE column WHEN is refused in a change: write CASE WHEN column = …")
	}
	ofColumn := regexp.MustCompile(`\b` + own + `\.\w`)
	judge := func(from, to int, what string, volatile bool) {
		switch {
		case volatile:
			l.say(f, "volatile-in-change", s.at+start+from, what+": read it into a variable before")
		case slices.ContainsFunc(inside, func(span [2]int) bool { return span[0] <= from && from < span[1] }):
			l.say(f, "stable-in-case", s.at+start+from, what+" within CASE or COALESCE: compute it before")
		case ofColumn.MatchString(part[from:to]):
			l.say(f, "stable-of-column", s.at+start+from, what+" of a column: compute it before, or use instant_of")
		}
	}
	for _, m := range anyCall.FindAllStringSubmatchIndex(part, -1) {
		name := part[m[4]:m[5]]
		kind := l.kind(m[2] >= 0, name)
		if kind == "v" || kind == "s" {
			judge(m[0], closing(part, m[1]-1), name, kind == "v")
		}
	}
	for _, m := range toInstant.FindAllStringIndex(part, -1) {
		from := max(strings.LastIndexByte(part[:m[0]], '('), 0)
		if part[m[0]-1] == ')' {
			depth := 0
			for from = m[0] - 1; from > 0; from-- {
				switch part[from] {
				case ')':
					depth++
				case '(':
					depth--
				}
				if depth == 0 {
					break
				}
			}
		}
		if !constantBefore.MatchString(part[from:m[0]]) {
			judge(from, m[1], "text to an instant", false)
		}
	}
	spans := []string{`interval\b`, `make_interval`, `\(\s*interval\b`, `(?:coalesce|greatest|least)\(`, `autopost\.(?:` + strings.Join(l.intervals, "|") + `)\b`}
	for _, m := range intervalName.FindAllStringSubmatch(f.clean, -1) {
		spans = append(spans, m[1]+`\b`)
	}
	for _, m := range regexp.MustCompile(`[\w.)]+\s*[-+]\s*(?:`+strings.Join(spans, "|")+`)`).FindAllStringIndex(part, -1) {
		if m[1] < len(part) && part[m[1]] == '(' {
			m[1] = closing(part, m[1])
		}
		judge(m[0], factors(part, m[1]), "an instant and an interval", false)
	}
}

// factors returns the end of the factors that follow an interval, as in "interval '1 second' * 2 ^ (c.tries + 1)".
func factors(text string, at int) int {
	for {
		m := factor.FindStringIndex(text[at:])
		if m == nil {
			return at
		}
		at += m[1]
		if at < len(text) && text[at] == '(' {
			at = closing(text, at)
		}
	}
}
