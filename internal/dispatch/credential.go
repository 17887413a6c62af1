package dispatch

import (
	"context"
	"errors"
	"time"

	"autopost"
)

// credentialTimeout bounds one look-up: it may have to wait for a renewal.
const credentialTimeout = 30 * time.Second

// credential asks until it is answered: a connection that was cut is no reason to
// rest the whole rate group.
func (d *Dispatcher) credential(l life, p *pass) (autopost.Secret, *autopost.Error) {
	var secret autopost.Secret
	var missing bool
	var refused *Refused
	err := d.insist(l.run, p.leaseEnd.add(-d.cfg.margin()), func() error {
		ctx, cancel := context.WithTimeout(l.call, credentialTimeout)
		defer cancel()
		var err error
		secret, err = d.deps.Credentials.Credential(ctx, p.WorkspaceID, p.AuthRef, p.Platform)
		missing = errors.Is(err, ErrNoCredential)
		refused, _ = errors.AsType[*Refused](err)
		if missing || refused != nil {
			return nil
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
