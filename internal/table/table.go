// Package table prints rows for people: as a table that fits the width of the terminal, or as records if it does not fit.
package table

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// DefaultWidth is the width in columns if no terminal is known.
const DefaultWidth = 100

// Table is rows for people. A cell is a text, a number, a Boolean, a time, a list of texts, a pointer to one of
// them, or nil.
type Table struct {
	Columns []string
	// Details are the columns that a narrow table leaves out, the last one first. An empty one is always left out.
	Details []string
	// Optional columns are left out only if they are empty.
	Optional []string
	Rows     [][]any
	// Empty is the sentence that replaces a table without rows.
	Empty string
}

// Word is a short text that stays in its column, although it may contain spaces.
type Word string

// Excerpt is the beginning of a longer text. A table cuts it to one line.
type Excerpt string

const (
	gap = 2
	// leastExcerpt is the narrowest column for a text that is cut.
	leastExcerpt = 10
	// leastValue is the narrowest value of a record.
	leastValue = 20
	// indent is the margin of a column that is printed below its row.
	indent = 4
)

// Print writes the table in at most width columns; 0 means any width. If the table is too wide, details are left out, and
// sentences are printed below their row. If it is still too wide, each row becomes a record with a line for each
// column. Print reports the columns that it left out.
func (t Table) Print(w io.Writer, width int) (hidden []string, err error) {
	if len(t.Rows) == 0 {
		if t.Empty != "" {
			_, err = fmt.Fprintln(w, Wrap(t.Empty, width))
		}
		return nil, err
	}
	columns := t.columns()
	if width <= 0 {
		for i := range columns {
			columns[i].width = columns[i].natural
		}
		_, err = io.WriteString(w, grid(columns, nil, width))
		return nil, err
	}
	shown, below := fit(columns, width)
	if shown == nil {
		_, err = io.WriteString(w, records(columns, width, heading))
		return nil, err
	}
	for _, c := range columns {
		named := func(other column) bool { return other.name == c.name }
		if !slices.ContainsFunc(shown, named) && !slices.ContainsFunc(below, named) {
			hidden = append(hidden, c.name)
		}
	}
	_, err = io.WriteString(w, grid(shown, below, width))
	return hidden, err
}

// column is a column with its cells as texts.
type column struct {
	name    string
	cells   []string
	detail  bool
	excerpt bool
	// prose means that a cell is a sentence, which may be printed below its row.
	prose   bool
	numeric bool
	// overflows means that cells which are too long are printed below their row.
	overflows bool
	// place is the index in the table.
	place int
	// natural is the width of the longest cell, least the narrowest width, width the chosen one.
	natural, least, width int
}

// columns returns the columns without empty details.
func (t Table) columns() []column {
	var list []column
	for i, name := range t.Columns {
		c := column{name: name, place: i, detail: slices.Contains(t.Details, name), natural: cellWidth(name), numeric: true}
		empty := true
		for _, row := range t.Rows {
			cell := Text(row[i])
			switch row[i].(type) {
			case Excerpt:
				c.excerpt = true
			case time.Time, *time.Time:
			case string, *string, []string, error, fmt.Stringer:
				c.prose = c.prose || strings.Contains(cell, " ") && i > 0
			}
			c.numeric = c.numeric && isNumber(row[i])
			c.cells = append(c.cells, cell)
			c.natural = max(c.natural, cellWidth(cell))
			empty = empty && cell == ""
		}
		if empty && (c.detail || slices.Contains(t.Optional, name)) {
			continue
		}
		c.least = c.natural
		if c.excerpt {
			c.prose = false
			c.least = max(cellWidth(name), min(c.natural, leastExcerpt))
		}
		list = append(list, c)
	}
	return list
}

func isNumber(cell any) bool {
	switch cell.(type) {
	case int, int64, float64:
		return true
	}
	return false
}

