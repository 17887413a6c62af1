package daemon

import (
	"fmt"

	"autopost/internal/config"
	"autopost/internal/credential"
	"autopost/internal/notify"
)

// newNotifier sends notices through the platforms of posts, by mail and to webhooks.
func newNotifier(cfg config.Config, vault *credential.Vault) (*notify.Notifier, error) {
	adapters, err := Adapters(cfg)
	if err != nil {
		return nil, err
	}
	options := notify.Config{Credentials: vault, Adapters: adapters, Client: tenantAddresses(cfg)}
	if cfg.SMTPURL != "" {
		if options.Mail, err = notify.NewMail(notify.MailConfig{URL: cfg.SMTPURL, From: cfg.SMTPFrom}); err != nil {
			return nil, fmt.Errorf("AUTOPOST_SMTP_URL: %w", err)
		}
	}
	return notify.New(options), nil
}
