package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"autopost"
	"autopost/internal/bot"
)

// ReadyBotWorkspaces returns workspaces with a due message of a bot, or with a received one to process.
func (s *Store) ReadyBotWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_bot_workspaces($1)`, limit)
}

const replyColumns = `workspace_id, reply_id, inbound_provider_message_id, platform, target_id, auth_ref, rate_group, attempt, claim_token, lease_until,
	send_at, rendered_text, render_meta, payload, settings, trace_id, on_unknown, unknown_outcomes, last_call_at, last_provider_message_id, known_posts,
	coalesce(callback_id, '')`

// BotClaimReplies leases up to limit due messages of a workspace's bots to a run.
func (s *Store) BotClaimReplies(ctx context.Context, workspace, runID string, limit int) ([]bot.Reply, error) {
	rows, err := s.calls.Query(ctx, `select `+replyColumns+` from autopost.bot_claim_replies($1, $2, $3)`, workspace, runID, limit)
	if err != nil {
		return nil, fmt.Errorf("claim replies ws=%s: %w", workspace, translate(err))
	}
	replies, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (bot.Reply, error) {
		var r bot.Reply
		err := row.Scan(&r.WorkspaceID, &r.DeliveryID, &r.MessageID, &r.Platform, &r.TargetID, &r.AuthRef, &r.RateGroup, &r.Attempt, &r.ClaimToken,
			&r.LeaseUntil, &r.SendAt, &r.RenderedText, &r.RenderMeta, &r.Payload, &r.Settings, &r.TraceID, &r.OnUnknown, &r.UnknownOutcomes, &r.LastCallAt,
			&r.LastProviderMessageID, &r.KnownPosts, &r.CallbackID)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("claim replies ws=%s: %w", workspace, translate(err))
	}
	return replies, nil
}

// BotStartReply writes the start record of a message, or returns why its call must not start.
func (s *Store) BotStartReply(ctx context.Context, workspace, replyID, claimToken string) (bot.Start, error) {
	a, err := call[startAnswer](ctx, s, `select * from autopost.bot_start_reply($1, $2, $3)`, workspace, replyID, claimToken)
	if err != nil {
		return bot.Start{}, fmt.Errorf("start reply id=%s: %w", replyID, err)
	}
	start := a.start()
	return bot.Start{Applied: start.Applied, Reason: start.Reason, SendIn: max(0, start.SendIn), Deadline: start.Deadline}, nil
}

// BotCommitReply records the outcome of a call.
func (s *Store) BotCommitReply(ctx context.Context, workspace, replyID, claimToken string, outcome autopost.Outcome) (bot.Commit, error) {
	a, err := call[bot.Commit](ctx, s, `select * from autopost.bot_commit_reply($1, $2, $3, $4)`, workspace, replyID, claimToken, outcome)
	if err != nil {
		return bot.Commit{}, fmt.Errorf("commit reply id=%s: %w", replyID, err)
	}
	return a, nil
}

// BotReleaseLost releases the unstarted claims of a run, except those with a known token.
func (s *Store) BotReleaseLost(ctx context.Context, workspace, runID string, known []string) (released int, err error) {
	a, err := call[struct{ Released int }](ctx, s, `select * from autopost.bot_release_lost($1, $2, $3)`, workspace, runID, list(known))
	if err != nil {
		return 0, fmt.Errorf("release lost replies ws=%s: %w", workspace, err)
	}
	return a.Released, nil
}

// BotRecover processes received messages of a workspace that are due, and ends leases of lost claims.
func (s *Store) BotRecover(ctx context.Context, workspace string) (bot.Recovered, error) {
	a, err := call[bot.Recovered](ctx, s, `select * from autopost.bot_recover($1)`, workspace)
	if err != nil {
		return bot.Recovered{}, fmt.Errorf("recover bot ws=%s: %w", workspace, err)
	}
	return a, nil
}

var _ bot.Store = (*Store)(nil)