// fit chooses the columns of the table with their widths, and those that are printed below their row. It returns nil
// if the table does not fit.
func fit(columns []column, width int) (shown, below []column) {
	shown = slices.Clone(columns)
	for needed(shown) > width {
		i := next(shown)
		if i < 0 {
			return nil, nil
		}
		if !shown[i].detail {
			below = append(below, shown[i])
		}
		shown = slices.Delete(shown, i, i+1)
	}
	inOrder := func(a, b column) int { return a.place - b.place }
	slices.SortFunc(below, inOrder)
	for i := 0; i < len(below); {
		if c, ok := below[i].narrowed(shown, width); ok {
			shown, below = append(shown, c), slices.Delete(below, i, i+1)
			slices.SortFunc(shown, inOrder)
			continue
		}
		i++
	}
	free := width - needed(shown)
	for i := range shown {
		shown[i].width = shown[i].least
	}
	for grew := true; grew && free > 0; { // the excerpts grow alike until each has its natural width
		grew = false
		for i := range shown {
			if free > 0 && shown[i].width < shown[i].natural {
				shown[i].width++
				free--
				grew = true
			}
		}
	}
	return shown, below
}

// narrowed returns a column of sentences in the space that others leave, if most of its cells fit. The longer ones are
// printed below their row.
func (c column) narrowed(others []column, width int) (column, bool) {
	if slices.ContainsFunc(others, func(o column) bool { return o.excerpt }) {
		return c, false // excerpts fill the space
	}
	space := width - needed(others) - gap
	c.natural = cellWidth(c.name)
	fitting := 0
	for _, cell := range c.cells {
		if cellWidth(cell) <= space {
			fitting++
			c.natural = max(c.natural, cellWidth(cell))
		}
	}
	c.least, c.overflows = c.natural, true
	return c, c.natural <= space && 2*fitting > len(c.cells)
}

func needed(columns []column) int {
	sum := gap * (len(columns) - 1)
	for _, c := range columns {
		sum += c.least
	}
	return sum
}

// next returns the column that the table can do without: the last detail, then the widest sentence, and only then the
// first detail. It is -1 without any.
func next(columns []column) int {
	first, last, widest := -1, -1, -1
	for i, c := range columns {
		switch {
		case c.detail && first < 0:
			first = i
		case c.detail:
			last = i
		case c.prose && (widest < 0 || c.natural > columns[widest].natural):
			widest = i
		}
	}
	switch {
	case last >= 0:
		return last
	case widest >= 0:
		return widest
	}
	return first
}

// grid prints the columns side by side, and the others below their row.
func grid(columns, below []column, width int) string {
	var out strings.Builder
	line := func(part func(column) string) {
		var one strings.Builder
		for i, c := range columns {
			if i > 0 {
				one.WriteString(strings.Repeat(" ", gap))
			}
			cell := part(c)
			space := strings.Repeat(" ", max(0, c.width-cellWidth(cell)))
			if c.numeric {
				one.WriteString(space + cell)
			} else {
				one.WriteString(cell + space)
			}
		}
		out.WriteString(strings.TrimRight(one.String(), " ") + "\n")
	}
	line(func(c column) string { return heading(c.name) })
	for row := range columns[0].cells {
		line(func(c column) string {
			switch {
			case c.excerpt:
				return cut(c.cells[row], c.width)
			case c.overflows && cellWidth(c.cells[row]) > c.width:
				return ""
			}
			return c.cells[row]
		})
		for _, c := range slices.Concat(columns, below) {
			inPlace := c.width > 0 && (!c.overflows || cellWidth(c.cells[row]) <= c.width)
			if inPlace || c.cells[row] == "" {
				continue
			}
			label := strings.ReplaceAll(c.name, "_", " ") + ": "
			for line := range strings.SplitSeq(Wrap(label+c.cells[row], max(width-indent, leastValue)), "\n") {
				out.WriteString(strings.Repeat(" ", indent) + line + "\n")
			}
		}
	}
	return out.String()
}

func heading(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "_", " ")) }

