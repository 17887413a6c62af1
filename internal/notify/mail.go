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

// mailTimeout bounds each step of the conversation; the context bounds it as a whole.
const mailTimeout = 15 * time.Second

// Mail is a server that takes messages for anyone.
type Mail struct {
	host string
	from string
	how  []mail.Option
}

// MailConfig says which server takes mail, and from whom.
type MailConfig struct {
	// URL is smtp://host:587, which must offer STARTTLS; smtps://host:465, TLS from the
	// first byte; or smtp://host:25?tls=off for a relay on the same machine.
	URL string
	// From is the sender's address.
	From string
	// Roots are trusted instead of the system's; nil means the system's.
	Roots *x509.CertPool
}

// NewMail checks the configuration; it connects to nobody.
func NewMail(cfg MailConfig) (*Mail, error) {
	server, err := url.Parse(cfg.URL)
	if err != nil || server.Hostname() == "" || (server.Scheme != "smtp" && server.Scheme != "smtps") || server.User != nil {
		return nil, errors.New("it is not smtp://host:587 or smtps://host:465; the user goes into a credential of platform smtp")
	}
	port := map[string]int{"smtp": 587, "smtps": 465}[server.Scheme]
	if text := server.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("port %q: %w", text, err)
		}
	}
	m := &Mail{host: server.Hostname(), from: cfg.From, how: []mail.Option{
		mail.WithPort(port), mail.WithTimeout(mailTimeout), mail.WithTLSConfig(&tls.Config{ServerName: server.Hostname(), RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12}),
	}}
	switch tlsMode := server.Query().Get("tls"); {
	case server.Scheme == "smtps":
		m.how = append(m.how, mail.WithSSL())
	case tlsMode == "off":
		m.how = append(m.how, mail.WithTLSPolicy(mail.NoTLS))
	case tlsMode == "":
		m.how = append(m.how, mail.WithTLSPolicy(mail.TLSMandatory))
	default:
		return nil, fmt.Errorf("tls=%s is unknown: leave it out, or write tls=off", tlsMode)
	}
	if err := mail.NewMsg().From(cfg.From); err != nil {
		return nil, fmt.Errorf("the sender %q is no mail address", cfg.From)
	}
	return m, nil
}

// send sends one mail. secret is "user:password"; zero means that the server wants none.
func (m *Mail) send(ctx context.Context, message Message, secret autopost.Secret) *autopost.Error {
	letter := mail.NewMsg()
	// Subject and addresses are encoded, or refused: none of them can begin another header.
	if err := errors.Join(letter.From(m.from), letter.To(message.Address)); err != nil {
		return refused("mail_address_invalid", "the address is no mail address")
	}
	letter.Subject(message.Subject)
	letter.SetMessageIDWithValue(message.ID + "@" + m.host)
	letter.SetGenHeader("Auto-Submitted", "auto-generated")
	letter.SetBodyString(mail.TypeTextPlain, message.Text)
	how := m.how
	if !secret.IsZero() {
		user, password, _ := strings.Cut(secret.Reveal(), ":")
		how = append(how[:len(how):len(how)], mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user), mail.WithPassword(password))
	}
	client, err := mail.NewClient(m.host, how...)
	if err != nil {
		return refused("smtp_misconfigured", adapter.Hide(secret).Text(err.Error()))
	}
	err = client.DialAndSendWithContext(ctx, letter)
	if err == nil || letter.IsDelivered() {
		return nil // whatever became of the farewell
	}
	return mailError(err, adapter.Hide(secret))
}

// mailError classifies a failure by the reply of RFC 5321: 5yz is final, 4yz is not.
// Only while the server was to say that it has the letter the outcome is unknown.
func mailError(err error, hide adapter.Redactor) *autopost.Error {
	words := hide.Text(err.Error())
	failure, sending := errors.AsType[*mail.SendError](err)
	switch {
	case sending && failure.ErrorCode() >= 500:
		return refused("smtp_"+strconv.Itoa(failure.ErrorCode()), words)
	case sending && failure.ErrorCode() == 0 && failure.Reason == mail.ErrSMTPDataClose:
		return adapter.Unknown(words)
	case strings.Contains(words, "AUTH failed: 5"), errors.Is(err, mail.ErrNoSupportedAuthDiscovered):
		return refused("smtp_auth", words) // or no way to log in that is safe without TLS
	}
	return adapter.Refusal(autopost.Transient, autopost.ScopeChannel, "smtp_failed", words)
}
