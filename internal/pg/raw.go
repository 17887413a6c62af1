package pg

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"autopost/internal/rawpayload"
)

// BeginRaw masks a raw payload and returns the newest data key of its workspace; nil before the first.
func (s *Store) BeginRaw(ctx context.Context, workspace string, payload json.RawMessage) (json.RawMessage, *rawpayload.Key, error) {
	a, err := call[struct {
		Payload json.RawMessage `json:"payload"`
		Key     *rawpayload.Key `json:"key"`
	}](ctx, s, `select * from autopost.begin_raw($1, $2)`, workspace, payload)
	if err != nil {
		return nil, nil, fmt.Errorf("begin raw ws=%s: %w", workspace, err)
	}
	return a.Payload, a.Key, nil
}

// GetDataKey returns a data key of a workspace; nil if it does not exist.
func (s *Store) GetDataKey(ctx context.Context, workspace string, version int) (*rawpayload.Key, error) {
	key, err := call[*rawpayload.Key](ctx, s, `select * from autopost.get_data_key($1, $2)`, workspace, version)
	if err != nil {
		return nil, fmt.Errorf("get data key ws=%s: %w", workspace, err)
	}
	return key, nil
}

// AddDataKey adds a data key. It returns false if the version exists.
func (s *Store) AddDataKey(ctx context.Context, workspace string, key rawpayload.Key) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.add_data_key($1, $2, $3, $4)`,
		workspace, key.Version, key.KeyID, base64.StdEncoding.EncodeToString(key.WrappedKey))
	if err != nil {
		return false, fmt.Errorf("add data key ws=%s: %w", workspace, err)
	}
	return a.Applied, nil
}

// ListDataKeys returns the data keys of a workspace that another master key wraps.
func (s *Store) ListDataKeys(ctx context.Context, workspace, notKeyID string) ([]rawpayload.Key, error) {
	list, err := call[[]rawpayload.Key](ctx, s, `select * from autopost.list_data_keys($1, $2)`, workspace, notKeyID)
	if err != nil {
		return nil, fmt.Errorf("list data keys ws=%s: %w", workspace, err)
	}
	return list, nil
}

// RewrapDataKey replaces the master key that wraps a data key. It returns false if the present master key is not from.
func (s *Store) RewrapDataKey(ctx context.Context, workspace, from string, key rawpayload.Key) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.rewrap_data_key($1, $2, $3, $4, $5)`,
		workspace, key.Version, from, key.KeyID, base64.StdEncoding.EncodeToString(key.WrappedKey))
	if err != nil {
		return false, fmt.Errorf("rewrap data key ws=%s: %w", workspace, err)
	}
	return a.Applied, nil
}

// NameRejected names the raw payload of the posts that a run rejected. kept is false while raw payloads are off; ref is
// "" if the run has no such event.
func (s *Store) NameRejected(ctx context.Context, workspace, run string) (kept bool, ref string, err error) {
	a, err := call[struct {
		Kept       bool   `json:"kept"`
		PayloadRef string `json:"payload_ref"`
	}](ctx, s, `select * from autopost.name_rejected($1, $2)`, workspace, run)
	if err != nil {
		return false, "", fmt.Errorf("name rejected ws=%s run=%s: %w", workspace, run, err)
	}
	return a.Kept, a.PayloadRef, nil
}

// RawLink is the answer to CreateRawLink.
type RawLink struct {
	whole

	// Applied is false if the workspace has no such event with a raw payload.
	Applied bool   `json:"applied"`
	Token   string `json:"token"`
}

// CreateRawLink makes a link to the raw payload of an event. token is 32 random bytes in hexadecimal.
func (s *Store) CreateRawLink(ctx context.Context, a OperatorAction, event, token string) (Written, error) {
	return s.write(ctx, a, `autopost.create_raw_link(@workspace, @event, @token, @operator, @reason)`, args{"event": event, "token": token})
}

// UseRawLink uses up a link and returns the name of its payload; "" if the link is unknown, used or expired.
func (s *Store) UseRawLink(ctx context.Context, workspace, token string) (ref string, err error) {
	a, err := call[struct {
		PayloadRef string `json:"payload_ref"`
	}](ctx, s, `select * from autopost.use_raw_link($1, $2)`, workspace, token)
	if err != nil {
		return "", fmt.Errorf("use raw link ws=%s: %w", workspace, err)
	}
	return a.PayloadRef, nil
}

// RawKeptSince returns the first day (YYYYMMDD) whose raw payloads are kept.
func (s *Store) RawKeptSince(ctx context.Context) (string, error) {
	since, err := s.texts(ctx, `select * from autopost.raw_kept_since()`)
	if err != nil || len(since) != 1 {
		return "", fmt.Errorf("raw kept since: %w", err)
	}
	return since[0], nil
}

var _ rawpayload.Store = (*Store)(nil)
