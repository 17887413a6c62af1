package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Comparison is the result of two builds that measured the same goals in interleaved rounds.
type Comparison struct {
	Server string     `json:"server"`
	Sizes  string     `json:"sizes"`
	Rounds int        `json:"rounds"`
	Rows   []Compared `json:"rows"`
}

// Compared is a figure of both builds. Ratio is this build's sample divided by the other's, of
// the same round.
type Compared struct {
	Goal  string `json:"goal"`
	Name  string `json:"name"`
	This  Figure `json:"this"`
	Other Figure `json:"other"`
	Ratio Figure `json:"ratio"`
}

// Compare runs this build and another in turns, a round each, with the opposite order in every
// second round. Every run has its own databases. A missed goal does not end the comparison.
func Compare(ctx context.Context, o Options, other string) (c Comparison, err error) {
	sizes := o.sizes()
	c.Sizes, c.Rounds = sizes.name, sizes.rounds
	var found collected
	for round := range c.Rounds {
		programs := []string{o.Program, other}
		if round%2 == 1 {
			slices.Reverse(programs)
		}
		for _, program := range programs {
			fmt.Fprintf(o.Progress, "round %d of %d: %s\n", round+1, c.Rounds, program)
			report, err := o.once(ctx, program)
			if err != nil {
				return c, fmt.Errorf("%s: %w", program, err)
			}
			c.Server = report.Server
			found.add(report, program == other)
		}
	}
	c.Rows = found.rows()
	return c, nil
}

// once runs a program for one round.
func (o Options) once(ctx context.Context, program string) (report Report, err error) {
	args := []string{"bench", "--rounds=1", "--json"}
	if len(o.Only) > 0 {
		args = append(args, "--only="+strings.Join(o.Only, ","))
	}
	for flag, set := range map[string]bool{"--quick": o.Quick, "--full": o.Full} {
		if set {
			args = append(args, flag)
		}
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, o.Progress
	ran := cmd.Run()
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return report, errors.Join(ran, fmt.Errorf("read the report: %w", err))
	}
	return report, nil // status 1: a goal is missed
}

// collected are the samples of both builds by goal and figure, in order of appearance.
type collected struct {
	order   []Compared
	samples map[string]*[2][]float64
}

func (f *collected) add(report Report, other bool) {
	side := 0
	if other {
		side = 1
	}
	for _, result := range report.Results {
		figures := make([]Figure, 0, len(result.Checks)+len(result.Figures))
		for _, check := range result.Checks {
			figures = append(figures, check.Figure)
		}
		for _, one := range append(figures, result.Figures...) {
			key := result.Goal + "/" + one.Name
			if f.samples[key] == nil {
				if f.samples == nil {
					f.samples = map[string]*[2][]float64{}
				}
				f.samples[key] = &[2][]float64{}
				f.order = append(f.order, Compared{Goal: result.Goal, Name: one.Name, This: Figure{Unit: one.Unit}})
			}
			f.samples[key][side] = append(f.samples[key][side], one.Median)
		}
	}
}

func (f *collected) rows() []Compared {
	for i, row := range f.order {
		both := f.samples[row.Goal+"/"+row.Name]
		f.order[i].This, f.order[i].Other = figure(row.Name, row.This.Unit, both[0]...), figure(row.Name, row.This.Unit, both[1]...)
		f.order[i].Ratio = ratio(row.Name, both[0], both[1])
	}
	return f.order
}

// JSON writes the comparison as JSON. A ratio to zero is left out.
func (c Comparison) JSON(w io.Writer) error {
	for i := range c.Rows {
		if slices.Contains(c.Rows[i].Other.Samples, 0) {
			c.Rows[i].Ratio = Figure{}
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(c)
}

// Table writes the comparison as a table.
func (c Comparison) Table(w io.Writer) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SetOutputMirror(w)
	t.SetTitle(fmt.Sprintf("%s, %s sizes, %d interleaved rounds: medians and ranges", c.Server, c.Sizes, c.Rounds))
	t.AppendHeader(table.Row{"goal", "figure", "this build", "range", "other build", "range", "this / other", "range"})
	for _, row := range c.Rows {
		quotient, spread := "", ""
		if len(row.Ratio.Samples) > 0 && !slices.Contains(row.Other.Samples, 0) {
			quotient, spread = row.Ratio.median(), row.Ratio.spread()
		}
		t.AppendRow(table.Row{row.Goal, row.Name, row.This.median(), row.This.spread(), row.Other.median(), row.Other.spread(), quotient, spread})
	}
	t.Render()
}
