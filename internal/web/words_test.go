package web

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	verb = regexp.MustCompile(`%[ds]`)
	used = regexp.MustCompile(`v\.(t|n)\("([a-z_.]+)"`)
)

func TestLanguagesHaveTheSameWords(t *testing.T) {
	t.Parallel()
	forms := map[string]int{"en": 2, "ru": 3}
	for key, text := range english {
		require.Contains(t, russian, key)
		for code, l := range languages {
			parts := strings.Split(l.words[key], "|")
			if len(parts) > 1 {
				require.Len(t, parts, forms[code], "%s of %s", key, code)
			}
			for _, part := range parts {
				require.ElementsMatch(t, verb.FindAllString(strings.Split(text, "|")[0], -1), verb.FindAllString(part, -1), "%s of %s", key, code)
			}
		}
	}
	require.Len(t, russian, len(english))
}

// Every key in the code has words.
func TestEveryKeyHasWords(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("*.templ")
	require.NoError(t, err)
	code, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := 0
	for _, file := range append(sources, code...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range used.FindAllStringSubmatch(string(text), -1) {
			if strings.HasSuffix(m[2], ".") || strings.HasSuffix(m[2], "_") {
				continue // the beginning of a key
			}
			require.Contains(t, english, m[2], file)
			found++
		}
	}
	require.Greater(t, found, 100)
}

func TestPluralForms(t *testing.T) {
	t.Parallel()
	v := &view{words: languages["ru"]}
	for n, want := range map[int]string{1: "1 доставка", 3: "3 доставки", 5: "5 доставок", 11: "11 доставок", 12: "12 доставок", 21: "21 доставка", 104: "104 доставки"} {
		require.Equal(t, want, v.n("deliveries", n))
	}
	require.Equal(t, "1 delivery", (&view{words: languages["en"]}).n("deliveries", 1))
}

func TestTheLanguageIsThatOfThePersonOrTheBrowser(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ chosen, accepted, want string }{
		{"", "", "en"}, {"ru", "en", "ru"}, {"de", "ru-RU,ru;q=0.9", "ru"}, {"", "de, en;q=0.5", "en"}, {"", "uk, ru;q=0.8", "ru"}, {"", ";;", "en"},
	} {
		require.Equal(t, c.want, languageOf(c.chosen, c.accepted).code, c)
	}
}
