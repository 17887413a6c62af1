package adaptertest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"autopost"
)

// results collects the results of an operation as users may see them.
type results struct {
	mu     sync.Mutex
	values []any
}

func (o *results) add(values ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.values = append(o.values, values...)
}

func (o *results) emit(_ context.Context, step autopost.Acknowledged) error {
	o.add(step)
	return nil
}

func (o *results) send(ctx context.Context, b *bench, d autopost.Delivery) {
	call := b.call(d)
	call.Emit = o.emit
	outcome := b.adapter.Send(ctx, call)
	o.add(outcome, call.Secret)
	if outcome.Error != nil {
		o.add(*outcome.Error, outcome.Error.String())
	}
	o.add(b.media.Forgets(), b.adapter)
}

// failures returns the failures among the results.
func (o *results) failures() []autopost.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []autopost.Error
	for _, value := range o.values {
		switch v := value.(type) {
		case autopost.Error:
			out = append(out, v)
		case *autopost.Error:
			if v != nil {
				out = append(out, *v)
			}
		case autopost.Verdict:
			if v.Error != nil {
				out = append(out, *v.Error)
			}
		}
	}
	return out
}

// outputs returns the results in each output format.
func (o *results) outputs() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var text, structured bytes.Buffer
	debug := &slog.HandlerOptions{Level: slog.LevelDebug}
	loggers := []*slog.Logger{slog.New(slog.NewTextHandler(&text, debug)), slog.New(slog.NewJSONHandler(&structured, debug))}
	out := map[string]string{}
	for _, value := range o.values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			out[verb] += fmt.Sprintf(verb+"\n", value)
		}
		if encoded, err := json.Marshal(value); err == nil {
			out["JSON"] += string(encoded) + "\n"
		}
		if failure, ok := value.(autopost.Error); ok {
			out["raw"] += string(failure.Raw) + "\n"
		}
		if outcome, ok := value.(autopost.Outcome); ok {
			out["ids"] += outcome.ProviderMessageID + " " + string(outcome.Raw) + "\n"
		}
		for _, logger := range loggers {
			logger.Debug("got", "value", value)
		}
	}
	out["log as text"], out["log as JSON"] = text.String(), structured.String()
	return out
}

// plain is the unescaped form of a secret.
const plain = "as it is"

// escapes are the forms in which a server returns secrets.
var escapes = map[string]func([]string) string{
	plain:        func(s []string) string { return strings.Join(s, " ") },
	"path":       each(url.PathEscape),
	"query":      each(url.QueryEscape),
	"small hex":  each(func(s string) string { return strings.ToLower(everyByte(s, "%%%02x")) }),
	"JSON":       each(func(s string) string { return everyByte(s, `\u%04x`) }),
	"slashes":    each(func(s string) string { return strings.NewReplacer("/", `\/`, `"`, `\"`).Replace(s) }),
	"Go":         each(strconv.Quote),
	"HTML":       each(html.EscapeString),
	"references": each(func(s string) string { return everyByte(s, "&#x%x;") }),
	"twice":      each(func(s string) string { return url.QueryEscape(everyByte(s, "%%%02X")) }),
	"base64":     each(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
	"base64 of a URL": each(func(s string) string {
		return base64.RawURLEncoding.EncodeToString([]byte("?" + s + "?"))
	}),
	"Basic": each(func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("client:"+s)) }),
}

func each(escape func(string) string) func([]string) string {
	return func(secrets []string) string {
		var out []string
		for _, secret := range secrets {
			out = append(out, escape(secret))
		}
		return strings.Join(out, " ")
	}
}

func everyByte(s, format string) string {
	var out strings.Builder
	for _, b := range []byte(s) {
		fmt.Fprintf(&out, format, b)
	}
	return out.String()
}

// shells are the forms of answers around the secrets, some of them not the platform's.
var shells = map[string]func(string) string{
	"words": func(s string) string {
		return fmt.Sprintf(`{"ok":false,"success":false,"error_code":400,"description":"%[1]s","code":"%[1]s","message":"%[1]s","title":"%[1]s",
			"detail":"%[1]s","type":"%[1]s","error":"invalid_grant","error_description":"%[1]s","errors":[{"message":"%[1]s"}]}`, s)
	},
	"an object": func(s string) string {
		return fmt.Sprintf(`{"error":{"code":400,"message":"%[1]s","errors":[{"reason":"%[1]s","message":"%[1]s"}]}}`, s)
	},
	"a page": func(s string) string { return "<html><body>" + s + "</body></html>" },
}

// traces returns the parts of secrets that a text contains in any form.
func traces(text string, secrets []string) []string {
	var found []string
	for range 4 {
		views := []string{text, strings.ReplaceAll(text, "+", " ")}
		for _, run := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune(base64Letters, r) }) {
			run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
			for from := range min(4, len(run)/3) {
				if decoded, err := base64.RawStdEncoding.DecodeString(run[from : from+(len(run)-from)/4*4]); err == nil {
					views = append(views, string(decoded))
				}
			}
		}
		whole := strings.Join(views, "\n")
		for _, secret := range secrets {
			for _, part := range parts(secret) {
				if strings.Contains(whole, part) {
					found = append(found, part)
				}
			}
		}
		bare := escape.ReplaceAllStringFunc(text, func(s string) string {
			switch {
			case s[0] == '%':
				return char(s[1:])
			case len(s) == 6:
				return char(s[2:])
			}
			return s[1:]
		})
		if bare = html.UnescapeString(bare); bare == text {
			break
		}
		text = bare
	}
	return found
}

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"

var escape = regexp.MustCompile(`%[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.`)

// parts returns a secret and the pieces that remain when it is cut.
func parts(secret string) []string {
	out := []string{secret, strings.ReplaceAll(secret, "+", " ")}
	if n := len(secret); n > 16 {
		out = append(out, secret[:n-1], secret[n-8:], secret[n/2-4:n/2+4])
	}
	return out
}

func char(digits string) string {
	code, err := strconv.ParseUint(digits, 16, 32)
	if err != nil {
		return digits
	}
	if len(digits) == 2 {
		return string([]byte{byte(code)})
	}
	return string(rune(code))
}
