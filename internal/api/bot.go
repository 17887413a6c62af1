package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"autopost/internal/api/rest"
	"autopost/internal/configfile"
	"autopost/internal/problem"
)

// mostReplayed is the most messages that one replay by HTTP compares.
const mostReplayed = 2000

// botRule is a version of a rule of the bot.
type botRule struct {
	RuleID           string    `json:"rule_id" example:"delivery-en" doc:"The rule."`
	Version          int       `json:"version" example:"1" doc:"The version of the rule."`
	Enabled          bool      `json:"enabled" doc:"Whether this version answers now. Of each rule at most one does."`
	Intent           string    `json:"intent" example:"delivery" doc:"A word for what the customer wants, for reports."`
	State            *string   `json:"state" nullable:"true" example:"returns_order_en" doc:"The rule applies in this state only; null means in any state."`
	Keywords         []string  `json:"keywords" nullable:"false" doc:"One of them is contained in the message, whatever its case. None in a rule with a state: any message."`
	Priority         int       `json:"priority" example:"10" doc:"The higher one wins."`
	MaxTurns         int       `json:"max_turns" example:"5" doc:"After so many messages in the states that it leads to, the turn guard ends the scenario."`
	ResponseTemplate string    `json:"response_template" example:"We deliver within 2 days." doc:"The answer. {name} is the customer's name, {text} the message, {STATE} what was said in a state."`
	Buttons          []any     `json:"buttons" nullable:"true" doc:"Rows of {text, url} or {text, payload}. A pressed payload is matched as text."`
	NextState        *string   `json:"next_state" nullable:"true" doc:"The state after the answer; null keeps it. In operator a person answers."`
	CreatedAt        time.Time `json:"created_at" doc:"When the version was written."`
}

// BotRuleFields are the fields of a rule that a caller sets.
type BotRuleFields struct {
	Enabled          *bool    `json:"enabled,omitempty" doc:"false stores the version as a draft."`
	Intent           string   `json:"intent,omitempty" doc:"A word for what the customer wants, for reports."`
	State            *string  `json:"state,omitempty" doc:"The rule applies in this state only; null means in any state."`
	Keywords         []string `json:"keywords,omitempty" doc:"Words of which a message contains one."`
	Priority         *int     `json:"priority,omitempty" doc:"The higher one wins."`
	MaxTurns         *int     `json:"max_turns,omitempty" minimum:"1" maximum:"1000" doc:"After so many messages in the states that it leads to, the turn guard ends the scenario."`
	ResponseTemplate string   `json:"response_template,omitempty" doc:"The answer."`
	Buttons          []any    `json:"buttons,omitempty" doc:"Rows of {text, url} or {text, payload}."`
	NextState        *string  `json:"next_state,omitempty" doc:"The state after the answer; null keeps it."`
}

// botRuleChange is the documented body of a change of a rule.
type botRuleChange struct {
	BotRuleFields
	rest.Reasoned
}

// botEnabled is the answer to a choice of a version.
type botEnabled struct {
	Applied bool     `json:"applied" doc:"false with the reason unchanged if there was nothing to change."`
	DryRun  bool     `json:"dry_run" doc:"true if nothing was changed."`
	Reason  string   `json:"reason,omitempty" enum:"unchanged"`
	Version int      `json:"version,omitempty" example:"2" doc:"The version of the rule."`
	Before  int      `json:"before,omitempty" doc:"The version that was enabled; 0 if there was none." example:"1"`
	_       struct{} `additionalProperties:"true"`
}

// botDecision is what the bot does with a message.
type botDecision struct {
	Kind     string         `json:"kind" enum:"matched,fallback,guarded,escalated,relayed" example:"matched"`
	RuleID   string         `json:"rule_id,omitempty" example:"delivery-en" doc:"The rule."`
	Version  int            `json:"version,omitempty" example:"1" doc:"The version of the rule."`
	Intent   string         `json:"intent,omitempty" example:"delivery" doc:"A word for what the customer wants, for reports."`
	Text     string         `json:"text,omitempty" example:"We deliver within 2 days." doc:"The answer; missing if a person answers."`
	Buttons  []any          `json:"buttons,omitempty" doc:"Rows of buttons."`
	State    string         `json:"state,omitempty" example:"default" doc:"The state of the chat."`
	Context  map[string]any `json:"context,omitempty" doc:"Send it with the state in the next try."`
	Language string         `json:"language,omitempty" enum:"ru,en" example:"en" doc:"The language of the answer."`
	Guard    bool           `json:"guard,omitempty" doc:"true if the turn guard ended the state."`
}

