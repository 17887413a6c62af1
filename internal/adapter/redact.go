package adapter

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"autopost"
)

const (
	maxRaw     = 2 << 10
	maxMessage = 500
	hidden     = "[redacted]"
)

// Redactor takes a secret out of what is kept of a call. The zero value takes out nothing.
type Redactor struct{ replacer *strings.Replacer }

// Hide makes the redactor of a secret, or of several parts of one: each whole, what
// is after its first colon (of a bot token that is the secret proper), and both as
// they look escaped in a URL, in JSON or in Go.
func Hide(secrets ...autopost.Secret) Redactor {
	var forms []string
	for _, secret := range secrets {
		value := secret.Reveal()
		if value != "" {
			forms = append(forms, value)
		}
		if _, proper, ok := strings.Cut(value, ":"); ok && proper != "" {
			forms = append(forms, proper)
		}
	}
	if len(forms) == 0 {
		return Redactor{}
	}
	for _, form := range slices.Clone(forms) {
		quoted := strconv.Quote(form)
		forms = append(forms, url.PathEscape(form), url.QueryEscape(form), quoted[1:len(quoted)-1], string(encode(form, true)))
	}
	// The longest first: a part must not be taken out of the whole.
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, hidden)
	}
	return Redactor{strings.NewReplacer(pairs...)}
}

// Text gives at most 500 bytes of s, fit for any database, without the secret.
func (r Redactor) Text(s string) string { return cut(r.clean(s), maxMessage) }

// Raw gives an answer as JSON of at most 2 KiB without the secret: as it is where
// it is JSON and fits, else its beginning as a JSON string. PostgreSQL stores it: no NUL.
func (r Redactor) Raw(body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	if value, ok := decode(body); ok {
		// Encoded anew, so that no escape in the answer hides the secret.
		text := r.clean(string(encode(value, false)))
		if len(text) <= maxRaw && json.Valid([]byte(text)) && !strings.Contains(text, `\u0000`) {
			return json.RawMessage(text)
		}
		body = []byte(text)
	}
	text := r.clean(string(body))
	for length := maxRaw - 2; ; length = length * 3 / 4 {
		if out := encode(cut(text, length), false); len(out) <= maxRaw {
			return out
		}
	}
}

func (r Redactor) clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if r.replacer == nil {
		return s
	}
	return r.replacer.Replace(s)
}

// decode reads JSON keeping its numbers digit by digit. A number beyond a double
// is refused: PostgreSQL might not take it.
func decode(body []byte) (any, bool) {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return value, decoder.Decode(&value) == nil
}

// encode gives JSON without the escaping meant for HTML; bare gives a string without its quotes.
func encode(value any, bare bool) []byte {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return []byte(`""`)
	}
	out := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if bare {
		out = out[1 : len(out)-1]
	}
	return out
}

// cut shortens s to at most limit bytes, at a character's border.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
