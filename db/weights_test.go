package db_test

import (
	"os"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// X's own vectors: texts with their weighted length, under the rules in force (an emoji sequence is one character).
func TestWeightsAreThoseOfTwitterText(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../shared/data/twitter-text-validate.yml")
	if os.IsNotExist(err) {
		t.Log("NOT CHECKED against twitter-text: ../shared/data/twitter-text-validate.yml is absent")
		return
	}
	require.NoError(t, err)
	file, err := yaml.Parser().Unmarshal(content)
	require.NoError(t, err)
	groups := file["tests"].(map[string]any)
	base := pgtest.New(t)
	seen := 0
	for _, group := range []string{"WeightedTweetsWithDiscountedEmojiCounterTest", "UnicodeDirectionalMarkerCounterTest"} {
		for _, entry := range groups[group].([]any) {
			vector := entry.(map[string]any)
			want := vector["expected"].(map[string]any)["weightedLength"]
			require.Equal(t, want, pgtest.Value[int](base, `select autopost.weighted_length($1)`, vector["text"]), vector["description"])
			seen++
		}
	}
	require.Greater(t, seen, 20)
}