// replayed is a stored message with its answers by the old and the new rules.
type replayed struct {
	ID          string         `json:"id" format:"uuid" doc:"The line of the log."`
	TS          time.Time      `json:"ts" doc:"When it was said."`
	Provider    string         `json:"provider" example:"max" doc:"The platform of the bot."`
	AuthRef     string         `json:"auth_ref" example:"shop" doc:"The credential of the bot."`
	ChatID      string         `json:"chat_id" example:"4711" doc:"The platform's id of the chat."`
	MessageText *string        `json:"message_text" nullable:"true" doc:"Masked."`
	Changed     bool           `json:"changed" doc:"Whether the answers differ."`
	Before      map[string]any `json:"before" doc:"kind, rule_id, version, state and text as they were."`
	After       map[string]any `json:"after" doc:"The same by the given rules."`
}

// BotLint are the faults that rules have together.
type BotLint struct {
	Rules    int          `json:"rules" example:"14" doc:"How many rules were checked."`
	Findings []BotFinding `json:"findings" nullable:"false" doc:"The faults by rule and field; none if the rules are clean."`
}

// BotFinding is a fault of a rule beside the others.
type BotFinding struct {
	Kind   string `json:"kind" enum:"unreachable_state,shadowed_keyword,missing_variable,endless_loop" example:"shadowed_keyword" doc:"unreachable_state: no rule leads to the state; shadowed_keyword: another keyword takes all its texts; missing_variable: the answer may show a name without a text; endless_loop: no rule ends the state."`
	RuleID string `json:"rule_id" example:"delivery-en" doc:"The rule."`
	Field  string `json:"field" example:"keywords" doc:"The field of the rule."`
	Reason string `json:"reason" example:"must not contain \"delivery\": rule shipping takes all its texts first" doc:"The fault of the field."`
	Remedy string `json:"remedy" example:"remove it, or change the priority of a rule" doc:"What corrects it."`
}

// botRuleGiven is a rule in a list of rules.
type botRuleGiven struct {
	RuleID string `json:"rule_id" example:"delivery-en" doc:"The rule."`
	BotRuleFields
}

// botRuleList are rules as a list.
type botRuleList struct {
	Items []botRuleGiven `json:"items" nullable:"false" doc:"The rules by id, without values at their default."`
}

type lintBotInput struct {
	Body struct {
		Rules json.RawMessage `json:"rules,omitempty" doc:"Rules with rule_id and the fields of a change; without them the enabled ones are checked."`
	}
}

type importBotInput struct {
	rest.AuditedWrite
	rest.Dry
	Body struct {
		rest.Reasoned
		Rules []map[string]json.RawMessage `json:"rules" minItems:"1" maxItems:"2000" nullable:"false" doc:"Rules with rule_id and the fields of a change."`
	}
}

// botChat is a dialog of a bot.
type botChat struct {
	Provider  string    `json:"provider" example:"max" doc:"The platform of the bot."`
	AuthRef   string    `json:"auth_ref" example:"shop" doc:"The credential of the bot."`
	ChatID    string    `json:"chat_id" example:"4711" doc:"The platform's id of the chat."`
	State     string    `json:"state" example:"default" doc:"The state of the chat."`
	ExpiresAt instant   `json:"expires_at" nullable:"true" doc:"Then the state is default again."`
	Waiting   int       `json:"waiting" doc:"Messages that wait for their turn."`
	Failing   int       `json:"failing" doc:"Messages that were given up after five tries."`
	Unsent    int       `json:"unsent" doc:"Replies that are not sent yet."`
	UpdatedAt time.Time `json:"updated_at" doc:"When something was said last."`
}

