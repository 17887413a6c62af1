package item

import (
	"regexp"
	"strings"
	"unicode/utf8"

	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// DropControl removes characters that XML, PostgreSQL or a platform refuses. It is a mapping for strings.Map.
func DropControl(r rune) rune {
	if r < 0x20 && r != '\n' && r != '\t' && r != '\r' || r == 0x7F {
		return -1
	}
	return r
}

// Clean returns s as one line of printable text.
func Clean(s string) string {
	return strings.Join(strings.Fields(strings.Map(DropControl, strings.ToValidUTF8(s, ""))), " ")
}

// breaks are the line breaks before and after an element.
var breaks = map[atom.Atom]int{
	atom.Li: 1, atom.Tr: 1, atom.Dt: 1, atom.Dd: 1, atom.Div: 1, atom.Section: 1, atom.Article: 1, atom.Figcaption: 1,
	atom.P: 2, atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Ul: 2, atom.Ol: 2, atom.Dl: 2,
	atom.Blockquote: 2, atom.Pre: 2, atom.Table: 2, atom.Hr: 2, atom.Figure: 2,
}

// silent elements have content that a browser does not show.
var silent = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Template: true, atom.Iframe: true, atom.Noscript: true, atom.Title: true,
}

var blankLines = regexp.MustCompile(`\n{3,}`)

// PlainText returns the visible text of HTML, without tags, with blocks on separate lines and decoded entities.
func PlainText(source string) string {
	var (
		out      reading
		skipping atom.Atom
	)
	tokens := nethtml.NewTokenizer(strings.NewReader(source))
	for {
		switch kind := tokens.Next(); kind {
		case nethtml.ErrorToken:
			return Tidy(out.String())
		case nethtml.TextToken:
			if skipping == 0 {
				out.write(spaces(string(tokens.Text())))
			}
		case nethtml.StartTagToken, nethtml.SelfClosingTagToken, nethtml.EndTagToken:
			raw := string(tokens.Raw())
			name, attributes := tokens.TagName()
			tag := atom.Lookup(name)
			switch {
			case skipping != 0:
				if kind == nethtml.EndTagToken && tag == skipping {
					skipping = 0
				}
			case kind == nethtml.StartTagToken && silent[tag]:
				skipping = tag
			case tag == 0 && kind == nethtml.StartTagToken && !attributes && !strings.ContainsAny(raw, "-:"):
				out.write(raw) // not an HTML tag, like "Vec<T>" in a title
			case tag == atom.Br:
				out.pending = min(out.pending+1, 2)
			default:
				out.pending = max(out.pending, breaks[tag])
			}
		}
	}
}

// reading collects text, and the line breaks that are pending before the next text. So adjacent ends and starts of
// blocks give one break.
type reading struct {
	strings.Builder
	pending int
}

func (r *reading) write(text string) {
	if r.pending > 0 {
		if strings.TrimSpace(text) == "" {
			return
		}
		r.WriteString(strings.Repeat("\n", r.pending))
		r.pending = 0
	}
	r.WriteString(text)
}

// spaces replaces the line breaks of HTML source, which have no meaning, by spaces.
func spaces(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ", "\t", " ", "\u00A0", " ").Replace(s)
}

// Tidy trims lines and collapses spaces and empty lines.
func Tidy(s string) string {
	s = strings.Map(DropControl, strings.ToValidUTF8(s, ""))
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.TrimSpace(blankLines.ReplaceAllString(strings.Join(lines, "\n"), "\n\n"))
}

// markup finds a tag of HTML.
var markup = regexp.MustCompile(`(?i)</(?:a|b|i|em|strong|p|div|span|li|ul|ol|h[1-6]|td|table|blockquote|figure)>|<(?:br|p|hr|img)\b[^>]*>`)

// Readable returns the visible text of a source that may be HTML. Without a tag the lines stay as they are.
func Readable(source string) string {
	if markup.MatchString(source) {
		return PlainText(source)
	}
	return Tidy(source)
}

// Headline returns the visible text of HTML on one line.
func Headline(source string) string { return Clean(PlainText(source)) }

// Shorten cuts s to at most limit characters.
func Shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}
