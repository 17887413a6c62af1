package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"autopost/internal/table"
)

// demoPartTimeout limits each part. The longest part takes half a minute.
const demoPartTimeout = 3 * time.Minute

// part is one check of the demo. show prints the evidence and returns a summary, or an error
// if the criterion is not met.
type part struct {
	title string
	show  func(context.Context) (string, error)
}

// report prints the evidence and collects the results.
type report struct {
	w       io.Writer
	began   time.Time
	results [][]any
	figures [][]any
	unmet   int
}

func newReport(w io.Writer) *report { return &report{w: w, began: time.Now()} }

func (r *report) line(format string, args ...any) { fmt.Fprintf(r.w, format+"\n", args...) }

// clock prints a line of evidence with its time.
func (r *report) clock(at time.Time, format string, args ...any) {
	r.line("   %s  "+format, append([]any{at.Local().Format("15:04:05.000")}, args...)...)
}

func (r *report) figure(name, format string, args ...any) {
	r.figures = append(r.figures, []any{name, fmt.Sprintf(format, args...)})
}

// part runs one part and prints its result.
func (r *report) part(ctx context.Context, p part) {
	r.line("\n── %s %s", p.title, strings.Repeat("─", max(3, 76-len([]rune(p.title)))))
	ctx, cancel := context.WithTimeout(ctx, demoPartTimeout)
	defer cancel()
	began := time.Now()
	evidence, err := p.show(ctx)
	took := time.Since(began)
	met := "yes"
	if err != nil {
		met, evidence = "NO", err.Error()
		r.unmet++
		r.line("   NOT MET after %.1f s: %s", took.Seconds(), evidence)
	} else {
		r.line("   met in %.1f s: %s", took.Seconds(), evidence)
	}
	r.results = append(r.results, []any{p.title, met, evidence, fmt.Sprintf("%.1f", took.Seconds())})
}

// finish prints the tables and returns how many parts were not met.
func (r *report) finish() int {
	r.line("")
	r.figure("whole run", "%.1f s", time.Since(r.began).Seconds())
	for _, t := range []table.Table{{Columns: []string{"criterion", "met", "evidence", "seconds"}, Rows: r.results}, {Columns: []string{"figure", "value"}, Rows: r.figures}} {
		_, _ = t.Print(r.w, 2*table.DefaultWidth) // the report is best effort, like its lines
		r.line("")
	}
	if r.unmet > 0 {
		r.line("%d of %d criteria are not met", r.unmet, len(r.results))
	}
	return r.unmet
}