// botLine is a line of a conversation.
type botLine struct {
	ID              string         `json:"id" format:"uuid" doc:"The line of the log."`
	TS              time.Time      `json:"ts" doc:"When it was said."`
	Kind            string         `json:"kind" enum:"matched,fallback,guarded,escalated,relayed,operator,handed_back,edited" example:"matched"`
	MessageText     *string        `json:"message_text" nullable:"true" doc:"Masked."`
	MatchedRuleID   *string        `json:"matched_rule_id" nullable:"true" example:"delivery-en" doc:"The rule that answered; null without one."`
	RuleVersion     *int           `json:"rule_version" nullable:"true" doc:"Its version."`
	StateBefore     *string        `json:"state_before" nullable:"true" doc:"The state before the message."`
	StateAfter      *string        `json:"state_after" nullable:"true" doc:"The state after it."`
	ResponsePreview *string        `json:"response_preview" nullable:"true" doc:"Masked."`
	Meta            map[string]any `json:"meta" doc:"Trace, language and what the rules saw."`
	ReplyID         *string        `json:"reply_id" format:"uuid" nullable:"true" doc:"The answer in the queue of the bot."`
	ReplyStatus     *string        `json:"reply_status" nullable:"true" enum:"pending,sending,retry,sent,failed_permanent,dead" doc:"The state of the answer."`
	SentAt          instant        `json:"sent_at" nullable:"true" doc:"When the answer was sent."`
	UnknownOutcomes *int           `json:"unknown_outcomes" nullable:"true" doc:"How many calls of the answer have an unknown outcome."`
	LastError       map[string]any `json:"last_error" nullable:"true" doc:"The error of the last call."`
}

// botTranscript is the newest part of a conversation.
type botTranscript struct {
	Items []botLine `json:"items" nullable:"false" doc:"The newest lines, oldest first."`
}

// botReplay is the comparison of stored conversations with rules.
type botReplay struct {
	Items []replayed `json:"items" nullable:"false" doc:"The messages, oldest first."`
}

// forgotten is the answer to the erasure of a chat.
type forgotten struct {
	Applied bool           `json:"applied" doc:"false with a reason if nothing was erased."`
	DryRun  bool           `json:"dry_run" doc:"true if nothing was changed."`
	Erased  map[string]int `json:"erased,omitempty" doc:"Erased rows by table."`
	_       struct{}       `additionalProperties:"true"`
}

// botReport says how well the rules answer.
type botReport struct {
	Since        time.Time      `json:"since" doc:"The beginning of the period."`
	Messages     int            `json:"messages" doc:"At most the newest 10,000."`
	Kinds        map[string]int `json:"kinds" doc:"Messages by the kind of their answer."`
	FallbackRate float64        `json:"fallback_rate" example:"0.25" doc:"Share of the messages that no rule answers, 0 to 1."`
	Unmatched    []unmatched    `json:"unmatched" nullable:"false" doc:"Messages that no rule answers, grouped by their words, the most frequent first."`
}

type unmatched struct {
	Words   []string  `json:"words" nullable:"false" doc:"The words that the messages have in common."`
	Count   int       `json:"count" doc:"How many messages have these words."`
	Example string    `json:"example" doc:"The newest text, masked."`
	LastAt  time.Time `json:"last_at" doc:"The time of the newest message."`
}

type botReportInput struct {
	Since time.Time `query:"since" doc:"From this instant, with offset; 7 days ago by default."`
	Limit int       `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"The most groups of messages."`
}

type listBotRulesInput struct {
	rest.Page
	RuleID  string `query:"rule_id" maxLength:"200" doc:"Only the versions of this rule."`
	Enabled bool   `query:"enabled" doc:"Only the versions that answer now."`
}

type enableBotRuleInput struct {
	rest.AuditedWrite
	rest.Dry
	ID   string `path:"id"`
	Body struct {
		rest.Reasoned
		Version int `json:"version" minimum:"0" doc:"The version that answers from now on; 0 disables the rule." example:"2"`
	}
}

