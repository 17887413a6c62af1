package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func botCommand() *cobra.Command {
	return parentCommand("bot", "Manage the shop bot", botRulesCommand(), botTalkCommand(), botLintCommand(), botReplayCommand(), botReportCommand(), botChatsCommand(), botTranscriptCommand(), botForgetCommand())
}

func botChatsCommand() *cobra.Command {
	return reading{
		use: "chats", short: "List the dialogs of the bots", example: "  autopost bot chats --state operator",
		function: "list_bot_chats",
		filters:  []filterFlag{{name: "state", key: "state", usage: "only dialogs in this state"}},
		columns: []column{
			timeColumn("when", "updated_at"), fieldColumn("platform", "provider"), fieldColumn("chat", "chat_id"), fieldColumn("state", "state"),
			fieldColumn("waiting", "waiting"), fieldColumn("failing", "failing"), fieldColumn("unsent", "unsent"), detail(fieldColumn("auth_ref", "auth_ref")),
		},
		empty: "No customer has written yet.",
	}.command(nil)
}

// botChatFlags select a chat.
type botChatFlags struct{ platform, authRef string }

func (f *botChatFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.platform, "platform", "max", "platform of the bot")
	cmd.Flags().StringVar(&f.authRef, "auth-ref", "", "credential of the bot, if the chat has several bots")
}

func botTranscriptCommand() *cobra.Command {
	var f readFlags
	var chat botChatFlags
	var limit int
	cmd := &cobra.Command{
		Use: "transcript CHAT", Short: "Show a conversation with personal data masked",
		Example: "  autopost bot transcript 4711 --platform max",
		Args:    oneArgument("chat id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				rows, err := store.BotTranscript(ctx, workspace, chat.platform, chat.authRef, args[0], limit)
				switch {
				case err != nil:
					return err
				case len(rows) == 0:
					return unknown("chat "+chat.platform+"/"+args[0], "autopost bot chats")
				case f.asJSON:
					return printItems(rows)
				}
				return printTranscript(rows)
			})
		},
	}
	limitFlag(cmd, &limit)
	chat.add(cmd)
	f.addOne(cmd)
	return cmd
}

func printTranscript(rows []json.RawMessage) error {
	for _, raw := range rows {
		var line struct {
			TS      time.Time `json:"ts"`
			Kind    string    `json:"kind"`
			Message string    `json:"message_text"`
			RuleID  string    `json:"matched_rule_id"`
			Version int       `json:"rule_version"`
			Answer  string    `json:"response_preview"`
			Status  string    `json:"reply_status"`
			Before  string    `json:"state_before"`
			After   string    `json:"state_after"`
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("decode a line: %w", err)
		}
		fmt.Fprintf(os.Stdout, "%s  %s\n  > %s\n", table.Time(line.TS), line.Kind, line.Message)
		if line.Answer != "" {
			fmt.Fprintf(os.Stdout, "  < %s\n", line.Answer)
		}
		var notes []string
		if line.RuleID != "" {
			notes = append(notes, fmt.Sprintf("rule %s version %d", line.RuleID, line.Version))
		}
		if line.Before != line.After {
			notes = append(notes, line.Before+" -> "+line.After)
		}
		if line.Status != "" {
			notes = append(notes, "reply "+line.Status)
		}
		if len(notes) > 0 {
			fmt.Fprintf(os.Stdout, "    %s\n", strings.Join(notes, ", "))
		}
	}
	return nil
}

func botForgetCommand() *cobra.Command {
	var m operatorFlags
	var chat botChatFlags
	cmd := &cobra.Command{
		Use: "forget CHAT", Short: "Erase what is stored about a chat",
		Long: `Erase what is stored about a chat: messages, replies, state and log. The audit log keeps
that it was erased.`,
		Example: `  autopost bot forget 4711 --reason "the customer asked"`,
		Args:    oneArgument("chat id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[botErased](store.BotForget(ctx, m.act, chat.platform, chat.authRef, args[0]))
				if err != nil {
					return err
				}
				return m.printErased("chat "+chat.platform+"/"+args[0], answer)
			})
		},
	}
	chat.add(cmd)
	m.flags(cmd)
	m.requireReason(cmd)
	return cmd
}

// botErased is the answer of bot_forget.
type botErased struct {
	Applied bool           `json:"applied"`
	DryRun  bool           `json:"dry_run"`
	Reason  string         `json:"reason,omitempty"`
	Erased  map[string]int `json:"erased,omitempty"`
}

func (m *operatorFlags) printErased(subject string, a botErased) error {
	if m.asJSON {
		if err := printJSON(a); err != nil {
			return err
		}
	}
	if !a.Applied {
		return fmt.Errorf("nothing was erased: %s", reasonText(a.Reason, subject))
	}
	if m.asJSON {
		return nil
	}
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
	}
	fmt.Fprintf(os.Stdout, "erased %s: %d rows of messages, %d of replies, %d of the log\n", subject, a.Erased["bot_inbox"], a.Erased["bot_outbox"], a.Erased["bot_logs"])
	return nil
}

func botTalkCommand() *cobra.Command {
	var f readFlags
	var rulesFile, name, language string
	cmd := &cobra.Command{
		Use: "chat", Short: "Talk to the bot without a customer",
		Long: `Talk to the bot without a customer. Each line of the input is a message; the answer
follows. Nothing is stored and nothing is sent.`,
		Example: "  autopost bot chat --rules rules.yaml --language en",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rules, err := readRules(rulesFile)
			if err != nil {
				return err
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				state := map[string]any{}
				lines := bufio.NewScanner(os.Stdin)
				for lines.Scan() {
					raw, err := store.BotTry(ctx, workspace, rules, nil, state, map[string]any{"text": lines.Text(), "name": name, "language": language})
					if err != nil {
						return err
					}
					if state, err = f.printDecision(raw); err != nil {
						return err
					}
				}
				return lines.Err()
			})
		},
	}
	rulesFlag(cmd, &rulesFile)
	cmd.Flags().StringVar(&name, "name", "", "name of the customer")
	cmd.Flags().StringVar(&language, "language", "", "language of the customer, like en (default: that of the text)")
	f.addOne(cmd)
	return cmd
}

