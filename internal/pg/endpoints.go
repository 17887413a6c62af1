package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// SignedEndpoint is what resolve_signed_endpoint answers.
type SignedEndpoint struct {
	WorkspaceID     string `json:"workspace_id"`
	EndpointID      string `json:"endpoint_id"`
	MaxPayloadBytes int    `json:"max_payload_bytes"`
	// SecretRefs say where the keys are kept that are good now.
	SecretRefs []string `json:"secret_refs"`
	// SkewSeconds is how far the database's clock is past the instant asked about.
	SkewSeconds      int64 `json:"skew_seconds"`
	ToleranceSeconds int64 `json:"tolerance_seconds"`
	Fresh            bool  `json:"fresh"`
}

// ResolveSignedEndpoint finds the enabled endpoint of a name that takes signed requests; nil when there is none.
func (s *Store) ResolveSignedEndpoint(ctx context.Context, signedAt time.Time, workspace, endpoint string) (*SignedEndpoint, error) {
	e, err := call[*SignedEndpoint](ctx, s, `select * from autopost.resolve_signed_endpoint($1, $2, $3)`, signedAt, workspace, endpoint)
	if err != nil {
		return nil, fmt.Errorf("resolve signed endpoint: %w", err)
	}
	return e, nil
}

// ReceiveSignedPush takes an array of posts in one transaction, once for each id that was signed with them.
func (s *Store) ReceiveSignedPush(ctx context.Context, workspace, endpoint, webhookID string, items json.RawMessage) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.receive_signed_push($1, $2, $3, $4)`, workspace, endpoint, webhookID, items)
	if err != nil {
		return nil, fmt.Errorf("receive signed push endpoint=%s: %w", endpoint, err)
	}
	return a, nil
}

// EndpointChange is what became of an endpoint that was changed by hand, or would.
type EndpointChange struct {
	Applied bool `json:"applied"`
	Created bool `json:"created"`
	// Reason says why nothing was applied: unchanged, secret_in_use, source_in_use,
	// unknown_endpoint, disabled, id_in_use or rotating.
	Reason string `json:"reason"`
	// EndpointID is where the new secret belongs after a rotation.
	EndpointID string `json:"endpoint_id"`
	// Bound says whether signing_ref has its credential; nil where there is no signing_ref.
	Bound  *bool          `json:"bound"`
	Before map[string]any `json:"before"`
	After  map[string]any `json:"after"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

func (s *Store) changeEndpoint(ctx context.Context, what string, a Act, endpoint, sql string, args ...any) (EndpointChange, error) {
	raw, err := call[json.RawMessage](ctx, s, sql, args...)
	if err != nil {
		return EndpointChange{}, fmt.Errorf("%s %s ws=%s: %w", what, endpoint, a.Workspace, err)
	}
	answer := EndpointChange{Raw: raw}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return EndpointChange{}, fmt.Errorf("%s %s ws=%s: decode the answer: %w", what, endpoint, a.Workspace, err)
	}
	return answer, nil
}

// PutEndpoint makes an endpoint, or changes those of its fields that are given.
func (s *Store) PutEndpoint(ctx context.Context, a Act, endpoint string, fields map[string]any) (EndpointChange, error) {
	return s.changeEndpoint(ctx, "put endpoint", a, endpoint, `select * from autopost.put_endpoint($1, $2, $3, $4, $5, $6)`,
		a.Workspace, endpoint, fields, a.Operator, a.Reason, a.DryRun)
}

// RotateEndpoint gives an endpoint another secret, the old one being good for a time.
func (s *Store) RotateEndpoint(ctx context.Context, a Act, endpoint string, fields map[string]any) (EndpointChange, error) {
	return s.changeEndpoint(ctx, "rotate endpoint", a, endpoint, `select * from autopost.rotate_endpoint($1, $2, $3, $4, $5, $6)`,
		a.Workspace, endpoint, fields, a.Operator, a.Reason, a.DryRun)
}

// DisableEndpoint ends an endpoint; its row stays.
func (s *Store) DisableEndpoint(ctx context.Context, a Act, endpoint string) (EndpointChange, error) {
	return s.changeEndpoint(ctx, "disable endpoint", a, endpoint, `select * from autopost.disable_endpoint($1, $2, $3, $4, $5)`,
		a.Workspace, endpoint, a.Operator, a.Reason, a.DryRun)
}

// EndpointRow is a row of the read model list_endpoints.
type EndpointRow struct {
	EndpointID      string
	Kind            string
	SourceID        *string
	Enabled         bool
	HasSecret       bool
	SigningRef      *string
	OldSigningRef   *string
	OldSigningUntil *time.Time
	// IngressRPS is posts a second.
	IngressRPS      float64
	MaxPayloadBytes int
}

// ListEndpoints returns the endpoints of a workspace by their id; limit is 1 to 10,000.
func (s *Store) ListEndpoints(ctx context.Context, workspace string, limit int) ([]EndpointRow, error) {
	return read[EndpointRow](ctx, s, "list endpoints ws="+workspace, `
		select endpoint_id, kind, source_id, enabled, has_secret, signing_ref, old_signing_ref, old_signing_until, ingress_rps::float8, max_payload_bytes
		from autopost.list_endpoints($1, $2)`, workspace, limit)
}

// GetEndpoint returns an endpoint with what came in of late; nil when the workspace has no such endpoint.
func (s *Store) GetEndpoint(ctx context.Context, workspace, endpoint string) (json.RawMessage, error) {
	a, err := call[json.RawMessage](ctx, s, `select * from autopost.get_endpoint($1, $2)`, workspace, endpoint)
	if err != nil {
		return nil, fmt.Errorf("get endpoint %s: %w", endpoint, err)
	}
	return a, nil
}
