package web

import (
	"fmt"
	"maps"
	"strings"

	xlanguage "golang.org/x/text/language"
)

// area has the words of one group of pages, in both languages.
type area struct{ en, ru map[string]string }

// areas are the groups of pages. Each has a file words_NAME.go. What several groups share is in words_en.go and words_ru.go.
var areas = []area{frameWords, operationsWords, decisionsWords, setupWords, sectionWords, fieldWords, credentialsWords, firstWords, peopleWords, composeWords, submissionWords, calendarWords, xpostsWords, botWords, changeWords, postWords, recurrenceWords, refusalWords}

// catalogue adds the words of all areas to the shared ones. A key has one text.
func catalogue(shared map[string]string, of func(area) map[string]string) map[string]string {
	all := maps.Clone(shared)
	for _, a := range areas {
		for key, text := range of(a) {
			if _, known := all[key]; known {
				panic("web: two texts for " + key)
			}
			all[key] = text
		}
	}
	return all
}

var (
	english = catalogue(sharedEnglish, func(a area) map[string]string { return a.en })
	russian = catalogue(sharedRussian, func(a area) map[string]string { return a.ru })
)

// language is a catalogue of words.
type language struct {
	code string
	// words are the texts by their key. The plural forms of a text with a number are separated by "|".
	words map[string]string
	// form returns the plural form of a number, from 0.
	form func(n int) int
}

var languages = map[string]*language{
	"en": {"en", english, func(n int) int {
		if n == 1 {
			return 0
		}
		return 1
	}},
	"ru": {"ru", russian, func(n int) int {
		switch {
		case n%10 == 1 && n%100 != 11:
			return 0
		case n%10 >= 2 && n%10 <= 4 && (n%100 < 12 || n%100 > 14):
			return 1
		}
		return 2
	}},
}

var matcher = xlanguage.NewMatcher([]xlanguage.Tag{xlanguage.English, xlanguage.Russian})

// languageOf returns the language that a person chose, else the best one for the browser.
func languageOf(chosen, accepted string) *language {
	if l := languages[chosen]; l != nil {
		return l
	}
	tags, _, err := xlanguage.ParseAcceptLanguage(accepted)
	if err != nil {
		return languages["en"]
	}
	if _, at, confidence := matcher.Match(tags...); at == 1 && confidence > xlanguage.No {
		return languages["ru"]
	}
	return languages["en"]
}

// t returns the text of a key. A key without a text is shown as it is.
func (v *view) t(key string, args ...any) string {
	text, known := v.words.words[key]
	if !known {
		return key
	}
	if len(args) > 0 {
		return fmt.Sprintf(text, args...)
	}
	return text
}

// n returns the text of a key for a number.
func (v *view) n(key string, n int) string {
	forms := strings.Split(v.t(key), "|")
	form := forms[min(v.words.form(n), len(forms)-1)]
	if strings.Contains(form, "%d") {
		return fmt.Sprintf(form, n)
	}
	return form
}

// or returns the text of a key, and other if the key has none.
func (v *view) or(key, other string) string {
	if text, known := v.words.words[key]; known {
		return text
	}
	return other
}
