package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/bench"
)

// benchFlags are the flags of the benchmark.
type benchFlags struct {
	bench.Options
	json string
}

func benchCommand() *cobra.Command {
	var o benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the database against the project's goals, bare SQL and a peer",
		Long: `Measure the database by its public functions: against the project's goals, against
what PostgreSQL does with the same rows when nothing decides, and against River, a
queue in Go. What is compared runs in the same interleaved rounds.

A private PostgreSQL is started in a temporary directory and removed at the end. Where
DATABASE_URL is set, its server is used instead: databases of the benchmark's own are
made there and dropped again, by a login that may make databases and roles.
Exits 1 when a goal is not met.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.json == "-" && len(args) > 0 { // --json FILE: a flag that may stand alone leaves the word after it
				o.json, args = args[0], args[1:]
			}
			return noArguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Quick && o.Full {
				return misuse{errors.New("--quick and --full exclude each other")}
			}
			return runBench(cmd.Context(), o)
		},
	}
	cmd.Flags().StringSliceVar(&o.Only, "only", nil, fmt.Sprintf("goals to measure, of %v (default all)", bench.Goals()))
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "small sizes: a look, no measurement")
	cmd.Flags().BoolVar(&o.Full, "full", false, "the largest sizes: takes hours, and about 60 GB of disk")
	cmd.Flags().BoolVar(&o.Profile, "profile", false, "show for P3 in which functions the time goes")
	cmd.Flags().IntVar(&o.Rounds, "rounds", 0, "rounds of each comparison (default by the sizes)")
	cmd.Flags().StringVar(&o.json, "json", "", "print the report as JSON instead of the table, or write it to this `file` as well")
	cmd.Flags().Lookup("json").NoOptDefVal = "-"
	return cmd
}

func runBench(ctx context.Context, o benchFlags) error {
	cfg, err := loadConfig()
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
	report, err := bench.Run(ctx, o.Options)
	if o.json != "-" && len(report.Results) > 0 {
		report.Table(os.Stdout)
	}
	if err := errors.Join(err, writeReport(report, o.json)); err != nil {
		return err
	}
	if !report.Met() {
		return errSilent
	}
	return nil
}

func writeReport(report bench.Report, path string) (err error) {
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
