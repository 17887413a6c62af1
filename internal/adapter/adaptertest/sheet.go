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

// SheetRow is a row of the table of errors in a platform's fact sheet.
type SheetRow struct {
	// Key is how the sheet's row begins, status and description, without its marks.
	Key string
	// Answers are what the row is about, as answers to a post. Where it is about none,
	// Elsewhere names the test that holds it.
	Answers   []Row
	Elsewhere string
	// Deviates says why the answers' class is not the sheet's.
	Deviates string
}

// Answers are those of all rows, for [Harness.Rows].
func Answers(sheet []SheetRow) []Row {
	var rows []Row
	for _, row := range sheet {
		rows = append(rows, row.Answers...)
	}
	return rows
}

// CompareSheet fails unless the rows are those of the sheet's table of errors, one for
// one and in its order, with its classes and with an answer for each of its phrases. The sheets
// lie beside the repository; it is said loudly when they do not.
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

// requirePhrases looks for an answer that says each phrase that the sheet quotes.
func requirePhrases(t *testing.T, cell string, answers []Row) {
	t.Helper()
	for _, phrase := range phrases.FindAllStringSubmatch(cell, -1) {
		require.True(t, said(phrase[1], answers), "no answer says %q", phrase[1])
	}
}

// said takes "a/b c" for "a c" or "b c", "…" and "*" for anything, and N for a number.
func said(phrase string, answers []Row) bool {
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

// ErrorTable are the rows of the table of errors in a platform's sheet, as their cells; nil, and loudly, where there is no sheet.
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

// unmarked is a cell without its marks.
func unmarked(cell string) string {
	return strings.TrimSpace(strings.NewReplacer("`", "", "**", "").Replace(cell))
}

// Says makes the answers of one status and class that say one thing each.
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

// Group is a failure of all that share a credential.
func Group(category autopost.Category, code string) Class {
	return Class{category, autopost.ScopePlatform, code, 0}
}
