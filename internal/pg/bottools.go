package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// PutBotRule writes the next version of a rule of the bot.
func (s *Store) PutBotRule(ctx context.Context, a OperatorAction, rule string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_bot_rule(@workspace, @id, @fields, @operator, @reason, @dry_run)`, args{"id": rule, "fields": fields})
}

// EnableBotRule makes a version the one that answers; 0 disables the rule.
func (s *Store) EnableBotRule(ctx context.Context, a OperatorAction, rule string, version int) (Written, error) {
	return s.write(ctx, a, `autopost.enable_bot_rule(@workspace, @id, @version, @operator, @reason, @dry_run)`, args{"id": rule, "version": version})
}

// BotForget erases a chat. authRef "" means all bots of the provider.
func (s *Store) BotForget(ctx context.Context, a OperatorAction, provider, authRef, chat string) (Written, error) {
	return s.write(ctx, a, `autopost.bot_forget(@workspace, @provider, nullif(@auth_ref, ''), @chat, @operator, @reason, @dry_run)`,
		args{"provider": provider, "auth_ref": authRef, "chat": chat})
}

// BotTry decides about a message by rules, or by the enabled ones if rules is nil. Nothing is stored.
func (s *Store) BotTry(ctx context.Context, workspace string, rules json.RawMessage, config, state, message any) (json.RawMessage, error) {
	return s.answerOf(ctx, "bot try", workspace, `select * from autopost.bot_try($1, $2, $3, $4, $5)`, rules, config, state, message)
}

// LintBotRules checks rules together, or the enabled ones if rules is nil.
func (s *Store) LintBotRules(ctx context.Context, workspace string, rules json.RawMessage) (json.RawMessage, error) {
	return s.answerOf(ctx, "lint bot rules", workspace, `select * from autopost.lint_bot_rules($1, $2)`, rules)
}

// ReplayBotRules answers stored messages by rules, or by the enabled ones if rules is nil. filter is that of the function.
func (s *Store) ReplayBotRules(ctx context.Context, workspace string, rules json.RawMessage, filter any, limit int) ([]json.RawMessage, error) {
	return s.rowsOf(ctx, "replay bot rules", workspace, object(`id ts provider auth_ref chat_id message_text changed before after`)+` from autopost.replay_bot_rules(@workspace, @rules, @filter, @limit)`,
		args{"rules": rules, "filter": filter, "limit": limit})
}

// BotTranscript returns the newest lines of a conversation, oldest first. authRef "" means all bots of the provider.
func (s *Store) BotTranscript(ctx context.Context, workspace, provider, authRef, chat string, limit int) ([]json.RawMessage, error) {
	return s.rowsOf(ctx, "bot transcript", workspace, object(`id ts kind message_text matched_rule_id rule_version state_before state_after response_preview meta
		reply_id reply_status sent_at unknown_outcomes last_error`)+` from autopost.bot_transcript(@workspace, @provider, nullif(@auth_ref, ''), @chat, @limit)`,
		args{"provider": provider, "auth_ref": authRef, "chat": chat, "limit": limit})
}

// BotReport says how well the rules answer. A zero since means the last seven days.
func (s *Store) BotReport(ctx context.Context, workspace string, since time.Time, limit int) (json.RawMessage, error) {
	filter := map[string]any{}
	if !since.IsZero() {
		filter["since"] = since.Format(time.RFC3339Nano)
	}
	return s.answerOf(ctx, "bot report", workspace, `select * from autopost.bot_report($1, $2, $3)`, filter, limit)
}

// rowsOf returns the rows of a function with arguments of its own.
func (s *Store) rowsOf(ctx context.Context, what, workspace, sql string, given args) ([]json.RawMessage, error) {
	given["workspace"] = workspace
	rows, err := named(ctx, s, sql, given)
	if err != nil {
		return nil, fmt.Errorf("%s ws=%s: %w", what, workspace, err)
	}
	list := make([]json.RawMessage, len(rows))
	for i, row := range rows {
		list[i] = row.raw
	}
	return list, nil
}
