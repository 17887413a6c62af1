package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/daemon"
	"autopost/internal/pg"
)

// dryRunHeading is printed above the changes of a dry run.
const dryRunHeading = "dry run: nothing was changed; without --dry-run the result is:"

// operatorFlags are the flags of a command that changes something. The audit log keeps
// the operator and the reason.
type operatorFlags struct {
	act    pg.OperatorAction
	asJSON bool
	// subject names the changed row in messages, for example "channel news".
	subject string
	// reasonRequired means that the command has no default reason.
	reasonRequired bool
}

// flags adds all flags of an operator action in one workspace.
func (m *operatorFlags) flags(cmd *cobra.Command) {
	workspaceFlag(cmd, &m.act.Workspace)
	m.changeFlags(cmd)
}

// changeFlags adds the audit flags and --dry-run.
func (m *operatorFlags) changeFlags(cmd *cobra.Command) {
	m.auditFlags(cmd)
	dryRunFlag(cmd, &m.act.DryRun)
}

// auditFlags adds --operator, --reason and --json.
func (m *operatorFlags) auditFlags(cmd *cobra.Command) {
	operatorFlag(cmd, &m.act.Operator)
	cmd.Flags().StringVar(&m.act.Reason, "reason", "", "reason for the audit log (default: the command)")
	jsonFlag(cmd, &m.asJSON)
}

// requireReason makes --reason required, because the command removes something for good or shows what is protected.
func (m *operatorFlags) requireReason(cmd *cobra.Command) {
	m.reasonRequired = true
	cmd.Flags().Lookup("reason").Usage = "reason for the audit log (required)"
}

func operatorFlag(cmd *cobra.Command, operator *string) {
	cmd.Flags().StringVar(operator, "operator", "", "operator for the audit log (default: login name and host)")
}

func dryRunFlag(cmd *cobra.Command, dryRun *bool) {
	cmd.Flags().BoolVar(dryRun, "dry-run", false, "print the changes and write nothing")
}

// run performs an operator action and prints the result.
func (m *operatorFlags) run(cmd *cobra.Command, do func(context.Context, *pg.Store, pg.OperatorAction) (pg.ActAnswer, error)) error {
	return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
		answer, err := do(ctx, store, m.act)
		if err != nil {
			return err
		}
		return m.print(answer)
	})
}

// put performs a change of one row of configuration and prints the result.
func (m *operatorFlags) put(cmd *cobra.Command, subject string, do func(context.Context, *pg.Store) (pg.PutAnswer, error)) error {
	return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
		answer, err := do(ctx, store)
		if err != nil {
			return err
		}
		return m.printPut(subject, answer)
	})
}

// requireAudit sets the reason and the operator. The default reason is the command with its arguments, the default
// operator is the login name and host.
func (m *operatorFlags) requireAudit(cmd *cobra.Command) error {
	if m.reasonRequired && strings.TrimSpace(m.act.Reason) == "" {
		return usageError{errors.New("--reason must not be empty: pass --reason TEXT for the audit log")}
	}
	if strings.TrimSpace(m.act.Reason) == "" {
		m.act.Reason = defaultReason(cmd)
	}
	var err error
	m.act.Operator, err = operatorOr(m.act.Operator)
	return err
}

// defaultReason returns the command with its arguments, for example "channel pause city".
func defaultReason(cmd *cobra.Command) string {
	words := append([]string{strings.TrimPrefix(cmd.CommandPath(), "autopost ")}, cmd.Flags().Args()...)
	reason := []rune(strings.Join(words, " "))
	return string(reason[:min(len(reason), maxDefaultReason)])
}

// maxDefaultReason is the largest number of characters of a default reason. Commands may have many ids.
const maxDefaultReason = 200

// operatorOr returns the named operator, or the login name and host.
func operatorOr(named string) (string, error) {
	if operator := cmp.Or(named, daemon.Operator()); operator != "" {
		return operator, nil
	}
	return "", usageError{errors.New("the login name is unknown: pass --operator NAME")}
}

