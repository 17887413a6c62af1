package telegram

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// htmlTags maps the tags of HTML mode to entity types; "" if the type depends on an attribute.
var htmlTags = map[string]string{
	"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
	"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough",
	"span": "spoiler", "tg-spoiler": "spoiler", "code": "code", "pre": "pre",
	"a": "", "blockquote": "", "tg-emoji": "", "tg-time": "",
}

// htmlTag is an open tag.
type htmlTag struct {
	name, argument string
	// offset counts UTF-16 units of the result, begin its bytes.
	offset, begin int
}

// htmlParser parses HTML mode as the server does: one scan without recovery. Offsets in errors count bytes
// of the input.
type htmlParser struct {
	in       string
	pos      int
	out      strings.Builder
	offset   int
	open     []htmlTag
	entities []Entity
}

func parseHTML(text string) (formatted, error) {
	p := htmlParser{in: text}
	for p.pos < len(p.in) {
		var err error
		switch {
		case p.in[p.pos] == '&':
			p.reference()
		case p.in[p.pos] != '<':
			r, size := utf8.DecodeRuneInString(p.in[p.pos:])
			p.emit(r)
			p.pos += size
		case strings.HasPrefix(p.in[p.pos:], "</"):
			err = p.endTag()
		default:
			err = p.startTag()
		}
		if err != nil {
			return formatted{}, err
		}
	}
	if n := len(p.open); n > 0 {
		return formatted{}, parseErrorf("Can't find end tag corresponding to start tag %q", p.open[n-1].name)
	}
	return formatted{text: p.out.String(), entities: p.entities}, nil
}

func (p *htmlParser) emit(r rune) {
	p.out.WriteRune(r)
	p.offset += utf16Len(string(r))
}

// reference writes the character of a known reference, or the ampersand itself.
func (p *htmlParser) reference() {
	r, size := htmlReference(p.in[p.pos:])
	p.emit(r)
	p.pos += size
}

// htmlReference decodes the reference at the start of s; '&' and 1 if there is none.
func htmlReference(s string) (rune, int) {
	end := 1
	for end < len(s) && (isAlnum(s[end]) || end == 1 && s[end] == '#') {
		end++
	}
	size := end
	if size < len(s) && s[size] == ';' {
		size++
	}
	name := s[1:end]
	if digits, ok := strings.CutPrefix(name, "#"); ok {
		base := 10
		if hex, isHex := strings.CutPrefix(digits, "x"); isHex {
			base, digits = 16, hex
		}
		code, err := strconv.ParseUint(digits, base, 32)
		if err != nil || code == 0 || code >= 0x10FFFF {
			return '&', 1
		}
		return rune(code), size
	}
	switch name {
	case "lt":
		return '<', size
	case "gt":
		return '>', size
	case "amp":
		return '&', size
	case "quot":
		return '"', size
	}
	return '&', 1
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0 || c == '\v'
}

func (p *htmlParser) at() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

func (p *htmlParser) skipSpace() {
	for p.pos < len(p.in) && isSpace(p.in[p.pos]) {
		p.pos++
	}
}

func (p *htmlParser) startTag() error {
	begin := p.pos
	p.pos++
	for p.pos < len(p.in) && !isSpace(p.at()) && p.at() != '>' {
		p.pos++
	}
	if p.pos == len(p.in) {
		return parseErrorf("Unclosed start tag at byte offset %d", begin)
	}
	name := strings.ToLower(p.in[begin+1 : p.pos])
	if _, known := htmlTags[name]; !known {
		return parseErrorf("Unsupported start tag \"%s\" at byte offset %d", name, begin)
	}
	argument, err := p.attributes(name, begin)
	if err != nil {
		return err
	}
	if name == "span" && argument != "spoiler" {
		return parseErrorf("Tag \"span\" must have class \"tg-spoiler\" at byte offset %d", begin)
	}
	p.open = append(p.open, htmlTag{name: name, argument: argument, offset: p.offset, begin: p.out.Len()})
	return nil
}

