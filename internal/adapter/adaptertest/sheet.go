package adaptertest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest/published"
)

// SheetRow is a row of the error table in a platform's fact sheet.
type SheetRow struct {
	// Key is the start of the sheet's row: status and description without formatting.
	Key string
	// Answers are answers to a post that the row describes. If a post cannot cause them, Elsewhere is
	// the name of the test that covers the row.
	Answers   []Row
	Elsewhere string
	// Deviates is the reason why the class of the answers differs from the sheet's.
	Deviates string
}

// Answers returns the answers of all rows, for [Harness.Rows].
func Answers(sheet []SheetRow) []Row {
	var rows []Row
	for _, row := range sheet {
		rows = append(rows, row.Answers...)
	}
	return rows
}

// CompareSheet fails unless the rows match those of the sheet's error table in order, with its classes,
// and with an answer for each of its phrases. The sheets are next to the repository; without them it
// logs a line.
func CompareSheet(t *testing.T, name string, rows []SheetRow) {
	t.Helper()
	table := ErrorTable(t, name)
	if table == nil {
		return
	}
	require.Len(t, rows, len(table), "rows of the sheet")
	answers := 0
	for i, cells := range table {
		require.True(t, strings.HasPrefix(unmarked(cells[0]+" | "+cells[1]), rows[i].Key), "row %d of the sheet is %q, here %q", i+1, unmarked(cells[0]+" | "+cells[1]), rows[i].Key)
		require.NotEqual(t, len(rows[i].Answers) > 0, rows[i].Elsewhere != "", rows[i].Key)
		for _, answer := range rows[i].Answers {
			answers++
			if rows[i].Deviates == "" {
				requireSheetClass(t, cells, answer)
			}
		}
		if rows[i].Elsewhere == "" {
			requirePhrases(t, cells[1], rows[i].Answers)
		}
	}
	t.Logf("%s: %d of %d rows covered, by %d answers", name, len(rows), len(table), answers)
}

func requireSheetClass(t *testing.T, cells []string, answer Row) {
	t.Helper()
	require.True(t, strings.HasPrefix(unmarked(cells[2]), string(answer.Want.Category)), "%s: %s", answer.Description, cells[2])
	require.True(t, strings.HasPrefix(unmarked(cells[3]), string(answer.Want.Scope)), "%s: %s", answer.Description, cells[3])
	require.Equal(t, unmarked(cells[4]), answer.Want.Code, answer.Description)
}

var phrases = regexp.MustCompile("`([^`]+)`")

// requirePhrases requires an answer that contains each phrase that the sheet quotes.
func requirePhrases(t *testing.T, cell string, answers []Row) {
	t.Helper()
	for _, phrase := range phrases.FindAllStringSubmatch(cell, -1) {
		require.True(t, covers(phrase[1], answers), "no answer says %q", phrase[1])
	}
}

// covers reads "a/b c" as "a c" or "b c", "…" and "*" as anything, and N as a number.
func covers(phrase string, answers []Row) bool {
	pattern := regexp.QuoteMeta(strings.TrimSpace(strings.ReplaceAll(phrase, "…", "*")))
	pattern = strings.NewReplacer(`\*`, ".*", " N", ` \d+`).Replace(pattern)
	choice := regexp.MustCompile(`\w+(/\w+)+`).ReplaceAllStringFunc(pattern, func(words string) string {
		return "(" + regexp.QuoteMeta(words) + "|" + strings.ReplaceAll(words, "/", "|") + ")"
	})
	is := regexp.MustCompile("(?i)" + choice)
	for _, answer := range answers {
		if is.MatchString(answer.Code + " " + answer.Description) {
			return true
		}
	}
	return false
}

// ErrorTable returns the cells of the error table in a platform's sheet; nil without the sheet, which
// it logs.
func ErrorTable(t *testing.T, name string) [][]string {
	t.Helper()
	content, ok := published.File(t, filepath.Join("platforms", name))
	if !ok {
		return nil
	}
	var table [][]string
	for line := range strings.Lines(string(content)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case strings.HasPrefix(line, "| HTTP |") && strings.Contains(line, "category"):
			table = [][]string{}
		case table == nil || strings.HasPrefix(line, "|---"):
		case !strings.HasPrefix(line, "|"):
			return table
		default:
			table = append(table, cells)
		}
	}
	return table
}

// unmarked returns a cell without formatting.
func unmarked(cell string) string {
	return strings.TrimSpace(strings.NewReplacer("`", "", "**", "").Replace(cell))
}

// Says returns one answer per description, all with the same status and class.
func Says(status int, class Class, code, prefix string, descriptions ...string) []Row {
	rows := make([]Row, len(descriptions))
	for i, description := range descriptions {
		rows[i] = Row{Status: status, Code: code, Description: prefix + description, RetryAfter: int(class.RetryAfterMS / 1000), Want: class}
	}
	return rows
}

// Delivery is a failure of one post.
func Delivery(category autopost.Category, code string) Class {
	return Class{category, autopost.ScopeDelivery, code, 0}
}

// Channel is a failure of a channel.
func Channel(category autopost.Category, code string) Class {
	return Class{category, autopost.ScopeChannel, code, 0}
}

// Group is a failure of a rate group.
func Group(category autopost.Category, code string) Class {
	return Class{category, autopost.ScopePlatform, code, 0}
}
