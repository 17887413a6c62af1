package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/pg"
)

// explain returns an error in the words of the command line: flags instead of arguments of SQL functions.
func explain(cmd *cobra.Command, args []string, err error) error {
	var wrong usageError
	if errors.As(err, &wrong) {
		if flag := booleanWithValue(cmd, args); flag != "" {
			return usageError{fmt.Errorf("--%s must have its value after an equals sign: write --%[1]s or --%[1]s=false", flag)}
		}
	}
	if argument, ok := errors.AsType[*autopost.ArgumentError](err); ok {
		return usageError{errors.New(argumentText(cmd, argument))}
	}
	refused, ok := errors.AsType[*pg.RefusedError](err)
	switch {
	case ok && errors.Is(err, pg.ErrNoWorkspace):
		return errors.New(refused.Message + ": run autopost workspace list")
	case ok:
		return errors.New(strings.TrimSuffix(refused.Message+": "+refused.Remedy, ": "))
	}
	return err
}

// booleanWithValue returns the flag of an argument pair like "--enabled false", empty without one.
func booleanWithValue(cmd *cobra.Command, args []string) string {
	for i := 1; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i-1], "--")
		flag := cmd.Flags().Lookup(name)
		if isFlag && flag != nil && flag.Value.Type() == "bool" && slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, args[i]) {
			return name
		}
	}
	return ""
}

// argumentText names the flag of a wrong argument, or its field without a flag.
func argumentText(cmd *cobra.Command, wrong *autopost.ArgumentError) string {
	name, reason := strings.TrimPrefix(wrong.Argument, "p_"), wrong.Reason
	if name == "filter" || name == "value" { // its reason begins with the key
		name, reason, _ = strings.Cut(reason, " ")
	}
	for _, flag := range []string{flagOf(name), strings.TrimSuffix(flagOf(name), "-id")} {
		if cmd.Flags().Lookup(flag) != nil {
			name = "--" + flag
			break
		}
	}
	text := name + " " + reason
	if wrong.Remedy != "" {
		text += ": " + wrong.Remedy
	}
	return text
}
