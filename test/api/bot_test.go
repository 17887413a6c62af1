package api

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// A list of rules is checked, written as a whole and exported over HTTP.
func TestRulesOfTheBotAsAList(t *testing.T) {
	t.Parallel()
	w := open(t)
	ask := func(method, path string, body any) reply {
		c := call{method: method, path: "/api/v1/bot/" + path, key: w.keys["owner"], header: map[string]string{"X-Autopost-Reason": "a test"}}
		if body != nil {
			raw, err := json.Marshal(body)
			require.NoError(t, err)
			c.body = string(raw)
		}
		return w.ask(c)
	}
	rule := func(id string, fields map[string]any) map[string]any {
		fields["rule_id"] = id
		return fields
	}
	before := pgtest.Value[int](w.DB, `select count(*)::int from autopost.bot_rules where workspace_id = 'acme'`)
	rules := []any{
		rule("delivery", map[string]any{"keywords": []string{"ёлка"}, "response_template": "Two days."}),
		rule("late", map[string]any{"keywords": []string{"Елка у дома"}, "priority": -1, "response_template": "Never."}),
	}
	lint := ask(http.MethodPost, "lint", map[string]any{"rules": rules})
	require.Equal(t, 200, lint.status, lint.raw)
	require.Equal(t, []any{map[string]any{"kind": "shadowed_keyword", "rule_id": "late", "field": "keywords",
		"reason": `must not contain "Елка у дома": rule delivery takes all its texts first`, "remedy": "remove it, or change the priority of a rule"}}, lint.body["findings"])
	require.InDelta(t, 2, lint.body["rules"], 0)

	wrong := ask(http.MethodPost, "import", map[string]any{"rules": append(rules, rule("bad", map[string]any{"keywords": []string{"k"}, "response_template": ""})), "reason": "r"})
	require.Equal(t, 422, wrong.status)
	require.Contains(t, wrong.raw, `"field":"body.rules.2.response_template"`)
	twice := ask(http.MethodPost, "import", map[string]any{"rules": append(rules, rules[0]), "reason": "r"})
	require.Equal(t, 422, twice.status)
	require.Contains(t, twice.raw, "delivery must be given once")
	dry := ask(http.MethodPost, "import?dry_run=true", map[string]any{"rules": rules, "reason": "r"})
	require.Equal(t, true, dry.body["dry_run"], dry.raw)
	require.Equal(t, before, pgtest.Value[int](w.DB, `select count(*)::int from autopost.bot_rules where workspace_id = 'acme'`), "nothing is written")

	written := ask(http.MethodPost, "import", map[string]any{"rules": rules, "reason": "r"})
	require.Equal(t, 200, written.status, written.raw)
	require.Len(t, written.body["items"], 2)
	exported := ask(http.MethodGet, "export", nil)
	require.Equal(t, 200, exported.status, exported.raw)
	require.Contains(t, exported.body["items"], map[string]any{"rule_id": "late", "keywords": []any{"Елка у дома"}, "priority": -1.0, "response_template": "Never."})
	again := ask(http.MethodPost, "import", map[string]any{"rules": exported.body["items"], "reason": "r"})
	require.Equal(t, "unchanged", again.body["reason"], again.raw)
	require.NotEmpty(t, ask(http.MethodPost, "lint", map[string]any{}).body["findings"], "the enabled rules")
}
