// Package credential gives the engine its credentials: the sealed secret if one is current, else the
// first one, from env: or file:. It renews secrets, one daemon at a time, and stores a new secret
// before its first use.
//
// The database decides whether a renewal may start, which result counts, and what happens to a
// credential that the platform rejects.
package credential

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"autopost"
	"autopost/internal/secret"
)

// SealedSecret is a row of autopost.sealed_secrets. In JSON the bytes are base64.
type SealedSecret struct {
	AuthRef    string `json:"auth_ref,omitempty"`
	Version    int    `json:"version"`
	KeyID      string `json:"key_id"`
	WrappedKey []byte `json:"wrapped_key"`
	Sealed     []byte `json:"sealed"`
	// Source is the digest of the first secret that this one was renewed from; "" if there is none.
	Source string `json:"source"`
}

// Bound is what the database stores about a credential.
type Bound struct {
	Platform  string `json:"platform"`
	SecretRef string `json:"secret_ref"`
	// Hosts are those that get the secret of platform http, as "host" or "host:port".
	Hosts       []string `json:"hosts"`
	LastVersion int      `json:"last_version"`
	// Stale means that the present secret has expired.
	Stale bool `json:"stale"`
	// Sealed is nil if no secret is sealed.
	Sealed *SealedSecret `json:"sealed"`
}

// Lease is the answer of begin_refresh.
type Lease struct {
	Granted bool `json:"granted"`
	// Reason is unknown, other, newer, leased, waiting or lost if Granted is false.
	Reason string `json:"reason"`
	Token  string `json:"token"`
	// Version is the version of the new secret.
	Version int `json:"version"`
	// WaitMS is the length of the lease, or the time until the next try, in milliseconds.
	WaitMS int64 `json:"wait_ms"`
	// Error is the last failure if Reason is waiting or lost.
	Error *autopost.Error `json:"error"`
}

// InUse identifies a secret of a credential.
type InUse struct {
	AuthRef string
	// Version is 0 for the first secret, which is identified by Source.
	Version int
	Source  string
}

// Store is what the vault needs from the database. *pg.Store implements it.
type Store interface {
	// GetCredential returns nil for a credential that is not bound.
	GetCredential(ctx context.Context, workspace, authRef string) (*Bound, error)
	// ListMasterKeys counts the sealed secrets by master key.
	ListMasterKeys(ctx context.Context) (map[string]int, error)
	BeginRefresh(ctx context.Context, workspace string, use InUse, refused *autopost.Error) (Lease, error)
	// FinishRefresh makes the new secret current; false means that another one was first. It may be
	// repeated.
	FinishRefresh(ctx context.Context, workspace, authRef string, sealed SealedSecret, validFor time.Duration) (bool, error)
	FailRefresh(ctx context.Context, workspace string, use InUse, token string, failure autopost.Error) error
}

// Config configures a Vault. MayMakeKey, Refreshers and Patience are optional.
type Config struct {
	Store Store
	Ring  *secret.Keyring
	// MayMakeKey allows a Vault to create the master key file if there are no sealed secrets yet.
	MayMakeKey bool
	// Refreshers by platform. Credentials of other platforms are never renewed.
	Refreshers map[autopost.Platform]autopost.Refresher
	// Patience bounds the wait for another daemon's renewal, and the platform's answer. Default 20 s.
	Patience time.Duration
	Log      *slog.Logger
}

// Vault returns credentials. It caches none and is safe for concurrent use.
type Vault struct{ cfg Config }

// New returns a Vault. It has no effects.
func New(cfg Config) *Vault {
	cfg.Patience = cmp.Or(cfg.Patience, 20*time.Second)
	return &Vault{cfg: cfg}
}

// held is a secret with its identity.
type held struct {
	InUse

	workspace string
	bound     *Bound
	secret    autopost.Secret
}

