package adapter

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// layers is the number of nested escapes that find removes.
const layers = 3

// span is a byte range of a text.
type span struct{ from, to int }

// find returns the ranges of the text that contain a needle, escaped or not, in order of their start.
func (r Redactor) find(text string) []span {
	var found []span
	seen := legible{text: text}
	for layer := range layers + 1 {
		for _, needle := range r.needles {
			if layer > 0 {
				needle = strings.ReplaceAll(needle, "+", " ") // unescape replaces plus
			}
			for at := 0; ; {
				n := strings.Index(seen.text[at:], needle)
				if n < 0 {
					break
				}
				at += n + len(needle)
				found = append(found, span{seen.place(at - len(needle)), seen.place(at)})
			}
		}
		next := seen.unescape()
		if next.text == seen.text {
			break
		}
		seen = next
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	return found
}

// legible is a text without its escapes.
type legible struct {
	text string
	// places are the offsets of each byte in the original text, and its end; nil means an unchanged
	// text.
	places []int
}

func (l legible) place(i int) int {
	if l.places == nil {
		return i
	}
	return l.places[i]
}

// unescape removes one layer of escapes: of URLs, JSON, Go and HTML. A plus becomes a space, as in a
// query.
func (l legible) unescape() legible {
	var out strings.Builder
	var places []int
	for at := 0; at < len(l.text); {
		plain, width := escaped(l.text[at:])
		for range len(plain) {
			places = append(places, l.place(at))
		}
		out.WriteString(plain)
		at += width
	}
	return legible{out.String(), append(places, l.place(len(l.text)))}
}

// escaped returns the first character of a text, unescaped, and the number of bytes that represent it.
func escaped(text string) (plain string, width int) {
	switch text[0] {
	case '+':
		return " ", 1
	case '%':
		if len(text) >= 3 {
			if b, err := strconv.ParseUint(text[1:3], 16, 8); err == nil {
				return string([]byte{byte(b)}), 3
			}
		}
	case '\\':
		if len(text) >= 6 && text[1] == 'u' {
			if r, err := strconv.ParseUint(text[2:6], 16, 16); err == nil {
				return string(rune(r)), 6
			}
		}
		if len(text) >= 2 && strings.IndexByte(`"\/'`, text[1]) >= 0 {
			return text[1:2], 2
		}
	case '&':
		if end := strings.IndexByte(text[:min(len(text), 10)], ';'); end > 0 {
			if plain := html.UnescapeString(text[:end+1]); utf8.RuneCountInString(plain) == 1 {
				return plain, end + 1
			}
		}
	}
	return text[:1], 1
}
