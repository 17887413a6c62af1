package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ListWorkspaces names the active workspaces.
func (s *Store) ListWorkspaces(ctx context.Context) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_workspaces()`)
}

// counted runs a duty that answers how many rows it touched.
func (s *Store) counted(ctx context.Context, duty, key, workspace string) (int, error) {
	a, err := call[map[string]json.RawMessage](ctx, s, `select * from autopost.`+duty+`($1)`, workspace)
	if err != nil {
		return 0, fmt.Errorf("%s ws=%s: %w", duty, workspace, err)
	}
	var count int
	if err := json.Unmarshal(a[key], &count); err != nil {
		return 0, fmt.Errorf("decode %s of %s: %w", key, duty, err)
	}
	return count, nil
}

// ObserveClock compares the database's clock with the observer's.
func (s *Store) ObserveClock(ctx context.Context, observer string, elapsed *time.Duration) (time.Duration, error) {
	var ms *int64
	if elapsed != nil {
		since := elapsed.Milliseconds()
		ms = &since
	}
	answer, err := call[struct {
		JumpedMS int64 `json:"jumped_ms"`
	}](ctx, s, `select * from autopost.observe_clock($1, $2)`, observer, ms)
	if err != nil {
		return 0, fmt.Errorf("observe clock: %w", err)
	}
	return time.Duration(answer.JumpedMS) * time.Millisecond, nil
}

// RecoverSendingLeases settles deliveries whose lease ran out, or whose daemon fell silent.
func (s *Store) RecoverSendingLeases(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "recover_sending_leases", "recovered", workspace)
}

// RecoverClaimedLeases returns deliveries that stayed claimed to the queue.
func (s *Store) RecoverClaimedLeases(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "recover_claimed_leases", "recovered", workspace)
}

// ExpireAuthLost ends deliveries that have waited too long for a refused credential.
func (s *Store) ExpireAuthLost(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "expire_auth_lost", "ended", workspace)
}

// CloseIngressFloods writes the events of dropped requests that were counted together.
func (s *Store) CloseIngressFloods(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "close_ingress_floods", "closed", workspace)
}

// RearmGates is the net below the gates.
func (s *Store) RearmGates(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "rearm_gates", "rearmed", workspace)
}

// EnsureEventPartitions makes the day partitions of events ahead of time.
func (s *Store) EnsureEventPartitions(ctx context.Context) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.ensure_event_partitions()`)
	if err != nil {
		return fmt.Errorf("ensure event partitions: %w", err)
	}
	return nil
}