// printDecision prints an answer of the bot, and returns the state after it.
func (f *readFlags) printDecision(raw json.RawMessage) (map[string]any, error) {
	var d struct {
		Kind, Text, State string
		RuleID            string         `json:"rule_id"`
		Context           map[string]any `json:"context"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	next := map[string]any{"state": d.State, "context": d.Context}
	if f.asJSON {
		return next, printJSON(raw)
	}
	fmt.Fprintf(os.Stdout, "< %s\n  %s, rule %s, state %s\n", cmp.Or(d.Text, "(a person answers)"), d.Kind, cmp.Or(d.RuleID, "-"), d.State)
	return next, nil
}

func botReplayCommand() *cobra.Command {
	var f readFlags
	var rulesFile, chat, since string
	var limit int
	cmd := &cobra.Command{
		Use: "replay", Short: "Compare stored conversations with rules",
		Long: `Answer stored messages by the rules of a file, or by the enabled ones, and print the
differences. Nothing changes.`,
		Example: "  autopost bot replay --rules rules.yaml --since 7d",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rules, err := readRules(rulesFile)
			if err != nil {
				return err
			}
			filter := map[string]any{}
			if chat != "" {
				filter["chat_id"] = chat
			}
			if since != "" {
				if filter["since"], err = parseSince(since); err != nil {
					return err
				}
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				rows, err := store.ReplayBotRules(ctx, workspace, rules, filter, limit)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printItems(rows)
				}
				return printReplay(rows)
			})
		},
	}
	rulesFlag(cmd, &rulesFile)
	cmd.Flags().StringVar(&chat, "chat", "", "only this chat id")
	cmd.Flags().StringVar(&since, "since", "", "only from this `time` on: 2h, 1d or 2026-12-01T10:00:00+03:00")
	cmd.Flags().IntVar(&limit, "limit", 2000, "largest number of messages, 1 to 10000")
	f.addOne(cmd)
	return cmd
}

// printReplay prints the messages with another answer as a diff.
func printReplay(rows []json.RawMessage) error {
	type decision struct {
		Kind, State, Text string
		RuleID            string `json:"rule_id"`
	}
	changed := 0
	for _, raw := range rows {
		var m struct {
			TS            time.Time `json:"ts"`
			Provider      string    `json:"provider"`
			ChatID        string    `json:"chat_id"`
			Text          string    `json:"message_text"`
			Changed       bool      `json:"changed"`
			Before, After decision
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("decode a message: %w", err)
		}
		if !m.Changed {
			continue
		}
		changed++
		fmt.Fprintf(os.Stdout, "  %s/%s: %s\n", m.Provider, m.ChatID, m.Text)
		for _, side := range []struct {
			mark string
			decision
		}{{"-", m.Before}, {"+", m.After}} {
			fmt.Fprintf(os.Stdout, "%s %s %s [%s] %s\n", side.mark, side.Kind, cmp.Or(side.RuleID, "-"), side.State, side.Text)
		}
	}
	fmt.Fprintf(os.Stdout, "%d of %s another answer\n", changed, counted(len(rows), "message gets", "messages get"))
	return nil
}

func botReportCommand() *cobra.Command {
	var f readFlags
	var since string
	var limit int
	cmd := &cobra.Command{
		Use: "report", Short: "Report what the rules do not answer",
		Example: "  autopost bot report --since 30d",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from := time.Now().Add(-7 * 24 * time.Hour)
			if since != "" {
				text, err := parseSince(since)
				if err != nil {
					return err
				}
				if from, err = time.Parse(time.RFC3339Nano, text); err != nil {
					return err
				}
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.BotReport(ctx, workspace, from, limit)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(raw)
				}
				return printReport(raw)
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only from this `time` on: 2h, 1d or 2026-12-01T10:00:00+03:00 (default: 7d)")
	limitFlag(cmd, &limit)
	f.addOne(cmd)
	return cmd
}

func printReport(raw json.RawMessage) error {
	var report struct {
		Messages     int     `json:"messages"`
		FallbackRate float64 `json:"fallback_rate"`
		Unmatched    []struct {
			Count   int    `json:"count"`
			Example string `json:"example"`
		} `json:"unmatched"`
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		return fmt.Errorf("decode the report: %w", err)
	}
	fmt.Fprintf(os.Stdout, "%s, %.1f %% without a rule\n", counted(report.Messages, "message", "messages"), 100*report.FallbackRate)
	rows := make([][]any, 0, len(report.Unmatched))
	for _, group := range report.Unmatched {
		rows = append(rows, []any{group.Count, table.Excerpt(group.Example)})
	}
	if len(rows) == 0 {
		return nil
	}
	return printTable([]string{"count", "text"}, rows)
}

func rulesFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "rules", "", "`file` with rules as YAML or JSON; - reads stdin (default: the enabled rules)")
}

// readRules returns the rules of a file as JSON; nil without a file.
func readRules(name string) (json.RawMessage, error) {
	if name == "" {
		return nil, nil
	}
	rows, err := readRuleRows(name)
	if err != nil {
		return nil, err
	}
	return json.Marshal(rows)
}

var errNoRules = errors.New("must have at least one rule: write - rule_id: NAME with its fields")