// attributes reads to the closing '>' and returns the only value that the tag needs.
func (p *htmlParser) attributes(tag string, begin int) (string, error) {
	argument := ""
	for {
		p.skipSpace()
		if p.at() == '>' {
			p.pos++
			return argument, nil
		}
		nameBegin := p.pos
		for p.pos < len(p.in) && !isSpace(p.at()) && p.at() != '=' && p.at() != '>' {
			p.pos++
		}
		name := strings.ToLower(p.in[nameBegin:p.pos])
		if name == "" {
			if p.pos == len(p.in) {
				return "", parseErrorf("Unclosed start tag at byte offset %d", begin)
			}
			return "", parseErrorf("Empty attribute name in the tag \"%s\" at byte offset %d", tag, begin)
		}
		p.skipSpace()
		value := ""
		if p.at() == '=' {
			p.pos++
			p.skipSpace()
			var err error
			if value, err = p.attributeValue(); err != nil {
				return "", err
			}
		}
		if p.pos >= len(p.in) {
			return "", parseErrorf("Unclosed start tag \"%s\" at byte offset %d", tag, begin)
		}
		switch tag + " " + name {
		case "a href", "tg-emoji emoji-id":
			argument = value
		case "code class":
			if language, ok := strings.CutPrefix(value, "language-"); ok {
				argument = language
			}
		case "span class":
			if class, ok := strings.CutPrefix(value, "tg-"); ok {
				argument = class
			}
		case "blockquote expandable":
			argument = "1"
		}
	}
}

// attributeValue reads a quoted string and decodes its references, or a bare name.
func (p *htmlParser) attributeValue() (string, error) {
	quote := p.at()
	if quote != '"' && quote != '\'' {
		begin := p.pos
		for p.pos < len(p.in) && (isAlnum(p.at()) || p.at() == '.' || p.at() == '-') {
			p.pos++
		}
		if !isSpace(p.at()) && p.at() != '>' {
			return "", parseErrorf("Unexpected end of name token at byte offset %d", begin)
		}
		return strings.ToLower(p.in[begin:p.pos]), nil
	}
	p.pos++
	var value strings.Builder
	for p.pos < len(p.in) && p.in[p.pos] != quote {
		if p.in[p.pos] == '&' {
			r, size := htmlReference(p.in[p.pos:])
			value.WriteRune(r)
			p.pos += size
			continue
		}
		value.WriteByte(p.in[p.pos])
		p.pos++
	}
	p.pos++ // the closing quote; past the end when it is missing
	return value.String(), nil
}

func (p *htmlParser) endTag() error {
	begin := p.pos
	if len(p.open) == 0 {
		return parseErrorf("Unexpected end tag at byte offset %d", begin)
	}
	p.pos += len("</")
	nameBegin := p.pos
	for p.pos < len(p.in) && !isSpace(p.at()) && p.at() != '>' {
		p.pos++
	}
	name := strings.ToLower(p.in[nameBegin:p.pos])
	p.skipSpace()
	if p.at() != '>' {
		return parseErrorf("Unclosed end tag at byte offset %d", begin)
	}
	p.pos++
	tag := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	if name != "" && name != tag.name {
		return parseErrorf("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", begin, tag.name, name)
	}
	return p.close(tag)
}

// close turns a finished tag into an entity.
func (p *htmlParser) close(tag htmlTag) error {
	e := Entity{Type: htmlTags[tag.name], Offset: tag.offset, Length: p.offset - tag.offset}
	if e.Length == 0 {
		return nil
	}
	switch tag.name {
	case "a":
		e.Type = "text_link"
		target := tag.argument
		if target == "" {
			target = p.out.String()[tag.begin:]
		}
		if e.URL = link(target); e.URL == "" {
			return nil
		}
	case "blockquote":
		e.Type = "blockquote"
		if tag.argument != "" {
			e.Type = "expandable_blockquote"
		}
	case "tg-emoji":
		id, err := strconv.ParseUint(tag.argument, 10, 63)
		if err != nil || id == 0 {
			return parseError("Invalid custom emoji identifier specified")
		}
		e.Type, e.CustomEmojiID = "custom_emoji", tag.argument
	case "tg-time":
		return nil
	case "code":
		e.Language = tag.argument // for the pre around it
	case "pre":
		p.adoptLanguage(&e)
	}
	p.entities = append(p.entities, e)
	if tag.name != "pre" {
		p.dropLooseLanguage()
	}
	return nil
}

// adoptLanguage merges <pre><code class="language-x"> into one entity.
func (p *htmlParser) adoptLanguage(pre *Entity) {
	n := len(p.entities)
	if n == 0 {
		return
	}
	inner := p.entities[n-1]
	if inner.Type == "code" && inner.Offset == pre.Offset && inner.Length == pre.Length {
		pre.Language = inner.Language
		p.entities = p.entities[:n-1]
	}
}

// dropLooseLanguage removes the language of code outside of a pre.
func (p *htmlParser) dropLooseLanguage() {
	for _, tag := range p.open {
		if tag.name == "pre" {
			return
		}
	}
	p.entities[len(p.entities)-1].Language = ""
}
