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