// ListAllWorkspaces names the workspaces, whatever their status.
func (s *Store) ListAllWorkspaces(ctx context.Context) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_all_workspaces()`)
}

// DropEventPartitions drops days of events whose time is over, a few a call. A drop
// that would have to wait is left for later.
func (s *Store) DropEventPartitions(ctx context.Context) (dropped int, more bool, inDefault int, err error) {
	a, err := call[struct {
		Dropped   int
		More      bool
		InDefault int `json:"in_default"`
	}](ctx, s, `select * from autopost.drop_event_partitions()`)
	if err != nil {
		return 0, false, 0, fmt.Errorf("drop event partitions: %w", err)
	}
	return a.Dropped, a.More, a.InDefault, nil
}

// purged runs a duty that removes some rows and answers whether there are more.
func (s *Store) purged(ctx context.Context, duty, workspace string) (int, bool, error) {
	a, err := call[struct {
		Purged int
		More   bool
	}](ctx, s, `select * from autopost.`+duty+`($1)`, workspace)
	if err != nil {
		return 0, false, fmt.Errorf("%s ws=%s: %w", duty, workspace, err)
	}
	return a.Purged, a.More, nil
}

// PurgeReceipts removes receipts whose time is over.
func (s *Store) PurgeReceipts(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_receipts", workspace)
}

// PurgeRuns removes ingest runs past their time.
func (s *Store) PurgeRuns(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_runs", workspace)
}

// PurgeSubmissions removes decided submissions past their time.
func (s *Store) PurgeSubmissions(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_submissions", workspace)
}

// PurgeDeliveries removes finished deliveries past their time, among the next after
// the given one ("" for the first); next is "" when all were looked at.
func (s *Store) PurgeDeliveries(ctx context.Context, workspace, after string) (purged int, next string, err error) {
	a, err := call[struct {
		Purged int
		After  string
	}](ctx, s, `select * from autopost.purge_deliveries($1, nullif($2, '')::uuid)`, workspace, after)
	if err != nil {
		return 0, "", fmt.Errorf("purge deliveries ws=%s: %w", workspace, err)
	}
	return a.Purged, a.After, nil
}

// PurgeMessages removes messages that nothing refers to any more, among the next after
// the given place ("" for the first); next is "" when all were looked at.
func (s *Store) PurgeMessages(ctx context.Context, workspace, after string) (purged int, next string, err error) {
	a, err := call[struct {
		Purged int
		After  json.RawMessage
	}](ctx, s, `select * from autopost.purge_messages($1, nullif($2, '')::jsonb)`, workspace, after)
	if err != nil {
		return 0, "", fmt.Errorf("purge messages ws=%s: %w", workspace, err)
	}
	if string(a.After) == "null" {
		return a.Purged, "", nil
	}
	return a.Purged, string(a.After), nil
}

// PurgeAuditLog removes the oldest rows of the audit log past their time.
func (s *Store) PurgeAuditLog(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_audit_log", workspace)
}

// AuditHead is the end of the audit log's chain; seq is 0 when nothing was recorded.
func (s *Store) AuditHead(ctx context.Context, workspace string) (seq int64, hash string, err error) {
	a, err := call[struct {
		Seq  int64
		Hash string
	}](ctx, s, `select * from autopost.audit_head($1)`, workspace)
	if err != nil {
		return 0, "", fmt.Errorf("audit head ws=%s: %w", workspace, err)
	}
	return a.Seq, a.Hash, nil
}

// ReportOrphans names what was written on the last whole day and refers to nothing,
// an object for each kind.
func (s *Store) ReportOrphans(ctx context.Context, workspace string) ([]json.RawMessage, error) {
	a, err := call[struct{ Orphans []json.RawMessage }](ctx, s, `select * from autopost.report_orphans($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("report orphans ws=%s: %w", workspace, err)
	}
	return a.Orphans, nil
}

// UnreferencedOrigin is content of the media origin whose time is over.
type UnreferencedOrigin struct {
	BlobRef   string `json:"blob_ref"`
	OriginURL string `json:"origin_url"`
	SizeBytes int64  `json:"size_bytes"`
	// Forgotten says that it was forgotten before, and its row not removed yet.
	Forgotten bool `json:"forgotten"`
}

// ListUnreferencedOrigins names media that nothing refers to, longest unseen first.
func (s *Store) ListUnreferencedOrigins(ctx context.Context, workspace string, limit int) ([]UnreferencedOrigin, error) {
	list, err := call[[]UnreferencedOrigin](ctx, s, `select * from autopost.list_unreferenced_origins($1, $2)`, workspace, limit)
	if err != nil {
		return nil, fmt.Errorf("list unreferenced origins ws=%s: %w", workspace, err)
	}
	return list, nil
}

// ForgetMediaOrigin marks content as deleted, unless it is needed again; reason then
// says why not. With a token its object must go, and EndMediaRemoval then.
func (s *Store) ForgetMediaOrigin(ctx context.Context, workspace, blobRef string) (token, reason string, err error) {
	a, err := call[struct{ Token, Reason string }](ctx, s, `select * from autopost.forget_media_origin($1, $2)`, workspace, blobRef)
	if err != nil {
		return "", "", fmt.Errorf("forget media origin ws=%s ref=%s: %w", workspace, blobRef, err)
	}
	return a.Token, a.Reason, nil
}

