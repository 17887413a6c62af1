package twitter

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The weights of X's counter: a link counts 23 whatever it is, an emoji sequence 2,
// a character of the smaller alphabets and usual punctuation 1, any other 2.
const (
	linkWeight  = 23
	heavyWeight = 2
)

// emoji is one sequence that X shows as a single picture: a flag, a keycap, or
// pictures joined, each with its variation, skin tone and tags.
var emoji = regexp.MustCompile(fmt.Sprintf(`^(?:[\x{1F1E6}-\x{1F1FF}]{2}|[0-9#*]\x{FE0F}?\x{20E3}|[©®]\x{FE0F}|%[1]s(?:\x{200D}%[1]s)*)`,
	`[‼⁉™ℹ↔-↙↩↪⌚-⏿Ⓜ▪▫▶◀◻-➿⤴⤵⬅-⭕〰〽㊗㊙\x{1F000}-\x{1F1E5}\x{1F200}-\x{1F3FA}\x{1F400}-\x{1FAFF}][\x{FE0F}\x{1F3FB}-\x{1F3FF}]*[\x{E0020}-\x{E007F}]*`))

// weight is the length of a text as X counts it.
func weight(text string) int {
	text = norm.NFC.String(text)
	sum, at := 0, 0
	for _, link := range links(text) {
		sum += weightOfWords(text[at:link.from]) + linkWeight
		at = link.to
	}
	return sum + weightOfWords(text[at:])
}

func weightOfWords(text string) int {
	sum := 0
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if picture := emoji.FindString(text); picture != "" {
			sum += heavyWeight
			text = text[len(picture):]
			continue
		}
		if isLight(r) {
			sum++
		} else {
			sum += heavyWeight
		}
		text = text[size:]
	}
	return sum
}

func isLight(r rune) bool {
	return r <= 0x10FF || 0x2000 <= r && r <= 0x200D || 0x2010 <= r && r <= 0x201F || 0x2032 <= r && r <= 0x2037
}
