package pg

import (
	"context"
	"encoding/json"
	"fmt"

	"autopost/internal/webhooks"
)

// ReadyWebhookWorkspaces returns workspaces with events to read for result webhooks, or with due calls.
func (s *Store) ReadyWebhookWorkspaces(ctx context.Context, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.ready_webhook_workspaces($1)`, limit)
}

// EnqueueWebhooks reads the next events of a workspace and queues the calls of its result webhooks; more means that
// there are further events.
func (s *Store) EnqueueWebhooks(ctx context.Context, workspace string) (more bool, err error) {
	a, err := call[struct{ More bool }](ctx, s, `select * from autopost.enqueue_webhooks($1)`, workspace)
	if err != nil {
		return false, fmt.Errorf("enqueue webhooks ws=%s: %w", workspace, err)
	}
	return a.More, nil
}

// ClaimWebhooks leases at most limit due calls.
func (s *Store) ClaimWebhooks(ctx context.Context, workspace string, limit int) ([]webhooks.Call, error) {
	list, err := call[[]webhooks.Call](ctx, s, `select * from autopost.claim_webhooks($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("claim webhooks ws=%s: %w", workspace, err)
	}
	return list, nil
}

// CommitWebhookBatch records the outcomes of calls. A claim that is not current is not an error.
func (s *Store) CommitWebhookBatch(ctx context.Context, workspace string, results []webhooks.Result) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.commit_webhook_batch($1, $2)`, workspace, results)
	if err != nil {
		return fmt.Errorf("commit webhooks ws=%s: %w", workspace, err)
	}
	return nil
}

var _ webhooks.Store = (*Store)(nil)
