package arch

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// rule says what the packages under a folder may import of ours.
type rule struct {
	// under is a folder; "." is the root package alone. The longest match counts.
	under string
	// may lists folders; each stands for what is below it too. Below its own rule's
	// folder every package may import its neighbours, unless alone is set.
	may   []string
	alone bool
	// because is told to whoever breaks the rule.
	because string
}

const root = "."

var stageMay = []string{root, "internal/media", "internal/outbound", "internal/telemetry", "internal/service"}

const stageBecause = "stages meet in the database only: a stage declares the small interface it needs, internal/pg provides it and cmd introduces them"

var rules = []rule{
	{under: root, alone: true,
		because: "the vocabulary must be free of all that uses it"},
	{under: "cmd/autopost-sim", may: []string{"internal/sim"},
		because: "the simulators must stand without the house that they judge"},
	{under: "cmd", may: []string{root, "db", "internal"},
		because: "programs introduce packages to each other"},
	{under: "scripts", may: []string{root, "db", "internal"}, because: "generators see what they describe"},
	{under: "db",
		because: "db is SQL and its embedding, no logic"},
	{under: "internal/ingest", may: stageMay, because: stageBecause},
	{under: "internal/dispatch", may: stageMay, because: stageBecause},
	{under: "internal/monitor", may: stageMay, because: stageBecause},
	{under: "internal/results", may: stageMay, because: stageBecause},
	{under: "internal/bot", may: stageMay, because: stageBecause},
	{under: "internal/admin", may: stageMay, because: stageBecause},
	{under: "internal/web", may: []string{root, "internal/admin", "internal/telemetry", "internal/service"},
		because: "pages show what admin's services answer, so that the API can do all that pages can"},
	{under: "internal/adapter", may: []string{root, "internal/outbound"}, alone: true,
		because: "adapter holds what all platforms share and knows none of them"},
	{under: "internal/adapter/adaptertest", may: []string{root, "internal/adapter", "internal/outbound", "internal/sim"},
		because: "the suite knows the contract and the simulators, nothing of the house"},
	{under: "internal/notify", may: []string{root, "internal/adapter", "internal/outbound"},
		because: "what tells people of the house speaks as adapters do, and knows no stage"},
	{under: "internal/media", may: []string{root, "internal/outbound"},
		because: "media serves stages and adapters alike"},
	{under: "internal/outbound", may: []string{root}, because: "the client factory serves everyone"},
	{under: "internal/telemetry", may: []string{root}, because: "telemetry serves everyone"},
	{under: "internal/guesses", because: "the limit before all doors knows none of them"},
	{under: "internal/service", may: []string{root}, because: "the run group serves everyone"},
	{under: "internal/secret", may: []string{root}, because: "credentials are resolved where they are used, by whoever calls"},
	{under: "internal/credential", may: []string{root, "internal/secret"},
		because: "the keeper of credentials knows neither who uses them nor where they are stored: cmd introduces it"},
	{under: "internal/config", may: []string{root}, because: "only cmd reads the configuration and hands its values on"},
	{under: "internal/blueprint", because: "what a configuration file says is known without a database"},
	{under: "internal/pg", may: []string{root, "db"},
		because: "the boundary to the database knows no stage: what a stage needs is its interface"},
	{under: "internal/localpg", because: "a launcher of PostgreSQL knows no schema"},
	{under: "internal/bench", may: []string{root, "internal/localpg", "internal/pg", "internal/ingest/push"},
		because: "it measures the database from outside: by functions and by the door for posts, on servers and schemas of its own"},
	{under: "internal/pgtest", may: []string{"internal/localpg", "internal/pg"},
		because: "any test may use it, so it must not lead back to what is tested"},
	{under: "internal/posttest", may: []string{root, "internal/pgtest", "internal/pg"},
		because: "any test may use it, so it must not lead back to what is tested"},
	{under: "internal/smtptest", because: "a mail server that any test may start"},
	{under: "internal/s3test", because: "an S3 server that any test may start"},
	{under: "internal/disktest", because: "a disk that any test may fill"},
	{under: "internal/oracle", may: []string{"internal/pgtest", "internal/posttest"},
		because: "it judges the database from outside: by functions and rows alone"},
	{under: "internal/sim",
		because: "a simulator that shared a line with its adapter would agree with the adapter's mistakes"},
	{under: crashPoints, because: "what any line may name leads nowhere"},
	{under: "internal/arch", because: "a test only"},
	{under: "test", may: []string{root, "cmd", "db", "internal"}, because: "whole-house tests see everything"},
}

// Each platform's adapter is a rule of its own: see platformRule.
var notPlatforms = []string{"internal/adapter/adaptertest"}

func TestWhoMayKnowWhom(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, name := range sorted(s.packages) {
		at := folder(name)
		r, ok := ruleFor(at)
		if !ok {
			t.Errorf("%s is new: say in internal/arch whom it may know, and why", at)
			continue
		}
		for _, imported := range sorted(s.packages[name].imports) {
			if !ours(imported) {
				continue
			}
			if to := folder(imported); !r.allows(to) {
				t.Errorf("%s must not import %s (%s): %s", at, to,
					strings.Join(s.packages[name].imports[imported], ", "), r.because)
			}
		}
	}
}

