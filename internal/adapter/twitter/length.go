package twitter

import (
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The weights of X's counter. Characters of smaller alphabets and usual punctuation count 1.
const (
	linkWeight  = 23
	heavyWeight = 2
)

// weight is the length of a text as X counts it.
func weight(text string) int {
	text = norm.NFC.String(text)
	units := utf16.Encode([]rune(text))
	pictures := emojiAt(text)
	found := map[int]int{}
	for _, link := range links(units) {
		found[link.from] = link.to
	}
	sum := 0
	for at := 0; at < len(units); {
		end, size := at+1, heavyWeight
		switch link, picture := found[at], pictures[at]; {
		case link > 0:
			end, size = link, linkWeight
		case picture > 0:
			end = picture
		case end < len(units) && utf16.DecodeRune(rune(units[at]), rune(units[end])) != utf8.RuneError:
			end++ // both halves of a character
		case isLight(rune(units[at])):
			size = 1
		}
		sum += size
		at = end
	}
	return sum
}

// emojiAt are the ends of emoji sequences by their beginnings, in UTF-16 code units.
func emojiAt(text string) map[int]int {
	found := map[int]int{}
	unit, at := 0, 0
	width := func(to int) int {
		n := 0
		for at < to {
			r, size := utf8.DecodeRuneInString(text[at:])
			n += utf16.RuneLen(r)
			at += size
		}
		return n
	}
	for _, place := range emoji.FindAllStringIndex(text, -1) {
		unit += width(place[0])
		end := unit + width(place[1])
		found[unit] = end
		unit = end
	}
	return found
}

func isLight(r rune) bool {
	return r <= 0x10FF || 0x2000 <= r && r <= 0x200D || 0x2010 <= r && r <= 0x201F || 0x2032 <= r && r <= 0x2037
}
