package telegram

import (
	"strings"
	"unicode/utf8"
)

// markdownSpan is an open entity of MarkdownV2.
type markdownSpan struct {
	// kind is the name in the parser's errors.
	kind     string
	offset   int // UTF-16 units of the result
	at       int // byte of the input
	begin    int // byte of the result
	language string
}

var markdownTypes = map[string]string{
	"Bold": "bold", "Italic": "italic", "Underline": "underline", "Strikethrough": "strikethrough",
	"Spoiler": "spoiler", "Code": "code", "Pre": "pre", "PreCode": "pre", "TextUrl": "text_link",
}

var markdownMarkers = map[string]string{
	"Bold": "*", "Italic": "_", "Underline": "__", "Strikethrough": "~", "Spoiler": "||",
	"Code": "`", "Pre": "```", "PreCode": "```", "TextUrl": "]",
}

// markdownParser parses MarkdownV2 without custom emoji.
type markdownParser struct {
	in       string
	pos      int
	out      strings.Builder
	offset   int
	open     []markdownSpan
	entities []Entity
	// quote is the offset of an open quote, -1 if there is none. quoteDepth is the number of spans that were
	// open at its beginning.
	quote, quoteDepth int
}

func parseMarkdownV2(text string) (formatted, error) {
	p := markdownParser{in: text, quote: -1}
	for p.pos < len(p.in) {
		if err := p.step(); err != nil {
			return formatted{}, err
		}
	}
	if err := p.endQuote(); err != nil {
		return formatted{}, err
	}
	if len(p.open) > 0 {
		return formatted{}, p.unclosed()
	}
	return formatted{text: p.out.String(), entities: p.entities}, nil
}

func (p *markdownParser) unclosed() error {
	last := p.open[len(p.open)-1]
	return parseErrorf("Can't find end of %s entity at byte offset %d", last.kind, last.at)
}

func (p *markdownParser) rest() string { return p.in[p.pos:] }

func (p *markdownParser) emit() {
	r, size := utf8.DecodeRuneInString(p.rest())
	p.out.WriteRune(r)
	p.offset += utf16Len(string(r))
	p.pos += size
}

// top returns the kind of the innermost open span; "" if there is none.
func (p *markdownParser) top() string {
	if len(p.open) == 0 {
		return ""
	}
	return p.open[len(p.open)-1].kind
}

func (p *markdownParser) step() error {
	c := p.in[p.pos]
	if c == '\\' && p.pos+1 < len(p.in) && p.in[p.pos+1] > 0 && p.in[p.pos+1] <= 126 {
		p.pos++
		p.emit()
		return nil
	}
	top := p.top()
	inCode := top == "Code" || top == "Pre" || top == "PreCode"
	if !inCode && p.lineStart() {
		if c == '>' || strings.HasPrefix(p.rest(), "**>") {
			if c == '*' || p.quote < 0 {
				if err := p.endQuote(); err != nil {
					return err
				}
				p.quote, p.quoteDepth = p.offset, len(p.open)
			}
			p.pos += strings.IndexByte(p.rest(), '>') + 1
			return nil
		}
		if err := p.endQuote(); err != nil {
			return err
		}
	}
	if inCode && c != '`' {
		p.emit()
		return nil
	}
	if !strings.ContainsRune("_*[]()~`>#+-=|{}.!", rune(c)) || c == '\\' {
		if c == '\n' && p.quote >= 0 {
			p.expandQuote()
		}
		p.emit()
		return nil
	}
	if p.closes(top) {
		return p.end()
	}
	return p.begin(c)
}

func (p *markdownParser) lineStart() bool {
	return p.pos == 0 || p.in[p.pos-1] == '\n' || p.in[p.pos-1] == '\r'
}

// closes reports whether the marker of the innermost span is at the current position.
func (p *markdownParser) closes(top string) bool {
	if top == "" || !strings.HasPrefix(p.rest(), markdownMarkers[top]) {
		return false
	}
	return top != "Italic" || !strings.HasPrefix(p.rest(), "__")
}

