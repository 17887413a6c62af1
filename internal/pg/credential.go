package pg

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"autopost"
)

// SealedSecret is a row of autopost.sealed_secrets; the bytes are base64 on the way.
type SealedSecret struct {
	AuthRef    string `json:"auth_ref,omitempty"`
	Version    int    `json:"version"`
	KeyID      string `json:"key_id"`
	WrappedKey []byte `json:"wrapped_key"`
	Sealed     []byte `json:"sealed"`
	// Source is the digest of the first secret that it was renewed from, "" where there is none.
	Source string `json:"source"`
}

// Credential is what get_credential answers.
type Credential struct {
	Platform    string `json:"platform"`
	SecretRef   string `json:"secret_ref"`
	LastVersion int    `json:"last_version"`
	// Stale says that what is in force has expired.
	Stale  bool          `json:"stale"`
	Sealed *SealedSecret `json:"sealed"`
}

// GetCredential returns nil for a credential that is not bound.
func (s *Store) GetCredential(ctx context.Context, workspace, authRef string) (*Credential, error) {
	c, err := call[*Credential](ctx, s, `select * from autopost.get_credential($1, $2)`, workspace, authRef)
	if err != nil {
		return nil, fmt.Errorf("get credential ws=%s: %w", workspace, err)
	}
	return c, nil
}

// RefreshLease is what begin_refresh answers.
type RefreshLease struct {
	Granted bool `json:"granted"`
	// Reason says why not: unknown, other, newer, leased, waiting or lost.
	Reason string `json:"reason"`
	Token  string `json:"token"`
	// Version is what the new secret is sealed under.
	Version int `json:"version"`
	// WaitMS is how long the lease lasts, or when to look again.
	WaitMS int64           `json:"wait_ms"`
	Error  *autopost.Error `json:"error"`
}

// BeginRefresh asks to renew a secret: version 0 is the first one, of the digest source. refused is
// the failure for which it is asked, nil to renew ahead of time.
func (s *Store) BeginRefresh(ctx context.Context, workspace, authRef string, version int, source string, refused *autopost.Error) (RefreshLease, error) {
	l, err := call[RefreshLease](ctx, s, `select * from autopost.begin_refresh($1, $2, $3, $4, $5)`, workspace, authRef, version, source, refused)
	if err != nil {
		return l, fmt.Errorf("begin refresh ws=%s: %w", workspace, err)
	}
	return l, nil
}

// FinishRefresh puts a renewed secret in force; false means that another one came first.
func (s *Store) FinishRefresh(ctx context.Context, workspace, authRef string, sealed SealedSecret, validFor time.Duration) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.finish_refresh($1, $2, $3, $4)`, workspace, authRef, sealed, wholeSeconds(validFor))
	if err != nil {
		return false, fmt.Errorf("finish refresh ws=%s: %w", workspace, err)
	}
	return a.Applied, nil
}

// FailRefresh records why the renewal that the token stands for came to nothing.
func (s *Store) FailRefresh(ctx context.Context, workspace, authRef, token string, version int, source string, failure autopost.Error) error {
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.fail_refresh($1, $2, $3, $4, $5, $6)`, workspace, authRef, token, version, source, failure)
	if err != nil {
		return fmt.Errorf("fail refresh ws=%s: %w", workspace, err)
	}
	return nil
}

