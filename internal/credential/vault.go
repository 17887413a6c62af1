// Package credential gives the engine its credentials: the sealed one where there
// is one in force, else the first one, of env: or file:. It renews those that their
// platform renews, one daemon at a time, and stores what it got before anybody uses it.
//
// Whether a renewal may begin, whose answer counts and what becomes of a credential
// that is refused is decided in the database.
package credential

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"autopost"
	"autopost/internal/secret"
)

// ErrNone says that a credential is not bound, or bound to nothing.
var ErrNone = errors.New("no such credential")

// Refused says that a credential could not be renewed. Failure is what the
// platform said, or that it could not be asked.
type Refused struct{ Failure autopost.Error }

// Error implements error.
func (r *Refused) Error() string { return "renew the credential: " + r.Failure.String() }

// Row is a sealed secret as the database keeps it.
type Row struct {
	AuthRef    string
	Version    int
	KeyID      string
	WrappedKey []byte
	Sealed     []byte
	// Source is the digest of the first secret that it was renewed from, "" where there is none.
	Source string
}

// Bound is what the database knows of a credential.
type Bound struct {
	Platform    string
	SecretRef   string
	LastVersion int
	// Stale says that what is in force has expired.
	Stale bool
	// Sealed is nil where nothing is sealed.
	Sealed *Row
}

// Bindings tells where a credential's secret is kept.
type Bindings interface {
	// GetCredential returns nil for a credential that is not bound.
	GetCredential(ctx context.Context, workspace, authRef string) (*Bound, error)
	// ListMasterKeys counts the sealed secrets by master key.
	ListMasterKeys(ctx context.Context) (map[string]int, error)
}

// Lease is the database's answer to "may I renew it?".
type Lease struct {
	Granted bool
	// Reason says why not: unknown, other, newer, leased, waiting or lost.
	Reason string
	Token  string
	// Version is what the new secret is sealed under.
	Version int
	// WaitMS is how long the lease lasts, or when to look again, in milliseconds.
	WaitMS int64
	// Error is the last failure, where Reason is waiting or lost.
	Error *autopost.Error
}

// InUse says which secret of a credential is meant.
type InUse struct {
	AuthRef string
	// Version is 0 for the first one, of the digest Source.
	Version int
	Source  string
}

// Refreshes keeps the record of a renewal.
type Refreshes interface {
	BeginRefresh(ctx context.Context, workspace string, use InUse, refused *autopost.Error) (Lease, error)
	// FinishRefresh puts the new secret in force; false means that another one came first. It may be repeated.
	FinishRefresh(ctx context.Context, workspace, authRef string, sealed Row, validFor time.Duration) (bool, error)
	FailRefresh(ctx context.Context, workspace string, use InUse, token string, failure autopost.Error) error
}

// Config is what a Vault works with. All but MayMakeKey, Refreshers and Patience are required.
type Config struct {
	Bindings  Bindings
	Refreshes Refreshes
	Ring      *secret.Keyring
	// MayMakeKey allows to make the file of the master key when nothing is sealed yet.
	MayMakeKey bool
	// Refreshers are by platform; one without has credentials that nobody renews.
	Refreshers map[autopost.Platform]autopost.Refresher
	// Patience is how long one waits while another renews, and how long the platform
	// may take. Default 20 s.
	Patience time.Duration
	Log      *slog.Logger
}

// Vault gives credentials. It keeps none, and is safe for concurrent use.
type Vault struct{ cfg Config }

// New makes a Vault without effect.
func New(cfg Config) *Vault {
	cfg.Patience = cmp.Or(cfg.Patience, 20*time.Second)
	return &Vault{cfg: cfg}
}

// held is a secret, and which one it is.
type held struct {
	InUse

	workspace string
	bound     *Bound
	secret    autopost.Secret
}

// Credential returns a secret that can be used, renewed if need be. The error is
// ErrNone, a *Refused, or that it could not be looked up just now.
func (v *Vault) Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error) {
	h, err := v.present(ctx, workspace, authRef)
	if err != nil {
		return autopost.Secret{}, err
	}
	if h.bound.Platform != string(platform) {
		return autopost.Secret{}, fmt.Errorf("%w: %s is bound for %s", ErrNone, authRef, h.bound.Platform)
	}
	refresher := v.cfg.Refreshers[platform]
	if refresher == nil {
		return h.secret, nil
	}
	switch refresher.Renewal(h.secret) {
	case autopost.RenewFirst:
	case autopost.RenewLater:
		if h.Version == 0 || !h.bound.Stale {
			return h.secret, nil
		}
	default:
		return h.secret, nil
	}
	return v.renew(ctx, h, nil)
}

