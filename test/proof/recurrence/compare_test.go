package recurrence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/recurrence"
	"autopost/internal/testing/pgtest"
)

var update = flag.Bool("update", false, "write testdata/golden.txt by libical")

const (
	// rules is the size of the whole proof.
	rules = 20_000
	// goldenRules is the size of the sample in testdata/golden.txt.
	goldenRules = 80
	golden      = "testdata/golden.txt"
)

// reference builds testdata/reference.c and returns the program.
func reference(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "reference")
	output, err := exec.Command("cc", "-O2", "-Wall", "-Werror", "-o", program, "testdata/reference.c", "-lical").CombinedOutput()
	require.NoError(t, err, "the reference needs libical (apt-get install libical-dev):\n%s", output)
	return program
}

// ask returns the dates of the reference for each case, as LOCAL=EPOCH.
func ask(t *testing.T, program string, cases []testCase) [][]string {
	t.Helper()
	var input bytes.Buffer
	for _, c := range cases {
		fmt.Fprintln(&input, c)
	}
	command := exec.CommandContext(t.Context(), program)
	command.Stdin = &input
	output, err := command.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	require.Len(t, lines, len(cases))
	all := make([][]string, len(cases))
	for i, line := range lines {
		if line != "error" { // libical finds no date
			all[i] = strings.Fields(line)
		}
	}
	return all
}

// locals returns the dates of a case as autopost expands them.
func locals(t *testing.T, c testCase) []string {
	t.Helper()
	found, err := recurrence.Expand(c.Rule, c.Start, c.Start.Add(-time.Second), c.end(), 1_000_000)
	require.NoError(t, err, c.String())
	all := make([]string, len(found.Times))
	for i, date := range found.Times {
		all[i] = date.Format(layout)
	}
	return all
}

// instants returns the dates as LOCAL=EPOCH, by the database.
func instants(db *pgtest.DB, zone string, dates []string) []string {
	return pgtest.Column[string](db, `
		select u.l || '=' || extract(epoch from autopost.zoned_instant($1, u.l::timestamp))::bigint
		from unnest($2::text[]) with ordinality u (l, n) order by u.n`, zone, dates)
}

// nearChanges returns the indexes of dates near a change of the clock, and of every fiftieth date.
func nearChanges(t *testing.T, dates []string) []int {
	t.Helper()
	offset := func(i int) int64 {
		text, epoch, _ := strings.Cut(dates[min(max(i, 0), len(dates)-1)], "=")
		at, err := time.Parse(layout, text)
		require.NoError(t, err)
		n, err := strconv.ParseInt(epoch, 10, 64)
		require.NoError(t, err)
		return at.Unix() - n
	}
	var near []int
	for i := range dates {
		if i%50 == 0 || offset(i-2) != offset(i) || offset(i+2) != offset(i) {
			near = append(near, i)
		}
	}
	return near
}

// difference compares a case with the dates of the reference. It returns the first difference, "" if there is none, and
// how many instants it compared.
func difference(t *testing.T, db *pgtest.DB, c testCase, want []string) (found string, compared int) {
	t.Helper()
	got := locals(t, c)
	for i := range max(len(got), len(want)) {
		here, there := "none", "none"
		if i < len(got) {
			here = got[i]
		}
		if i < len(want) {
			there, _, _ = strings.Cut(want[i], "=")
		}
		if here != there {
			return fmt.Sprintf("date %d of %d is %s; libical has %s, and %d dates", i, len(got), here, there, len(want)), 0
		}
	}
	var dates, expected []string
	for _, i := range nearChanges(t, want) {
		dates, expected = append(dates, got[i]), append(expected, want[i])
	}
	if len(dates) == 0 {
		return "", 0
	}
	for i, at := range instants(db, c.Zone, dates) {
		if at != expected[i] {
			return fmt.Sprintf("instant %s; the C library has %s", at, expected[i]), i
		}
	}
	return "", len(dates)
}

// Random rules have the dates of libical for ten years, and in random zones the instants of the C library.
func TestRulesMatchLibical(t *testing.T) {
	t.Parallel()
	if !pgtest.Long() && !*update {
		return // TestGoldenRules compares a sample without libical
	}
	program := reference(t)
	if *update {
		writeGolden(t, program)
	}
	if !pgtest.Long() {
		return
	}
	db, until := pgtest.New(t), pgtest.Until(0)
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("AUTOPOST_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("AUTOPOST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	compared, dates, checked := 0, 0, 0
	for compared < rules && !t.Failed() && time.Now().Before(until) {
		cases := make([]testCase, 100)
		for i := range cases {
			cases[i] = randomCase(random)
		}
		for i, want := range ask(t, program, cases) {
			found, n := difference(t, db, cases[i], want)
			if found != "" {
				t.Errorf("%s: %s", cases[i], found)
			}
			checked, dates = checked+n, dates+len(want)
		}
		compared += len(cases)
	}
	t.Logf("%d rules, %d dates, %d instants compared by the database", compared, dates, checked)
}

// digest is the number of dates and a hash of them with their instants.
func digest(dates []string) string {
	sum := sha256.Sum256([]byte(strings.Join(dates, " ")))
	return fmt.Sprintf("%d %s", len(dates), hex.EncodeToString(sum[:8]))
}

// writeGolden writes the sample: a case and the digest of the dates by the reference per line.
func writeGolden(t *testing.T, program string) {
	t.Helper()
	random := rand.New(rand.NewPCG(5545, 1))
	var cases []testCase
	for len(cases) < goldenRules {
		if c := randomCase(random); len(locals(t, c)) < 3000 {
			cases = append(cases, c)
		}
	}
	var text strings.Builder
	for i, want := range ask(t, program, cases) {
		fmt.Fprintf(&text, "%s %s\n", cases[i], digest(want))
	}
	require.NoError(t, os.WriteFile(golden, []byte(text.String()), 0o600))
}

func TestGoldenRules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(golden)
	require.NoError(t, err)
	db := pgtest.New(t)
	compared := 0
	for line := range strings.Lines(string(text)) {
		described, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		parts := strings.Split(described, "|")
		require.Len(t, parts, 4)
		start, err := time.Parse(layout, parts[2])
		require.NoError(t, err)
		c := testCase{Zone: parts[0], Rule: parts[1], Start: start}
		require.Equal(t, described, c.String())
		require.Equal(t, want, digest(instants(db, c.Zone, locals(t, c))), described)
		compared++
	}
	require.Equal(t, goldenRules, compared)
}
