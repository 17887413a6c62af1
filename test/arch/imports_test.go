package arch

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// rule lists the packages of this module that the packages of one folder may import.
type rule struct {
	// under is the folder; "." means the root package only. The longest matching folder wins.
	under string
	// may lists folders. A folder includes its subfolders.
	may []string
	// exact forbids imports between the packages below under. Without it they may import each other.
	exact bool
	// reason is printed when a package breaks the rule.
	reason string
}

const root = "."

var (
	sharedByStages = []string{root, "internal/media", "internal/outbound", "internal/worker", "internal/telemetry", "internal/problem", "internal/recurrence"}
	allProduct     = []string{root, "db", "internal"}
)

const stageReason = "stages exchange data through the database; a stage declares the Store that it needs, and daemon passes it in"

var rules = []rule{
	{under: root, exact: true, reason: "the shared types must not depend on their users"},
	{under: "cmd/autopost", may: []string{"internal/cli"}, exact: true, reason: "the main function only starts cli"},
	{under: "cmd/autopost-sim", may: []string{"internal/sim"}, exact: true, reason: "the simulators run without the engine"},
	{under: "scripts", may: allProduct, reason: "generators read the packages that they describe"},
	{under: "db", reason: "db embeds SQL and has no logic"},

	{under: "internal/cli", may: allProduct, reason: "commands use every package"},
	{under: "internal/daemon", may: allProduct, reason: "the daemon builds all stages"},
	{under: "internal/demo", may: allProduct, reason: "the demo runs a whole installation"},
	{under: "internal/bench", may: allProduct, reason: "the benchmarks measure every part"},

	{under: "internal/api", may: append([]string{"internal/configfile"}, sharedByStages...),
		reason: "the API declares the calls that it needs, and daemon passes them in; it describes the fields that configfile declares"},
	{under: "internal/web", may: append([]string{"internal/api", "internal/authlimit", "internal/configfile", "internal/oidc", "internal/password"}, sharedByStages...), reason: "the pages use the services of the API and the rules of its fields"},
	{under: "internal/ingest", may: sharedByStages, reason: stageReason},
	{under: "internal/dispatch", may: sharedByStages, reason: stageReason},
	{under: "internal/webhooks", may: sharedByStages, reason: stageReason},
	{under: "internal/monitor", may: sharedByStages, reason: stageReason},
	{under: "internal/bot", may: sharedByStages, reason: stageReason},

	{under: "internal/adapter", may: []string{root, "internal/outbound"}, exact: true, reason: "shared adapter code knows no platform"},
	{under: "internal/adapter/adaptertest", may: []string{root, "internal/adapter", "internal/outbound", "internal/sim", "internal/testing/wait"},
		reason: "the conformance suite knows the contract and the simulators only"},
	{under: "internal/notify", may: []string{root, "internal/adapter", "internal/outbound"}, reason: "notices use adapters and know no stage"},
	{under: "internal/pg", may: []string{root, "db", "internal/ingest", "internal/dispatch", "internal/webhooks", "internal/monitor", "internal/bot",
		"internal/api", "internal/web", "internal/problem", "internal/media", "internal/credential", "internal/rawpayload", "internal/worker", "internal/telemetry", "internal/recurrence"},
		reason: "pg returns the types of the packages that call it, and calls none of them"},

	{under: "internal/media", may: []string{root, "internal/outbound"}, reason: "media serves stages and adapters"},
	{under: "internal/credential", may: []string{root, "internal/secret"}, reason: "the vault knows neither its callers nor the database"},
	{under: "internal/rawpayload", may: []string{"internal/secret"}, reason: "raw payloads know neither their callers nor the database"},
	{under: "internal/authlimit", may: []string{root, "internal/problem"}, reason: "a shared package imports no stage and not pg"},
	{under: "internal/outbound", may: []string{root}, reason: "a shared package imports no stage and not pg"},
	{under: "internal/telemetry", may: []string{root}, reason: "a shared package imports no stage and not pg"},
	{under: "internal/recurrence", may: []string{root}, reason: "rules are expanded without a database and without time zones"},
	{under: "internal/worker", may: []string{root}, reason: "a shared package imports no stage and not pg"},
	{under: "internal/problem", may: []string{root}, reason: "a shared package imports no stage and not pg"},
	{under: "internal/secret", may: []string{root}, reason: "a shared package imports no stage and not pg"},
	{under: "internal/oidc", may: []string{root}, reason: "the protocol knows neither people nor pages"},
	{under: "internal/password", reason: "passwords are hashed without knowledge of their users"},
	{under: "internal/config", may: []string{root}, reason: "a shared package imports no stage and not pg"},
	{under: "internal/configfile", may: []string{root}, reason: "a configuration file is read without a database"},
	{under: "internal/table", reason: "a table is printed without knowledge of its rows"},
	{under: "internal/localpg", reason: "the launcher of PostgreSQL knows no schema"},
	{under: failpoints, reason: "a failpoint may be named anywhere"},

	{under: "internal/sim", reason: "a simulator that shares code with an adapter repeats the adapter's mistakes"},

	{under: "internal/testing/pgtest", may: []string{"internal/localpg", "internal/pg/schema", "internal/testing/wait"}, reason: "an import of pg would be a cycle: the tests of pg use pgtest"},
	{under: "internal/testing", may: []string{root}, reason: "test tools do not import the packages that use them"},
	{under: "test/verify", may: []string{"internal/testing"}, reason: "the planted bugs of verify use functions and rows only"},
	{under: "test/arch", may: []string{"internal/testing"}, reason: "test/arch reads source files"},
	{under: "test", may: append([]string{"cmd"}, allProduct...), reason: "these tests run the whole engine"},
}

