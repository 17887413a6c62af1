package daemon

import (
	"log/slog"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/twitter"
	"autopost/internal/adapter/youtube"
	"autopost/internal/config"
	"autopost/internal/credential"
	"autopost/internal/media"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/rawpayload"
	"autopost/internal/secret"
)

// NewVault makes the vault of a store.
func NewVault(cfg config.Config, store *pg.Store, log *slog.Logger) (*credential.Vault, error) {
	endpoints, err := TokenEndpoints(cfg)
	if err != nil {
		return nil, err
	}
	refreshers := map[autopost.Platform]autopost.Refresher{}
	for platform, endpoint := range endpoints {
		refreshers[platform] = endpoint
	}
	return credential.New(credential.Config{
		Store: store, Log: log,
		Ring: secret.NewKeyring(cfg.MasterKeyFile), MayMakeKey: !cfg.Explicit(config.MasterKeyFile),
		Refreshers: refreshers,
	}), nil
}

// NewRawPayloads makes the keeper of raw payloads.
func NewRawPayloads(cfg config.Config, store *pg.Store, vault *credential.Vault, bucket *media.Store, log *slog.Logger) *rawpayload.Keeper {
	return rawpayload.New(rawpayload.Config{Store: store, Bucket: bucket, Keys: vault, Ring: secret.NewKeyring(cfg.MasterKeyFile), Log: log})
}

// TokenEndpoints returns the clients of the OAuth 2.0 token endpoints by platform.
func TokenEndpoints(cfg config.Config) (map[autopost.Platform]adapter.TokenEndpoint, error) {
	client, err := outbound.Operator(outbound.OperatorConfig{})
	if err != nil {
		return nil, err
	}
	return map[autopost.Platform]adapter.TokenEndpoint{
		autopost.X:       twitter.NewRefresher(cfg.XAPIURL, client),
		autopost.YouTube: youtube.NewRefresher(cfg.GoogleTokenURL, client),
	}, nil
}
