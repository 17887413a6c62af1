package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"autopost"
)

// credentialTimeout bounds one lookup, which may wait for a renewal.
const credentialTimeout = 30 * time.Second

// account is the batch key of a credential.
type account struct {
	ClaimKey
	authRef string
}

// credential repeats the lookup until it is answered: a lost connection must not pause the whole rate group.
func (d *Dispatcher) credential(p phases, a *attempt) (autopost.Secret, *autopost.Error) {
	var secret autopost.Secret
	var missing bool
	var refused *autopost.RenewalError
	err := d.retryUntil(p.run, a.leaseEnd.add(-d.cfg.margin()), func() error {
		var err error
		secret, err = d.secrets.Do(p.call, account{claimKeyOf(a.Delivery), a.AuthRef}, a.Delivery)
		missing = errors.Is(err, autopost.ErrNoCredential)
		refused, _ = errors.AsType[*autopost.RenewalError](err)
		if missing || refused != nil {
			return nil //nolint:nilerr // it is the answer
		}
		return err
	})
	if refused != nil {
		return autopost.Secret{}, &refused.Failure
	}
	if missing || (err == nil && secret.IsZero()) {
		e := noCredential(a.AuthRef)
		return autopost.Secret{}, &e
	}
	if err != nil {
		return autopost.Secret{}, d.credentialUnavailable(a, err)
	}
	return secret, nil
}

func (d *Dispatcher) credentialUnavailable(a *attempt, err error) *autopost.Error {
	d.log.Error("delivery.credential_unavailable", append(ids(a), "auth_ref", a.AuthRef, "error", err)...)
	e := credentialUnavailable(a.AuthRef)
	return &e
}

// accounts are the accounts whose last lookup returned a secret. Claims may start their calls: the next lookup is
// expected to succeed at once.
type accounts struct {
	mu    sync.Mutex
	names map[ClaimKey]map[string]bool
}

func (s *accounts) set(a account, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !known {
		delete(s.names[a.ClaimKey], a.authRef)
		return
	}
	if s.names == nil {
		s.names = map[ClaimKey]map[string]bool{}
	}
	if s.names[a.ClaimKey] == nil {
		s.names[a.ClaimKey] = map[string]bool{}
	}
	s.names[a.ClaimKey][a.authRef] = true
}

func (s *accounts) known(key ClaimKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.names[key]))
}

// fetchSecret looks up a credential for all deliveries that want it at the same time.
func (d *Dispatcher) fetchSecret(ctx context.Context, of account, wanted []autopost.Delivery) ([]autopost.Secret, error) {
	secret, err := d.deps.Credentials.Credential(ctx, wanted[0].WorkspaceID, wanted[0].AuthRef, wanted[0].Platform)
	d.accounts.set(of, err == nil && !secret.IsZero())
	if err != nil {
		return nil, err
	}
	return slices.Repeat([]autopost.Secret{secret}, len(wanted)), nil
}

// renew asks for another secret after a definite refusal of the whole channel; the database decides whether the
// credential is the cause. A zero secret without a failure means that the outcome does not change.
func (d *Dispatcher) renew(ctx context.Context, a *attempt, used autopost.Secret, failure *autopost.Error) (autopost.Secret, *autopost.Error) {
	if failure == nil || !failure.Known || failure.Category != autopost.Permanent || failure.Scope != autopost.ScopeChannel {
		return autopost.Secret{}, nil
	}
	secret, err := d.deps.Credentials.Renew(ctx, a.Delivery, used, *failure)
	if refused, ok := errors.AsType[*autopost.RenewalError](err); ok {
		return autopost.Secret{}, &refused.Failure
	}
	if err != nil {
		// The platform may have refused an old token only: that must not end the delivery.
		return autopost.Secret{}, d.credentialUnavailable(a, err)
	}
	return secret, nil
}
