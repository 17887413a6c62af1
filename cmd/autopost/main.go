// Autopost takes posts in by many doors and publishes each once per channel, at
// the right time and inside every rate limit. This is the one binary: a command
// for each thing a person or a machine does with it. Every command reads its
// configuration, wires packages together and decides nothing.
package main

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
)

// Exit codes of every command. Misuse is a call that is wrong by itself or in its arguments; that what it is to
// work on is not there is a failure, as is whatever else keeps it from being done.
const (
	exitFailure = 1
	exitMisuse  = 2
)

// misuse is an error in how a command was called: it exits 2.
type misuse struct{ error }

// silent is a failure that has been told already.
var errSilent = errors.New("failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var wrong misuse
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSilent):
		return exitFailure
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "autopost: %v\n", err)
		return exitMisuse
	default:
		fmt.Fprintf(os.Stderr, "autopost: %v\n", err)
		return exitFailure
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "autopost",
		Short:         "Publish posts to many channels, once each, on PostgreSQL",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return misuse{fmt.Errorf("%w\nsee %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(demoCommand(), serveCommand(), migrateCommand(), seedCommand(), doctorCommand(), forecastCommand(), verifyCommand(), apikeyCommand(),
		planCommand(), postCommand(), whyCommand(), deliveriesCommand(), workspaceCommand(), channelCommand(), chatCommand(), sourceCommand(), groupCommand(), quotaCommand(), budgetCommand(),
		endpointCommand(), webhookCommand(), templateCommand(), settingCommand(), credentialCommand(), mediaCommand(), configCommand(), releaseStaleCommand(), benchCommand(),
		openapiCommand(), alertCommand(), healthCommand())
	completeNames(root)
	refuseUnknownTopics(root)
	return root
}

// refuseUnknownTopics has help fail for what there is no help about.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return // it was just made
	}
	help.RunE = func(_ *cobra.Command, topic []string) error {
		found, unknown, err := root.Find(topic)
		if err != nil || len(unknown) > 0 {
			return misuse{fmt.Errorf("there is no command %q\nsee autopost --help", strings.Join(topic, " "))}
		}
		return found.Help()
	}
}

// noArguments refuses positional arguments as misuse.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse{fmt.Errorf("%s does not know %q\nsee %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return nil
}

// oneArgument demands exactly one, which the usage calls name.
func oneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return misuse{fmt.Errorf("%s takes one %s\nsee %s --help", cmd.CommandPath(), name, cmd.CommandPath())}
		}
		return nil
	}
}

// oneID demands the id of one thing, as a command shows it.
func oneID(what, shown string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := oneArgument("id of "+what)(cmd, args); err != nil {
			return err
		}
		return isID(args[0], what, shown)
	}
}

// isID refuses what is no UUID of the usual form.
func isID(id, what, shown string) error {
	if uuid.Validate(id) != nil || len(id) != 36 {
		return misuse{fmt.Errorf("%q is no id of %s: %s shows them", id, what, shown)}
	}
	return nil
}
