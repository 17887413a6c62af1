package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/api"
	"autopost/internal/pg"
)

func auditCommand() *cobra.Command {
	list := reading{
		short:    "List operator actions, newest first",
		example:  "  autopost audit list --operator olga --since 7d",
		function: "list_audit",
		filters: []filterFlag{
			{name: "operator", key: "operator", usage: "only this operator"}, {name: "action", key: "action", usage: "only this action, for example put_channel"},
			{name: "subject", key: "subject", usage: "only this row, for example channel:city"}, sinceFlag,
		},
		columns: []column{
			timeColumn("when", "ts"), fieldColumn("operator", "operator"), fieldColumn("action", "action"), fieldColumn("subject", "subject"),
			fieldColumn("reason", "reason"), {name: "change", of: changeOf}, detail(fieldColumn("seq", "seq")), detail(fieldColumn("login", "login")),
		},
		empty: "No operator action yet.",
	}.command(nil)
	return parentCommand("audit", "Show and check the audit log of a workspace", list, auditHeadCommand(), auditVerifyCommand())
}

func auditHeadCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Print the last row of the audit log to keep it elsewhere",
		Long: `Print the number and the hash of the last row of the audit log. Keep them outside the
database. autopost audit verify --head then shows whether earlier rows were changed.`,
		Example: "  autopost audit head",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				seq, hash, err := store.AuditHead(ctx, workspace)
				switch {
				case err != nil:
					return err
				case f.asJSON:
					return printJSON(api.AuditHead{Seq: seq, Hash: hash})
				}
				fmt.Fprintf(os.Stdout, "%d:%s\n", seq, hash)
				return nil
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

func auditVerifyCommand() *cobra.Command {
	var f readFlags
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the hash chain of the audit log",
		Long: `Check that each row of the audit log is unchanged and that none is missing. With --head
the log must also contain a row that autopost audit head printed earlier. The command
exits 1 and prints the wrong rows if the check fails.`,
		Example: `  autopost audit verify
  autopost audit verify --head 17:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var kept any
			if head != "" {
				seq, hash, _ := strings.Cut(head, ":")
				number, err := strconv.ParseInt(seq, 10, 64)
				if err != nil {
					return usageError{fmt.Errorf("--head must be NUMBER:HASH, got %q: copy the output of autopost audit head", head)}
				}
				kept = api.AuditHead{Seq: number, Hash: hash}
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				verdict, err := store.VerifyAudit(ctx, workspace, kept)
				if err != nil {
					return err
				}
				return f.printAudit(verdict)
			})
		},
	}
	cmd.Flags().StringVar(&head, "head", "", "earlier `output` of autopost audit head, like 17:9f86…")
	f.addOne(cmd)
	return cmd
}

func (o output) printAudit(verdict api.AuditVerdict) error {
	if o.asJSON {
		if err := printJSON(verdict); err != nil {
			return err
		}
	} else if verdict.OK {
		say("%s, unchanged up to row %d", counted(verdict.Rows, "row"), verdict.Seq)
	} else {
		rows := make([][]any, 0, len(verdict.Faults))
		for _, fault := range verdict.Faults {
			rows = append(rows, []any{fault.Seq, fault.What, fault.ID})
		}
		if err := printTable([]string{"row", "fault", "id"}, rows); err != nil {
			return err
		}
	}
	if !verdict.OK {
		note("the audit log was changed: compare it with a backup from before row %d", verdict.Faults[0].Seq)
		return errSilent
	}
	return nil
}

// changeOf returns the changed fields of an audit row, like "rate_rps: 1 → 0.5".
func changeOf(row map[string]any) any {
	before, isObject := row["before"].(map[string]any)
	after, isAlso := row["after"].(map[string]any)
	if !isObject && !isAlso {
		return strings.Trim(plainText(row["before"])+" → "+plainText(row["after"]), " →")
	}
	names := map[string]bool{}
	for _, side := range []map[string]any{before, after} {
		for name := range side {
			names[name] = true
		}
	}
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if old, now := plainText(before[name]), plainText(after[name]); old != now {
			changes = append(changes, name+": "+strings.TrimPrefix(old+" → "+now, " → "))
		}
	}
	return strings.Join(changes, "; ")
}
