// Command prose measures the language and the size of a source tree.
//
//	go run ./scripts/prose
//	go run ./scripts/prose -rev v0.1.0 -json
//	go run ./scripts/prose -dir ../other
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
)

// measure is one row of the result.
type measure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Note  string  `json:"note,omitempty"`
}

func main() {
	dir := flag.String("dir", ".", "root of the source tree")
	rev := flag.String("rev", "", "also measure the titles of the commits after this revision")
	asJSON := flag.Bool("json", false, "print JSON instead of a table")
	flag.Parse()
	if err := run(*dir, *rev, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(dir, rev string, asJSON bool) error {
	t, err := readTree(dir)
	if err != nil {
		return err
	}
	measures := t.measures()
	if rev != "" {
		titles, err := exec.CommandContext(context.Background(), "git", "-C", dir, "log", "--no-merges", "--format=%s", rev+"..HEAD").Output()
		if err != nil {
			return fmt.Errorf("list commits after %s: %w", rev, err)
		}
		o := opened{}
		for title := range strings.Lines(string(titles)) {
			o.add(title)
		}
		measures = append(measures, o.measure("commit titles that open with What, Who, Whose, Of or That"))
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(measures)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, m := range measures {
		number := fmt.Sprintf("%.0f", m.Value)
		if m.Unit == "percent" || m.Unit == "per 1000 words" {
			number = fmt.Sprintf("%.2f", m.Value)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Name, number, m.Unit, m.Note)
	}
	return table.Flush()
}
