package push

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"autopost/internal/problem"
)

const (
	maxItems = 100
	maxDepth = 32
	// maxExponent and maxDigits are below the limits of numeric in PostgreSQL.
	maxExponent = 308
	maxDigits   = 1000
)

// item is one post as it was sent, with the errors in its syntax.
type item struct {
	raw    json.RawMessage
	faults []problem.Fault
}

// batch is a body with one post or an array of posts.
type batch struct {
	items []item
	array bool
}

// sound returns the posts that the database can store.
func (b batch) sound() []json.RawMessage {
	var raws []json.RawMessage
	for _, it := range b.items {
		if len(it.faults) == 0 {
			raws = append(raws, it.raw)
		}
	}
	return raws
}

func join(raws []json.RawMessage) json.RawMessage {
	array := []byte{'['}
	for i, raw := range raws {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, raw...)
	}
	return append(array, ']')
}

// merge combines the answers for the sound posts with the results of the others.
func (b batch) merge(answers []result) []result {
	all := make([]result, 0, len(b.items))
	for _, it := range b.items {
		if len(it.faults) > 0 {
			all = append(all, result{Status: statusRejected, Errors: it.faults})
			continue
		}
		all = append(all, answers[0])
		answers = answers[1:]
	}
	return all
}

// parse splits a body into posts. It finds values that jsonb of PostgreSQL would refuse, so that the source learns the
// field and does not retry.
func parse(body []byte) (batch, *problem.Problem) {
	if wrong := syntax(body); wrong != nil {
		return batch{}, notJSON(wrong)
	}
	var b batch
	switch trimmed := bytes.TrimLeft(body, " \t\r\n"); trimmed[0] {
	case '{':
		b.items = []item{{raw: trimmed}}
	case '[':
		b.array = true
		n, err := 0, error(nil)
		if b.items, n, err = elements(body); err != nil {
			return batch{}, notJSON(err)
		} else if n > maxItems {
			return batch{}, tooMany(n)
		}
	default:
		return batch{}, wrongForm("neither an object nor an array", "send one post as an object, or an array of them")
	}
	if len(b.items) == 0 {
		return batch{}, tooMany(0)
	}
	for i := range b.items {
		b.items[i].faults = faults(b.items[i].raw)
	}
	return b, nil
}

// elements splits an array. It keeps at most maxItems elements, but counts all: a small body may have very many.
func elements(body []byte) (items []item, n int, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if _, err := decoder.Token(); err != nil {
		return nil, 0, err
	}
	for raw := json.RawMessage(nil); decoder.More(); n++ {
		if err := decoder.Decode(&raw); err != nil {
			return nil, 0, err
		}
		if n < maxItems {
			items = append(items, item{raw: bytes.Clone(raw)})
		}
	}
	return items, n, nil
}

func tooMany(n int) *problem.Problem {
	return wrongForm(fmt.Sprintf("an array of %d posts", n), fmt.Sprintf("send 1 to %d posts at once", maxItems))
}

// ErrUnstorable means that a body is JSON but PostgreSQL cannot store it.
var ErrUnstorable = errors.New("cannot be stored")

// Object reads a body that must be one JSON object, like an update of a platform. The error is ErrUnstorable if the
// JSON is valid but jsonb of PostgreSQL would refuse it.
func Object(body []byte) (json.RawMessage, error) {
	if wrong := syntax(body); wrong != nil {
		return nil, wrong
	}
	object := bytes.TrimLeft(body, " \t\r\n")
	if object[0] != '{' {
		return nil, errors.New("it is another JSON value")
	}
	if wrong := faults(object); len(wrong) > 0 {
		return nil, fmt.Errorf("%w: %s %s", ErrUnstorable, wrong[0].Field, wrong[0].Reason)
	}
	return object, nil
}

// syntax returns an error with the byte offset if a body is not JSON in UTF-8.
func syntax(body []byte) error {
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 {
			return fmt.Errorf("invalid UTF-8, at byte %d", i)
		}
		i += size
	}
	var whole json.RawMessage
	err := json.Unmarshal(body, &whole)
	if wrong := (*json.SyntaxError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%w, at byte %d", wrong, wrong.Offset)
	}
	if err != nil {
		return fmt.Errorf("%w, at byte 0", err)
	}
	return nil
}

