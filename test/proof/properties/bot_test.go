package properties

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"autopost/internal/testing/pgtest"
)

// botRule is a rule of the shop bot, as bot_decide takes it.
type botRule struct {
	RuleID   string `json:"rule_id"`
	Version  int    `json:"version"`
	Intent   string `json:"intent"`
	State    string `json:"state,omitempty"`
	Priority int    `json:"priority"`
	MaxTurns int    `json:"max_turns"`
	Template string `json:"response_template"`
	Next     string `json:"next_state,omitempty"`
	Pattern  struct {
		Keywords []string `json:"keywords"`
	} `json:"pattern"`
}

// botAnswer is the answer of bot_decide.
type botAnswer struct {
	Kind, Text, State string
	RuleID            string         `json:"rule_id"`
	Context           map[string]any `json:"context"`
}

var (
	botWords  = []string{"tea", "Tea", "ёлка", "елка", "no"}
	botStates = []string{"", "default", "a", "b", "c"}
	botRules  = rapid.Custom(func(t *rapid.T) []botRule {
		rules := make([]botRule, rapid.IntRange(0, 8).Draw(t, "rules"))
		for n := range rules {
			r := botRule{
				RuleID: string(rune('p' + n)), Version: 1, Intent: rapid.SampledFrom([]string{"", "contacts"}).Draw(t, "intent"), State: rapid.SampledFrom(botStates).Draw(t, "state"),
				Priority: rapid.IntRange(0, 2).Draw(t, "priority"), MaxTurns: rapid.IntRange(1, 6).Draw(t, "max_turns"),
				Template: rapid.SampledFrom([]string{"fine", "{a}", "{text} {b} {a}", "{", "{{a}}"}).Draw(t, "template"),
				Next:     rapid.SampledFrom(append(botStates, "operator")).Draw(t, "next"),
			}
			r.Pattern.Keywords = rapid.SliceOfN(rapid.SampledFrom(botWords), 0, 2).Draw(t, "keywords")
			rules[n] = r
		}
		return rules
	})
)

// expectedRule is the rule that must answer a text in a state; "" for none.
func expectedRule(rules []botRule, state, text string) string {
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "ё", "е") }
	fits := slices.DeleteFunc(slices.Clone(rules), func(r botRule) bool {
		if r.State != "" && r.State != state {
			return true
		}
		if len(r.Pattern.Keywords) == 0 {
			return r.State == ""
		}
		return !slices.ContainsFunc(r.Pattern.Keywords, func(k string) bool { return strings.Contains(fold(text), fold(k)) })
	})
	if len(fits) == 0 {
		return ""
	}
	slices.SortFunc(fits, func(a, b botRule) int {
		ofAny := func(r botRule) int { return 1 - min(1, len(r.State)) } // a rule of the state goes first
		return cmp.Or(b.Priority-a.Priority, ofAny(a)-ofAny(b), strings.Compare(a.RuleID, b.RuleID))
	})
	return fits[0].RuleID
}

// For any rules and any conversation: the rule of the highest priority answers, no state lasts longer than the turn guard of
// its owner allows, default keeps nothing, nobody waits for an operator who does not exist, and no answer is empty.
func TestTheShopBotHasNoTrap(t *testing.T) {
	t.Parallel()
	session := pgtest.New(t).Session("bot", "")
	rapid.Check(t, func(t *rapid.T) {
		rules, config := botRules.Draw(t, "rules"), map[string]any{"fallback": rapid.SampledFrom([]string{"clarify", "escalate"}).Draw(t, "fallback")}
		operator := rapid.Bool().Draw(t, "operator")
		if operator {
			config["operator_chat_id"] = "-5"
		}
		longest := 5
		for _, r := range rules {
			longest = max(longest, r.MaxTurns)
		}
		state := botAnswer{State: "default"}
		stuck := 0
		for range rapid.IntRange(1, 24).Draw(t, "messages") {
			text := rapid.SampledFrom(append(botWords, "", "x", "a tea for two")).Draw(t, "text")
			expired := rapid.IntRange(0, 9).Draw(t, "expired") == 0
			before := state.State
			if expired {
				before = "default"
			}
			next := decide(t, session, rules, config, map[string]any{"state": state.State, "context": state.Context, "expired": expired}, text)
			switch {
			case before == "operator":
				if next.Kind != "relayed" || next.State != "operator" || next.Text != "" {
					t.Fatalf("not silent with an operator: %+v", next)
				}
			case strings.TrimSpace(next.Text) == "":
				t.Fatalf("an empty answer: %+v", next)
			case next.Kind == "matched" && next.RuleID != expectedRule(rules, before, text), next.Kind == "fallback" && expectedRule(rules, before, text) != "":
				t.Fatalf("%q in %s: want rule %q, got %+v", text, before, expectedRule(rules, before, text), next)
			}
			if next.State == "operator" && !operator {
				t.Fatalf("waits for nobody: %+v", next)
			}
			if (next.State == "default" || next.State == "operator") && len(next.Context) > 0 && before != "operator" {
				t.Fatalf("something is kept: %+v", next)
			}
			stuck++
			if expired || before == "default" {
				stuck = 1
			}
			if next.State == "default" || next.State == "operator" {
				stuck = 0
			}
			if stuck >= longest {
				t.Fatalf("%d messages outside default, and no guard ended it: %+v", stuck, next)
			}
			state = next
		}
	})
}

func decide(t *rapid.T, session *pgtest.Session, rules []botRule, config, state map[string]any, text string) botAnswer {
	t.Helper()
	pending := session.Start(`select autopost.bot_decide($1::jsonb, $2::jsonb, $3::jsonb, $4::jsonb)`, marshal(t, rules), marshal(t, config),
		marshal(t, state), marshal(t, map[string]any{"text": text, "language": "en"}))
	if err := pending.Err(); err != nil {
		t.Fatalf("%v", err)
	}
	var answer botAnswer
	if err := json.Unmarshal([]byte(marshal(t, pending.Wait()[0][0])), &answer); err != nil {
		t.Fatalf("%v", err)
	}
	return answer
}
