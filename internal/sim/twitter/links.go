package twitter

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

// tldText has X's list of top-level domains. A word with a dot and one of them is a link.
//
//go:embed tlds.txt
var tldText string

var tlds = func() map[string]bool {
	known := map[string]bool{}
	for name := range strings.FieldsSeq(tldText) {
		known[name] = true
	}
	return known
}()

const (
	maxURL   = 4096 // characters
	maxShort = 40   // characters of the name of a short link
	maxLabel = 63   // octets of a host's label, in punycode
)

// span is a part of a text in characters.
type span struct{ from, to int }

// findURLs returns the links of a text, in order.
func findURLs(text []rune) []span {
	var found []span
	first := 0
	if len(text) > 1 && text[0] > unicode.MaxASCII {
		// A letter that is not Latin ends before a link; only otherwise is it a part of the first one.
		if link, _ := urlAt(text, 1); link.to > 1 {
			first = 1
		}
	}
	for i := first; i < len(text); {
		link, valid := urlAt(text, i)
		if link.to == i {
			i++
			continue
		}
		if valid {
			found = append(found, link)
		}
		i = link.to
	}
	return found
}

// urlAt returns the link that starts at i; an empty span without one. A link with an impossible host is
// skipped as a whole and not valid.
func urlAt(text []rune, i int) (link span, valid bool) {
	none := span{i, i}
	if i > 0 && (isASCIIWord(text[i-1]) || strings.ContainsRune("@＠$#＃", text[i-1])) {
		return none, false
	}
	host := i
	for _, protocol := range []string{"http://", "https://"} {
		if i+len(protocol) <= len(text) && strings.EqualFold(string(text[i:i+len(protocol)]), protocol) {
			host = i + len(protocol)
		}
	}
	bare := host == i
	if bare && i > 0 && strings.ContainsRune("-_./", text[i-1]) {
		return none, false
	}
	end := host
	for end < len(text) && (isLabel(text[end]) || text[end] == '.') {
		end++
	}
	domain := domainEnd(text, host, end, bare)
	if domain == host {
		return none, false
	}
	stop := pathEnd(text, portEnd(text, domain))
	if !bare && stop > domain+1 && text[domain] == '/' && strings.EqualFold(string(text[host:domain]), "t.co") {
		// A short link of X ends with its name and a query.
		name := domain + 1
		for name < stop && isASCIIWord(text[name]) {
			name++
		}
		if name > domain+1 {
			end := name
			if name < stop && text[name] == '?' {
				end = stop
			}
			return span{i, end}, name-domain-1 <= maxShort
		}
	}
	return span{i, stop}, stop-i <= maxURL && possibleHost(string(text[host:domain]))
}

func isASCIIWord(r rune) bool {
	return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func isAccented(r rune) bool { return 0xc0 <= r && r <= 0x24f && unicode.IsLetter(r) }

// isLatin reports whether a character may be in a label of a host without a protocol.
func isLatin(r rune) bool { return isASCIIWord(r) || r == '-' || r == '_' || isAccented(r) }

// isLabel reports whether a character may be in a label of a host.
func isLabel(r rune) bool {
	return isLatin(r) || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}

// domainEnd is the end of the longest domain in text[from:to]: labels and a top-level domain, not followed
// by a Latin letter. The labels of a bare domain are Latin, its top-level domain may be any.
func domainEnd(text []rune, from, to int, bare bool) int {
	best, start, labels := from, from, 0
	for start < to {
		stop := start
		for stop < to && text[stop] != '.' {
			stop++
		}
		if stop == start || text[start] == '-' || text[start] == '_' {
			return best
		}
		if labels > 0 {
			if n := tldLength(text[start:stop]); n > 0 && (start+n == len(text) || !strings.ContainsRune("@+-", text[start+n])) {
				best = start + n
			}
		}
		if text[stop-1] == '-' || text[stop-1] == '_' || bare && slices.ContainsFunc(text[start:stop], func(r rune) bool { return !isLatin(r) }) {
			return best
		}
		labels++
		start = stop + 1
	}
	return best
}

// tldLength is the length of the top-level domain at the start of a label; 0 without one. Only a letter
// that is not Latin may follow it in the label.
func tldLength(label []rune) int {
	name := strings.ToLower(string(label))
	if tlds[name] || len(name) > len("xn--") && strings.HasPrefix(name, "xn--") {
		return len(label)
	}
	n := 0
	for n < len(label) && isASCIIWord(label[n]) {
		n++
	}
	if n < len(label) && label[n] > unicode.MaxASCII && tlds[strings.ToLower(string(label[:n]))] {
		return n
	}
	return 0
}

func portEnd(text []rune, i int) int {
	end := i + 1
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	if i < len(text) && text[i] == ':' && end > i+1 {
		return end
	}
	return i
}

// pathEnd is the end of the path and the query that start at i. Final punctuation is not part of them.
func pathEnd(text []rune, i int) int {
	if i >= len(text) || text[i] != '/' && text[i] != '?' {
		return i
	}
	end, good, open := i, i, 0
	for end < len(text) {
		r := text[end]
		word := isASCIIWord(r) || isAccented(r) || unicode.Is(unicode.Cyrillic, r)
		if !word && !strings.ContainsRune("!?*'@();:&=+$/%#[]-_.,~|", r) {
			break
		}
		end++
		switch {
		case r == '(':
			open++
		case r == ')' && open > 0:
			open--
			good = end
		case word || strings.ContainsRune("=_#/+-&", r):
			good = end
		}
	}
	return good
}

// possibleHost reports whether every label is short enough for the domain name system.
func possibleHost(host string) bool {
	for label := range strings.SplitSeq(host, ".") {
		if punycodeLength(strings.ToLower(label)) > maxLabel {
			return false
		}
	}
	return true
}

// Parameters of punycode.
const (
	punyBase    = 36
	punyMin     = 1
	punyMax     = 26
	punySkew    = 38
	punyDamp    = 700
	punyBias    = 72
	punyInitial = 128
)

// punycodeLength is the length of a label in the domain name system, in octets.
func punycodeLength(label string) int {
	runes := []rune(label)
	basic := 0
	for _, r := range runes {
		if r < punyInitial {
			basic++
		}
	}
	if basic == len(runes) {
		return basic
	}
	length := len("xn--") + basic
	if basic > 0 {
		length++
	}
	delta, bias, n := 0, punyBias, rune(punyInitial)
	for handled := basic; handled < len(runes); {
		next := rune(unicode.MaxRune)
		for _, r := range runes {
			if r >= n && r < next {
				next = r
			}
		}
		delta += int(next-n) * (handled + 1)
		n = next
		for _, r := range runes {
			if r < n {
				delta++
			}
			if r == n {
				length += digitsOf(delta, bias)
				bias = adapt(delta, handled+1, handled == basic)
				delta = 0
				handled++
			}
		}
		delta++
		n++
	}
	return length
}

// digitsOf is the number of digits of the variable-length number q.
func digitsOf(q, bias int) int {
	digits := 1
	for k := punyBase; ; k += punyBase {
		t := min(max(k-bias, punyMin), punyMax)
		if q < t {
			return digits
		}
		q = (q - t) / (punyBase - t)
		digits++
	}
}

func adapt(delta, points int, first bool) int {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for delta > (punyBase-punyMin)*punyMax/2 {
		delta /= punyBase - punyMin
		k += punyBase
	}
	return k + (punyBase-punyMin+1)*delta/(delta+punySkew)
}
