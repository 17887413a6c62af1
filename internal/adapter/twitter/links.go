package twitter

import (
	_ "embed"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// tldList are the endings of a host that make it a link, as X has them.
//
//go:embed tlds.txt
var tldList string

var tlds = func() map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(tldList) {
		set[name] = true
	}
	return set
}()

const (
	maxLink  = 4096 // characters
	maxLabel = 63   // octets of a part of a host, in punycode
)

// latin are the accented letters that X takes in a host without a scheme and in a path.
const latin = `\x{00C0}-\x{00D6}\x{00D8}-\x{00F6}\x{00F8}-\x{024F}\x{0253}-\x{025B}\x{0263}\x{0268}\x{026F}\x{0272}\x{0289}\x{028B}\x{02BB}\x{0300}-\x{036F}\x{1E00}-\x{1EFF}`

var (
	scheme = regexp.MustCompile(`(?i)^https?://`)
	// host is all that may be a host in any alphabet, with its dots; plainHost what may be one without a scheme.
	host      = regexp.MustCompile(`^[^\s\p{Z}\p{Cc}!'#%&()*+,\\/:;<=>?@\[\]^{|}~$\x{061C}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2066}-\x{2069}\x{FEFF}\x{FFFE}\x{FFFF}]+`)
	plainHost = regexp.MustCompile(`[A-Za-z0-9` + latin + `][A-Za-z0-9.` + latin + `-]*`)
	port      = regexp.MustCompile(`^:[0-9]+`)
	urlPath   = regexp.MustCompile(`^/(?:` + pathWord + `*(?:` + brackets + pathWord + `*)*(?:[A-Za-z0-9+=_#/` + latin + cyrillic + `-]|` + brackets + `)|@` + pathWord + `+/)?`)
	urlQuery  = regexp.MustCompile(`^\?[A-Za-z0-9!?*'@();:&=+$/%#\[\]_.,~|-]*[A-Za-z0-9_&=#/-]`)
)

const (
	cyrillic = `\x{0400}-\x{04FF}`
	pathWord = `[A-Za-z0-9!*';:=+,.$/%#\[\]\x{2013}_~@|&` + latin + cyrillic + `-]`
	brackets = `\((?:` + pathWord + `+|` + pathWord + `*\(` + pathWord + `+\)` + pathWord + `*)\)`
)

// span is a part of a text, in bytes.
type span struct{ from, to int }

// links are what X makes links of in a text.
func links(text string) []span {
	var found []span
	before := utf8.RuneError // what stands before at; nothing before the first
	for at := 0; at < len(text); {
		if link, counts := linkAt(text[at:], before, at == 0); link.to > 0 {
			if counts {
				found = append(found, span{at + link.from, at + link.to})
			}
			before, _ = utf8.DecodeLastRuneInString(text[:at+link.to])
			at += link.to
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		before = r
		at += size
	}
	return found
}

// linkAt is the link of the host that the text begins with; it ends at 0 where there is none. One
// that is too long, or whose host cannot be, is none but is passed over whole.
func linkAt(text string, before rune, first bool) (link span, counts bool) {
	if !first && (isWord(before) || strings.ContainsRune("@＠$#＃", before)) {
		return span{}, false
	}
	begin := len(scheme.FindString(text))
	run := host.FindString(text[begin:])
	name := domain(run, text[begin+len(run):])
	if name == "" || begin == 0 && !first && strings.ContainsRune("-_./", before) {
		return span{}, false
	}
	if begin == 0 {
		if link, name = plainDomain(name, text[len(name):]); link.to == 0 {
			return span{}, false
		}
	} else {
		link.to = begin + len(name)
	}
	for _, part := range []*regexp.Regexp{port, urlPath, urlQuery} {
		link.to += len(part.FindString(text[link.to:]))
	}
	return link, utf8.RuneCountInString(text[link.from:link.to]) <= maxLink && isPossible(name)
}

// plainDomain is the part of a domain that is a link without a scheme: in Latin letters.
func plainDomain(name, after string) (span, string) {
	for _, run := range plainHost.FindAllStringIndex(name, -1) {
		if plain := domain(name[run[0]:run[1]], name[run[1]:]+after); plain != "" {
			return span{run[0], run[0] + len(plain)}, plain
		}
	}
	return span{}, ""
}

func isWord(r rune) bool {
	return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
}

// domain is the longest name with a known ending that a run of host characters
// begins with, "" for none. after is what follows the run.
func domain(run, after string) string {
	best, at := "", 0
	for n, label := range strings.Split(run, ".") {
		if n > 0 {
			if size := ending(label, run[at+len(label):]+after); size > 0 {
				best = run[:at+size]
			}
		}
		if label == "" || strings.ContainsAny(label[:1]+label[len(label)-1:], "-_") {
			break
		}
		at += len(label) + len(".")
	}
	return best
}

// ending is the length of the known ending that a label is, or begins with where no
// Latin letter goes on; 0 for none. after is what follows the label.
func ending(label, after string) int {
	if len(label) > len("xn--") && strings.EqualFold(label[:len("xn--")], "xn--") {
		return len(label)
	}
	for size := len(label); size > 0; size-- {
		follows := label[size:] + after
		if tlds[strings.ToLower(label[:size])] && (follows == "" || !isWord(rune(follows[0])) && !strings.ContainsAny(follows[:1], "@+-")) {
			return size
		}
	}
	return 0
}

func isPossible(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		ascii, err := idna.Punycode.ToASCII(strings.ToLower(label))
		if err != nil || len(ascii) > maxLabel {
			return false
		}
	}
	return true
}
