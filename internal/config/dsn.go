package config

import (
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
)

// DSN is a PostgreSQL connection string, in URL or keyword form. It prints without its
// password.
type DSN struct{ text string }

var keywordPassword = regexp.MustCompile(`(?i)\b((?:ssl)?password)\s*=\s*('(?:[^'\\]|\\.)*'?|\S*)`)

// parseDSN checks only the form. Its errors do not contain the text.
func parseDSN(text string) (DSN, error) {
	if scheme, _, isURL := strings.Cut(text, "://"); isURL {
		if scheme != "postgres" && scheme != "postgresql" {
			return DSN{}, errors.New("must be a PostgreSQL URL: write it like postgres://user:password@host:5432/database")
		}
		if _, err := url.Parse(text); err != nil {
			return DSN{}, errors.New("must be a valid URL: percent-encode special characters of the password")
		}
		return DSN{text}, nil
	}
	if !strings.Contains(text, "=") {
		return DSN{}, errors.New("must be a connection string: write it like postgres://user:password@host:5432/database")
	}
	return DSN{text}, nil
}

// Reveal returns the connection string with its password, for the driver.
func (d DSN) Reveal() string { return d.text }

// IsZero reports whether the connection string is empty.
func (d DSN) IsZero() bool { return d.text == "" }

// String returns the connection string with its password masked.
func (d DSN) String() string {
	if !strings.Contains(d.text, "://") {
		return keywordPassword.ReplaceAllString(d.text, "$1=xxxxx")
	}
	u, err := url.Parse(d.text)
	if err != nil {
		return "xxxxx"
	}
	query := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if query.Has(name) {
			query.Set(name, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	return u.Redacted()
}

// GoString keeps %#v from printing the password.
func (d DSN) GoString() string { return d.String() }

// MarshalText keeps encoders from writing the password.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// LogValue implements slog.LogValuer.
func (d DSN) LogValue() slog.Value { return slog.StringValue(d.String()) }
