package telemetry

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessagesToBotsAreGauges(t *testing.T) {
	t.Parallel()
	w := NewRecorder(nil)
	w.Bots(func(context.Context) ([]BotLine, error) {
		return []BotLine{{"news", "matched", 7}, {"news", "unmatched", 2}, {"_other", "given_up", 1}}, nil
	})
	text := scraped(t, w)
	for _, line := range []string{
		`autopost_bot_messages{answer="matched",workspace="news"} 7`, `autopost_bot_messages{answer="unmatched",workspace="news"} 2`,
		`autopost_bot_unprocessed{state="given_up",workspace="_other"} 1`,
	} {
		require.Contains(t, text, line)
	}
}
