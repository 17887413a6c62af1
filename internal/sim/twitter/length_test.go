package twitter_test

import (
	"os"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/stretchr/testify/require"

	"autopost/internal/sim/twitter"
)

func TestWeightedLength(t *testing.T) {
	for text, want := range map[string]int{
		"":                          0,
		"plain":                     5,
		"привет":                    6,
		"漢字":                        4,
		"e\u0301":                   1, // in NFC
		"👩‍👩‍👧":                     2,
		"🇩🇪🇫🇷":                      4,
		"3\ufe0f\u20e3":             2,
		"©":                         1,
		"©\ufe0f":                   2,
		"“quoted” – so":             13,
		"see https://e.org/a?b=c.":  28,
		"(https://e.org/a_(b))":     25,
		"example.com":               23,
		"see example.com/päth, now": 32,
		"日本example.com日本":           31,
		"me@example.com":            14,
		"file.unknowntld":           15,
		"v1.2.3":                    6,
		"http://nothing":            14,
		"https://пример.рф/а":       23,
		"https://e.org:8080/x":      23,
		"a.com b.com":               47,
		"google.рф":                 23,
		"shop.онлайн/x":             23,
		"сайт.москва":               11,
		"т.е.":                      4,
		"https://e.org/" + strings.Repeat("a", 5000): 5014,
	} {
		require.Equal(t, want, twitter.WeightedLength(text), "%.80q", text)
	}
}

// The vectors are X's own, under the current rules: an emoji sequence is one character.
func TestWeightedLengthEqualsTwitterText(t *testing.T) {
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
			require.Equal(t, want, twitter.WeightedLength(vector["text"].(string)), vector["description"])
			seen++
		}
	}
	require.Greater(t, seen, 20)
}
