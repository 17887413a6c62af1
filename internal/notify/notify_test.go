package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/notify"
	"autopost/internal/outbound"
	"autopost/internal/testing/smtptest"
)

const key = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

// vault resolves credentials by name.
type vault map[string]string

func (v vault) Credential(_ context.Context, _, authRef string, platform autopost.Platform) (autopost.Secret, error) {
	if text, ok := v[string(platform)+"/"+authRef]; ok {
		return autopost.NewSecret(text), nil
	}
	return autopost.Secret{}, errors.New("there is no such credential")
}

var secrets = vault{"smtp/mail": smtptest.Login, "smtp/wrong": "ops:guess", "webhook/key": key, "telegram/bot": "1:x"}

func letter(to string) autopost.Notice {
	return autopost.Notice{MessageID: "m-1", Kind: notify.Email, Address: to, AuthRef: "mail", Subject: "[autopost w] NEW error: ü\r\nBcc: all@example.com", Text: "Привет\n.\nend"}
}

func mailer(t *testing.T, url string, server *smtptest.Server) *notify.Notifier {
	t.Helper()
	m, err := notify.NewMail(notify.MailConfig{URL: url, From: "autopost@example.com", Roots: server.Roots})
	require.NoError(t, err)
	return notify.New(notify.Config{Credentials: secrets, Mail: m})
}

func TestMailIsEncryptedAndSubjectsCannotAddHeaders(t *testing.T) {
	t.Parallel()
	for security, scheme := range map[string]string{smtptest.StartTLS: "smtp://", smtptest.Implicit: "smtps://"} {
		server := smtptest.New(t, security)
		require.Nil(t, mailer(t, scheme+server.Addr, server).Send(t.Context(), "w", letter("ops@example.com")), security)
		taken := server.Letters()
		require.Len(t, taken, 1)
		require.Equal(t, []string{"autopost@example.com", "ops@example.com", "ops"}, []string{taken[0].From, taken[0].To, taken[0].User})
		require.Empty(t, taken[0].Header.Get("Bcc"), "a line break in a subject starts no header")
		require.Equal(t, "auto-generated", taken[0].Header.Get("Auto-Submitted"))
		require.Contains(t, taken[0].Header.Get("Message-Id"), "m-1@")
	}
}

func TestMailIsSentUnencryptedOnlyIfConfigured(t *testing.T) {
	t.Parallel()
	server := smtptest.New(t, smtptest.Plain)
	failure := mailer(t, "smtp://"+server.Addr, server).Send(t.Context(), "w", letter("ops@example.com"))
	require.NotNil(t, failure)
	require.True(t, failure.Known)
	require.Empty(t, server.Letters())
	inTheClear := mailer(t, "smtp://"+server.Addr+"?tls=off", server)
	require.Equal(t, "smtp_auth", inTheClear.Send(t.Context(), "w", letter("ops@example.com")).Code, "never a password")
	relayed := letter("ops@example.com")
	relayed.AuthRef = ""
	require.Nil(t, inTheClear.Send(t.Context(), "w", relayed))
	untrusted, err := notify.NewMail(notify.MailConfig{URL: "smtps://" + smtptest.New(t, smtptest.Implicit).Addr, From: "autopost@example.com", Roots: server.Roots})
	require.NoError(t, err)
	require.NotNil(t, notify.New(notify.Config{Credentials: secrets, Mail: untrusted}).Send(t.Context(), "w", letter("ops@example.com")))
}

func TestFailuresOfMailAreClassified(t *testing.T) {
	t.Parallel()
	server := smtptest.New(t, smtptest.Implicit)
	n := mailer(t, "smtps://"+server.Addr, server)
	judge := func(m autopost.Notice, category autopost.Category, what string) {
		failure := n.Send(t.Context(), "w", m)
		require.NotNil(t, failure, what)
		require.Equal(t, category, failure.Category, "%s: %s", what, failure.Message)
		require.True(t, failure.Known, what)
		require.NotContains(t, failure.Message, "guess", "a password")
	}
	judge(letter("nobody@example.com"), autopost.Permanent, "an unknown mailbox")
	judge(letter("a@example.com>\r\nRCPT TO:<b@example.com"), autopost.Permanent, "a wrong address")
	wrong := letter("ops@example.com")
	wrong.AuthRef = "wrong"
	judge(wrong, autopost.Permanent, "a wrong password")
	wrong.AuthRef = "missing"
	judge(wrong, autopost.Transient, "no credential")
	server.Refuse(451)
	judge(letter("ops@example.com"), autopost.Transient, "later")
	server.Refuse(554)
	judge(letter("ops@example.com"), autopost.Permanent, "never")
	server.Refuse(0)
	require.Nil(t, n.Send(t.Context(), "w", letter("ops@example.com")))

	closed, err := notify.NewMail(notify.MailConfig{URL: "smtp://127.0.0.1:1", From: "autopost@example.com"})
	require.NoError(t, err)
	n = notify.New(notify.Config{Credentials: secrets, Mail: closed})
	judge(letter("ops@example.com"), autopost.Transient, "no server listens")
	n = notify.New(notify.Config{Credentials: secrets})
	judge(letter("ops@example.com"), autopost.Permanent, "no mail server is configured")
}

func TestWrongMailServersAreRejected(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mail.example.com", "http://mail.example.com", "smtp://user:secret@mail.example.com", "smtp://mail.example.com?tls=maybe"} {
		_, err := notify.NewMail(notify.MailConfig{URL: url, From: "autopost@example.com"})
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := notify.NewMail(notify.MailConfig{URL: "smtp://mail.example.com", From: "nobody"})
	require.ErrorContains(t, err, "must be a mail address")
}

func TestWebhooksAreSignedAndClassifiedByStatus(t *testing.T) {
	t.Parallel()
	verifier, err := standardwebhooks.NewWebhook(strings.TrimPrefix(key, "whsec_"))
	require.NoError(t, err)
	status := http.StatusOK
	var got struct{ Type string }
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || verifier.Verify(body, r.Header) != nil || r.Header.Get("webhook-id") != "m-1" || json.Unmarshal(body, &got) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	client := outbound.Guarded(outbound.GuardedConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Timeout: 5 * time.Second, Strict: true})
	n := notify.New(notify.Config{Credentials: secrets, Client: client})
	message := autopost.Notice{MessageID: "m-1", Kind: notify.Webhook, Address: receiver.URL, AuthRef: "key", Body: json.RawMessage(`{"type":"alerts"}`)}
	require.Nil(t, n.Send(t.Context(), "w", message))
	require.Equal(t, "alerts", got.Type)
	for code, category := range map[int]autopost.Category{500: autopost.Transient, 410: autopost.Permanent, 429: autopost.Transient} {
		status = code
		failure := n.Send(t.Context(), "w", message)
		require.NotNil(t, failure)
		require.True(t, failure.Known)
		require.Equal(t, category, failure.Category, code)
	}
	message.Address = "http://10.0.0.1/inside"
	require.Equal(t, "target_refused", n.Send(t.Context(), "w", message).Code)
	message.AuthRef = ""
	require.Equal(t, autopost.CodeCredentialMissing, n.Send(t.Context(), "w", message).Code)
}