// Credential returns a usable secret and renews it if needed. The error is autopost.ErrNoCredential, a
// *autopost.RenewalError, or a failed lookup.
func (v *Vault) Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error) {
	h, err := v.load(ctx, workspace, authRef)
	if err != nil {
		return autopost.Secret{}, err
	}
	if h.bound.Platform != string(platform) {
		return autopost.Secret{}, fmt.Errorf("%w: %s is bound to platform %s", autopost.ErrNoCredential, authRef, h.bound.Platform)
	}
	if len(h.bound.Hosts) > 0 {
		return autopost.Secret{}, fmt.Errorf("%w: %s is bound to hosts", autopost.ErrNoCredential, authRef)
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

// platformHTTP is the platform of secrets for addresses that callers choose.
const platformHTTP = "http"

// ForAddress returns a secret of platform http that is bound to the host of an address. Errors are those of Credential.
func (v *Vault) ForAddress(ctx context.Context, workspace, authRef string, address *url.URL) (autopost.Secret, error) {
	h, err := v.load(ctx, workspace, authRef)
	if err != nil {
		return autopost.Secret{}, err
	}
	if h.bound.Platform != platformHTTP {
		return autopost.Secret{}, fmt.Errorf("%w: %s is bound to platform %s", autopost.ErrNoCredential, authRef, h.bound.Platform)
	}
	if host := strings.ToLower(address.Host); !slices.Contains(h.bound.Hosts, host) {
		return autopost.Secret{}, fmt.Errorf("%w: %s must not be sent to %s; use an address of %s, or run autopost credential set %s --host %s",
			autopost.ErrNoCredential, authRef, host, strings.Join(h.bound.Hosts, ", "), authRef, host)
	}
	return h.secret, nil
}

// Renew returns a new secret after a call with the used one failed; a zero secret if another secret
// does not help. Errors are those of Credential.
func (v *Vault) Renew(ctx context.Context, d autopost.Delivery, used autopost.Secret, failure autopost.Error) (autopost.Secret, error) {
	refresher := v.cfg.Refreshers[d.Platform]
	if refresher == nil || refresher.Renewal(used) == autopost.RenewNever {
		return autopost.Secret{}, nil
	}
	h, err := v.load(ctx, d.WorkspaceID, d.AuthRef)
	if err != nil {
		return autopost.Secret{}, err
	}
	if h.secret.Reveal() != used.Reveal() {
		if h.Version == 0 {
			return autopost.Secret{}, nil // The first secret has just been replaced: the next attempt reads it.
		}
		h.Version-- // the used secret is older than the current one
	}
	return v.renew(ctx, h, &failure)
}

// Refresh renews a credential before it expires.
func (v *Vault) Refresh(ctx context.Context, workspace, authRef string) error {
	h, err := v.load(ctx, workspace, authRef)
	if err != nil {
		return err
	}
	_, err = v.renew(ctx, h, nil)
	return err
}

// Open returns the current secret, even if it has expired.
func (v *Vault) Open(ctx context.Context, workspace, authRef string) (autopost.Secret, error) {
	h, err := v.load(ctx, workspace, authRef)
	return h.secret, err
}

// load reads the current secret. A sealed secret wins over the first secret from which it was renewed.
// A replaced first secret wins over the sealed one.
func (v *Vault) load(ctx context.Context, workspace, authRef string) (held, error) {
	bound, err := v.cfg.Store.GetCredential(ctx, workspace, authRef)
	if err != nil {
		return held{}, err
	}
	return v.open(workspace, authRef, bound)
}

// OpenBound is Open for a credential that the database has returned with something else, as the JSON of a Bound.
func (v *Vault) OpenBound(workspace, authRef string, bound json.RawMessage) (autopost.Secret, error) {
	var b *Bound
	if err := json.Unmarshal(bound, &b); err != nil {
		return autopost.Secret{}, fmt.Errorf("credential %s: %w", authRef, err)
	}
	h, err := v.open(workspace, authRef, b)
	return h.secret, err
}

func (v *Vault) open(workspace, authRef string, bound *Bound) (held, error) {
	if bound == nil {
		return held{}, fmt.Errorf("%w: %s is not in credential_bindings", autopost.ErrNoCredential, authRef)
	}
	first, missing := secret.Resolve(bound.SecretRef)
	source := ""
	if missing == nil {
		source = digest(first)
	}
	if row := bound.Sealed; row != nil && (missing != nil || row.Source == source) {
		at := secret.Binding{Workspace: workspace, AuthRef: authRef, Version: row.Version}
		opened, err := v.cfg.Ring.Open(at, secret.Sealed{KeyID: row.KeyID, WrappedKey: row.WrappedKey, Text: row.Sealed})
		return held{InUse{authRef, row.Version, row.Source}, workspace, bound, opened}, err
	}
	if missing != nil {
		return held{}, errors.Join(autopost.ErrNoCredential, missing)
	}
	return held{InUse{authRef, 0, source}, workspace, bound, first}, nil
}

// digest identifies a first secret.
func digest(s autopost.Secret) string {
	sum := sha256.Sum256([]byte(s.Reveal()))
	return hex.EncodeToString(sum[:])
}

// Seal encrypts a secret as the given version of a credential. It creates the master key file for the
// very first secret.
func (v *Vault) Seal(ctx context.Context, workspace, authRef string, version int, s autopost.Secret) (SealedSecret, error) {
	if err := v.EnsureKey(ctx); err != nil {
		return SealedSecret{}, err
	}
	sealed, err := v.cfg.Ring.Seal(secret.Binding{Workspace: workspace, AuthRef: authRef, Version: version}, s)
	return SealedSecret{AuthRef: authRef, Version: version, KeyID: sealed.KeyID, WrappedKey: sealed.WrappedKey, Sealed: sealed.Text}, err
}

// EnsureKey creates the master key file if it does not exist. It fails if secrets exist that another
// key has sealed.
func (v *Vault) EnsureKey(ctx context.Context) error {
	_, missing := v.cfg.Ring.IDs()
	if !errors.Is(missing, secret.ErrNoMasterKey) {
		return missing
	}
	used, err := v.cfg.Store.ListMasterKeys(ctx)
	if err != nil {
		return err
	}
	total := 0
	for _, n := range used {
		total += n
	}
	if total > 0 {
		if _, err := v.cfg.Ring.IDs(); err == nil {
			return nil // another caller has just created the file and sealed with it
		}
		return fmt.Errorf("%w, and %d secrets are sealed: restore the file from its backup; "+
			"if it is lost, run autopost credential rewrap --new-key and set each credential again", missing, total)
	}
	if !v.cfg.MayMakeKey {
		return fmt.Errorf("%w: restore it, or create one with autopost credential rewrap --new-key", missing)
	}
	return v.cfg.Ring.Make()
}
