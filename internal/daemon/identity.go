package daemon

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"autopost"
	"autopost/internal/config"
	"autopost/internal/oidc"
	"autopost/internal/outbound"
	"autopost/internal/web"
)

// identityBytes limits an answer of the identity provider.
const identityBytes = 1 << 20

// identityProvider returns the identity provider of the configuration; nil without one.
func identityProvider(cfg config.Config) (*oidc.Provider, error) {
	if cfg.OIDCIssuer == "" {
		return nil, nil
	}
	secret, err := os.ReadFile(cfg.OIDCSecretFile)
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_OIDC_CLIENT_SECRET_FILE: %w", err)
	}
	return oidc.New(oidc.Config{
		Issuer: cfg.OIDCIssuer, ClientID: cfg.OIDCClientID, Secret: autopost.NewSecret(strings.TrimSpace(string(secret))),
		Client: outbound.Guarded(outbound.GuardedConfig{Allow: cfg.OutboundAllow, MaxBytes: identityBytes, TLS: true}),
	}), nil
}

// onceLinks are links that sign a person in without a password, once. They end with the process.
type onceLinks struct {
	mu sync.Mutex
	// of are people by the SHA-256 of the token of their link.
	of map[string]string
}

// take returns the person of a link and ends it; "" for an unknown one.
func (l *onceLinks) take(tokenHash string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	user := l.of[tokenHash]
	delete(l.of, tokenHash)
	return user
}

// SignInLink returns an address that signs a person in, once, while this daemon runs. The demo uses it.
func (d *Daemon) SignInLink(user string) string {
	token := web.Token()
	d.once.mu.Lock()
	defer d.once.mu.Unlock()
	if d.once.of == nil {
		d.once.of = map[string]string{}
	}
	d.once.of[web.TokenHash(token)] = user
	return "http://" + d.Addr() + "/login/once/" + token
}
