package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/bench"
	"autopost/internal/config"
)

// benchFlags are the flags of the benchmark.
type benchFlags struct {
	bench.Options
	json, compare string
}

func benchCommand() *cobra.Command {
	var o benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the speed and resource use of autopost",
		Long: `Measure autopost against the goals of the project, against bare SQL statements with the
same rows, and against River, a queue in Go. The sides of a comparison run in the same
interleaved rounds. River is only in builds with the tag peers: run make bench.

The benchmark starts a private PostgreSQL in a temporary directory and removes it at the
end. If DATABASE_URL is set, the benchmark creates its own databases on that server and
drops them again. The login must be allowed to create databases and roles. The command
exits 1 if a goal is not met. --compare runs another build in turns with this one and
prints the figures of both; it judges no goal.`,
		Example: `  autopost bench --quick
  autopost bench --only P3,P4 --json=report.json
  autopost bench --only P3,P10 --compare ./autopost-before`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.json == "-" && len(args) > 0 { // --json FILE: a flag with an optional value does not take the next argument
				o.json, args = args[0], args[1:]
			}
			return noArguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Quick && o.Full {
				return usageError{errors.New("--quick must not be used with --full: remove one of the two")}
			}
			for _, goal := range o.Only {
				if !slices.Contains(bench.Goals(), goal) {
					return usageError{fmt.Errorf("--only must name goals of %s, got %q", strings.Join(bench.Goals(), ", "), goal)}
				}
			}
			return runBench(cmd.Context(), o)
		},
	}
	cmd.Flags().StringSliceVar(&o.Only, "only", nil, "goals to measure, separated by commas: "+strings.Join(bench.Goals(), ", ")+" (default: all)")
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "small sizes, to check that the benchmark works")
	cmd.Flags().BoolVar(&o.Full, "full", false, "largest sizes: takes hours and about 60 GB of disk")
	cmd.Flags().BoolVar(&o.Profile, "profile", false, "print the time of each function for P3")
	cmd.Flags().IntVar(&o.Rounds, "rounds", 0, "rounds of each comparison (default: 1, 5 or 9 by the sizes)")
	cmd.Flags().StringVar(&o.compare, "compare", "", "measure this `program` of another build in turns")
	cmd.Flags().StringVar(&o.json, "json", "", "print the report as JSON, or write it to this `file` in addition to the table")
	cmd.Flags().Lookup("json").NoOptDefVal = "-"
	return cmd
}

func runBench(ctx context.Context, o benchFlags) error {
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return err
	}
	o.BinDir, o.Progress = cfg.PostgresBin, os.Stderr
	if o.Program, err = os.Executable(); err != nil {
		return err
	}
	if !cfg.DatabaseURL.IsZero() {
		o.URL = cfg.ListenURL.Reveal()
	}
	if o.compare != "" {
		compared, err := bench.Compare(ctx, o.Options, o.compare)
		return finishBench(compared, o.json, len(compared.Rows) > 0, err)
	}
	report, err := bench.Run(ctx, o.Options)
	if err := finishBench(report, o.json, len(report.Results) > 0, err); err != nil {
		return err
	}
	if !report.Met() {
		return errSilent
	}
	return nil
}

// benchReport is the result of a run.
type benchReport interface {
	JSON(w io.Writer) error
	Table(w io.Writer)
}

func finishBench(report benchReport, path string, some bool, err error) error {
	if path != "-" && some {
		report.Table(os.Stdout)
	}
	return errors.Join(err, writeReport(report, path))
}

func writeReport(report benchReport, path string) (err error) {
	switch path {
	case "":
		return nil
	case "-":
		return report.JSON(os.Stdout)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return report.JSON(file)
}
