package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/api"
	"autopost/internal/configfile"
	"autopost/internal/pg"
)

// botRule is the resource of a rule of the bot.
var botRule = configfile.KindOf("bot_rule")

func botRulesCommand() *cobra.Command {
	return parentCommand("rules", "Manage the rules of the bot", botRulesListCommand(), botRulesShowCommand(), botRulesSetCommand(), botRulesEnableCommand(), botRulesDisableCommand(),
		botRulesImportCommand(), botRulesExportCommand())
}

func botRulesListCommand() *cobra.Command {
	return reading{
		short: "List all versions of the rules", example: "  autopost bot rules list", function: "list_bot_rules",
		columns: []column{
			fieldColumn("rule", "rule_id"), fieldColumn("version", "version"), fieldColumn("enabled", "enabled"), fieldColumn("state", "state"),
			fieldColumn("priority", "priority"), excerptColumn("response_template"), detail(fieldColumn("next_state", "next_state")),
		},
		empty: "No rule: run autopost bot rules set NAME.",
	}.command(nil)
}

func botRulesShowCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use: "show RULE", Short: "Show the newest version of a rule", Example: "  autopost bot rules show delivery-en", Args: oneArgument("rule id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				rows, err := store.List(ctx, pg.Query{Function: "list_bot_rules", Workspace: workspace, Filter: map[string]any{"rule_id": args[0]}, Limit: 1})
				if err != nil {
					return err
				}
				if len(rows) == 0 {
					return unknown("rule "+args[0], "autopost bot rules list")
				}
				return f.printObject(rows[0])
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

func botRulesSetCommand() *cobra.Command {
	p := &upsert{kind: botRule, given: map[string]*fieldFlag{}}
	cmd := &cobra.Command{
		Use: "set RULE", Short: "Add a rule, or write its next version",
		Long: `Add a rule, or write its next version. Fields that are not given stay as in the newest
version. An enabled version answers the next message.`,
		Example: `  autopost bot rules set delivery-en --keywords delivery,shipping --response-template "Within 2 days."`,
		Args:    oneArgument("rule id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "rule "+args[0], mayExist, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				return pg.Decode[pg.PutAnswer](store.PutBotRule(ctx, act, args[0], fields))
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}

func botRulesEnableCommand() *cobra.Command {
	var version int
	cmd := botRuleSwitch("enable", "Choose the version of a rule that answers", "  autopost bot rules enable delivery-en --version 2", &version)
	cmd.Flags().IntVar(&version, "version", 0, "version to enable (required)")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if version < 1 {
			return usageError{fmt.Errorf("--version must be at least 1, got %d: run autopost bot rules list", version)}
		}
		return run(cmd, args)
	}
	return cmd
}

func botRulesDisableCommand() *cobra.Command {
	return botRuleSwitch("disable", "Disable a rule", "  autopost bot rules disable delivery-en", new(int))
}

func botRuleSwitch(verb, short, example string, version *int) *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use: verb + " RULE", Short: short, Example: example, Args: oneArgument("rule id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				written, err := store.EnableBotRule(ctx, m.act, args[0], *version)
				if err != nil {
					return err
				}
				var answer struct {
					Reason string
					Before int
				}
				if err := json.Unmarshal(written.Answer, &answer); err != nil {
					return fmt.Errorf("decode the answer: %w", err)
				}
				one := pg.PutAnswer{Reason: answer.Reason}
				one.Raw = written.Answer
				if answer.Reason == "" {
					one.Applied = true
					one.Before = pg.Fields{"version": json.RawMessage(fmt.Sprint(answer.Before))}
					one.After = pg.Fields{"version": json.RawMessage(fmt.Sprint(*version))}
				}
				return m.printPut("rule "+args[0], one)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func botRulesImportCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Write the rules of a YAML list",
		Long: `Write the rules of a YAML list, each as the next version of its rule: all of them or none.
A field that the file leaves out gets its default; an unchanged rule gets no version. Rules
that the file does not name stay.`,
		Example: "  autopost bot rules import rules.yaml --dry-run",
		Args:    oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := readRuleRows(args[0])
			if err != nil {
				return err
			}
			items, err := configfile.ListItems(botRule, "rule_id", rows)
			if err != nil {
				return usageError{fmt.Errorf("%s: %w", inputName(args[0]), err)}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error { return m.importRules(ctx, store, items) })
		},
	}
	m.flags(cmd)
	return cmd
}

