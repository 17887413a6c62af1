package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Report is the result of a run.
type Report struct {
	Server  string   `json:"server"`
	Sizes   string   `json:"sizes"`
	Rounds  int      `json:"rounds"`
	Results []Result `json:"results"`
}

// Result is the result of one goal.
type Result struct {
	Goal    string   `json:"goal"`
	Says    string   `json:"says"`
	Checks  []Check  `json:"checks"`
	Figures []Figure `json:"figures"`
	Notes   []string `json:"notes,omitempty"`
	Seconds float64  `json:"seconds"`
}

// Figure is a measured value with its samples.
type Figure struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Samples []float64 `json:"samples"`
}

// Check is a figure with a bound. Ratios are taken within a round, so that other load on the
// machine affects both sides.
type Check struct {
	Figure
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"at_least"`
	Met     bool    `json:"met"`
}

func figure(name, unit string, samples ...float64) Figure {
	f := Figure{Name: name, Unit: unit, Samples: samples}
	if len(samples) == 0 {
		return f
	}
	sorted := slices.Sorted(slices.Values(samples))
	f.Min, f.Max = sorted[0], sorted[len(sorted)-1]
	f.Median = (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	return f
}

func atLeast(bound float64, f Figure) Check {
	return Check{Figure: f, Bound: bound, AtLeast: true, Met: len(f.Samples) > 0 && f.Median >= bound}
}

func atMost(bound float64, f Figure) Check {
	return Check{Figure: f, Bound: bound, Met: len(f.Samples) > 0 && f.Median <= bound}
}

// ratio divides sample by sample. Samples with the same index are from the same round.
func ratio(name string, above, below []float64) Figure {
	samples := make([]float64, 0, len(above))
	for i := range min(len(above), len(below)) {
		samples = append(samples, above[i]/below[i])
	}
	return figure(name, "x", samples...)
}

// Met reports whether all checks are met.
func (r Report) Met() bool {
	return !slices.ContainsFunc(r.Results, func(result Result) bool {
		return slices.ContainsFunc(result.Checks, func(c Check) bool { return !c.Met })
	})
}

// JSON writes the report as JSON.
func (r Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Table writes the report as a table.
func (r Report) Table(w io.Writer) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SetOutputMirror(w)
	t.SetTitle(fmt.Sprintf("%s, %s sizes, %d rounds: medians and ranges", r.Server, r.Sizes, r.Rounds))
	t.AppendHeader(table.Row{"goal", "figure", "median", "range", "bound", "met"})
	for _, result := range r.Results {
		t.AppendSeparator()
		t.AppendRow(table.Row{result.Goal, result.Says, "", "", "", ""})
		for _, c := range result.Checks {
			sign, met := "at most", "no"
			if c.AtLeast {
				sign = "at least"
			}
			if c.Met {
				met = "yes"
			}
			t.AppendRow(table.Row{"", c.Name, c.median(), c.spread(), fmt.Sprintf("%s %s %s", sign, number(c.Bound), c.Unit), met})
		}
		for _, f := range result.Figures {
			t.AppendRow(table.Row{"", "  " + f.Name, f.median(), f.spread(), "", ""})
		}
		for _, note := range result.Notes {
			t.AppendRow(table.Row{"", "  " + note, "", "", "", ""})
		}
	}
	t.Render()
}

func (f Figure) median() string { return number(f.Median) + " " + f.Unit }

func (f Figure) spread() string {
	if len(f.Samples) < 2 {
		return ""
	}
	return number(f.Min) + " to " + number(f.Max)
}

// number formats a value with three significant digits.
func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return thousands(fmt.Sprintf("%.0f", v))
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00")
}

func thousands(digits string) string {
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