// with calls do after it has checked the audit flags and chosen the workspace.
func (m *operatorFlags) with(cmd *cobra.Command, do func(context.Context, *pg.Store) error) error {
	if err := m.requireAudit(cmd); err != nil {
		return err
	}
	return withWorkspace(cmd.Context(), m.act.Workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
		m.act.Workspace = workspace
		return do(ctx, store)
	})
}

// print prints the result of an operator action. It fails if the action was refused for
// all or some of its rows.
func (m *operatorFlags) print(a pg.ActAnswer) error {
	if m.asJSON {
		if err := printJSON(a.Raw); err != nil {
			return err
		}
	} else if err := m.printChanged(a); err != nil {
		return err
	}
	if a.Reason != "" {
		return fmt.Errorf("nothing was changed: %s", refusalText(a, m.subject))
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

// refusalText explains why an operator action changed nothing.
func refusalText(a pg.ActAnswer, subject string) string {
	switch a.Reason {
	case "sending":
		return fmt.Sprintf("%s in flight: run the command again in two minutes; unless this was a dry run, the channel is paused until then", counted(a.Sending, "delivery is", "deliveries are"))
	case "invalid":
		return fieldErrorLines(a.Errors)
	}
	return reasonText(a.Reason, subject)
}

// listCommands names the command that lists the known rows, by refusal reason.
var listCommands = map[string]string{
	"unknown_channel": "autopost channel list", "unknown_group": "autopost group list", "unknown_source": "autopost source list",
	"unknown_auth_ref": "autopost credential list", "unknown_alert": "autopost alert list", "unknown_target": "autopost alert target list",
	"unknown_webhook": "autopost webhook list", "unknown_key": "autopost apikey list", "unknown_quota": "autopost quota list",
	"unknown_version": "autopost template list", "unknown_rule": "autopost bot rules list", "unknown_rule_version": "autopost bot rules list", "unknown_chat": "autopost bot chats", "unknown_message": "autopost posts list", "unknown_submission": "autopost submissions list", "unknown_draft": "autopost drafts list", "unknown_recurrence": "autopost recurring list", "unknown_occurrence": "autopost recurring show",
}

// reasonText turns a refusal reason into words. For an unknown row it adds the list command.
func reasonText(reason, subject string) string {
	if list, ok := listCommands[reason]; ok {
		return unknown(subject, list).Error()
	}
	return strings.ReplaceAll(reason, "_", " ")
}

// unknown is the error for a row that does not exist. The list command prints those that do.
func unknown(subject, list string) error { return fmt.Errorf("unknown %s: run %s", subject, list) }

// printChanged prints the changed channels and rows as tables.
func (m *operatorFlags) printChanged(a pg.ActAnswer) error {
	if a.Reason != "" {
		return nil
	}
	heading := "done"
	if m.act.DryRun {
		heading = dryRunHeading
	}
	fmt.Fprintln(os.Stdout, heading)
	if len(a.Channels) > 0 {
		rows := make([][]any, 0, len(a.Channels))
		for _, c := range a.Channels {
			rows = append(rows, []any{c.ChannelID, c.Before.String(), c.After.String()})
		}
		if err := printTable([]string{"channel", "before", "after"}, rows); err != nil {
			return err
		}
		say("%s waiting, %d in flight", countedDeliveries(a.Waiting), a.Sending)
	}
	if a.Results == nil {
		return nil
	}
	rows := make([][]any, 0, len(a.Results))
	for _, r := range a.Results {
		rows = append(rows, []any{cmp.Or(r.DeliveryID, r.ActID), r.Applied == nil || *r.Applied, r.Before, r.After, strings.ReplaceAll(r.Reason, "_", " ")})
	}
	return printTable([]string{"id", "changes", "before", "after", "why not"}, rows)
}
