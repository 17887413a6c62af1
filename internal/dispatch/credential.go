package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"autopost"
)

// credentialTimeout bounds one look-up: it may have to wait for a renewal.
const credentialTimeout = 30 * time.Second

// account is a credential of a part.
type account struct {
	Part
	authRef string
}

// credential asks until it is answered: a connection that was cut is no reason to
// rest the whole rate group.
func (d *Dispatcher) credential(l life, p *pass) (autopost.Secret, *autopost.Error) {
	var secret autopost.Secret
	var missing bool
	var refused *Refused
	err := d.insist(l.run, p.leaseEnd.add(-d.cfg.margin()), func() error {
		var err error
		secret, err = d.secrets.Do(l.call, account{partOf(p.Delivery), p.AuthRef}, p.Delivery)
		missing = errors.Is(err, ErrNoCredential)
		refused, _ = errors.AsType[*Refused](err)
		if missing || refused != nil {
			return nil //nolint:nilerr // it is the answer
		}
		return err
	})
	if refused != nil {
		return autopost.Secret{}, &refused.Failure
	}
	if missing || (err == nil && secret.IsZero()) {
		e := noCredential(p.AuthRef)
		return autopost.Secret{}, &e
	}
	if err != nil {
		d.log.Error("delivery.credential_unavailable", append(ids(p), "auth_ref", p.AuthRef, "error", err)...)
		e := credentialUnavailable(p.AuthRef)
		return autopost.Secret{}, &e
	}
	return secret, nil
}

// oneSecret looks a credential up for all that want it at the same time.
func (d *Dispatcher) oneSecret(ctx context.Context, _ account, wanted []autopost.Delivery) ([]autopost.Secret, error) {
	secret, err := d.deps.Credentials.Credential(ctx, wanted[0].WorkspaceID, wanted[0].AuthRef, wanted[0].Platform)
	if err != nil {
		return nil, err
	}
	return slices.Repeat([]autopost.Secret{secret}, len(wanted)), nil
}

// renew asks for another secret after a definite refusal of the whole channel, of
// which the database says whether it is the credential's. A zero secret, and no
// failure: the outcome stands as it is.
func (d *Dispatcher) renew(ctx context.Context, p *pass, used autopost.Secret, failure *autopost.Error) (autopost.Secret, *autopost.Error) {
	if failure == nil || !failure.Known || failure.Category != autopost.Permanent || failure.Scope != autopost.ScopeChannel {
		return autopost.Secret{}, nil
	}
	secret, err := d.deps.Credentials.Renew(ctx, p.Delivery, used, *failure)
	if refused, ok := errors.AsType[*Refused](err); ok {
		return autopost.Secret{}, &refused.Failure
	}
	if err != nil {
		// The refusal may be but that of an old token: it must not end the delivery.
		d.log.Error("delivery.credential_unavailable", append(ids(p), "auth_ref", p.AuthRef, "error", err)...)
		e := credentialUnavailable(p.AuthRef)
		return autopost.Secret{}, &e
	}
	return secret, nil
}
