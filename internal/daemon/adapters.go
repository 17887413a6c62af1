package daemon

import (
	"fmt"
	"os"

	"autopost"
	"autopost/internal/adapter/maxmessenger"
	"autopost/internal/adapter/telegram"
	"autopost/internal/adapter/twitter"
	"autopost/internal/adapter/webhook"
	"autopost/internal/adapter/youtube"
	"autopost/internal/config"
	"autopost/internal/outbound"
)

// Adapters makes the adapters that ship, one per platform.
func Adapters(cfg config.Config) (map[autopost.Platform]autopost.Adapter, error) {
	plain, err := outbound.Operator(outbound.OperatorConfig{})
	if err != nil {
		return nil, err
	}
	tg, err := telegram.New(telegram.Config{BaseURL: cfg.TelegramAPIURL, Client: plain})
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_TELEGRAM_API_URL: %w", err)
	}
	maxClient, err := maxHTTPClient(cfg.MAXCAFile)
	if err != nil {
		return nil, err
	}
	mx, err := maxmessenger.New(maxmessenger.Config{BaseURL: cfg.MAXAPIURL, Client: maxClient})
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_MAX_API_URL: %w", err)
	}
	x, err := twitter.New(twitter.Config{BaseURL: cfg.XAPIURL, Client: plain})
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_X_API_URL: %w", err)
	}
	yt, err := youtube.New(youtube.Config{BaseURL: cfg.YouTubeAPIURL, Client: plain})
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_YOUTUBE_API_URL: %w", err)
	}
	return map[autopost.Platform]autopost.Adapter{
		autopost.Telegram: tg,
		autopost.MAX:      mx,
		autopost.X:        x,
		autopost.YouTube:  yt,
		webhook.Platform:  webhook.New(webhook.Config{Client: tenantAddresses(cfg)}),
	}, nil
}

// tenantAddresses makes a client for the https addresses that tenants configure.
func tenantAddresses(cfg config.Config) *outbound.Client {
	return outbound.Guarded(outbound.GuardedConfig{Allow: cfg.OutboundAllow, Timeout: cfg.AdapterTimeout, Strict: true})
}

// maxHTTPClient trusts the extra bundle for MAX only: its certificate chains to a CA outside the system roots.
func maxHTTPClient(caFile string) (*outbound.Client, error) {
	if caFile == "" {
		return outbound.Operator(outbound.OperatorConfig{})
	}
	bundle, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_MAX_CA_FILE: %w", err)
	}
	client, err := outbound.Operator(outbound.OperatorConfig{CAPEM: bundle})
	if err != nil {
		return nil, fmt.Errorf("AUTOPOST_MAX_CA_FILE: %w", err)
	}
	return client, nil
}