// wholeSeconds is nil for no duration.
func wholeSeconds(d time.Duration) *int {
	if d <= 0 {
		return nil
	}
	seconds := int(d / time.Second)
	return &seconds
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

// SealedAnswer is what put_sealed_secret answers.
type SealedAnswer struct {
	Applied bool `json:"applied"`
	// Reason is other_platform or newer where nothing was applied.
	Reason   string `json:"reason"`
	Platform string `json:"platform"`
	Created  bool   `json:"created"`
	Version  int    `json:"version"`
	// Resumed counts channels that go on; AuthLost deliveries that may be put back.
	Resumed  int `json:"resumed"`
	AuthLost int `json:"auth_lost"`
}

// SecretToPut is a sealed secret that a person gave, or the platform gave to a person.
type SecretToPut struct {
	AuthRef  string
	Platform string
	Sealed   SealedSecret
	// MadeBy is "set" or "link".
	MadeBy string
	// ValidFor is how long it is good for; 0 = nobody knows.
	ValidFor time.Duration
}

// PutSealedSecret keeps a secret sealed and binds the credential to it.
func (s *Store) PutSealedSecret(ctx context.Context, a Act, put SecretToPut) (SealedAnswer, error) {
	answer, err := call[SealedAnswer](ctx, s, `select * from autopost.put_sealed_secret($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		a.Workspace, put.AuthRef, put.Platform, put.Sealed, put.MadeBy, wholeSeconds(put.ValidFor), a.Operator, a.Reason, a.DryRun)
	if err != nil {
		return answer, fmt.Errorf("put sealed secret of %s ws=%s: %w", put.AuthRef, a.Workspace, err)
	}
	return answer, nil
}

// RecordCredentialCheck keeps what the platform said of a credential; failure is nil when it said it.
func (s *Store) RecordCredentialCheck(ctx context.Context, workspace, authRef string, standing autopost.Standing, failure *autopost.Error) error {
	var check any = map[string]any{"error": failure}
	if failure == nil {
		check = standing
	}
	_, err := call[json.RawMessage](ctx, s, `select * from autopost.record_credential_check($1, $2, $3)`, workspace, authRef, check)
	if err != nil {
		return fmt.Errorf("record check of %s ws=%s: %w", authRef, workspace, err)
	}
	return nil
}

// CredentialRow is a row of the read model list_credentials: how a credential is, never the secret.
type CredentialRow struct {
	AuthRef  string
	Platform string
	// Kept is env, file or sealed.
	Kept string
	// Version is of the sealed secret in force, 0 where the first one of env or file is.
	Version     int
	MasterKeyID *string
	// ValidUntil is nil where nobody knows; NextRefreshAt where nobody renews it by itself.
	ValidUntil    *time.Time
	RefreshedAt   *time.Time
	NextRefreshAt *time.Time
	Failures      int
	CheckedAt     *time.Time
	Account       *string
	Rights        []autopost.Right
	Error         *autopost.Error
	LostAt        *time.Time
	Channels      int64
}

// ListCredentials returns the credentials of a workspace by name; limit is 1 to 10,000.
func (s *Store) ListCredentials(ctx context.Context, workspace string, limit int) ([]CredentialRow, error) {
	return read[CredentialRow](ctx, s, "list credentials ws="+workspace, `
		select auth_ref, platform, kept, coalesce(version, 0), master_key_id, valid_until, refreshed_at, next_refresh_at, coalesce(failures, 0), checked_at, account,
			coalesce(rights, '[]'), error, lost_at, channels
		from autopost.list_credentials($1, $2)`, workspace, limit)
}

// AlertRow is a row of the read model list_alerts.
type AlertRow struct {
	Kind     string
	Subject  string
	RaisedAt time.Time
	// EndedAt is nil while it is open.
	EndedAt *time.Time
	Error   json.RawMessage
}

// ListAlerts returns what people must look at, the open ones first; limit is 1 to 10,000.
func (s *Store) ListAlerts(ctx context.Context, workspace string, limit int) ([]AlertRow, error) {
	return read[AlertRow](ctx, s, "list alerts ws="+workspace, `
		select kind, subject, raised_at, ended_at, error from autopost.list_alerts($1, $2)`, workspace, limit)
}

// ListMasterKeys counts the sealed secrets by the master key that wraps them.
func (s *Store) ListMasterKeys(ctx context.Context) (map[string]int, error) {
	keys, err := call[map[string]int](ctx, s, `select * from autopost.list_master_keys()`)
	if err != nil {
		return nil, fmt.Errorf("list master keys: %w", err)
	}
	return keys, nil
}

// ListSealedSecrets returns sealed secrets of a workspace that another master key than the given one wraps; limit is 1 to 10,000.
func (s *Store) ListSealedSecrets(ctx context.Context, workspace, notKeyID string, limit int) ([]SealedSecret, error) {
	list, err := call[[]SealedSecret](ctx, s, `select * from autopost.list_sealed_secrets($1, $2, $3)`, workspace, notKeyID, limit)
	if err != nil {
		return nil, fmt.Errorf("list sealed secrets ws=%s: %w", workspace, err)
	}
	return list, nil
}

// RewrapSecret lets another master key wrap a secret's data key; false means that it is under from no more.
func (s *Store) RewrapSecret(ctx context.Context, workspace, from string, sealed SealedSecret) (bool, error) {
	a, err := call[struct{ Applied bool }](ctx, s, `select * from autopost.rewrap_secret($1, $2, $3, $4, $5, $6)`,
		workspace, sealed.AuthRef, sealed.Version, from, sealed.KeyID, base64.StdEncoding.EncodeToString(sealed.WrappedKey))
	if err != nil {
		return false, fmt.Errorf("rewrap secret of %s ws=%s: %w", sealed.AuthRef, workspace, err)
	}
	return a.Applied, nil
}