type tryBotInput struct {
	Body struct {
		Text     string          `json:"text" maxLength:"4096" doc:"The message of the customer." example:"How long does delivery take?"`
		Name     string          `json:"name,omitempty" maxLength:"200" doc:"The customer's name."`
		Language string          `json:"language,omitempty" maxLength:"20" doc:"The customer's language; by default that of the text." example:"en"`
		State    string          `json:"state,omitempty" maxLength:"64" doc:"The state of the answer before."`
		Context  map[string]any  `json:"context,omitempty" doc:"The context of the answer before."`
		Rules    json.RawMessage `json:"rules,omitempty" doc:"Rules with rule_id and the fields of a change; without them the enabled ones decide."`
		Config   map[string]any  `json:"config,omitempty" doc:"meta.bot of an endpoint: fallback, fallback_text, operator_chat_id."`
	}
}

type replayBotInput struct {
	Body struct {
		Rules    json.RawMessage `json:"rules,omitempty" doc:"Rules with rule_id and the fields of a change; without them the enabled ones decide."`
		Provider string          `json:"provider,omitempty" enum:"telegram,max" example:"max" doc:"The platform of the bot."`
		AuthRef  string          `json:"auth_ref,omitempty" maxLength:"200" doc:"The credential of the bot."`
		ChatID   string          `json:"chat_id,omitempty" maxLength:"200" doc:"The platform's id of the chat."`
		Since    *time.Time      `json:"since,omitempty" format:"date-time" doc:"From this instant, with offset."`
		Until    *time.Time      `json:"until,omitempty" format:"date-time" doc:"Before this instant."`
		Changed  bool            `json:"changed,omitempty" doc:"Only messages with another answer."`
		Limit    int             `json:"limit,omitempty" minimum:"1" maximum:"2000" doc:"The most messages; 2,000 by default."`
	}
}

// BotChatPath is a chat in a path.
type BotChatPath struct {
	Provider string `path:"provider" enum:"telegram,max" doc:"The platform of the bot."`
	ChatID   string `path:"chat_id" maxLength:"200" doc:"The platform's id of the chat."`
	AuthRef  string `query:"auth_ref" maxLength:"200" doc:"The credential of the bot, if the chat has several bots."`
}

