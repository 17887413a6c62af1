package twitter

import (
	"sort"
	"strings"
)

// The classes of characters in X's pattern of a link, as UTF-16 code units. Its pattern ignores case:
// a few letters are in a class only because their capitals are.

// ranges are the first and the last units of stretches, in order.
type ranges [][2]uint16

func (r ranges) has(u uint16) bool {
	i := sort.Search(len(r), func(i int) bool { return r[i][1] >= u })
	return i < len(r) && r[i][0] <= u
}

var (
	// accented are letters of Latin with accents, combining accents, and what has such capitals.
	accented = ranges{
		{0xC0, 0xD6}, {0xD8, 0xF6}, {0xF8, 0x24F}, {0x253, 0x254}, {0x256, 0x257}, {0x259, 0x259}, {0x25B, 0x25B}, {0x260, 0x260},
		{0x263, 0x263}, {0x268, 0x269}, {0x26F, 0x26F}, {0x272, 0x272}, {0x275, 0x275}, {0x280, 0x280}, {0x283, 0x283}, {0x288, 0x28C},
		{0x292, 0x292}, {0x2BB, 0x2BB}, {0x300, 0x36F}, {0x399, 0x399}, {0x3B9, 0x3B9}, {0x1E00, 0x1EFF}, {0x1FBE, 0x1FBE},
		{0x2C65, 0x2C66}, {0x2C7E, 0x2C7F}, {0xA7DC, 0xA7DC},
	}
	cyrillic = ranges{{0x400, 0x4FF}, {0x1C80, 0x1C87}}
	// noDomain are spaces, punctuation, directional marks and what no text may hold.
	noDomain = ranges{
		{0x9, 0xD}, {0x20, 0x21}, {0x23, 0x2F}, {0x3A, 0x40}, {0x5B, 0x5F}, {0x7B, 0x7E}, {0x85, 0x85}, {0xA0, 0xA0}, {0x61C, 0x61C},
		{0x1680, 0x1680}, {0x180E, 0x180E}, {0x2000, 0x200A}, {0x200E, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x205F}, {0x2066, 0x2069},
		{0x3000, 0x3000}, {0xFEFF, 0xFEFF}, {0xFFFE, 0xFFFF},
	}
	// noBoundary are the units after which no link begins.
	noBoundary = ranges{{0x23, 0x24}, {0x30, 0x39}, {0x40, 0x5A}, {0x61, 0x7A}, {0xFEFF, 0xFEFF}, {0xFF03, 0xFF03}, {0xFF20, 0xFF20}, {0xFFFE, 0xFFFF}}
)

func isDigit(u uint16) bool        { return '0' <= u && u <= '9' }
func isLetter(u uint16) bool       { return 'a' <= u|0x20 && u|0x20 <= 'z' }
func isAlphanumeric(u uint16) bool { return isDigit(u) || isLetter(u) }
func isAccented(u uint16) bool     { return accented.has(u) }
func isBoundary(u uint16) bool     { return !noBoundary.has(u) }
func isDomainUnit(u uint16) bool   { return !noDomain.has(u) }

// isLabelUnit reports whether a unit may be part of a label.
func isLabelUnit(u uint16) bool { return isDomainUnit(u) || u == '-' || u == '_' }

func isPathEnding(u uint16) bool {
	return isAlphanumeric(u) || isAccented(u) || cyrillic.has(u) || strings.ContainsRune("+-=_#/", rune(u))
}

func isPathUnit(u uint16) bool {
	return isPathEnding(u) || strings.ContainsRune("!*';:,.$%[]~@|&–", rune(u))
}

func isQueryUnit(u uint16) bool {
	return isAlphanumeric(u) || strings.ContainsRune("!?*'@();:&=+$/%#[]-_.,~|", rune(u))
}
