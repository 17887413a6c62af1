// Package telemetry writes logs, metrics and traces.
package telemetry

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lmittmann/tint"
)

const redacted = "[redacted]"

// NewLogger returns a logger that writes records of at least the given level to w: coloured lines if w is a terminal,
// JSON objects otherwise.
//
// It is the last protection against a credential in a log. It replaces values whose key names a credential, and in any
// other text the passwords of URLs, bot tokens in Telegram addresses and bearer tokens.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	return newLogger(w, level, isTerminal(w))
}

func newLogger(w io.Writer, level slog.Level, terminal bool) *slog.Logger {
	scrubbed := scrubber{w}
	if terminal {
		return slog.New(tint.NewTextHandler(scrubbed, &tint.Options{
			Level: level, TimeFormat: time.TimeOnly, ReplaceAttr: redactKeys,
		}))
	}
	return slog.New(slog.NewJSONHandler(scrubbed, &slog.HandlerOptions{Level: level, ReplaceAttr: redactKeys}))
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// redactKeys replaces the value of an attribute whose key, or whose group, names a credential.
func redactKeys(groups []string, attr slog.Attr) slog.Attr {
	if namesSecret(attr.Key) || slices.ContainsFunc(groups, namesSecret) {
		return slog.String(attr.Key, redacted)
	}
	return attr
}

// separators separate the words of a key.
var separators = strings.NewReplacer("_", "", "-", "", ".", "")

func namesSecret(key string) bool {
	key = strings.ToLower(separators.Replace(key))
	for _, word := range []string{"token", "secret", "password", "passwd", "authorization", "apikey", "cookie"} {
		if strings.HasSuffix(key, word) {
			return true
		}
	}
	return false
}

// credential is one form of a credential in a message, an error or a URL.
type credential struct {
	// hints are in lower case; a text with the credential contains one of them. The search for them is cheap.
	hints []string
	// form is replaced by its first group and rest.
	form *regexp.Regexp
	rest string
}

var credentials = []credential{
	{[]string{"://"}, regexp.MustCompile(`([a-z][a-z0-9+.-]*://[^\s:/@"]*:)[^\s/"]*@`), redacted + "@"},
	{[]string{"/bot"}, regexp.MustCompile(`(/bot\d+(?::|%3[Aa]))[\w%-]+`), redacted},
	{[]string{"bearer", "basic", "oauth"}, regexp.MustCompile(`(?i)(\b(?:bearer|basic|oauth)\s+)[\w+/=.~-]{8,}`), redacted},
	{[]string{"=", "%3d"}, regexp.MustCompile(`(?i)((?:password|access_token|refresh_token|client_secret)(?:=|%3d))(?:'[^']*'|[^\s&"]+)`), redacted},
}

// in reports whether a text in lower case may contain the credential.
func (c credential) in(text []byte) bool {
	return slices.ContainsFunc(c.hints, func(hint string) bool { return bytes.Contains(text, []byte(hint)) })
}

// scrubber redacts whole records: handlers write one at a time.
type scrubber struct{ to io.Writer }

func (s scrubber) Write(record []byte) (int, error) {
	clean, lower := record, bytes.ToLower(record)
	for _, c := range credentials {
		if c.in(lower) {
			clean = c.form.ReplaceAll(clean, []byte("${1}"+c.rest))
		}
	}
	if _, err := s.to.Write(clean); err != nil {
		return 0, err
	}
	return len(record), nil
}