func ruleFor(at string) (rule, bool) {
	if path.Dir(at) == "internal/adapter" && !slices.Contains(notPlatforms, at) {
		return rule{under: at, may: []string{root, "internal/adapter", "internal/outbound"}, alone: true,
			because: "an adapter speaks one platform's protocol: no database, no stage, no other platform"}, true
	}
	best, found := rule{}, false
	for _, r := range rules {
		if within(at, r.under) && (!found || len(r.under) > len(best.under)) {
			best, found = r, true
		}
	}
	return best, found
}

func (r rule) allows(to string) bool {
	if to == crashPoints && !r.alone && r.under != "internal/sim" {
		return true
	}
	if !r.alone && within(to, r.under) {
		return true
	}
	for _, may := range r.may {
		// What a platform's adapter shares is internal/adapter itself, not its siblings.
		if to == may || within(to, may) && may != "internal/adapter" {
			return true
		}
	}
	return false
}

// crashPoints names lines of the code, and does nothing there in an ordinary build.
const crashPoints = "internal/crash"

// testOnly names what no program may link.
func testOnly(at string) bool {
	return slices.Contains([]string{"internal/pgtest", "internal/posttest", "internal/adapter/adaptertest", "internal/adapter/adaptertest/published", "internal/disktest", "internal/s3test", "internal/smtptest"}, at)
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

// The rules themselves: what they are for must be refused.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"internal/dispatch", root, true},
		{"internal/dispatch", "internal/pg", false},
		{"internal/dispatch", "internal/monitor", false},
		{"internal/dispatch", "internal/adapter/telegram", false},
		{"internal/ingest/pull/rss", "internal/ingest/pull", true},
		{"internal/ingest/push", "internal/pg", false},
		{"internal/adapter/telegram", "internal/adapter", true},
		{"internal/adapter/telegram", "internal/adapter/maxmessenger", false},
		{"internal/adapter/telegram", "internal/media", false},
		{"internal/adapter", "internal/adapter/telegram", false},
		{"internal/adapter/adaptertest", "internal/sim/telegram", true},
		{"internal/adapter/adaptertest", "internal/adapter/telegram", false},
		{"internal/sim/telegram", "internal/sim", true},
		{"internal/sim/telegram", "internal/adapter", false},
		{"internal/sim/telegram", root, false},
		{"internal/pg", "db", true},
		{"internal/pg", "internal/dispatch", false},
		{"internal/media", "internal/config", false},
		{"internal/web", "internal/pg", false},
		{"cmd/autopost", "internal/dispatch", true},
		{"cmd/autopost-sim", "internal/dispatch", false},
		{root, "internal/pg", false},
	} {
		r, ok := ruleFor(c.from)
		if !ok || r.allows(c.to) != c.want {
			t.Errorf("%s importing %s: want allowed = %v", c.from, c.to, c.want)
		}
	}
	if r, ok := ruleFor("internal/common"); ok {
		t.Errorf("a package without a rule has one: %+v", r)
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

// The daemon must not be able to talk to a simulator by accident: only the demo
// brings them in.
func TestOnlyTheDemoLinksSimulators(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, name := range sorted(s.packages) {
		at := folder(name)
		if within(at, "internal/sim") || within(at, "cmd/autopost-sim") || within(at, "test") || testOnly(at) {
			continue
		}
		for imported, files := range s.packages[name].imports {
			if !ours(imported) || !within(folder(imported), "internal/sim") {
				continue
			}
			for _, file := range files {
				if !strings.HasPrefix(path.Base(file), "demo") && !strings.Contains(path.Dir(file), "demo") {
					t.Errorf("%s imports %s: only the demo may", file, folder(imported))
				}
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

// thirdParty lists modules that have one door, and why.
var thirdParty = []struct {
	prefix  string
	doors   []string
	because string
}{
	{"github.com/jackc/pgx/", []string{"internal/pg", "internal/pgtest", "internal/localpg", "internal/bench"},
		"every statement of ours is a method of pg.Store, named like its SQL function"},
	{"database/sql", []string{"internal/pg", "internal/pgtest"},
		"every statement of ours is a method of pg.Store, named like its SQL function"},
	{"github.com/riverqueue/river", []string{"internal/bench"}, "a peer to be measured against, no part of the house"},
	{"github.com/pressly/goose/", []string{"internal/pg"}, "the schema changes by schema.Migrate alone"},
	{"github.com/mmcdole/gofeed", []string{"internal/ingest/pull"}, "feeds are a source among others"},
	{"gocloud.dev/", []string{"internal/media"}, "the object store is behind media.Store"},
	{"github.com/danielgtaylor/huma/", []string{"internal/admin"}, "the API is one package's concern"},
	{"github.com/spf13/cobra", []string{"cmd"}, "commands are the programs' concern"},
	{"github.com/knadh/koanf/", []string{"internal/config"}, "configuration is read in one place"},
}

func TestOneDoorForEachModule(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, name := range sorted(s.packages) {
		for imported, files := range s.packages[name].imports {
			for _, module := range thirdParty {
				if (imported+"/" == module.prefix || strings.HasPrefix(imported, module.prefix)) &&
					!slices.ContainsFunc(module.doors, func(door string) bool { return within(folder(name), door) }) {
					t.Errorf("%s imports %s: %s", files, imported, module.because)
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