// Renew returns a secret in place of the one that a call with it came to failure
// for; a zero one when no other secret helps. Errors are as Credential's.
func (v *Vault) Renew(ctx context.Context, d autopost.Delivery, used autopost.Secret, failure autopost.Error) (autopost.Secret, error) {
	refresher := v.cfg.Refreshers[d.Platform]
	if refresher == nil || refresher.Renewal(used) == autopost.RenewNever {
		return autopost.Secret{}, nil
	}
	h, err := v.present(ctx, d.WorkspaceID, d.AuthRef)
	if err != nil {
		return autopost.Secret{}, err
	}
	if h.secret.Reveal() != used.Reveal() {
		if h.Version == 0 {
			return autopost.Secret{}, nil // a first secret that was just put there: the next attempt finds it
		}
		h.Version-- // what was used is older than what is in force
	}
	return v.renew(ctx, h, &failure)
}

// Refresh renews a credential ahead of time.
func (v *Vault) Refresh(ctx context.Context, workspace, authRef string) error {
	h, err := v.present(ctx, workspace, authRef)
	if err != nil {
		return err
	}
	_, err = v.renew(ctx, h, nil)
	return err
}

// Open returns the secret as it is in force, whatever it is good for.
func (v *Vault) Open(ctx context.Context, workspace, authRef string) (autopost.Secret, error) {
	h, err := v.present(ctx, workspace, authRef)
	return h.secret, err
}

// present reads the secret in force. A sealed one wins over the first secret that it
// was renewed from; a first secret that is another one by now wins over it.
func (v *Vault) present(ctx context.Context, workspace, authRef string) (held, error) {
	bound, err := v.cfg.Bindings.GetCredential(ctx, workspace, authRef)
	if err != nil {
		return held{}, err
	}
	if bound == nil {
		return held{}, fmt.Errorf("%w: %s is not in credential_bindings", ErrNone, authRef)
	}
	first, missing := secret.Resolve(bound.SecretRef)
	source := ""
	if missing == nil {
		source = digest(first)
	}
	if row := bound.Sealed; row != nil && (missing != nil || row.Source == source) {
		at := secret.Place{Workspace: workspace, AuthRef: authRef, Version: row.Version}
		opened, err := v.cfg.Ring.Open(at, secret.Sealed{KeyID: row.KeyID, WrappedKey: row.WrappedKey, Text: row.Sealed})
		return held{InUse{authRef, row.Version, row.Source}, workspace, bound, opened}, err
	}
	if missing != nil {
		return held{}, errors.Join(ErrNone, missing)
	}
	return held{InUse{authRef, 0, source}, workspace, bound, first}, nil
}

// digest tells one first secret from another.
func digest(s autopost.Secret) string {
	sum := sha256.Sum256([]byte(s.Reveal()))
	return hex.EncodeToString(sum[:])
}

// Seal encrypts a secret as the given version of a credential. The file of the
// master key is made for the very first secret.
func (v *Vault) Seal(ctx context.Context, workspace, authRef string, version int, s autopost.Secret) (Row, error) {
	if err := v.EnsureKey(ctx); err != nil {
		return Row{}, err
	}
	sealed, err := v.cfg.Ring.Seal(secret.Place{Workspace: workspace, AuthRef: authRef, Version: version}, s)
	return Row{AuthRef: authRef, Version: version, KeyID: sealed.KeyID, WrappedKey: sealed.WrappedKey, Sealed: sealed.Text}, err
}

// EnsureKey makes the file of the master key, unless it is there. It is never made
// anew for secrets that another key has sealed.
func (v *Vault) EnsureKey(ctx context.Context) error {
	_, missing := v.cfg.Ring.IDs()
	if !errors.Is(missing, secret.ErrNoMasterKey) {
		return missing
	}
	used, err := v.cfg.Bindings.ListMasterKeys(ctx)
	if err != nil {
		return err
	}
	total := 0
	for _, n := range used {
		total += n
	}
	if total > 0 {
		return fmt.Errorf("%w, and %d secrets are sealed: put the file back from where it is kept; "+
			"if it is lost, autopost credential rewrap --new-key makes another, and each credential must be given anew", missing, total)
	}
	if !v.cfg.MayMakeKey {
		return fmt.Errorf("%w: put it there, or make it by autopost credential rewrap --new-key", missing)
	}
	return v.cfg.Ring.Make()
}
