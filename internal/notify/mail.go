package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"autopost"
	"autopost/internal/adapter"
)

// mailTimeout bounds each step of the SMTP dialogue; the context bounds the whole.
const mailTimeout = 15 * time.Second

// Mail is a mail server that relays to any address.
type Mail struct {
	host    string
	from    string
	options []mail.Option
}

// MailConfig names the mail server and the sender.
type MailConfig struct {
	// URL is smtp://host:587, which must offer STARTTLS; smtps://host:465, TLS from the
	// first byte; or smtp://host:25?tls=off for a relay on the same machine.
	URL string
	// From is the sender's address.
	From string
	// Roots are trusted instead of the system's; nil means the system's.
	Roots *x509.CertPool
}

// NewMail checks the configuration. It does not connect.
func NewMail(cfg MailConfig) (*Mail, error) {
	server, err := url.Parse(cfg.URL)
	if err != nil || server.Hostname() == "" || (server.Scheme != "smtp" && server.Scheme != "smtps") || server.User != nil {
		return nil, errors.New("must be smtp://host:587 or smtps://host:465; put the user into a credential of platform smtp")
	}
	port := map[string]int{"smtp": 587, "smtps": 465}[server.Scheme]
	if text := server.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("port %q: %w", text, err)
		}
	}
	m := &Mail{host: server.Hostname(), from: cfg.From, options: []mail.Option{
		mail.WithPort(port), mail.WithTimeout(mailTimeout), mail.WithTLSConfig(&tls.Config{ServerName: server.Hostname(), RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12}),
	}}
	switch tlsMode := server.Query().Get("tls"); {
	case server.Scheme == "smtps":
		m.options = append(m.options, mail.WithSSL())
	case tlsMode == "off":
		m.options = append(m.options, mail.WithTLSPolicy(mail.NoTLS))
	case tlsMode == "":
		m.options = append(m.options, mail.WithTLSPolicy(mail.TLSMandatory))
	default:
		return nil, fmt.Errorf("tls=%s is unknown: leave it out, or write tls=off", tlsMode)
	}
	if err := mail.NewMsg().From(cfg.From); err != nil {
		return nil, fmt.Errorf("the sender must be a mail address, got %q", cfg.From)
	}
	return m, nil
}

// send sends one mail. secret is "user:password"; a zero secret means that the server needs no login.
func (m *Mail) send(ctx context.Context, message autopost.Notice, secret autopost.Secret) *autopost.Error {
	letter := mail.NewMsg()
	// Subject and addresses are encoded or refused: none of them can start another header.
	if err := errors.Join(letter.From(m.from), letter.To(message.Address)); err != nil {
		return refused("mail_address_invalid", "the target must be a mail address")
	}
	letter.Subject(message.Subject)
	letter.SetMessageIDWithValue(message.MessageID + "@" + m.host)
	letter.SetGenHeader("Auto-Submitted", "auto-generated")
	letter.SetBodyString(mail.TypeTextPlain, message.Text)
	options := m.options
	if !secret.IsZero() {
		user, password, _ := strings.Cut(secret.Reveal(), ":")
		options = append(options[:len(options):len(options)], mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user), mail.WithPassword(password))
	}
	client, err := mail.NewClient(m.host, options...)
	if err != nil {
		return refused("smtp_misconfigured", adapter.Hide(secret).Text(err.Error()))
	}
	err = client.DialAndSendWithContext(ctx, letter)
	if err == nil || letter.IsDelivered() {
		return nil // an error after the delivery does not matter
	}
	return mailError(err, adapter.Hide(secret))
}

// mailError classifies a failure by the reply of RFC 5321: 5yz is permanent, 4yz is transient. The outcome is unknown
// only if the server was about to confirm the message.
func mailError(err error, hide adapter.Redactor) *autopost.Error {
	words := hide.Text(err.Error())
	failure, sending := errors.AsType[*mail.SendError](err)
	switch {
	case sending && failure.ErrorCode() >= 500:
		return refused("smtp_"+strconv.Itoa(failure.ErrorCode()), words)
	case sending && failure.ErrorCode() == 0 && failure.Reason == mail.ErrSMTPDataClose:
		return adapter.Unknown(words)
	case strings.Contains(words, "AUTH failed: 5"), errors.Is(err, mail.ErrNoSupportedAuthDiscovered):
		return refused("smtp_auth", words) // or no safe login without TLS
	}
	return adapter.Refusal(autopost.Transient, autopost.ScopeChannel, "smtp_failed", words)
}
