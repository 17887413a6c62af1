package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// A person writes rules, tries them, compares them with past conversations, and erases a chat.
func TestBotRulesAreManagedByCommands(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	ok(t, h, "bot", "rules", "set", "delivery", "--keywords", "deliver,shipping", "--response-template", "Within 2 days.")
	ok(t, h, "bot", "rules", "set", "returns", "--keywords", "return", "--response-template", "The order number?", "--next-state", "order", "--priority", "5")
	h.File("order.json", `[{"rule_id": "order", "state": "order", "response_template": "Order {order} may be returned.", "next_state": "default"}]`)
	require.Contains(t, h.Run(nil, "bot", "rules", "import", "order.json", "--dry-run").Stdout, "order")
	require.Equal(t, 2, pgtest.Value[int](h.DB, `select count(*)::int from autopost.bot_rules`))
	ok(t, h, "bot", "rules", "import", "order.json")

	// The rules answer without a customer.
	talk := h.RunWithInput("Do you deliver?\nI want a return\nA-7\nnonsense\n", "bot", "chat")
	require.Zero(t, talk.Code, talk.Stderr)
	require.Equal(t, `< Within 2 days.
  matched, rule delivery, state default
< The order number?
  matched, rule returns, state order
< Order A-7 may be returned.
  matched, rule order, state default
< I did not understand that. Please say it in other words.
  fallback, rule -, state default
`, talk.Stdout)

	// An export is imported without a change.
	exported := h.Run(nil, "bot", "rules", "export")
	require.Zero(t, exported.Code, exported.Stderr)
	h.File("rules.yaml", exported.Stdout)
	again := h.Run(nil, "bot", "rules", "import", "rules.yaml")
	require.Zero(t, again.Code, again.Stderr)
	require.Equal(t, 3, strings.Count(again.Stdout, "unchanged"), again.Stdout)

	// A list is written as a whole: a refused rule leaves the others as they are.
	h.File("wrong.json", `[{"rule_id": "delivery", "keywords": ["x"], "response_template": "Changed."}, {"rule_id": "bad", "keywords": [], "response_template": "r"}]`)
	refused(t, h, "rule bad is not valid", "bot", "rules", "import", "wrong.json")
	h.File("twice.json", `[{"rule_id": "bad", "keywords": ["k"], "response_template": "r"}, {"rule_id": "bad", "keywords": ["k"], "response_template": "r"}]`)
	refused(t, h, "bot_rule bad must be given once", "bot", "rules", "import", "twice.json")
	require.Equal(t, 3, pgtest.Value[int](h.DB, `select count(*)::int from autopost.bot_rules`))

	// The configuration file has them too, and an export changes nothing.
	file := h.Run(nil, "config", "export", "--workspace", "news")
	require.Contains(t, file.Stdout, "    bot_rules:\n      delivery:\n        keywords: [deliver, shipping]\n        response_template: Within 2 days.\n", file.Stderr)
	h.File("autopost.yaml", file.Stdout)
	require.Zero(t, h.Run(nil, "config", "diff", "autopost.yaml", "--workspace", "news", "--exit-code").Code)
	h.File("autopost.yaml", strings.ReplaceAll(file.Stdout, "Within 2 days.", "Within 4 days."))
	ok(t, h, "config", "apply", "autopost.yaml", "--workspace", "news", "--yes")
	require.Contains(t, h.RunWithInput("shipping\n", "bot", "chat").Stdout, "Within 4 days.")
	ok(t, h, "bot", "rules", "enable", "delivery", "--version", "1")

	// A lint finds the faults of a file, and exits 1.
	clean := h.Run(nil, "bot", "lint")
	require.Zero(t, clean.Code, clean.Stdout)
	require.Equal(t, "3 rules, 0 findings\n", clean.Stdout)
	h.File("faults.yaml", strings.ReplaceAll(exported.Stdout, "{order}", "{odrer}"))
	faults := h.Run(nil, "bot", "lint", "--rules", "faults.yaml")
	require.Equal(t, 1, faults.Code)
	require.Equal(t, `rule order: response_template may show {odrer} without a text, in state order: write {name}, {text} or a state that the conversation has passed, in the spelling of the rule (missing_variable)
3 rules, 1 finding
`, faults.Stdout)
	require.Equal(t, 2, h.Run(nil, "bot", "lint", "--rules", "nothing.yaml").Code)
	h.File("bad.yaml", "- rule_id: bad\n  keywords: [k]\n")
	refused(t, h, "bad: response_template", "bot", "lint", "--rules", "bad.yaml")

	// Past conversations show what other rules change.
	for i, text := range []string{"shipping?", "nonsense"} {
		h.Exec(`select autopost.bot_take('news', 'max', 'max', jsonb_build_object('update_type', 'message_created', 'timestamp', 1795000000000 + $1::int, 'user_locale', 'en', 'message', jsonb_build_object(
			'recipient', '{"chat_id": 4711, "chat_type": "dialog"}'::jsonb, 'body', jsonb_build_object('mid', 'mid.' || $1::int, 'text', $2::text), 'sender', '{"user_id": 7, "is_bot": false}'::jsonb)))`, i, text)
	}
	h.File("rules.yaml", strings.ReplaceAll(exported.Stdout, "Within 2 days.", "Within 3 days."))
	require.Equal(t, `  max/4711: shipping?
- matched delivery [default] Within 2 days.
+ matched delivery [default] Within 3 days.
1 of 2 messages get another answer
`, h.Run(nil, "bot", "replay", "--rules", "rules.yaml").Stdout)
	require.Equal(t, "0 of 2 messages get another answer\n", h.Run(nil, "bot", "replay").Stdout)
	transcript := h.Run(nil, "bot", "transcript", "4711").Stdout
	require.Contains(t, transcript, "> shipping?\n  < Within 2 days.\n    rule delivery version 1, reply pending")
	require.Contains(t, h.Run(nil, "bot", "chats").Stdout, "4711")

	require.Regexp(t, `^2 messages, 50\.0 % without a rule\n(.*\n)* *1 +nonsense\n`, h.Run(nil, "bot", "report").Stdout)

	// A version is chosen, a rule is disabled, and a chat is erased.
	ok(t, h, "bot", "rules", "set", "delivery", "--response-template", "Tomorrow.")
	ok(t, h, "bot", "rules", "enable", "delivery", "--version", "1")
	require.Contains(t, h.RunWithInput("shipping\n", "bot", "chat").Stdout, "Within 2 days.")
	ok(t, h, "bot", "rules", "disable", "delivery")
	require.Contains(t, h.RunWithInput("shipping\n", "bot", "chat").Stdout, "fallback")
	ok(t, h, "bot", "forget", "4711", "--reason", "the customer asked", "--dry-run")
	require.Contains(t, h.Run(nil, "bot", "chats").Stdout, "4711")
	ok(t, h, "bot", "forget", "4711", "--reason", "the customer asked")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.bot_logs`))
	refused(t, h, "unknown chat max/4711", "bot", "forget", "4711", "--reason", "again")
	refused(t, h, "unknown rule nothing", "bot", "rules", "show", "nothing")
}

func refused(t *testing.T, h *harness.Harness, message string, args ...string) {
	t.Helper()
	result := h.Run(nil, args...)
	require.NotZero(t, result.Code)
	require.Contains(t, result.Stderr, message)
}
