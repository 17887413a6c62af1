package main

import (
	"context"
	"fmt"

	"autopost"
	"autopost/internal/config"
	"autopost/internal/credential"
	"autopost/internal/monitor"
	"autopost/internal/notify"
	"autopost/internal/pg"
)

type alertStore struct{ *pg.Store }

func (s alertStore) CheckAlerts(ctx context.Context, workspace string) (monitor.AlertChange, error) {
	change, err := s.Store.CheckAlerts(ctx, workspace)
	return monitor.AlertChange(change), err
}

func (s alertStore) CheckInstallation(ctx context.Context) (monitor.AlertChange, error) {
	change, err := s.Store.CheckInstallation(ctx)
	return monitor.AlertChange(change), err
}

func (s alertStore) ClaimNotices(ctx context.Context, workspace string, limit int) ([]monitor.Notice, error) {
	list, err := s.Store.ClaimNotices(ctx, workspace, limit)
	return convert(list, func(x pg.Notice) monitor.Notice { return monitor.Notice(x) }), err
}

func (s alertStore) ReportDuty(ctx context.Context, report monitor.DutyReport) error {
	return s.Store.ReportDuty(ctx, pg.DutyReport(report))
}

// teller gives the monitor what notify gives, in its own words.
type teller struct{ *notify.Notifier }

func (t teller) Tell(ctx context.Context, workspace string, n monitor.Notice) *autopost.Error {
	return t.Send(ctx, notify.Message{
		WorkspaceID: workspace, ID: n.MessageID, Kind: n.Kind, Address: n.Address, AuthRef: n.AuthRef, Subject: n.Subject, Text: n.Text, Body: n.Body,
	})
}

// newTeller tells targets of alerts over the same platforms that posts go to.
func newTeller(cfg config.Config, vault *credential.Vault) (teller, error) {
	speakers, err := adapters(cfg)
	if err != nil {
		return teller{}, err
	}
	told := notify.Config{Credentials: vault, Adapters: speakers, Client: tenantAddresses(cfg)}
	if cfg.SMTPURL != "" {
		if told.Mail, err = notify.NewMail(notify.MailConfig{URL: cfg.SMTPURL, From: cfg.SMTPFrom}); err != nil {
			return teller{}, fmt.Errorf("AUTOPOST_SMTP_URL: %w", err)
		}
	}
	return teller{notify.New(told)}, nil
}
