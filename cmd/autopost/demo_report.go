package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// demoPartTimeout bounds each part; the longest takes half a minute.
const demoPartTimeout = 3 * time.Minute

// demoPart is one thing that the demo shows. show prints evidence as it comes and
// returns the one line that sums it up, or why it was not met.
type demoPart struct {
	title string
	show  func(context.Context) (string, error)
}

// demoReport prints for a person and remembers what was met.
type demoReport struct {
	w       io.Writer
	began   time.Time
	results [][]any
	figures [][]any
	unmet   int
}

func newDemoReport(w io.Writer) *demoReport { return &demoReport{w: w, began: time.Now()} }

func (r *demoReport) line(format string, args ...any) { fmt.Fprintf(r.w, format+"\n", args...) }

// clock is a line of evidence with the time at which it happened.
func (r *demoReport) clock(at time.Time, format string, args ...any) {
	r.line("   %s  "+format, append([]any{at.Local().Format("15:04:05.000")}, args...)...)
}

func (r *demoReport) figure(name, format string, args ...any) {
	r.figures = append(r.figures, []any{name, fmt.Sprintf(format, args...)})
}

// part runs one part and prints whether it was met.
func (r *demoReport) part(ctx context.Context, p demoPart) {
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
	r.results = append(r.results, []any{p.title, met, wrap(evidence, 70), fmt.Sprintf("%.1f", took.Seconds())})
}

// finish prints the tables and returns how many parts were not met.
func (r *demoReport) finish() int {
	r.line("")
	r.figure("whole run", "%.1f s", time.Since(r.began).Seconds())
	_ = printTable(r.w, false, []string{"criterion", "met", "evidence", "seconds"}, r.results) // only JSON can fail
	_ = printTable(r.w, false, []string{"figure", "value"}, r.figures)
	if r.unmet > 0 {
		r.line("%d of %d are not met", r.unmet, len(r.results))
	}
	return r.unmet
}

// wrap breaks text at spaces into lines of at most width characters where it can.
func wrap(text string, width int) string {
	var out strings.Builder
	length := 0
	for word := range strings.FieldsSeq(text) {
		size := len([]rune(word))
		switch {
		case length == 0:
		case length+1+size > width:
			out.WriteByte('\n')
			length = 0
		default:
			out.WriteByte(' ')
			length++
		}
		out.WriteString(word)
		length += size
	}
	return out.String()
}
