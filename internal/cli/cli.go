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

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

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
	cmd, err := root.ExecuteContextC(ctx)
	err = explain(cmd, args, err)
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
	root := parentCommand("autopost", "Publish posts to many channels, once each")
	for _, g := range commandGroups() {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(programGroup)
	root.SetCompletionCommandGroupID(programGroup)
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

// commandGroup is a part of the list of commands.
type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// programGroup is the group of the commands about the program itself.
const programGroup = "This program"

func commandGroups() []commandGroup {
	return []commandGroup{
		{"Run", []*cobra.Command{demoCommand(), serveCommand(), migrateCommand(), seedCommand()}},
		{"Posts", []*cobra.Command{postCommand(), planCommand(), whyCommand(), postsCommand(), draftsCommand(), recurringCommand(), submissionsCommand(), moderationCommand(), xPostsCommand(), filebusCommand(), deliveriesCommand(), mediaCommand(), calendarCommand(), slotsCommand(), forecastCommand()}},
		{"Configure", []*cobra.Command{
			workspaceCommand(), channelCommand(), chatCommand(), credentialCommand(), endpointCommand(), sourceCommand(), templateCommand(),
			webhookCommand(), botCommand(), groupCommand(), quotaCommand(), budgetCommand(), retryPolicyCommand(), avatarCommand(), apikeyCommand(), userCommand(), settingCommand(), configCommand(),
		}},
		{"Watch and repair", []*cobra.Command{healthCommand(), doctorCommand(), alertCommand(), eventsCommand(), auditCommand(), verifyCommand(), releaseStaleCommand(), restoreCommand()}},
		{programGroup, []*cobra.Command{benchCommand(), openapiCommand(), versionCommand()}},
	}
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

// typingErrors is the largest number of wrong letters in a name that still suggests a command.
const typingErrors = 2

// unknownCommand rejects a name that parent does not have, with the similar names that it has.
func unknownCommand(parent *cobra.Command, name string) error {
	parent.SuggestionsMinimumDistance = typingErrors
	similar := parent.SuggestionsFor(name)
	if len(similar) == 0 {
		return usageError{fmt.Errorf("unknown command %q: run %s --help", name, parent.CommandPath())}
	}
	for i := range similar {
		similar[i] = parent.CommandPath() + " " + similar[i]
	}
	return usageError{fmt.Errorf("unknown command %q: run %s", name, strings.Join(similar, " or "))}
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
		if len(unknown) > 0 {
			return unknownCommand(found, unknown[0])
		}
		if err != nil {
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
