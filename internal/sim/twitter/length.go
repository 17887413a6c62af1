package twitter

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// The weights of X's text counter. Characters of the light ranges count 1, others and emoji sequences 2.
// A URL counts as its short form.
const (
	urlLength    = 23
	heavyWeight  = 2
	lightWeight  = 1
	defaultLimit = 280
)

var lightRanges = [][2]rune{{0, 4351}, {8192, 8205}, {8208, 8223}, {8242, 8247}}

// WeightedLength is the length of a text by X's weights. Lengths of unusual URLs may differ from X's.
func WeightedLength(text string) int {
	runes := []rune(norm.NFC.String(text))
	urls := findURLs(runes)
	length := 0
	for i := 0; i < len(runes); {
		if len(urls) > 0 && urls[0].from == i {
			i = urls[0].to
			urls = urls[1:]
			length += urlLength
			continue
		}
		if n := emojiLength(runes[i:]); n > 0 {
			i += n
			length += heavyWeight
			continue
		}
		length += weight(runes[i])
		i++
	}
	return length
}

func weight(r rune) int {
	if inRanges(r, lightRanges) {
		return lightWeight
	}
	return heavyWeight
}

func inRanges(r rune, ranges [][2]rune) bool {
	return slices.ContainsFunc(ranges, func(of [2]rune) bool { return of[0] <= r && r <= of[1] })
}

// forbidden are the characters that a post must not have.
const forbidden = "\ufffe\ufeff\uffff"

func holdsForbidden(text string) bool { return strings.ContainsAny(text, forbidden) }

const (
	joiner       = 0x200d
	emojiForm    = 0xfe0f
	keycapMark   = 0x20e3
	flagFirst    = 0x1f1e6
	flagLast     = 0x1f1ff
	skinFirst    = 0x1f3fb
	skinLast     = 0x1f3ff
	tagFirst     = 0xe0020
	tagLast      = 0xe007f
	copyrightOne = 0xa9
	copyrightTwo = 0xae
)

// pictures are the characters that start an emoji sequence.
var pictures = [][2]rune{
	{0x203c, 0x203c}, {0x2049, 0x2049}, {0x2122, 0x2122}, {0x2139, 0x2139}, {0x2194, 0x21ff}, {0x2300, 0x23ff},
	{0x24c2, 0x24c2}, {0x25a0, 0x27bf}, {0x2934, 0x2935}, {0x2b00, 0x2bff}, {0x3030, 0x3030}, {0x303d, 0x303d},
	{0x3297, 0x3297}, {0x3299, 0x3299}, {0x1f000, 0x1f1e5}, {0x1f200, 0x1faff},
}

// emojiLength is the number of characters of the emoji sequence at the start of a text; 0 without one.
func emojiLength(runes []rune) int {
	at := func(i int) rune {
		if i < len(runes) {
			return runes[i]
		}
		return -1
	}
	first := at(0)
	switch {
	case flagFirst <= first && first <= flagLast && flagFirst <= at(1) && at(1) <= flagLast:
		return 2
	case '0' <= first && first <= '9' || first == '#' || first == '*':
		if at(1) == emojiForm && at(2) == keycapMark {
			return 3
		}
		if at(1) == keycapMark {
			return 2
		}
		return 0
	case first == copyrightOne || first == copyrightTwo:
		if at(1) == emojiForm {
			return 2
		}
		return 0
	}
	n := 0
	for inRanges(at(n), pictures) {
		n++
		if at(n) == emojiForm {
			n++
		}
		if skinFirst <= at(n) && at(n) <= skinLast {
			n++
		}
		for tagFirst <= at(n) && at(n) <= tagLast {
			n++
		}
		if at(n) != joiner || !inRanges(at(n+1), pictures) {
			break
		}
		n++
	}
	return n
}
