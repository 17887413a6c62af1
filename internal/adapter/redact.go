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
	// maxSearched bounds the text that is searched, in bytes. Less is kept.
	maxSearched = 64 << 10
	// widest is the maximum number of bytes of one escaped byte: \u0041.
	widest = 6
	hidden = "[redacted]"
)

// Redactor removes secrets from texts that are kept. The zero value removes nothing.
type Redactor struct {
	// needles are the texts to remove, longest first.
	needles []string
}

// Hide returns a Redactor for a secret, or for several parts of one. It removes each whole part, the
// part after its first colon (the secret half of a bot token), and both in base64, also with other data
// encoded in front. It finds them escaped for a URL, JSON, HTML or Go, even twice.
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
	// Longest first, so that a part is not removed from a longer match.
	slices.SortStableFunc(needles, func(a, b string) int { return len(b) - len(a) })
	return Redactor{slices.Compact(needles)}
}

// leastEncoded is the minimum length of a base64 form; shorter forms match other text.
const leastEncoded = 8

// inBase64 returns the parts of a base64 text that the secret determines, for each position of the
// secret in it.
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

// Text returns at most 500 bytes of s without the secret. PostgreSQL can store it.
func (r Redactor) Text(s string) string { return cut(r.clean(s), maxMessage) }

// Raw returns an answer as at most 2 KiB of JSON without the secret: unchanged if it is short JSON,
// else its start as a JSON string. PostgreSQL can store it.
func (r Redactor) Raw(body []byte) json.RawMessage { return r.Whole(body, maxRaw) }

// Whole is Raw with another limit, in bytes.
func (r Redactor) Whole(body []byte, limit int) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	if value, ok := decode(body); ok {
		// Encode again, so that no escape in the answer hides the secret.
		text := r.clean(string(encode(value)))
		if len(text) <= limit && json.Valid([]byte(text)) && !strings.Contains(text, `\u0000`) {
			return json.RawMessage(text)
		}
		body = []byte(text)
	}
	text := r.clean(string(body))
	for length := limit - 2; ; length = length * 3 / 4 {
		if out := encode(cut(text, length)); len(out) <= limit {
			return out
		}
	}
}

// clean removes the secret from a text, also if it is escaped.
func (r Redactor) clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if len(r.needles) == 0 {
		return s
	}
	// The search is bounded. Half a secret at the cut is removed with the text around it.
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

// decode parses JSON with exact numbers. A number outside the range of a double is an error, because
// PostgreSQL may reject it.
func decode(body []byte) (any, bool) {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return value, decoder.Decode(&value) == nil
}

// encode returns JSON without escapes for HTML.
func encode(value any) []byte {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return []byte(`""`)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// cut shortens s to at most limit bytes, at a character boundary.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
