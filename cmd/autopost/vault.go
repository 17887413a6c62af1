package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/twitter"
	"autopost/internal/adapter/youtube"
	"autopost/internal/config"
	"autopost/internal/credential"
	"autopost/internal/dispatch"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/secret"
)

// credentials gives dispatch what the vault gives, in its own words.
type credentials struct{ *credential.Vault }

func (c credentials) Credential(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.Secret, error) {
	value, err := c.Vault.Credential(ctx, workspace, authRef, platform)
	return value, dispatchError(err)
}

func (c credentials) Renew(ctx context.Context, d autopost.Delivery, used autopost.Secret, failure autopost.Error) (autopost.Secret, error) {
	value, err := c.Vault.Renew(ctx, d, used, failure)
	return value, dispatchError(err)
}

func dispatchError(err error) error {
	if refused, ok := errors.AsType[*credential.Refused](err); ok {
		return (*dispatch.Refused)(refused)
	}
	if errors.Is(err, credential.ErrNone) {
		return errors.Join(dispatch.ErrNoCredential, err)
	}
	return err
}

type credentialStore struct{ *pg.Store }

func (s credentialStore) GetCredential(ctx context.Context, workspace, authRef string) (*credential.Bound, error) {
	c, err := s.Store.GetCredential(ctx, workspace, authRef)
	if err != nil || c == nil {
		return nil, err
	}
	return &credential.Bound{
		Platform: c.Platform, SecretRef: c.SecretRef, LastVersion: c.LastVersion, Stale: c.Stale, Sealed: (*credential.Row)(c.Sealed),
	}, nil
}

func (s credentialStore) BeginRefresh(ctx context.Context, workspace string, use credential.InUse, refused *autopost.Error) (credential.Lease, error) {
	l, err := s.Store.BeginRefresh(ctx, workspace, pg.SecretInUse(use), refused)
	return credential.Lease(l), err
}

func (s credentialStore) FailRefresh(ctx context.Context, workspace string, use credential.InUse, token string, failure autopost.Error) error {
	return s.Store.FailRefresh(ctx, workspace, pg.SecretInUse(use), token, failure)
}

func (s credentialStore) FinishRefresh(ctx context.Context, workspace, authRef string, sealed credential.Row, validFor time.Duration) (bool, error) {
	return s.Store.FinishRefresh(ctx, workspace, authRef, pg.SealedSecret(sealed), validFor)
}

// newVault opens credentials of a store.
func newVault(cfg config.Config, store *pg.Store, log *slog.Logger) (*credential.Vault, error) {
	endpoints, err := tokenEndpoints(cfg)
	if err != nil {
		return nil, err
	}
	refreshers := map[autopost.Platform]autopost.Refresher{}
	for platform, endpoint := range endpoints {
		refreshers[platform] = endpoint
	}
	return credential.New(credential.Config{
		Bindings: credentialStore{store}, Refreshes: credentialStore{store}, Log: log,
		Ring: secret.NewKeyring(cfg.MasterKeyFile), MayMakeKey: !cfg.Explicit(config.MasterKeyFile),
		Refreshers: refreshers,
	}), nil
}

// tokenEndpoints are where the platforms with OAuth 2.0 renew credentials.
func tokenEndpoints(cfg config.Config) (map[autopost.Platform]adapter.TokenEndpoint, error) {
	client, err := outbound.Operator(outbound.OperatorConfig{})
	if err != nil {
		return nil, err
	}
	return map[autopost.Platform]adapter.TokenEndpoint{
		autopost.X:       twitter.NewRefresher(cfg.XAPIURL, client),
		autopost.YouTube: youtube.NewRefresher(cfg.GoogleTokenURL, client),
	}, nil
}

// desk is what a command needs that works with credentials.
type desk struct {
	cfg   config.Config
	store *pg.Store
	vault *credential.Vault
}

// withDesk runs work over the credentials of a database that is ready.
func withDesk(ctx context.Context, work func(context.Context, desk) error) error {
	return withConfiguredStore(ctx, func(ctx context.Context, cfg config.Config, store *pg.Store) error {
		vault, err := newVault(cfg, store, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		return work(ctx, desk{cfg, store, vault})
	})
}