func notJSON(wrong error) *problem.Problem {
	return problem.NotJSON.Says("The body is not JSON: %s. Send one post as an object, or an array of them, in UTF-8.", wrong)
}

func wrongForm(reason, remedy string) *problem.Problem {
	p := problem.WrongBody.Says("The body has the wrong form, %s: %s.", reason, remedy)
	p.Errors = []problem.Fault{{Field: "body", Reason: reason, Remedy: remedy}}
	return p
}

// faults returns the first value of a post that PostgreSQL would refuse, if there is one.
func faults(raw json.RawMessage) []problem.Fault {
	if raw[0] != '{' {
		return []problem.Fault{{Field: "body", Reason: "not an object", Remedy: "send each post as an object"}}
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var at path
	for {
		start := decoder.InputOffset()
		token, err := decoder.Token()
		if err != nil {
			// The syntax was checked before: this is the end.
			return nil
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '}' || token == ']' {
				at.leave()
				continue
			}
			if len(at) == maxDepth {
				return []problem.Fault{{Field: at.String(), Reason: fmt.Sprintf("nested deeper than %d levels", maxDepth), Remedy: "send a flatter object"}}
			}
			at.enter(token == '[')
		case string:
			isKey := at.isKey()
			if isKey {
				at.key(token)
			}
			if reason := badText(raw[start:decoder.InputOffset()]); reason != "" {
				return []problem.Fault{{Field: at.String(), Reason: reason, Remedy: "remove the character"}}
			}
			if !isKey {
				at.value()
			}
		case json.Number:
			if !storable(token) {
				return []problem.Fault{{Field: at.String(), Reason: "number out of range", Remedy: "send it as a string"}}
			}
			at.value()
		default:
			at.value()
		}
	}
}

// badText returns the reason why jsonb would refuse a string literal: NUL and unpaired surrogates, which the decoder of
// Go replaces silently.
func badText(literal []byte) string {
	for i := 0; i < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		i++
		if literal[i] != 'u' {
			continue
		}
		unit := escaped(literal[i:])
		i += 4
		switch {
		case unit == 0:
			return "contains the NUL character"
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return "contains half a surrogate pair"
		case unit >= 0xD800 && unit <= 0xDBFF:
			if literal[i+1] != '\\' || literal[i+2] != 'u' {
				return "contains half a surrogate pair"
			}
			if low := escaped(literal[i+2:]); low < 0xDC00 || low > 0xDFFF {
				return "contains half a surrogate pair"
			}
			i += 6
		}
	}
	return ""
}

// escaped reads the code unit of "uXXXX"; the syntax was checked before.
func escaped(u []byte) uint64 {
	unit, _ := strconv.ParseUint(string(u[1:5]), 16, 16)
	return unit
}

func storable(n json.Number) bool {
	if len(n) > maxDigits {
		return false
	}
	_, exponent, found := strings.Cut(strings.ToLower(n.String()), "e")
	if !found {
		return true
	}
	e, err := strconv.Atoi(exponent)
	return err == nil && e >= -maxExponent && e <= maxExponent
}

// path is the path from the object of a post to the present value.
type path []level

type level struct {
	array bool
	index int
	name  string
	// named means that the key of a member was read and its value is next.
	named bool
}

func (p *path) enter(array bool) { *p = append(*p, level{array: array}) }

// leave ends an object or array, which is a value of its parent.
func (p *path) leave() {
	*p = (*p)[:len(*p)-1]
	p.value()
}

func (p path) isKey() bool {
	top := p[len(p)-1]
	return !top.array && !top.named
}

func (p path) key(name string) {
	p[len(p)-1].name, p[len(p)-1].named = name, true
}

// value records that a value was read.
func (p path) value() {
	if len(p) == 0 {
		return
	}
	p[len(p)-1].named = false
	p[len(p)-1].index++
}

// String returns the path in the form media[0].caption, at most 200 bytes.
func (p path) String() string {
	var b strings.Builder
	for _, l := range p {
		switch {
		case l.array:
			fmt.Fprintf(&b, "[%d]", l.index)
		case b.Len() > 0:
			b.WriteString("." + l.name)
		default:
			b.WriteString(l.name)
		}
	}
	name := strings.ReplaceAll(b.String(), "\x00", "")
	return strings.ToValidUTF8(name[:min(len(name), 200)], "")
}
