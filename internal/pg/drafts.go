package pg

import (
	"context"
	"encoding/json"
	"fmt"
)

// PutDraft stores a post that the operator of a has not finished; draft "" makes a new one.
func (s *Store) PutDraft(ctx context.Context, a OperatorAction, draft string, fields any) (Written, error) {
	return s.write(ctx, a, `autopost.put_draft(@workspace, nullif(@id, '')::uuid, @fields, @operator)`, args{"id": draft, "fields": fields})
}

// RemoveDraft deletes a draft of the operator of a.
func (s *Store) RemoveDraft(ctx context.Context, a OperatorAction, draft string) (Written, error) {
	return s.write(ctx, a, `autopost.remove_draft(@workspace, @id::text::uuid, @operator)`, args{"id": draft})
}

// SubmitDraft publishes a draft of the operator of a once, as kind api, command or page.
func (s *Store) SubmitDraft(ctx context.Context, a OperatorAction, draft, kind string) (Written, error) {
	return s.write(ctx, a, `autopost.submit_draft(@workspace, @id::text::uuid, @kind, @operator)`, args{"id": draft, "kind": kind})
}

// GetDraft returns a draft of a person as JSON; nil if the person has no such draft.
func (s *Store) GetDraft(ctx context.Context, workspace, draft, author string) (json.RawMessage, error) {
	raw, err := call[json.RawMessage](ctx, s, `select * from autopost.get_draft($1, $2::text::uuid, $3)`, workspace, draft, author)
	if err != nil {
		return nil, fmt.Errorf("get draft %s ws=%s: %w", draft, workspace, err)
	}
	return raw, nil
}
