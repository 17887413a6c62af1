package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"autopost/internal/testing/pgtest"
)

// sizes are measurements of a daemon and its tables over time.
type sizes struct {
	after []time.Duration
	// held has the values of the daemon by metric; tables has bytes and rows has row counts by table.
	held, tables, rows map[string][]float64
}

// heldBy lists the metrics that must not grow, with their permitted variation.
var heldBy = map[string]float64{"go_goroutines": 15, "process_open_fds": 10, "process_resident_memory_bytes": 6 << 20}

// measure adds the present values.
func (s *soak) measure(t *testing.T, after time.Duration) {
	t.Helper()
	if s.sizes.held == nil {
		s.sizes = sizes{held: map[string][]float64{}, tables: map[string][]float64{}, rows: map[string][]float64{}}
	}
	s.sizes.after = append(s.sizes.after, after)
	for name, value := range s.Metrics(s.steady.URL) {
		if _, ok := heldBy[name]; ok {
			s.sizes.held[name] = append(s.sizes.held[name], value)
		}
	}
	for _, row := range pgtest.Column[map[string]any](s.DB, `
		select jsonb_build_object('name', (coalesce(pg_partition_root(relid), relid)::regclass)::text,
			'bytes', sum(pg_total_relation_size(relid)), 'rows', sum(n_live_tup))
		from pg_stat_user_tables where schemaname = 'autopost' group by coalesce(pg_partition_root(relid), relid)`) {
		name := strings.TrimPrefix(row["name"].(string), "autopost.")
		s.sizes.tables[name] = append(s.sizes.tables[name], row["bytes"].(float64))
		s.sizes.rows[name] = append(s.sizes.rows[name], row["rows"].(float64))
	}
	if len(s.sizes.after)%30 == 0 {
		t.Log(s.sizes.now())
	}
}

// now formats the last measurement.
func (z *sizes) now() string {
	last := len(z.after) - 1
	line := []string{z.after[last].Round(time.Second).String()}
	for _, name := range slices.Sorted(maps.Keys(z.held)) {
		line = append(line, fmt.Sprintf("%s %.0f", name, z.held[name][last]))
	}
	return strings.Join(append(line, fmt.Sprintf("deliveries %.0f", z.rows["deliveries"][last])), ", ")
}

// quarter is the median of the nth quarter of a series.
func quarter(series []float64, nth int) float64 {
	part := slices.Clone(series[(nth-1)*len(series)/4 : nth*len(series)/4])
	slices.Sort(part)
	return part[len(part)/2]
}

// String returns a table of the second and the last quarter of the time.
func (z *sizes) String() string {
	lines := []string{fmt.Sprintf("%-32s %14s %14s", "", "2nd quarter", "4th quarter")}
	for _, name := range slices.Sorted(maps.Keys(z.held)) {
		lines = append(lines, fmt.Sprintf("%-32s %14.0f %14.0f", name, quarter(z.held[name], 2), quarter(z.held[name], 4)))
	}
	for _, name := range slices.Sorted(maps.Keys(z.tables)) {
		if quarter(z.rows[name], 4) > 0 {
			lines = append(lines, fmt.Sprintf("%-32s %8.0f kB of %7.0f rows %8.0f kB of %7.0f rows", name,
				quarter(z.tables[name], 2)/1024, quarter(z.rows[name], 2), quarter(z.tables[name], 4)/1024, quarter(z.rows[name], 4)))
		}
	}
	return strings.Join(lines, "\n")
}

// fewRows is the maximum of a table that does not grow with posts: two hours have 7,200 posts.
const fewRows = 500

// flat fails the test if a value grew from the second quarter of the time to the last: a metric of the
// daemon, the size of a small table, or the size of a row.
func (z *sizes) flat(t *testing.T) {
	t.Helper()
	for name, slack := range heldBy {
		if before, after := quarter(z.held[name], 2), quarter(z.held[name], 4); after > before*1.1+slack {
			t.Errorf("%s grew from %.0f to %.0f", name, before, after)
		}
	}
	for name, bytes := range z.tables {
		before, after := quarter(bytes, 2), quarter(bytes, 4)
		was, is := quarter(z.rows[name], 2), quarter(z.rows[name], 4)
		most := before*1.25 + 64<<10
		if is > fewRows {
			most *= is / max(was, 1)
		}
		if after > most {
			t.Errorf("table %s grew from %.0f bytes with %.0f rows to %.0f with %.0f", name, before, was, after, is)
		}
	}
}