// records prints one line for each cell that is not empty, and an empty line between rows.
func records(columns []column, width int, heading func(string) string) string {
	var out strings.Builder
	label := 0
	for _, c := range columns {
		label = max(label, cellWidth(c.name))
	}
	for row := range columns[0].cells {
		if row > 0 {
			out.WriteByte('\n')
		}
		for _, c := range columns {
			if c.cells[row] == "" {
				continue
			}
			name := heading(c.name) + strings.Repeat(" ", label-cellWidth(c.name)+gap)
			for _, line := range strings.Split(Wrap(c.cells[row], max(width-label-gap, leastValue)), "\n") {
				out.WriteString(strings.TrimRight(name+line, " ") + "\n")
				name = strings.Repeat(" ", label+gap)
			}
		}
	}
	return out.String()
}

// Wrap breaks a text at spaces into lines of at most width columns, and words that are longer. A width of 0 means any.
func Wrap(given string, width int) string {
	if width <= 0 || cellWidth(given) <= width {
		return given
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(times.ReplaceAllString(given, "$1"+joint+"$2"+joint+"$3")) {
		for cellWidth(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			head := text.Trim(word, width)
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case line == "":
			line = word
		case cellWidth(line)+1+cellWidth(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), joint, " ")
}

// joint is the space inside an instant, at which no line ends.
const joint = "\ue000"

// times are instants in the form for people.
var times = regexp.MustCompile(`(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) ([A-Z]+|[+-]\d+)`)

// cut shortens a text to one line of at most width columns.
func cut(given string, width int) string {
	if cellWidth(given) <= width {
		return given
	}
	return strings.TrimRight(text.Trim(given, width-1), " ") + "…"
}

func cellWidth(given string) int { return text.StringWidthWithoutEscSequences(given) }

// TimeLayout is the form of an instant for people, in the local zone.
const TimeLayout = "2006-01-02 15:04:05 MST"

// Time returns an instant for people.
func Time(at time.Time) string { return at.Local().Format(TimeLayout) }

var (
	// instants are times inside a sentence, in RFC 3339 or in the form of alerts.
	instants = regexp.MustCompile(`\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)| \d\d:\d\d(?::\d\d)? UTC)`)
	// controls are characters that could move the cursor or change the terminal.
	controls = regexp.MustCompile(`[\x00-\x1f\x7f-\x{9f}\x{2028}-\x{202e}\x{2066}-\x{2069}]+`)
)

// Sentence returns a text in one line, with its instants in the form for people.
func Sentence(given string) string {
	given = instants.ReplaceAllStringFunc(given, func(found string) string {
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05 UTC", "2006-01-02 15:04 UTC"} {
			if at, err := time.Parse(layout, found); err == nil {
				return Time(at)
			}
		}
		return found
	})
	return strings.TrimSpace(controls.ReplaceAllString(given, " "))
}

// Text returns a cell as a text in one line.
func Text(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case Excerpt:
		return strings.TrimSpace(controls.ReplaceAllString(string(v), " "))
	case string:
		return Sentence(v)
	case *string:
		if v == nil {
			return ""
		}
		return Sentence(*v)
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case *bool:
		if v == nil {
			return ""
		}
		return Text(*v)
	case *int:
		if v == nil {
			return ""
		}
		return fmt.Sprint(*v)
	case time.Time:
		return Time(v)
	case *time.Time:
		if v == nil {
			return ""
		}
		return Time(*v)
	case []string:
		return Sentence(strings.Join(v, ", "))
	default:
		return Sentence(fmt.Sprint(v))
	}
}

// PrintRecord writes one record: each name as it is with its value, in at most width columns. It skips empty values.
func PrintRecord(w io.Writer, names []string, values []any, width int) error {
	columns := make([]column, 0, len(names))
	for i, name := range names {
		columns = append(columns, column{name: name, cells: []string{Text(values[i])}})
	}
	if width <= 0 {
		width = math.MaxInt
	}
	_, err := io.WriteString(w, records(columns, width, func(name string) string { return name }))
	return err
}