// notPlatforms lists the folders below internal/adapter that are not an adapter.
var notPlatforms = []string{"internal/adapter/adaptertest"}

func TestImportRules(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, name := range sorted(s.packages) {
		at := folder(name)
		r, ok := ruleFor(at)
		if !ok {
			t.Errorf("%s has no import rule: add one to test/arch with its reason", at)
			continue
		}
		for _, imported := range sorted(s.packages[name].imports) {
			if !ours(imported) {
				continue
			}
			if to := folder(imported); !r.allows(at, to) {
				t.Errorf("%s must not import %s (%s): %s", at, to,
					strings.Join(s.packages[name].imports[imported], ", "), r.reason)
			}
		}
	}
}

func ruleFor(at string) (rule, bool) {
	if path.Dir(at) == "internal/adapter" && !slices.Contains(notPlatforms, at) {
		return rule{under: at, may: []string{root, "internal/adapter", "internal/outbound"}, exact: true,
			reason: "an adapter knows one platform's protocol: no database, no stage, no other platform"}, true
	}
	best, found := rule{}, false
	for _, r := range rules {
		if within(at, r.under) && (!found || len(r.under) > len(best.under)) {
			best, found = r, true
		}
	}
	return best, found
}

func (r rule) allows(from, to string) bool {
	if to == failpoints {
		return mayFail(from)
	}
	if within(to, "internal/cli") {
		return within(from, "internal/cli") || from == "cmd/autopost"
	}
	if !r.exact && within(to, r.under) {
		return true
	}
	for _, may := range r.may {
		// internal/adapter as a permission means its shared code, not the platforms.
		exact := may == "internal/adapter"
		if to == may || within(to, may) && !exact {
			return true
		}
	}
	return false
}

const failpoints = "internal/failpoint"

// mayFail reports whether a package may contain failpoints.
func mayFail(from string) bool {
	return from != root && !within(from, "internal/adapter") && !within(from, "internal/sim")
}

// testOnly reports whether no program may link the package.
func testOnly(at string) bool {
	return within(at, "internal/testing") || within(at, "internal/adapter/adaptertest")
}

func within(at, under string) bool {
	return at == under || under != root && strings.HasPrefix(at, under+"/")
}

func ours(imported string) bool { return imported == module || strings.HasPrefix(imported, module+"/") }

func folder(imported string) string {
	if imported == module {
		return root
	}
	return strings.TrimPrefix(imported, module+"/")
}

func TestImportRulesRejectViolations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"internal/dispatch", root, true},
		{"internal/dispatch", failpoints, true},
		{"internal/dispatch", "internal/pg", false},
		{"internal/dispatch", "internal/config", false},
		{"internal/dispatch", "internal/monitor", false},
		{"internal/dispatch", "internal/adapter/telegram", false},
		{"internal/ingest/pull/rss", "internal/ingest/pull", true},
		{"internal/ingest/push", "internal/pg", false},
		{"internal/adapter/telegram", "internal/adapter", true},
		{"internal/adapter/telegram", "internal/adapter/maxmessenger", false},
		{"internal/adapter/telegram", "internal/media", false},
		{"internal/adapter/telegram", failpoints, false},
		{"internal/adapter", "internal/adapter/telegram", false},
		{"internal/adapter/adaptertest", "internal/sim/telegram", true},
		{"internal/adapter/adaptertest", "internal/adapter/telegram", false},
		{"internal/sim/telegram", "internal/sim", true},
		{"internal/sim/telegram", "internal/adapter", false},
		{"internal/sim/telegram", root, false},
		{"internal/pg", "db", true},
		{"internal/pg", "internal/dispatch", true},
		{"internal/pg", "internal/adapter/telegram", false},
		{"internal/testing/pgtest", "internal/pg", false},
		{"internal/testing/pgtest", "internal/pg/schema", true},
		{"internal/media", "internal/config", false},
		{"internal/web", "internal/pg", false},
		{"internal/daemon", "internal/dispatch", true},
		{"internal/daemon", "internal/cli", false},
		{"cmd/autopost", "internal/cli", true},
		{"cmd/autopost", "internal/dispatch", false},
		{"cmd/autopost-sim", "internal/dispatch", false},
		{root, "internal/pg", false},
	} {
		r, ok := ruleFor(c.from)
		if !ok || r.allows(c.from, c.to) != c.want {
			t.Errorf("%s importing %s: want allowed = %v", c.from, c.to, c.want)
		}
	}
	if r, ok := ruleFor("internal/common"); ok {
		t.Errorf("internal/common has the rule of %s", r.under)
	}
}

