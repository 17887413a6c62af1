package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/configfile"
	"autopost/internal/pg"
)

// botRule is the resource of a rule of the bot.
var botRule = configfile.Resource{Name: "bot_rule", Section: "bot_rules", Fields: []configfile.Field{
	{Name: "enabled", Type: configfile.Boolean, Help: "whether this version answers; false stores a draft (default: true)"},
	{Name: "intent", Type: configfile.Text, Help: "topic of the rule, like delivery"},
	{Name: "state", Type: configfile.Text, Help: "state in which the rule applies (default: any)"},
	{Name: "keywords", Type: configfile.List, Help: "words of which a message contains one"},
	{Name: "priority", Type: configfile.Number, Help: "the higher one wins (default: 0)"},
	{Name: "max_turns", Type: configfile.Number, Help: "messages after which the scenario ends (default: 5)"},
	{Name: "response_template", Type: configfile.Text, Help: "answer; {name} is the customer, {text} the message"},
	{Name: "buttons", Type: configfile.Object, Help: `rows of buttons as JSON, like [[{"text": "Returns", "payload": "return"}]]`},
	{Name: "next_state", Type: configfile.Text, Help: "state after the answer (default: it stays)"},
}}

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
		Long: `Write the rules of a YAML list, each as the next version of its rule. All are checked
first; unchanged rules get no version. Rules that the file does not name stay.`,
		Example: "  autopost bot rules import rules.yaml --dry-run",
		Args:    oneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := readRuleRows(args[0])
			if err != nil {
				return err
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error { return m.importRules(ctx, store, rows) })
		},
	}
	m.flags(cmd)
	return cmd
}

// importRules checks all rules before it writes the first.
func (m *operatorFlags) importRules(ctx context.Context, store *pg.Store, rows []ruleRow) error {
	type imported struct {
		RuleID string       `json:"rule_id"`
		Result string       `json:"result"`
		Answer pg.PutAnswer `json:"-"`
	}
	var list []imported
	for _, dry := range []bool{true, m.act.DryRun} {
		list = list[:0]
		act := m.act
		act.DryRun = dry
		for _, row := range rows {
			answer, err := pg.Decode[pg.PutAnswer](store.PutBotRule(ctx, act, row.id, row.fields))
			if err != nil {
				return err
			}
			result := "changed"
			switch {
			case answer.Reason == "unchanged":
				result = answer.Reason
			case !answer.Applied:
				return fmt.Errorf("nothing was changed: rule %s is not valid\n%s", row.id, fieldErrorLines(answer.Errors))
			case answer.Created:
				result = "added"
			}
			list = append(list, imported{RuleID: row.id, Result: result})
		}
	}
	if m.asJSON {
		return printItems(list)
	}
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
	}
	cells := make([][]any, 0, len(list))
	for _, one := range list {
		cells = append(cells, []any{one.RuleID, one.Result})
	}
	return printTable([]string{"rule", "result"}, cells)
}

func botRulesExportCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use: "export", Short: "Print the enabled rules as a YAML list", Example: "  autopost bot rules export > rules.yaml", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				list, err := store.List(ctx, pg.Query{Function: "list_bot_rules", Workspace: workspace, Filter: map[string]any{"enabled": true}, Limit: listLimit})
				if err != nil {
					return err
				}
				rows := make([]map[string]any, 0, len(list))
				for _, raw := range list {
					var row map[string]any
					if err := json.Unmarshal(raw, &row); err != nil {
						return fmt.Errorf("decode a rule: %w", err)
					}
					for name, value := range row {
						if value == nil || name == "version" || name == "created_at" || name == "enabled" {
							delete(row, name)
						}
					}
					rows = append(rows, row)
				}
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

// ruleRow is a rule of a file.
type ruleRow struct {
	id     string
	fields pg.Fields
}

// MarshalJSON writes the rule with its id.
func (r ruleRow) MarshalJSON() ([]byte, error) {
	all := map[string]any{"rule_id": r.id}
	for name, value := range r.fields {
		all[name] = value
	}
	return json.Marshal(all)
}

// readRuleRows reads the rules of a YAML or JSON list.
func readRuleRows(name string) ([]ruleRow, error) {
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
	rules := make([]ruleRow, 0, len(rows))
	for i, row := range rows {
		rule := ruleRow{fields: row}
		if json.Unmarshal(row["rule_id"], &rule.id) != nil || rule.id == "" {
			return nil, usageError{fmt.Errorf("%s: rule %d must have a rule_id: name it", inputName(name), i+1)}
		}
		delete(rule.fields, "rule_id")
		rules = append(rules, rule)
	}
	return rules, nil
}
