// Package cli implements the commands of autopost: flags, output and exit codes. Each
// command has one file. A command reads its configuration, calls other packages and
// decides nothing.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/outbound"
)

// Exit codes of every command. A wrong call (unknown flag, wrong value) is misuse. A
// right call that names a missing row, or fails for another reason, is a failure.
const (
	exitFailure = 1
	exitMisuse  = 2
)

// usageError is an error in the call of a command. The program exits with exitMisuse.
type usageError struct{ error }

// errSilent is a failure whose message was already printed.
var errSilent = errors.New("failed")

// Main runs the command line of the process and returns its exit code. An interrupt or
// SIGTERM cancels the command.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:])
}

func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var wrong usageError
	var badConfig *config.Error
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSilent):
		return exitFailure
	case errors.As(err, &wrong), errors.As(err, &badConfig):
		fmt.Fprintf(os.Stderr, "autopost: %v\n", err)
		return exitMisuse
	default:
		fmt.Fprintf(os.Stderr, "autopost: %v\n", err)
		return exitFailure
	}
}

func rootCommand() *cobra.Command {
	root := parentCommand("autopost", "Publish posts to many channels, once each",
		demoCommand(), serveCommand(), migrateCommand(), seedCommand(), doctorCommand(), forecastCommand(), verifyCommand(), apikeyCommand(),
		planCommand(), postCommand(), whyCommand(), postsCommand(), submissionsCommand(), deliveriesCommand(), eventsCommand(), auditCommand(), workspaceCommand(), channelCommand(), chatCommand(), sourceCommand(), groupCommand(), quotaCommand(), budgetCommand(),
		endpointCommand(), webhookCommand(), templateCommand(), settingCommand(), credentialCommand(), mediaCommand(), configCommand(), releaseStaleCommand(), benchCommand(),
		openapiCommand(), alertCommand(), healthCommand(), versionCommand())
	root.Version = outbound.Version()
	root.SetVersionTemplate("autopost {{.Version}}\n")
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: run %s --help", err, cmd.CommandPath())}
	})
	completeNames(root)
	rejectUnknownTopics(root)
	return root
}

// parentCommand returns a command that only contains other commands.
func parentCommand(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

func unknownCommand(parent *cobra.Command, name string) error {
	return usageError{fmt.Errorf("unknown command %q: run %s --help", name, parent.CommandPath())}
}

// rejectUnknownTopics makes the help command fail if its topic does not exist.
func rejectUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return // InitDefaultHelpCmd added it
	}
	help.RunE = func(_ *cobra.Command, topic []string) error {
		found, unknown, err := root.Find(topic)
		if err != nil || len(unknown) > 0 {
			return unknownCommand(root, strings.Join(topic, " "))
		}
		return found.Help()
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q: run %s --help", args[0], cmd.CommandPath())}
	}
	return nil
}

// oneArgument requires exactly one argument. The message calls it by name.
func oneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{fmt.Errorf("exactly one %s must be given, got %d arguments: run %s --help", name, len(args), cmd.CommandPath())}
		}
		return nil
	}
}

// atMostOneArgument requires one argument or none.
func atMostOneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError{fmt.Errorf("at most one %s must be given, got %d arguments: run %s --help", name, len(args), cmd.CommandPath())}
		}
		return nil
	}
}

// oneWithFile requires one argument, and accepts a file after it.
func oneWithFile(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 2 {
			return usageError{fmt.Errorf("one %s, and at most one file, must be given, got %d arguments: run %s --help", name, len(args), cmd.CommandPath())}
		}
		return nil
	}
}

// oneID requires exactly one UUID. listCommand is the command that prints such ids.
func oneID(subject, listCommand string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := oneArgument(subject+" id")(cmd, args); err != nil {
			return err
		}
		return checkID(args[0], subject, listCommand)
	}
}

// atLeastOneID requires one UUID or more. listCommand is the command that prints such ids.
func atLeastOneID(subject, listCommand string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{fmt.Errorf("at least one %s id must be given: run %s", subject, listCommand)}
		}
		for _, id := range args {
			if err := checkID(id, subject, listCommand); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkID rejects an id that is not a UUID of 36 characters.
func checkID(id, subject, listCommand string) error {
	if uuid.Validate(id) != nil || len(id) != 36 {
		return usageError{fmt.Errorf("%s id must be a UUID, got %q: run %s", subject, id, listCommand)}
	}
	return nil
}