func TestProgramsLinkNoTestCode(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, name := range sorted(s.packages) {
		if !within(folder(name), "cmd") {
			continue
		}
		for _, linked := range sorted(s.reaches(name, map[string]bool{})) {
			if testOnly(folder(linked)) {
				t.Errorf("%s links %s, which is for tests only", folder(name), folder(linked))
			}
		}
	}
}

// A daemon must not call a simulator by mistake, so only the demo imports them.
func TestOnlyTheDemoLinksSimulators(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, name := range sorted(s.packages) {
		at := folder(name)
		if within(at, "internal/sim") || within(at, "internal/demo") || within(at, "cmd/autopost-sim") || within(at, "test") || testOnly(at) {
			continue
		}
		for imported, files := range s.packages[name].imports {
			if ours(imported) && within(folder(imported), "internal/sim") {
				t.Errorf("%s imports %s: only the demo may", files, folder(imported))
			}
		}
	}
}

func TestSimulatorsShareNothingWithAdapters(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, name := range sorted(s.packages) {
		if !within(folder(name), "internal/sim") {
			continue
		}
		for imported, files := range s.packages[name].imports {
			if strings.Contains(strings.Split(imported, "/")[0], ".") && !strings.HasPrefix(imported, "golang.org/x/text/") {
				t.Errorf("%s imports %s: simulators use the standard library and golang.org/x/text only", files, imported)
			}
		}
		for imported, files := range s.packages[name].testImports {
			if ours(imported) && within(folder(imported), "internal/adapter") {
				t.Errorf("%s imports %s: a simulator is tested against the platform's documents, not its adapter", files, imported)
			}
		}
	}
}

// thirdParty lists modules with their permitted importers.
var thirdParty = []struct {
	prefix    string
	importers []string
	reason    string
}{
	{"github.com/jackc/pgx/", []string{"internal/pg", "internal/localpg", "internal/ingest/pull/externaldb", "internal/bench", "internal/testing/pgtest"},
		"each statement of ours is a method of pg.Store with the name of its SQL function"},
	{"database/sql", []string{"internal/pg", "internal/testing/pgtest"}, "each statement of ours is a method of pg.Store with the name of its SQL function"},
	{"github.com/riverqueue/river", []string{"internal/bench"}, "River is a peer for measurements"},
	{"github.com/teambition/rrule-go", []string{"internal/recurrence"}, "only package recurrence expands rules"},
	{"github.com/pressly/goose/", []string{"internal/pg/schema"}, "only schema.Migrate changes the schema"},
	{"github.com/mmcdole/gofeed", []string{"internal/ingest/pull/rss"}, "feeds are one kind of source"},
	{"github.com/fsnotify/fsnotify", []string{"internal/ingest/filebus"}, "only folders are watched"},
	{"gocloud.dev/", []string{"internal/media"}, "media.Store hides the object store"},
	{"github.com/danielgtaylor/huma/", []string{"internal/api"}, "the API is the only HTTP API"},
	{"github.com/a-h/templ", []string{"internal/web"}, "only the pages write HTML"},
	{"github.com/alexedwards/argon2id", []string{"internal/password"}, "one package hashes passwords"},
	{"github.com/coreos/go-oidc/", []string{"internal/oidc"}, "one package signs in by OpenID Connect"},
	{"golang.org/x/oauth2", []string{"internal/oidc"}, "one package signs in by OpenID Connect; platforms have token endpoints of their own"},
	{"github.com/chromedp/", []string{"test/pages"}, "only the tests of the pages start a browser"},
	{"github.com/spf13/cobra", []string{"internal/cli", "cmd/autopost-sim"}, "commands are the concern of cli"},
	{"github.com/knadh/koanf/", []string{"internal/config"}, "only config reads the configuration"},
	{"github.com/jedib0t/go-pretty/", []string{"internal/table", "internal/bench"}, "one package prints tables"},
}

func TestThirdPartyModulesHaveListedImporters(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, name := range sorted(s.packages) {
		for imported, files := range s.packages[name].imports {
			for _, m := range thirdParty {
				if (imported+"/" == m.prefix || strings.HasPrefix(imported, m.prefix)) &&
					!slices.ContainsFunc(m.importers, func(at string) bool { return within(folder(name), at) }) {
					t.Errorf("%s imports %s: %s", files, imported, m.reason)
				}
			}
		}
		if folder(name) == root {
			for imported := range s.packages[name].imports {
				if strings.Contains(strings.Split(imported, "/")[0], ".") {
					t.Errorf("the root package imports %s: it imports the standard library only", imported)
				}
			}
		}
	}
}
