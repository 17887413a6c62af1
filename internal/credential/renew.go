package credential

import (
	"context"
	"fmt"
	"time"

	"autopost"
)

const (
	// storeTimeout bounds the attempts to store a new secret. The old one may already be invalid.
	storeTimeout = 2 * time.Minute
	// recordTimeout bounds the attempts to record a failure. The lease ends without it too.
	recordTimeout = 10 * time.Second
	// queryTimeout bounds one call to the database.
	queryTimeout = 10 * time.Second
	leastPause   = 50 * time.Millisecond
	mostPause    = time.Second
)

// renew renews a secret, or waits until another daemon has renewed it.
func (v *Vault) renew(ctx context.Context, h held, failure *autopost.Error) (autopost.Secret, error) {
	// Without a key the result could not be stored, and a single-use token would be lost.
	if err := v.EnsureKey(ctx); err != nil {
		return autopost.Secret{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.cfg.Patience)
	defer cancel()
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		lease, err := v.cfg.Store.BeginRefresh(ctx, h.workspace, h.InUse, failure)
		if err != nil {
			return autopost.Secret{}, err
		}
		switch {
		case lease.Granted:
			return v.refresh(ctx, h, lease)
		case lease.Reason == "newer":
			fresh, err := v.load(ctx, h.workspace, h.AuthRef)
			return fresh.secret, err
		case lease.Reason == "other":
			return autopost.Secret{}, nil
		case lease.Reason == "leased":
		case lease.Error != nil:
			again := *lease.Error
			again.RetryAfterMS = max(again.RetryAfterMS, lease.WaitMS)
			return autopost.Secret{}, &autopost.RenewalError{Failure: again}
		default:
			return autopost.Secret{}, fmt.Errorf("%w: %s: %s", autopost.ErrNoCredential, h.AuthRef, lease.Reason)
		}
		select {
		case <-ctx.Done():
			return autopost.Secret{}, &autopost.RenewalError{Failure: unavailable("another daemon is still renewing the credential")}
		case <-time.After(min(pause, time.Duration(lease.WaitMS)*time.Millisecond+time.Millisecond)):
		}
	}
}

// refresh requests a new secret and stores it.
func (v *Vault) refresh(ctx context.Context, h held, lease Lease) (autopost.Secret, error) {
	log := v.cfg.Log.With("workspace_id", h.workspace, "auth_ref", h.AuthRef, "platform", h.bound.Platform)
	began := time.Now()
	renewed, failure := v.ask(ctx, h)
	if failure != nil {
		log.Warn("credential.refresh_failed", "code", failure.Code, "category", failure.Category, "message", failure.Message,
			"duration_ms", time.Since(began).Milliseconds())
		err := v.retryUntil(ctx, recordTimeout, func(ctx context.Context) error {
			return v.cfg.Store.FailRefresh(ctx, h.workspace, h.InUse, lease.Token, *failure)
		})
		if err != nil {
			log.Error("credential.refresh_unrecorded", "error", err)
		}
		return autopost.Secret{}, &autopost.RenewalError{Failure: *failure}
	}
	row, err := v.Seal(ctx, h.workspace, h.AuthRef, lease.Version, renewed.Secret)
	if err != nil {
		return autopost.Secret{}, err
	}
	row.Source = h.Source
	var applied bool
	err = v.retryUntil(ctx, storeTimeout, func(ctx context.Context) error {
		var err error
		applied, err = v.cfg.Store.FinishRefresh(ctx, h.workspace, h.AuthRef, row, renewed.ValidFor)
		return err
	})
	if err != nil {
		return autopost.Secret{}, fmt.Errorf("store the renewed credential: %w", err)
	}
	if !applied {
		fresh, err := v.load(ctx, h.workspace, h.AuthRef)
		return fresh.secret, err
	}
	log.Info("credential.refreshed", "version", row.Version, "valid_seconds", int(renewed.ValidFor.Seconds()), "duration_ms", time.Since(began).Milliseconds())
	return renewed.Secret, nil
}

// ask makes the call to the platform. The caller's cancellation does not stop it: the platform may
// already have used up the token.
func (v *Vault) ask(ctx context.Context, h held) (autopost.Renewed, *autopost.Error) {
	refresher := v.cfg.Refreshers[autopost.Platform(h.bound.Platform)]
	if refresher == nil || refresher.Renewal(h.secret) == autopost.RenewNever {
		failure := unavailable("the credential has no refresh token")
		return autopost.Renewed{}, &failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.cfg.Patience)
	defer cancel()
	renewed, failure := refresher.Refresh(ctx, h.secret)
	if failure == nil && renewed.Secret.IsZero() {
		failure = new(autopost.Error)
		*failure = unavailable("the platform returned no credential")
	}
	return renewed, failure
}

// retryUntil repeats a database call with growing pauses until it succeeds or timeout ends. The
// caller's cancellation does not stop it.
func (v *Vault) retryUntil(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		query, done := context.WithTimeout(ctx, queryTimeout)
		err := call(query)
		done()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// unavailable is a failure of a renewal. No post was sent.
func unavailable(message string) autopost.Error {
	return autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: autopost.CodeCredentialUnavailable, Known: true, Message: message,
	}
}
