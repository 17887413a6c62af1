package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

// manual is what every command that acts by hand takes.
type manual struct {
	act    pg.Act
	asJSON bool
	// subject is what is acted on, in words, where it is one thing.
	subject string
}

// flags adds the flags that say who acts, where and why.
func (m *manual) flags(cmd *cobra.Command) {
	workspaceFlag(cmd, &m.act.Workspace)
	m.whoFlags(cmd)
}

// whoFlags adds the flags that say who acts and why, and that it is only tried.
func (m *manual) whoFlags(cmd *cobra.Command) {
	m.actorFlags(cmd)
	cmd.Flags().BoolVar(&m.act.DryRun, "dry-run", false, "say what would change, and change nothing")
}

// actorFlags adds the flags that say who acts and why.
func (m *manual) actorFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.act.Operator, "operator", "", "who acts, for the audit log (default the login name and host)")
	cmd.Flags().StringVar(&m.act.Reason, "reason", "", "why, for the audit log (required)")
	cmd.Flags().BoolVar(&m.asJSON, "json", false, "print JSON")
}

func workspaceFlag(cmd *cobra.Command, workspace *string) {
	cmd.Flags().StringVar(workspace, "workspace", "", "workspace to work in (default the only active one)")
}

// run does something by hand and tells what it changed.
func (m *manual) run(cmd *cobra.Command, do func(context.Context, *pg.Store, pg.Act) (pg.ActAnswer, error)) error {
	return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
		answer, err := do(ctx, store, m.act)
		if err != nil {
			return err
		}
		return m.tell(answer)
	})
}

// known demands to know who acts and why.
func (m *manual) known(cmd *cobra.Command) error {
	if strings.TrimSpace(m.act.Reason) == "" {
		return misuse{fmt.Errorf("%s needs --reason: it is kept in the audit log", cmd.CommandPath())}
	}
	if m.act.Operator == "" {
		m.act.Operator = operator()
	}
	if m.act.Operator == "" {
		return misuse{errors.New("nobody is logged in: pass --operator")}
	}
	return nil
}

// with does something by hand, once it is known who acts, where and why.
func (m *manual) with(cmd *cobra.Command, do func(context.Context, *pg.Store) error) error {
	if err := m.known(cmd); err != nil {
		return err
	}
	return withWorkspace(cmd.Context(), m.act.Workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
		m.act.Workspace = workspace
		return do(ctx, store)
	})
}

// withWorkspace runs work in the workspace that was named, or the only active one; a wrong argument is misuse.
func withWorkspace(ctx context.Context, named string, work func(context.Context, *pg.Store, string) error) error {
	return withStore(ctx, func(ctx context.Context, store *pg.Store) error {
		workspace, err := chooseWorkspace(ctx, store, named)
		if err != nil {
			return err
		}
		err = work(ctx, store, workspace)
		if errors.Is(err, pg.ErrArgument) {
			return misuse{err}
		}
		return err
	})
}

// tell prints an answer; an act that could not be done, or not to all that was named, is a failure.
func (m *manual) tell(a pg.ActAnswer) error {
	if m.asJSON {
		fmt.Fprintln(os.Stdout, string(a.Raw))
	} else if err := m.print(a); err != nil {
		return err
	}
	if a.Reason != "" {
		return fmt.Errorf("nothing was changed: %s", refusal(a, m.subject))
	}
	refused := 0
	for _, r := range a.Results {
		if r.Applied != nil && !*r.Applied {
			refused++
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d could not be changed", refused, len(a.Results))
	}
	return nil
}

// refusal says in words why nothing was applied.
func refusal(a pg.ActAnswer, subject string) string {
	if a.Reason == "sending" {
		return fmt.Sprintf("%d deliveries are being sent; the channel pauses for two minutes unless this is a dry run, so that the same command succeeds soon", a.Sending)
	}
	if a.Reason == "invalid" {
		return faults(a.Errors)
	}
	return whyNot(a.Reason, subject)
}

// lists are the commands that show what there is, by the reason that something is not there.
var lists = map[string]string{
	"unknown_channel": "autopost channel list", "unknown_group": "autopost group list", "unknown_source": "autopost source list",
	"unknown_auth_ref": "autopost credential list", "unknown_alert": "autopost alert list", "unknown_target": "autopost alert target list",
	"unknown_webhook": "autopost webhook list", "unknown_key": "autopost apikey list", "unknown_quota": "autopost quota list",
	"unknown_version": "autopost template list", "unknown_message": "autopost deliveries list",
}

// whyNot is a reason in words, with where to look where the subject is not there.
func whyNot(reason, subject string) string {
	if list, ok := lists[reason]; ok {
		return fmt.Sprintf("unknown %s: %s shows what there is", subject, list)
	}
	return strings.ReplaceAll(reason, "_", " ")
}

// print tells a person what changed, or would.
func (m *manual) print(a pg.ActAnswer) error {
	if a.Reason != "" {
		return nil
	}
	head := "done"
	if m.act.DryRun {
		head = "dry run: nothing was changed; this is what would be"
	}
	fmt.Fprintln(os.Stdout, head)
	if len(a.Channels) > 0 {
		rows := make([][]any, 0, len(a.Channels))
		for _, c := range a.Channels {
			rows = append(rows, []any{c.ChannelID, c.Before.String(), c.After.String()})
		}
		if err := printTable(os.Stdout, false, []string{"channel", "before", "after"}, rows); err != nil {
			return err
		}
		fmt.Fprintf(os.Stdout, "%d deliveries wait there, %d are being sent\n", a.Waiting, a.Sending)
	}
	if a.Results == nil {
		return nil
	}
	rows := make([][]any, 0, len(a.Results))
	for _, r := range a.Results {
		rows = append(rows, []any{cmp.Or(r.DeliveryID, r.ActID), r.Applied == nil || *r.Applied, r.Before, r.After, strings.ReplaceAll(r.Reason, "_", " ")})
	}
	return printTable(os.Stdout, false, []string{"id", "changes", "before", "after", "why not"}, rows)
}

// operator is the login name at this machine, empty when nobody is known.
func operator() string {
	current, err := user.Current()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(current.Username+"@"+hostname(), "@")
}

// hostname is the first part of this machine's name, empty when it has none: a full one would be masked in events.
func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	host, _, _ = strings.Cut(host, ".")
	return host
}

// chooseWorkspace is the workspace that was named, or the only one there is.
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
		return "", misuse{errors.New("there is no active workspace: pass --workspace")}
	case 1:
		return all[0], nil
	default:
		return "", misuse{fmt.Errorf("there are several workspaces: pass --workspace with one of %s", strings.Join(all, ", "))}
	}
}

// family is a command that only groups others.
func family(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}
