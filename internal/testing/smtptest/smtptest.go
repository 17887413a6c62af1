// Package smtptest is a mail server on loopback for tests. It keeps accepted mail, and can be set to
// reject mail.
package smtptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
)

// Login is the user and password that the server accepts. Login is optional for clients.
const Login = "ops:canary-smtp-password"

// Letter is an accepted mail.
type Letter struct {
	From, To string
	// User is the logged-in user; "" without login.
	User   string
	Header mail.Header
	Body   string
}

// Server runs until the test ends.
type Server struct {
	// Addr is host:port.
	Addr string
	// Roots trust the server's certificate, for 127.0.0.1.
	Roots *x509.CertPool

	mu      sync.Mutex
	letters []Letter
	refusal *smtp.SMTPError
}

// The modes of TLS.
const (
	Plain    = ""         // no TLS
	StartTLS = "STARTTLS" // TLS on request, login only after it
	Implicit = "TLS"      // TLS from the first byte
)

// New starts a server.
func New(t testing.TB, security string) *Server {
	t.Helper()
	certificate, roots := selfSigned(t)
	s := &Server{Roots: roots}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }))
	server.Domain, server.AllowInsecureAuth = "localhost", security == Plain
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Addr = listener.Addr().String()
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	switch security {
	case StartTLS:
		server.TLSConfig = config
	case Implicit:
		listener = tls.NewListener(listener, config)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends by Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return s
}

// Refuse makes the server answer each letter's content with this reply; 0 accepts letters again.
func (s *Server) Refuse(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = nil
	if code > 0 {
		s.refusal = &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 3, 0}, Message: "not now"}
	}
}

// Letters returns the accepted letters in order.
func (s *Server) Letters() []Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Letter(nil), s.letters...)
}

type session struct {
	server         *Server
	from, to, user string
}

func (*session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user+":"+password != Login {
			return smtp.ErrAuthFailed
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	s.to = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	message, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(message.Body)
	if err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.refusal != nil {
		return s.server.refusal
	}
	s.server.letters = append(s.server.letters, Letter{From: s.from, To: s.to, User: s.user, Header: message.Header, Body: string(body)})
	return nil
}

func (s *session) Reset() { s.from, s.to = "", "" }

func (*session) Logout() error { return nil }

func selfSigned(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, roots
}
