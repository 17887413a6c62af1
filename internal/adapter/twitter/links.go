package twitter

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/net/idna"
)

// tldList are the endings of a host that make it a link, as X has them.
//
//go:embed tlds.txt
var tldList string

// tlds are the endings, folded; longestTLD is the length of the longest.
var tlds, longestTLD = func() (map[string]bool, int) {
	set, longest := map[string]bool{}, 0
	for name := range strings.FieldsSeq(tldList) {
		name := fold(utf16.Encode([]rune(name)))
		set[name] = true
		longest = max(longest, len([]rune(name)))
	}
	return set, longest
}()

const (
	maxLink  = 4096 // UTF-16 code units, the scheme counted twice
	maxLabel = 63   // octets of a part of a host, in punycode
	maxSlug  = 40   // characters of the path of a link to t.co
)

// span is a part of a text, in UTF-16 code units.
type span struct{ from, to int }

// extractor finds links as twitter-text 3.1 does. X's own pattern works on UTF-16 code units, so a part
// of a surrogate pair is a character of its own.
type extractor struct {
	text []uint16
	// domains are the ends of the domains by their first unit, as far as they are known; 0 means none.
	domains map[int]int
}

// links are the parts of a text that X makes links of, and that each cost the price and the length of one.
func links(text []uint16) []span {
	if !containsUnit(text, ".") {
		return nil
	}
	x := extractor{text: text, domains: map[int]int{}}
	var found []span
	for at := 0; at <= len(text); {
		link, before, ok := x.linkAfter(at)
		if !ok {
			at++
			continue
		}
		found = append(found, x.accepted(link, before)...)
		at = link.end
	}
	return found
}

// candidate is a link with its parts; a part that is missing is empty.
type candidate struct {
	start, domain, domainEnd, end int
	path                          bool
}

// linkAfter is the candidate behind the character at a place; at the beginning of a text there may be none.
func (x *extractor) linkAfter(at int) (link candidate, before uint16, ok bool) {
	if at < len(x.text) && isBoundary(x.text[at]) {
		if link, ok := x.linkAt(at + 1); ok {
			return link, x.text[at], true
		}
	}
	if at == 0 {
		link, ok := x.linkAt(0)
		return link, ' ', ok
	}
	return candidate{}, 0, false
}

func (x *extractor) linkAt(at int) (candidate, bool) {
	for _, scheme := range []string{"https://", "http://", ""} {
		domain := at + len(scheme)
		if !x.has(at, scheme) {
			continue
		}
		end := x.domainEnd(domain)
		if end == 0 {
			continue
		}
		link := candidate{start: at, domain: domain, domainEnd: end}
		rest := x.portEnd(end)
		pathEnd := x.pathEnd(rest)
		link.path = pathEnd > rest
		link.end = x.queryEnd(pathEnd)
		return link, true
	}
	return candidate{}, false
}

// has reports whether an ASCII text is at a place, in any case.
func (x *extractor) has(at int, text string) bool {
	if at+len(text) > len(x.text) {
		return false
	}
	for i, c := range []byte(text) {
		u := x.text[at+i]
		if u != uint16(c) && (u|0x20 != uint16(c) || !isLetter(u)) {
			return false
		}
	}
	return true
}

// domainEnd is the end of the longest domain that begins at a place, 0 for none: labels and an ending.
func (x *extractor) domainEnd(at int) int {
	if end, known := x.domains[at]; known {
		return end
	}
	dot, underscore := at, false
	for dot < len(x.text) && isLabelUnit(x.text[dot]) {
		underscore = underscore || x.text[dot] == '_'
		dot++
	}
	end := 0
	if dot > at && dot < len(x.text) && x.text[dot] == '.' && isDomainUnit(x.text[at]) && isDomainUnit(x.text[dot-1]) {
		end = x.domainEnd(dot + 1)
		if end == 0 && !underscore {
			end = endingEnd(x.text, dot+1)
		}
	}
	x.domains[at] = end
	return end
}

// endingEnd is the end of the ending of a host at a place, 0 for none. No Latin letter may follow it.
func endingEnd(text []uint16, at int) int {
	for size := min(longestTLD, len(text)-at); size > 0; size-- {
		end := at + size
		if tlds[fold(text[at:end])] && (end == len(text) || !isAlphanumeric(text[end]) && !strings.ContainsRune("@+-", rune(text[end]))) {
			return end
		}
	}
	const prefix = "xn--"
	x := extractor{text: text}
	if !x.has(at, prefix) {
		return 0
	}
	end := at + len(prefix)
	for end < len(text) && (isAlphanumeric(text[end]) || text[end] == '-') {
		end++
	}
	if end == at+len(prefix) {
		return 0
	}
	return end
}

func (x *extractor) portEnd(at int) int {
	if !x.has(at, ":") {
		return at
	}
	end := at + 1
	for end < len(x.text) && isDigit(x.text[end]) {
		end++
	}
	if end == at+1 {
		return at
	}
	return end
}

// pathEnd is the end of the path at a place. Punctuation that may end a sentence does not end a path.
func (x *extractor) pathEnd(at int) int {
	if !x.has(at, "/") {
		return at
	}
	end := at + 1
	for {
		next := x.pathPartEnd(end)
		if next == end {
			next = max(next, x.parenthesesEnd(end))
		}
		if next == end {
			return end
		}
		end = next
	}
}