// importRules writes all rules or none.
func (m *operatorFlags) importRules(ctx context.Context, store *pg.Store, items []configfile.Item) error {
	answer, err := pg.Decode[pg.ConfigAnswer](store.ApplyConfig(ctx, m.act, configItems(items)))
	if err != nil {
		return err
	}
	if answer.Reason == "invalid" {
		return fmt.Errorf("nothing was changed: rule %s is not valid\n%s", items[answer.Item].ID, fieldErrorLines(answer.Errors))
	}
	results := map[string]string{}
	for _, change := range answer.Items {
		results[change.ID] = "changed"
		if change.Created {
			results[change.ID] = "added"
		}
	}
	type imported struct {
		RuleID string `json:"rule_id"`
		Result string `json:"result"`
	}
	list := make([]imported, 0, len(items))
	cells := make([][]any, 0, len(items))
	for _, item := range items {
		one := imported{item.ID, cmp.Or(results[item.ID], "unchanged")}
		list, cells = append(list, one), append(cells, []any{one.RuleID, one.Result})
	}
	if m.asJSON {
		return printItems(list)
	}
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
	}
	return printTable([]string{"rule", "result"}, cells)
}

func botRulesExportCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use: "export", Short: "Print the enabled rules as a YAML list", Example: "  autopost bot rules export > rules.yaml", Args: noArguments,
		Long: `Print the version that answers of each rule as a YAML list. Values at their default and
drafts are left out.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				items, err := store.ExportConfig(ctx, workspace)
				if err != nil {
					return err
				}
				rows := api.BotRuleList(items)
				if f.asJSON {
					return printItems(rows)
				}
				text, err := configfile.FormatList(rows)
				if err == nil {
					_, err = os.Stdout.Write(text)
				}
				return err
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

func botLintCommand() *cobra.Command {
	var f readFlags
	var rulesFile string
	cmd := &cobra.Command{
		Use: "lint", Short: "Find faults that rules have together",
		Long: `Find faults that rules have together: a state to which no rule leads, a keyword that never
decides, a variable without a text, and a state that no rule ends. Exits 1 if there is one.`,
		Example: "  autopost bot lint --rules rules.yaml",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rules, err := readRules(rulesFile)
			if err != nil {
				return err
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.LintBotRules(ctx, workspace, rules)
				if err != nil {
					return err
				}
				return f.printFindings(raw)
			})
		},
	}
	rulesFlag(cmd, &rulesFile)
	f.addOne(cmd)
	return cmd
}

// printFindings prints the faults of rules. It fails if there is one.
func (f *readFlags) printFindings(raw json.RawMessage) error {
	var lint api.BotLint
	if err := json.Unmarshal(raw, &lint); err != nil {
		return fmt.Errorf("decode the findings: %w", err)
	}
	if f.asJSON {
		if err := printJSON(raw); err != nil {
			return err
		}
	} else {
		for _, one := range lint.Findings {
			fmt.Fprintf(os.Stdout, "rule %s: %s %s: %s (%s)\n", one.RuleID, one.Field, one.Reason, one.Remedy, one.Kind)
		}
		fmt.Fprintf(os.Stdout, "%s, %s\n", counted(lint.Rules, "rule", "rules"), counted(len(lint.Findings), "finding", "findings"))
	}
	if len(lint.Findings) > 0 {
		return errSilent
	}
	return nil
}

// readRuleRows reads the rules of a YAML or JSON list.
func readRuleRows(name string) ([]map[string]json.RawMessage, error) {
	raw, err := readInput(name)
	if err != nil {
		return nil, err
	}
	rows, err := configfile.ParseList(raw)
	if err == nil && len(rows) == 0 {
		err = errNoRules
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", inputName(name), err)}
	}
	return rows, nil
}
