package maxmessenger

import (
	"cmp"
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"autopost/internal/sim"
)

// marked builds a text without markup.
type marked struct {
	out    strings.Builder
	length int // UTF-16 units
	marks  []sim.Mark
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

func (m *marked) write(s string) {
	m.out.WriteString(s)
	m.length += utf16Len(s)
}

func (m *marked) mark(kind string, from int, url string) {
	if m.length > from {
		m.marks = append(m.marks, sim.Mark{Type: kind, From: from, Length: m.length - from, URL: url})
	}
}

func (m *marked) done() (string, []sim.Mark) {
	slices.SortStableFunc(m.marks, func(a, b sim.Mark) int {
		return cmp.Or(a.From-b.From, b.Length-a.Length)
	})
	return m.out.String(), m.marks
}

// htmlMarks maps the known tags. The server strips all others.
var htmlMarks = map[string]string{
	"i": "emphasized", "em": "emphasized", "b": "strong", "strong": "strong",
	"del": "strikethrough", "s": "strikethrough", "ins": "underline", "u": "underline",
	"a": "link", "pre": "monospaced", "code": "monospaced", "mark": "highlighted", "h1": "heading",
}

type openTag struct {
	name, url string
	from      int
}

// parseHTML never fails: unknown tags are stripped or text.
func parseHTML(text string) (string, []sim.Mark) {
	var m marked
	var open []openTag
	for text != "" {
		lt := strings.IndexByte(text, '<')
		if lt != 0 {
			if lt < 0 {
				lt = len(text)
			}
			m.write(html.UnescapeString(text[:lt]))
			text = text[lt:]
			continue
		}
		end := strings.IndexByte(text, '>')
		if end < 2 || !unicode.IsLetter(rune(text[1])) && text[1] != '/' {
			m.write("<")
			text = text[1:]
			continue
		}
		tag := text[1:end]
		text = text[end+1:]
		if name, isEnd := strings.CutPrefix(tag, "/"); isEnd {
			open = closeTag(&m, open, strings.ToLower(strings.TrimSpace(name)))
			continue
		}
		name, attributes, _ := strings.Cut(tag, " ")
		open = append(open, openTag{name: strings.ToLower(name), url: href(attributes), from: m.length})
	}
	return m.done()
}

// closeTag marks the content of the innermost open tag with the name. It drops tags that are open inside.
func closeTag(m *marked, open []openTag, name string) []openTag {
	for i := len(open) - 1; i >= 0; i-- {
		if open[i].name != name {
			continue
		}
		kind := htmlMarks[name]
		if kind != "" && (kind != "link" || open[i].url != "") {
			m.mark(kind, open[i].from, open[i].url)
		}
		return open[:i]
	}
	return open
}

func href(attributes string) string {
	_, value, ok := strings.Cut(attributes, "href=")
	if !ok || value == "" {
		return ""
	}
	if quote := value[0]; quote == '"' || quote == '\'' {
		value, _, _ = strings.Cut(value[1:], string(quote))
	} else {
		value, _, _ = strings.Cut(value, " ")
	}
	return html.UnescapeString(value)
}

// markdownMarks are the delimiters, longer ones before their own prefixes.
var markdownMarks = []struct{ delimiter, kind string }{
	{"```", "monospaced"}, {"`", "monospaced"}, {"**", "strong"}, {"__", "strong"}, {"~~", "strikethrough"},
	{"++", "underline"}, {"^^", "highlighted"}, {"*", "emphasized"}, {"_", "emphasized"},
}

// parseMarkdown never fails: an unpaired delimiter is text.
func parseMarkdown(text string) (string, []sim.Mark) {
	var m marked
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			m.write("\n")
		}
		from := m.length
		heading, isHeading := strings.CutPrefix(line, "# ")
		m.markdown(heading)
		if isHeading {
			m.mark("heading", from, "")
		}
	}
	return m.done()
}

func (m *marked) markdown(line string) {
	for line != "" {
		if line[0] == '\\' && len(line) > 1 && unicode.IsPunct(rune(line[1])) {
			m.write(line[1:2])
			line = line[2:]
			continue
		}
		if rest, ok := m.span(line); ok {
			line = rest
			continue
		}
		_, size := utf8.DecodeRuneInString(line)
		m.write(line[:size])
		line = line[size:]
	}
}

// span writes the marked text at the start of line and returns the rest.
func (m *marked) span(line string) (rest string, ok bool) {
	from := m.length
	if text, after, found := strings.Cut(line, "]("); found && line[0] == '[' && len(text) > 1 {
		if target, rest, closed := strings.Cut(after, ")"); closed && target != "" {
			m.markdown(text[1:])
			m.mark("link", from, target)
			return rest, true
		}
	}
	for _, k := range markdownMarks {
		inner, found := strings.CutPrefix(line, k.delimiter)
		if !found {
			continue
		}
		end := strings.Index(inner, k.delimiter)
		if end <= 0 {
			continue
		}
		if k.kind == "monospaced" {
			m.write(inner[:end])
		} else {
			m.markdown(inner[:end])
		}
		m.mark(k.kind, from, "")
		return inner[end+len(k.delimiter):], true
	}
	return "", false
}
