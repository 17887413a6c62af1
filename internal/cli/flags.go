package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"autopost/internal/pg"
)

// listLimit is the largest number of rows that a list command prints. It is also the
// largest limit of the read functions.
const listLimit = 10_000

func workspaceFlag(cmd *cobra.Command, workspace *string) {
	cmd.Flags().StringVar(workspace, "workspace", "", "`id` of the workspace (default: the only active one)")
}

func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON instead of a table")
}

// rateNames makes every name of a rate mean the flag of this command, which has the name of its field.
func rateNames(cmd *cobra.Command, field string) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if slices.Contains([]string{"rps", "rate-rps", "ingress-rps"}, name) {
			name = field
		}
		return pflag.NormalizedName(name)
	})
}

func limitFlag(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "limit", 50, "largest number of rows, 1 to 10000")
}

// readFlags are the flags of a command that reads one workspace.
type readFlags struct {
	output

	workspace string
}

// add adds the flags of a command that prints rows.
func (f *readFlags) add(cmd *cobra.Command) {
	workspaceFlag(cmd, &f.workspace)
	f.output.add(cmd)
}

// addOne adds the flags of a command that prints one thing.
func (f *readFlags) addOne(cmd *cobra.Command) {
	workspaceFlag(cmd, &f.workspace)
	jsonFlag(cmd, &f.asJSON)
}

// run calls work with the chosen workspace.
func (f *readFlags) run(cmd *cobra.Command, work func(ctx context.Context, store *pg.Store, workspace string) error) error {
	return withWorkspace(cmd.Context(), f.workspace, work)
}

// printObject prints a JSON object, or a table of its fields.
func (f *readFlags) printObject(raw json.RawMessage, open ...string) error {
	if f.asJSON {
		return printJSON(raw)
	}
	return printObject(raw, open...)
}

// withWorkspace calls work with the named workspace, or with the only active one. A
// wrong argument is a usage error.
func withWorkspace(ctx context.Context, named string, work func(context.Context, *pg.Store, string) error) error {
	return withStore(ctx, func(ctx context.Context, store *pg.Store) error {
		workspace, err := chooseWorkspace(ctx, store, named)
		if err != nil {
			return err
		}
		return asUsageError(work(ctx, store, workspace))
	})
}

// chooseWorkspace returns the named workspace, or the only active one.
func chooseWorkspace(ctx context.Context, store *pg.Store, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	all, err := store.ListWorkspaces(ctx)
	if err != nil {
		return "", err
	}
	switch len(all) {
	case 0:
		return "", usageError{errors.New("no workspace is active: pass --workspace ID")}
	case 1:
		return all[0], nil
	default:
		return "", usageError{fmt.Errorf("--workspace must be set, because several workspaces are active: use one of %s", strings.Join(all, ", "))}
	}
}

// asUsageError makes a wrong argument of a database function a usage error.
func asUsageError(err error) error {
	if errors.Is(err, pg.ErrArgument) {
		return usageError{err}
	}
	return err
}

// readInput reads a file, or standard input if the name is "-".
func readInput(name string) ([]byte, error) {
	var raw []byte
	var err error
	if name == "-" {
		raw, err = io.ReadAll(os.Stdin)
	} else {
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return raw, nil
}

// readInputUpTo reads a file, or standard input if the name is "-". A larger input is a
// usage error.
func readInputUpTo(name string, maxBytes int) ([]byte, error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usageError{err}
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, int64(maxBytes)+1))
	if err != nil {
		return nil, usageError{err}
	}
	if len(raw) > maxBytes {
		return nil, usageError{fmt.Errorf("%s must have at most %d bytes: use a smaller file", inputName(name), maxBytes)}
	}
	return raw, nil
}

// inputName names an input of readInput in messages.
func inputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// parseInstant parses the time of a flag.
func parseInstant(flag, text string) (time.Time, error) {
	instant, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return instant, usageError{fmt.Errorf("--%s must be a time with an offset, got %q: write 2026-12-01T10:00:00+03:00", flag, text)}
	}
	return instant, nil
}
