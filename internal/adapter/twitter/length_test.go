package twitter

import (
	"os"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/stretchr/testify/require"
)

func TestWeight(t *testing.T) {
	for text, want := range map[string]int{
		"":                  0,
		"Hi http://test.co": 26,
		"ёлка, ça va":       11,
		"e\u0301té":         3, // composed first
		"漢字 – “so”":         11,
		"👨‍👩‍👧‍👦👍🏽🏴󠁧󠁢󠁥󠁮󠁧󠁿":                            6,
		"🇩🇪🇫🇷 7\ufe0f\u20e3 ™":                        10,
		"photo.photography":                           23,
		"Straße.de/über?q=я":                          24,
		"mail me@example.com":                         19,
		"a_b.example.com":                             25,
		"я.example.com":                               25,
		"日本example.com日本":                             31,
		"см. ru.wikipedia.org/Ё.":                     28,
		"пример.рф":                                   9, // other alphabets need a scheme
		"http://пример.рф":                            23,
		"end.of.it.nope":                              28,
		"1.2.3":                                       5,
		"(https://e.org/a_(b)_c)":                     25,
		"https://e.org/\n" + strings.Repeat("a", 100): 124,
		"https://e.org/" + strings.Repeat("a", 5000):  5014,
		"https://" + strings.Repeat("a", 64) + ".com": 76,
		strings.Repeat("x.com ", 12):                  12 * 24,
		"google.рф":                                   23,
		"shop.онлайн/x":                               23,
		"site.москва":                                 23,
		"сайт.москва":                                 11,
		"http://сайт.москва":                          23,
		"readme.md":                                   23,
		"main.go":                                     7,
		"т.е.":                                        4,
		"a_b.com":                                     7,
		"http://a_b.com":                              14,
		"my_shop.example.com":                         26,
		"https://t.co:8080":                           23,
		"https://t.co/abc/def":                        27,
		"https://t.co/" + strings.Repeat("a", 41):     54,
		"c.net?x=y":                                   27,
		"a.comяb.org":                                 47,
		"👍google.com":                                 25,
		"~#👨-a.com":                                   27,
		"x.com/a_(b)[(c)":                             27,
		"xn--p1ai.com and a.xn--p1ai":                 51,
		"🧑‍💻":                                         5, // newer than X's list
		"https://e.org:8080/?a=b&c=d#e, and https://e.org/": 23 + 6 + 23,
	} {
		require.Equal(t, want, weight(text), "%.80q", text)
	}
}

// The vectors are X's own, under the current rules: an emoji sequence is one character.
func TestWeightEqualsTwitterText(t *testing.T) {
	content, err := os.ReadFile("../../../../shared/data/twitter-text-validate.yml")
	if os.IsNotExist(err) {
		t.Log("NOT CHECKED against twitter-text: ../shared/data/twitter-text-validate.yml is absent")
		return
	}
	require.NoError(t, err)
	file, err := yaml.Parser().Unmarshal(content)
	require.NoError(t, err)
	groups := file["tests"].(map[string]any)
	seen := 0
	for _, group := range []string{"WeightedTweetsWithDiscountedEmojiCounterTest", "UnicodeDirectionalMarkerCounterTest"} {
		for _, entry := range groups[group].([]any) {
			vector := entry.(map[string]any)
			want := vector["expected"].(map[string]any)["weightedLength"]
			require.Equal(t, want, weight(vector["text"].(string)), vector["description"])
			seen++
		}
	}
	require.Greater(t, seen, 20)
}
