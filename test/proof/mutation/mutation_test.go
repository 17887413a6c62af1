package mutation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/source"
	"autopost/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// repository is the folder of the source.
func repository(t testing.TB) string {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	return root
}

// overlay writes what go build -overlay takes for a plant, and returns its path.
func (p plant) overlay(t testing.TB) string {
	t.Helper()
	root, dir := repository(t), t.TempDir()
	texts := map[string]string{}
	for _, e := range p.edits {
		if _, read := texts[e.file]; !read {
			raw, err := os.ReadFile(filepath.Join(root, e.file))
			require.NoError(t, err)
			texts[e.file] = string(raw)
		}
		require.Equal(t, 1, strings.Count(texts[e.file], e.old), "%q: the text to replace stands in %s once:\n%s", p.bug, e.file, e.old)
		texts[e.file] = strings.Replace(texts[e.file], e.old, e.new, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		require.NoError(t, os.WriteFile(to, []byte(text), 0o600))
		replace[filepath.Join(root, file)] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	path := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	return path
}

func (p plant) chosen() bool { return pgtest.Long() || slices.Contains(fixed, p.bug) }

func named(name string) (scenario, bool) {
	at := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
	if at < 0 {
		return scenario{}, false
	}
	return scenarios[at], true
}

// Each mutation matches the source, and its scenario exists.
func TestThePlantsFitTheSource(t *testing.T) {
	t.Parallel()
	bugs := map[string]bool{}
	for _, p := range plants {
		p.overlay(t)
		_, ok := named(p.scenario)
		require.True(t, ok, "%q: scenario %q does not exist", p.bug, p.scenario)
		require.False(t, bugs[p.bug], p.bug)
		bugs[p.bug] = true
	}
	for _, bug := range fixed {
		require.True(t, bugs[bug], bug)
	}
}

// The program as it is gives no scenario anything to complain of.
func TestNothingIsPlanted(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		if !slices.ContainsFunc(plants, func(p plant) bool { return p.scenario == s.name && p.chosen() }) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			program := harness.Option(harness.Ordinary)
			if s.tags == "failpoint" {
				program = harness.WithFailpoints
			}
			s.play(t, program)
		})
	}
}

// Each bug that is planted in the orchestration makes its scenario fail, for the reason that it should.
func TestPlantedBugsAreCaught(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	planted, caught, lines := 0, 0, []string(nil)
	t.Cleanup(func() { t.Logf("planted %d, caught %d\n%s", planted, caught, strings.Join(lines, "\n")) })
	for _, p := range plants {
		if !p.chosen() {
			continue
		}
		t.Run(p.bug, func(t *testing.T) {
			t.Parallel()
			s, _ := named(p.scenario)
			program := harness.WithOverlay(p.overlay(t), s.tags)
			complaints := strings.Join(judged(t, func(t testing.TB) { s.play(t, program) }), "\n")
			by := regexp.MustCompile(p.caught).FindString(complaints)
			mu.Lock()
			planted++
			if by != "" {
				caught++
				lines = append(lines, fmt.Sprintf("%s: caught by %q: %s", p.bug, p.scenario, by))
			}
			mu.Unlock()
			require.NotContains(t, complaints, "build the binary", "a plant compiles")
			require.NotEmpty(t, by, "not caught as %q; the complaints:\n%s", p.caught, complaints)
		})
	}
}