// pathPartEnd is the place behind the last character of a path that may end it. Parentheses before it belong to it.
func (x *extractor) pathPartEnd(at int) int {
	end := at
	for at < len(x.text) {
		if after := x.parenthesesEnd(at); after > 0 {
			at = after
			continue
		}
		if !isPathUnit(x.text[at]) {
			break
		}
		if at++; isPathEnding(x.text[at-1]) {
			end = at
		}
	}
	return end
}

// parenthesesEnd is the end of parentheses in a path, which may hold one more pair; 0 for none.
func (x *extractor) parenthesesEnd(at int) int {
	if !x.has(at, "(") {
		return 0
	}
	inner := x.pathUnitsEnd(at + 1)
	if inner > at+1 && x.has(inner, ")") {
		return inner + 1
	}
	if !x.has(inner, "(") {
		return 0
	}
	nested := x.pathUnitsEnd(inner + 1)
	if nested == inner+1 || !x.has(nested, ")") {
		return 0
	}
	if end := x.pathUnitsEnd(nested + 1); x.has(end, ")") {
		return end + 1
	}
	return 0
}

func (x *extractor) pathUnitsEnd(at int) int {
	for at < len(x.text) && isPathUnit(x.text[at]) {
		at++
	}
	return at
}

// queryEnd is the end of the query at a place.
func (x *extractor) queryEnd(at int) int {
	if !x.has(at, "?") {
		return at
	}
	end := at
	for next := at + 1; next < len(x.text) && isQueryUnit(x.text[next]); next++ {
		if isAlphanumeric(x.text[next]) || strings.ContainsRune("-_&=#/", rune(x.text[next])) {
			end = next + 1
		}
	}
	return end
}

// accepted are the links that a candidate gives. Without a scheme these are the parts of the domain in
// Latin letters, the last one with the path.
func (x *extractor) accepted(link candidate, before uint16) []span {
	domain := x.text[link.domain:link.domainEnd]
	scheme := link.domain - link.start
	protocol := scheme
	if scheme == 0 {
		protocol = len("https://")
	}
	if !isPossible(domain) || protocol+link.end-link.start > maxLink {
		return nil
	}
	if scheme > 0 {
		if end, ok := x.shortened(link); ok {
			return []span{{link.start, end}}
		}
		return nil
	}
	if strings.ContainsRune("-_./", rune(before)) {
		return nil
	}
	parts := plainDomains(domain)
	for i := range parts {
		parts[i].from += link.domain
		parts[i].to += link.domain
	}
	if last := len(parts) - 1; last >= 0 && link.path {
		parts[last].to += link.end - link.domainEnd
	}
	return parts
}

// shortened is the end of a link with a scheme. One to t.co has no more than a slug and a query; ok is
// false where the slug is too long.
func (x *extractor) shortened(link candidate) (end int, ok bool) {
	const host = "t.co/"
	if !x.has(link.domain, host) {
		return link.end, true
	}
	slug := link.domain + len(host)
	end = slug
	for end < len(x.text) && isAlphanumeric(x.text[end]) {
		end++
	}
	switch {
	case end == slug:
		return link.end, true
	case end-slug > maxSlug:
		return 0, false
	}
	return x.queryEnd(end), true
}

// plainDomains are the parts of a domain that are domains in Latin letters.
func plainDomains(domain []uint16) []span {
	var found []span
	for at := 0; at < len(domain); {
		end := plainDomainEnd(domain, at)
		if end == 0 {
			at++
			continue
		}
		// X takes the first place after the link before where the same characters are, even within other words.
		before := 0
		if len(found) > 0 {
			before = found[len(found)-1].to
		}
		from := before + indexOf(domain[before:], domain[at:end])
		found = append(found, span{from, from + end - at})
		at = end
	}
	return found
}

func indexOf(text, part []uint16) int {
	for i := range text {
		if len(text)-i >= len(part) && slices.Equal(text[i:i+len(part)], part) {
			return i
		}
	}
	return 0
}

func plainDomainEnd(domain []uint16, at int) int {
	dot := at
	for dot < len(domain) && (isAlphanumeric(domain[dot]) || domain[dot] == '-' || isAccented(domain[dot])) {
		dot++
	}
	if dot == at || dot == len(domain) || domain[dot] != '.' {
		return 0
	}
	if end := plainDomainEnd(domain, dot+1); end > 0 {
		return end
	}
	return endingEnd(domain, dot+1)
}

// isPossible reports whether every label of a domain fits into the domain name system.
func isPossible(domain []uint16) bool {
	text := string(utf16.Decode(domain))
	if strings.HasPrefix(text, "xn--") && len(plainDomains(domain)) == 0 {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		size := 0
		for part := range strings.FieldsFuncSeq(label, func(r rune) bool { return strings.ContainsRune("。．｡", r) }) {
			// X encodes such a label again; the package would decode it. The length is the same.
			ascii, err := idna.Punycode.ToASCII(strings.Replace(part, "xn--", "xm--", 1))
			if err != nil {
				return false
			}
			size += len(ascii) + 1
		}
		if size-1 > maxLabel {
			return false
		}
	}
	return true
}

func containsUnit(text []uint16, units string) bool {
	for _, u := range text {
		if strings.ContainsRune(units, rune(u)) {
			return true
		}
	}
	return false
}

// fold makes endings comparable as a pattern of JavaScript that ignores case does: no character outside
// of ASCII is the same as one of ASCII.
func fold(units []uint16) string {
	var out strings.Builder
	for _, u := range units {
		upper := unicode.ToUpper(rune(u))
		if u >= 128 && upper < 128 {
			upper = rune(u)
		}
		out.WriteRune(upper)
	}
	return out.String()
}
