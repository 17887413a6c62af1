package adapter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"autopost"
)

const (
	maxRaw     = 2 << 10
	maxMessage = 500
	// maxSearched is far more than is ever kept, in bytes.
	maxSearched = 64 << 10
	// widest is how many bytes may stand for one, escaped: \u0041.
	widest = 6
	hidden = "[redacted]"
)

// Redactor takes a secret out of what is kept of a call. The zero value takes out nothing.
type Redactor struct {
	// needles are what is looked for, the longest first.
	needles []string
}

// Hide makes the redactor of a secret, or of several parts of one: each whole, what
// is after its first colon (of a bot token that is the secret proper), and both in
// base64, alone or behind whatever else was encoded with them. A platform may give
// back any of them escaped for a URL, for JSON, for HTML or for Go, twice even.
func Hide(secrets ...autopost.Secret) Redactor {
	var needles []string
	for _, secret := range secrets {
		value := secret.Reveal()
		_, proper, _ := strings.Cut(value, ":")
		for _, form := range []string{value, proper} {
			if form != "" {
				needles = append(append(needles, form), inBase64(form)...)
			}
		}
	}
	// The longest first: a part must not be taken out of the whole.
	slices.SortStableFunc(needles, func(a, b string) int { return len(b) - len(a) })
	return Redactor{slices.Compact(needles)}
}

// leastEncoded is how long a form in base64 must be to be told from other text.
const leastEncoded = 8

// inBase64 is what a secret certainly contributes to a text in base64, wherever in it
// the secret begins.
func inBase64(secret string) []string {
	var forms []string
	for before := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + secret))
		begin := []int{0, 2, 3}[before]
		end := (before + len(secret)) * 8 / 6
		if end-begin >= leastEncoded {
			text = text[begin:end]
			forms = append(forms, text, strings.NewReplacer("+", "-", "/", "_").Replace(text))
		}
	}
	return forms
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
		text := r.clean(string(encode(value)))
		if len(text) <= maxRaw && json.Valid([]byte(text)) && !strings.Contains(text, `\u0000`) {
			return json.RawMessage(text)
		}
		body = []byte(text)
	}
	text := r.clean(string(body))
	for length := maxRaw - 2; ; length = length * 3 / 4 {
		if out := encode(cut(text, length)); len(out) <= maxRaw {
			return out
		}
	}
}

// clean takes the secret out of a text in which it may be escaped.
func (r Redactor) clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if len(r.needles) == 0 {
		return s
	}
	// What is searched is bounded; the half of a secret that a cut leaves goes with its surroundings.
	whole := len(s) <= maxSearched
	s = cut(s, maxSearched)
	cuts := r.find(s)
	var out strings.Builder
	at := 0
	for _, c := range cuts {
		if c.from >= at {
			out.WriteString(s[at:c.from] + hidden)
		}
		at = max(at, c.to)
	}
	out.WriteString(s[at:])
	if !whole {
		return cut(out.String(), max(0, out.Len()-widest*len(r.needles[0])))
	}
	return out.String()
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

// encode gives JSON without the escaping meant for HTML.
func encode(value any) []byte {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return []byte(`""`)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
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
