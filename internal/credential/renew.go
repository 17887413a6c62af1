package credential

import (
	"context"
	"fmt"
	"time"

	"autopost"
)

const (
	// storing bounds how long a new secret is tried to be stored, by whoever got it:
	// what it was renewed from may be worth nothing any more.
	storing = 2 * time.Minute
	// telling bounds how long a failure is tried to be recorded; the lease ends without it, too.
	telling = 10 * time.Second
	// queryTimeout bounds one call to the database.
	queryTimeout = 10 * time.Second
	leastPause   = 50 * time.Millisecond
	mostPause    = time.Second
)

// renew renews a secret, or waits until another daemon has.
func (v *Vault) renew(ctx context.Context, h held, failure *autopost.Error) (autopost.Secret, error) {
	// Without a key nothing could be stored, and a token that is good for one use would be spent.
	if err := v.EnsureKey(ctx); err != nil {
		return autopost.Secret{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.cfg.Patience)
	defer cancel()
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		lease, err := v.cfg.Refreshes.BeginRefresh(ctx, h.workspace, h.InUse, failure)
		if err != nil {
			return autopost.Secret{}, err
		}
		switch {
		case lease.Granted:
			return v.refresh(ctx, h, lease)
		case lease.Reason == "newer":
			fresh, err := v.present(ctx, h.workspace, h.AuthRef)
			return fresh.secret, err
		case lease.Reason == "other":
			return autopost.Secret{}, nil
		case lease.Reason == "leased":
		case lease.Error != nil:
			again := *lease.Error
			again.RetryAfterMS = max(again.RetryAfterMS, lease.WaitMS)
			return autopost.Secret{}, &Refused{again}
		default:
			return autopost.Secret{}, fmt.Errorf("%w: %s: %s", ErrNone, h.AuthRef, lease.Reason)
		}
		select {
		case <-ctx.Done():
			return autopost.Secret{}, &Refused{unavailable("another daemon renews the credential and is not done yet")}
		case <-time.After(min(pause, time.Duration(lease.WaitMS)*time.Millisecond+time.Millisecond)):
		}
	}
}

// refresh asks the platform and stores what it gave.
func (v *Vault) refresh(ctx context.Context, h held, lease Lease) (autopost.Secret, error) {
	log := v.cfg.Log.With("workspace_id", h.workspace, "auth_ref", h.AuthRef, "platform", h.bound.Platform)
	began := time.Now()
	renewed, failure := v.ask(ctx, h)
	if failure != nil {
		log.Warn("credential.refresh_failed", "code", failure.Code, "category", failure.Category, "message", failure.Message,
			"duration_ms", time.Since(began).Milliseconds())
		err := v.insist(ctx, telling, func(ctx context.Context) error {
			return v.cfg.Refreshes.FailRefresh(ctx, h.workspace, h.InUse, lease.Token, *failure)
		})
		if err != nil {
			log.Error("credential.refresh_unrecorded", "error", err)
		}
		return autopost.Secret{}, &Refused{*failure}
	}
	row, err := v.Seal(ctx, h.workspace, h.AuthRef, lease.Version, renewed.Secret)
	if err != nil {
		return autopost.Secret{}, err
	}
	row.Source = h.Source
	var applied bool
	err = v.insist(ctx, storing, func(ctx context.Context) error {
		var err error
		applied, err = v.cfg.Refreshes.FinishRefresh(ctx, h.workspace, h.AuthRef, row, renewed.ValidFor)
		return err
	})
	if err != nil {
		return autopost.Secret{}, fmt.Errorf("store the renewed credential: %w", err)
	}
	if !applied {
		fresh, err := v.present(ctx, h.workspace, h.AuthRef)
		return fresh.secret, err
	}
	log.Info("credential.refreshed", "version", row.Version, "valid_seconds", int(renewed.ValidFor.Seconds()), "duration_ms", time.Since(began).Milliseconds())
	return renewed.Secret, nil
}

// ask is the one call to the platform. It ends with its caller's patience, not with
// its caller: the platform may have spent the token by then.
func (v *Vault) ask(ctx context.Context, h held) (autopost.Renewed, *autopost.Error) {
	refresher := v.cfg.Refreshers[autopost.Platform(h.bound.Platform)]
	if refresher == nil || refresher.Renewal(h.secret) == autopost.RenewNever {
		failure := unavailable("this credential holds nothing to renew it with")
		return autopost.Renewed{}, &failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.cfg.Patience)
	defer cancel()
	renewed, failure := refresher.Refresh(ctx, h.secret)
	if failure == nil && renewed.Secret.IsZero() {
		failure = new(autopost.Error)
		*failure = unavailable("the platform gave no credential")
	}
	return renewed, failure
}

// insist asks the database with growing pauses, also when the caller is gone.
func (v *Vault) insist(ctx context.Context, most time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		query, done := context.WithTimeout(ctx, queryTimeout)
		err := ask(query)
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

// unavailable is a failure on the way to a renewal; nothing was posted.
func unavailable(message string) autopost.Error {
	return autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: autopost.CodeCredentialUnavailable, Known: true, Message: message,
	}
}