type botTranscriptInput struct {
	BotChatPath
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"200" doc:"The most lines."`
}

type forgetBotChatInput struct {
	rest.AuditedWrite
	rest.Dry
	BotChatPath
}

var (
	botRules = rest.List{Function: "list_bot_rules", Key: []rest.Column{
		{Name: "rule_id", Filter: "after", Valid: rest.ValidText}, {Name: "version", Filter: "before_version", Valid: rest.ValidNumber},
	}}
	botChats = rest.List{Function: "list_bot_chats", Key: []rest.Column{
		{Name: "updated_at", Filter: "before", Valid: rest.ValidInstant}, {Name: "chat_id", Filter: "before_chat", Valid: rest.ValidText},
	}}
)

func registerBot(d *server) {
	registerBotRules(d)
	rest.Register(d.Server, rest.Operation{
		ID: "try-bot", Method: http.MethodPost, Path: "/bot/try", Summary: "Ask the bot without a customer", Answer: botDecision{},
		Example:     map[string]any{"text": "How long does delivery take?"},
		Description: "Decides as for a customer's message, by the same function. Nothing is stored and nothing is sent.",
	}, func(ctx context.Context, in *tryBotInput) (rest.Reply, error) {
		b := in.Body
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.BotTry(ctx, workspace, b.Rules, b.Config, map[string]any{"state": cmp.Or(b.State, "default"), "context": orEmpty(b.Context)},
				map[string]any{"text": b.Text, "name": b.Name, "language": b.Language})
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "replay-bot", Method: http.MethodPost, Path: "/bot/replay", Summary: "Compare stored conversations with rules", Answer: botReplay{},
		Example:     map[string]any{"changed": true},
		Description: "Answers past messages by the given rules, and shows both answers. Nothing changes. Texts are masked.",
	}, func(ctx context.Context, in *replayBotInput) (rest.Reply, error) {
		b := in.Body
		filter := map[string]any{}
		for name, value := range map[string]string{"provider": b.Provider, "auth_ref": b.AuthRef, "chat_id": b.ChatID} {
			if value != "" {
				filter[name] = value
			}
		}
		for name, at := range map[string]*time.Time{"since": b.Since, "until": b.Until} {
			if at != nil {
				filter[name] = at.Format(time.RFC3339Nano)
			}
		}
		if b.Changed {
			filter["changed"] = true
		}
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			rows, err := d.db.ReplayBotRules(ctx, workspace, b.Rules, filter, cmp.Or(b.Limit, mostReplayed))
			return encoded(map[string]any{"items": rows}, err)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-bot-report", Method: http.MethodGet, Path: "/bot/report", Summary: "Report what the rules do not answer", Answer: botReport{},
		Description: "The share of messages without a rule, and these messages by their words.",
	}, func(ctx context.Context, in *botReportInput) (rest.Reply, error) {
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.BotReport(ctx, workspace, in.Since, in.Limit)
		})
	})
	registerBotFiles(d)
	registerBotChats(d)
}

// registerBotFiles registers the operations on lists of rules.
func registerBotFiles(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "lint-bot-rules", Method: http.MethodPost, Path: "/bot/lint", Summary: "Find faults that rules have together", Answer: BotLint{},
		Example:     map[string]any{},
		Description: "Finds states to which no rule leads, keywords that never decide, variables without a text, and states that no rule ends. Nothing changes.",
	}, func(ctx context.Context, in *lintBotInput) (rest.Reply, error) {
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.LintBotRules(ctx, workspace, in.Body.Rules)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "export-bot-rules", Method: http.MethodGet, Path: "/bot/export", Summary: "Export the enabled rules as a list", Answer: botRuleList{},
		Description: "Values at their default and drafts are left out. The list may be sent as rules to import, try, replay and lint.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			items, err := d.db.ExportConfig(ctx, workspace)
			return encoded(map[string]any{"items": BotRuleList(items)}, err)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "import-bot-rules", Method: http.MethodPost, Path: "/bot/import", Summary: "Write a list of rules, all or none", Answer: ConfigAnswer{},
		Example:     map[string]any{"rules": []map[string]any{{"rule_id": "delivery-en", "keywords": []string{"deliver"}, "response_template": "We deliver within 2 days."}}, "reason": "new shop"},
		Description: "Each changed rule gets its next version. A field that a rule leaves out gets its default. Rules that the list does not name stay.",
	}, d.importBotRules)
}

// importBotRules writes rules; a refusal names the rule and its field.
func (d *server) importBotRules(ctx context.Context, in *importBotInput) (rest.Reply, error) {
	if repeated, err := d.Repeated(ctx, in.Once); err != nil {
		return rest.Reply{}, err
	} else if repeated != nil {
		return *repeated, nil
	}
	read, err := configfile.ListItems(configfile.KindOf("bot_rule"), "rule_id", in.Body.Rules)
	if err != nil {
		return rest.Reply{}, rest.Wrong("body.rules", "is not a list of rules: "+err.Error(), "correct the list")
	}
	items := make([]ConfigItem, 0, len(read))
	for _, item := range read {
		items = append(items, ConfigItem{Kind: item.Kind, ID: item.ID, Fields: item.Fields})
	}
	var refused *problem.Problem
	reply, err := d.Do(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Reason: in.Body.Reason}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
		written, err := d.db.ApplyConfig(ctx, a, items)
		if err == nil && len(written.Answer) > 0 {
			refused, err = refusedRule(written.Answer)
		}
		return written, err
	})
	if refused != nil {
		return rest.Reply{}, refused
	}
	return reply, err
}

// refusedRule returns the problem of a refused list of rules, with the place of the fault; nil if it was not refused.
func refusedRule(answer json.RawMessage) (*problem.Problem, error) {
	var a ConfigAnswer
	if err := json.Unmarshal(answer, &a); err != nil || a.Reason != "invalid" {
		return nil, err
	}
	for n, e := range a.Errors {
		a.Errors[n].Field = fmt.Sprintf("body.rules.%d.%s", a.Item, e.Field)
	}
	return problem.WrongRequest.Says("Nothing was changed: see errors.").With(a.Errors...), nil
}

// BotRuleList returns the rules of a configuration as a list, with their ids.
func BotRuleList(items []ConfigItem) []map[string]any {
	rows := []map[string]any{}
	for _, item := range items {
		if item.Kind != "bot_rule" {
			continue
		}
		row := map[string]any{"rule_id": item.ID}
		for name, value := range item.Fields {
			row[name] = value
		}
		rows = append(rows, row)
	}
	return rows
}

func orEmpty(fields map[string]any) map[string]any {
	if fields == nil {
		return map[string]any{}
	}
	return fields
}

func registerBotRules(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-bot-rules", Method: http.MethodGet, Path: "/bot/rules", Summary: "List the rules of the bot", Answer: rest.Listed[botRule]{},
		Description: "All versions by rule, the newest version first.",
	}, func(ctx context.Context, in *listBotRulesInput) (rest.Reply, error) {
		filter := map[string]any{"rule_id": in.RuleID}
		if in.Enabled {
			filter["enabled"] = true
		}
		return d.Read(ctx, botRules, in.Page, filter)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-bot-rule", Method: http.MethodGet, Path: "/bot/rules/{id}", Summary: "Get a rule of the bot", Answer: botRule{}, Description: "The newest version of a rule.",
	}, func(ctx context.Context, in *IDPath) (rest.Reply, error) {
		return d.One(ctx, "This workspace has no such rule.", rest.Query{Function: botRules.Function, Filter: map[string]any{"rule_id": in.ID}})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "put-bot-rule", Method: http.MethodPatch, Path: "/bot/rules/{id}", Summary: "Add a rule of the bot, or its next version", Answer: put{}, Body: botRuleChange{},
		Example:     map[string]any{"keywords": []string{"delivery", "shipping"}, "response_template": "We deliver within 2 days.", "reason": "new shop"},
		Description: "Missing fields stay as in the newest version; null restores a default. An enabled version answers the next message.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutBotRule(ctx, a, in.ID, fields)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "enable-bot-rule", Method: http.MethodPost, Path: "/bot/rules/{id}/enable", Summary: "Choose the version that answers", Answer: botEnabled{},
		Example: map[string]any{"version": 2, "reason": "the new text is better"}, Description: "Version 0 disables the rule.",
	}, func(ctx context.Context, in *enableBotRuleInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Reason: in.Body.Reason, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.EnableBotRule(ctx, a, in.ID, in.Body.Version)
		})
	})
}

func registerBotChats(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-bot-chats", Method: http.MethodGet, Path: "/bot/chats", Summary: "List the dialogs of the bots", Answer: rest.Listed[botChat]{},
		Description: "The latest first, each with its state and what waits.",
	}, func(ctx context.Context, in *struct{ rest.Page }) (rest.Reply, error) {
		return d.Read(ctx, botChats, in.Page, nil)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-bot-chat", Method: http.MethodGet, Path: "/bot/chats/{provider}/{chat_id}", Summary: "Read a conversation of the bot", Answer: botTranscript{},
		Description: "The newest lines, oldest first, with personal data masked, and the state of each reply.",
	}, func(ctx context.Context, in *botTranscriptInput) (rest.Reply, error) {
		return d.Get(ctx, "This workspace has no such conversation.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			lines, err := d.db.BotTranscript(ctx, workspace, in.Provider, in.AuthRef, in.ChatID, in.Limit)
			if err == nil && len(lines) == 0 {
				return nil, nil
			}
			return encoded(map[string]any{"items": lines}, err)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "forget-bot-chat", Method: http.MethodDelete, Path: "/bot/chats/{provider}/{chat_id}", Summary: "Erase a conversation of the bot", Answer: forgotten{},
		Description: "Erases messages, replies, state and log of a chat. X-Autopost-Reason may have the reason.",
	}, func(ctx context.Context, in *forgetBotChatInput) (rest.Reply, error) {
		return d.Change(ctx, in.Once, in.Provider+"/"+in.ChatID, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			a.Reason, a.DryRun = cmp.Or(in.HeaderReason, "erased by the API"), in.DryRun
			return d.db.BotForget(ctx, a, in.Provider, in.AuthRef, in.ChatID)
		})
	})
}