// BeginMediaRemoval bars content from being registered until EndMediaRemoval. The
// token is empty when a workspace holds it, or another daemon is at it.
func (s *Store) BeginMediaRemoval(ctx context.Context, blobRef string) (token string, err error) {
	a, err := call[struct{ Token string }](ctx, s, `select * from autopost.begin_media_removal($1)`, blobRef)
	if err != nil {
		return "", fmt.Errorf("begin media removal %s: %w", blobRef, err)
	}
	return a.Token, nil
}

// EndMediaRemoval says that the object is gone.
func (s *Store) EndMediaRemoval(ctx context.Context, blobRef, token string) error {
	if _, err := call[json.RawMessage](ctx, s, `select * from autopost.end_media_removal($1, $2)`, blobRef, token); err != nil {
		return fmt.Errorf("end media removal %s: %w", blobRef, err)
	}
	return nil
}

// ListMediaRemovals names content whose removal was begun and not ended in time.
func (s *Store) ListMediaRemovals(ctx context.Context, limit int) ([]string, error) {
	list, err := call[[]string](ctx, s, `select * from autopost.list_media_removals($1)`, limit)
	if err != nil {
		return nil, fmt.Errorf("list media removals: %w", err)
	}
	return list, nil
}

// ListUnknownMedia picks from at most 1000 names those that no workspace has a row of.
func (s *Store) ListUnknownMedia(ctx context.Context, blobRefs []string) ([]string, error) {
	list, err := call[[]string](ctx, s, `select * from autopost.list_unknown_media($1)`, blobRefs)
	if err != nil {
		return nil, fmt.Errorf("list unknown media: %w", err)
	}
	return list, nil
}

// RemoveMediaOrigin removes the row of forgotten content whose object is gone.
func (s *Store) RemoveMediaOrigin(ctx context.Context, workspace, blobRef string) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.remove_media_origin($1, $2)`, workspace, blobRef)
	if err != nil {
		return fmt.Errorf("remove media origin ws=%s ref=%s: %w", workspace, blobRef, err)
	}
	return nil
}

// Finding is one invariant as verify found it: Sample holds offending rows.
type Finding struct {
	Invariant  string          `json:"invariant"`
	Title      string          `json:"title"`
	Violations int64           `json:"violations"`
	Sample     json.RawMessage `json:"sample"`
}

// Verify checks the invariants of a workspace; a finding without violations holds.
func (s *Store) Verify(ctx context.Context, workspace string) ([]Finding, error) {
	rows, err := s.pool.Query(ctx, `select invariant, title, violations, sample from autopost.verify($1)`, workspace)
	if err != nil {
		return nil, fmt.Errorf("verify ws=%s: %w", workspace, translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
	if err != nil {
		return nil, fmt.Errorf("verify ws=%s: %w", workspace, translate(err))
	}
	return list, nil
}

// ListDueRefreshes names the credentials to renew now, the most urgent first; limit is 1 to 10,000.
func (s *Store) ListDueRefreshes(ctx context.Context, workspace string, limit int) ([]string, error) {
	return s.texts(ctx, `select * from autopost.list_due_refreshes($1, $2)`, workspace, limit)
}

// WarnExpiring warns once of each credential that expires soon and that nobody renews.
func (s *Store) WarnExpiring(ctx context.Context, workspace string) (int, error) {
	return s.counted(ctx, "warn_expiring", "warned", workspace)
}

// PurgeSealedSecrets removes sealed secrets that were replaced long enough ago.
func (s *Store) PurgeSealedSecrets(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_sealed_secrets", workspace)
}

// PurgeWebhookSends removes what result webhooks were told, past its time.
func (s *Store) PurgeWebhookSends(ctx context.Context, workspace string) (purged int, more bool, err error) {
	return s.purged(ctx, "purge_webhook_sends", workspace)
}
