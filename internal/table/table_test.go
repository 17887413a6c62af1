package table_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/table"
)

var deliveries = table.Table{
	Columns: []string{"when", "channel", "status", "why", "text", "delivery_id"},
	Details: []string{"delivery_id"},
	Rows: [][]any{
		{time.Date(2026, 12, 1, 7, 0, 0, 0, time.UTC), "city", "dead", "http_403: the bot was removed from the chat", table.Excerpt(strings.Repeat("long ", 30)), "0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa"},
		{time.Date(2026, 12, 1, 7, 0, 1, 0, time.UTC), "city", "sent", "", table.Excerpt("short"), "0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1ab"},
	},
	Empty: "no delivery: run autopost post",
}

func printed(t *testing.T, shown table.Table, width int) (string, []string) {
	t.Helper()
	var out strings.Builder
	hidden, err := shown.Print(&out, width)
	require.NoError(t, err)
	for line := range strings.Lines(out.String()) {
		if width > 0 {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), width, out.String())
		}
	}
	return out.String(), hidden
}

func TestPrint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		width  int
		says   []string
		never  []string
		hidden []string
	}{
		{"wide enough for all", 140, []string{"WHEN", "DELIVERY ID", "0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa", "…"}, []string{"why: "}, nil},
		{"sentences go below their row", 110, []string{"    why: http_403: the bot was removed", "0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa"}, []string{"WHY"}, nil},
		{"details are left out", 80, []string{"    why: http_403: the bot was removed", "TEXT"}, []string{"0198c5a1"}, []string{"delivery_id"}},
		{"rows that do not fit are records", 45, []string{"DELIVERY ID  0198c5a1-7c3e-7a51-9d56-0f3ac1d3\n             b1aa", "\n\n"}, []string{"…"}, nil},
		{"no limit cuts nothing", 0, []string{"DELIVERY ID", strings.Repeat("long ", 29)}, []string{"…"}, nil},
	} {
		out, hidden := printed(t, deliveries, c.width)
		for _, part := range c.says {
			require.Contains(t, out, part, c.name)
		}
		for _, part := range c.never {
			require.NotContains(t, out, part, c.name)
		}
		require.Equal(t, c.hidden, hidden, c.name)
	}
}

func TestEveryWidthHolds(t *testing.T) {
	t.Parallel()
	for width := 40; width < 200; width++ {
		printed(t, deliveries, width)
	}
}

func TestEmptyTableIsASentence(t *testing.T) {
	t.Parallel()
	empty := deliveries
	empty.Rows = nil
	out, _ := printed(t, empty, 80)
	require.Equal(t, "no delivery: run autopost post\n", out)
}

func TestText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 7, 0, 0, 0, time.UTC)
	local := at.Local().Format("2006-01-02 15:04:05 MST")
	for _, c := range []struct {
		cell any
		want string
	}{
		{nil, ""}, {(*time.Time)(nil), ""}, {(*string)(nil), ""}, {at, local}, {&at, local}, {true, "yes"}, {false, "no"},
		{"paused until 2026-12-01 07:00 UTC", "paused until " + local}, {[]string{"a", "b"}, "a, b"}, {0.5, "0.5"}, {"until 2026-12-01T10:00:00+03:00.", "until " + local + "."},
		{"a\x1b[31mb\nc\u202ed", "a [31mb c d"}, {table.Excerpt("at 2026-12-01T10:00:00+03:00"), "at 2026-12-01T10:00:00+03:00"},
	} {
		require.Equal(t, c.want, table.Text(c.cell))
	}
}

func TestWrapKeepsInstantsWhole(t *testing.T) {
	t.Parallel()
	require.Equal(t, "paused until\n2026-11-24 07:44:03 UTC, then\nsent", table.Wrap("paused until 2026-11-24 07:44:03 UTC, then sent", 29))
}