func (p *markdownParser) begin(c byte) error {
	span := markdownSpan{offset: p.offset, at: p.pos, begin: p.out.Len()}
	switch {
	case strings.HasPrefix(p.rest(), "__"):
		span.kind = "Underline"
	case c == '_':
		span.kind = "Italic"
	case c == '*':
		span.kind = "Bold"
	case c == '~':
		span.kind = "Strikethrough"
	case strings.HasPrefix(p.rest(), "||"):
		span.kind = "Spoiler"
	case c == '[':
		span.kind = "TextUrl"
	case strings.HasPrefix(p.rest(), "```"):
		p.open = append(p.open, p.beginPre(span))
		return nil
	case c == '`':
		span.kind = "Code"
	default:
		return parseErrorf("Character '%c' is reserved and must be escaped with the preceding '\\'", c)
	}
	p.pos += len(markdownMarkers[span.kind])
	p.open = append(p.open, span)
	return nil
}

// beginPre reads the language after the marker if white space ends it.
func (p *markdownParser) beginPre(span markdownSpan) markdownSpan {
	p.pos += len("```")
	span.kind = "Pre"
	end := strings.IndexAny(p.rest(), " \t\r\n`")
	if end > 0 && p.rest()[end] != '`' {
		span.kind, span.language = "PreCode", p.rest()[:end]
		p.pos += end
	}
	for _, newline := range []string{"\r\n", "\n\r", "\n", "\r"} {
		if strings.HasPrefix(p.rest(), newline) {
			p.pos += len(newline)
			break
		}
	}
	return span
}

func (p *markdownParser) end() error {
	last := p.open[len(p.open)-1]
	p.pos += len(markdownMarkers[last.kind])
	p.open = p.open[:len(p.open)-1]
	e := Entity{Type: markdownTypes[last.kind], Offset: last.offset, Length: p.offset - last.offset, Language: last.language}
	if last.kind == "TextUrl" {
		target := p.out.String()[last.begin:]
		if strings.HasPrefix(p.rest(), "(") {
			var err error
			if target, err = p.url(); err != nil {
				return err
			}
		}
		if e.URL = link(target); e.URL == "" {
			return nil
		}
	}
	if e.Length > 0 {
		p.entities = append(p.entities, e)
	}
	return nil
}

func (p *markdownParser) url() (string, error) {
	begin := p.pos
	p.pos++
	var target strings.Builder
	for ; p.pos < len(p.in); p.pos++ {
		c := p.in[p.pos]
		if c == ')' {
			p.pos++
			return target.String(), nil
		}
		if c == '\\' && p.pos+1 < len(p.in) && p.in[p.pos+1] <= 126 {
			p.pos++
			c = p.in[p.pos]
		}
		target.WriteByte(c)
	}
	return "", parseErrorf("Can't find end of a URL at byte offset %d", begin)
}

// expandQuote makes the quote expandable if its last line ends with an unpaired "||".
func (p *markdownParser) expandQuote() {
	if strings.HasPrefix(p.rest(), "\n>") {
		return
	}
	n := len(p.open)
	if n > p.quoteDepth && p.open[n-1].kind == "Spoiler" && p.open[n-1].offset == p.offset {
		p.open = p.open[:n-1]
		p.entities = append(p.entities, Entity{Type: "expandable_blockquote", Offset: p.quote, Length: p.offset - p.quote})
		p.quote = -1
	}
}

// endQuote closes the open quote, if there is one. All spans opened in it must be closed.
func (p *markdownParser) endQuote() error {
	if p.quote >= 0 {
		p.expandQuote()
	}
	if p.quote < 0 {
		return nil
	}
	if len(p.open) > p.quoteDepth {
		return p.unclosed()
	}
	if p.offset > p.quote {
		p.entities = append(p.entities, Entity{Type: "blockquote", Offset: p.quote, Length: p.offset - p.quote})
	}
	p.quote = -1
	return nil
}
