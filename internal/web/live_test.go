package web

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"autopost/internal/api/rest"
	"autopost/internal/api/stream"
)

func TestAnswersAreSharedUntilAChangeThatShowsInThem(t *testing.T) {
	t.Parallel()
	l := newLive(nil)
	reads := 0
	read := func(at version, target string) {
		got, err := l.read(t.Context(), at, rest.Key{WorkspaceID: "news", Role: "editor"}, target, func(context.Context) (json.RawMessage, error) {
			reads++
			return json.RawMessage(`{}`), nil
		})
		require.NoError(t, err)
		require.JSONEq(t, `{}`, string(got))
	}
	at := version{}
	for _, c := range []struct {
		kind string
		// reads are those of the summary, of a list of posts and of the names of channels.
		reads int
	}{
		{stream.Reset, 3}, {"alert", 1}, {"delivery", 2}, {"post", 2}, {"submission", 2}, {"change", 3}, {"alert", 1},
	} {
		at = at.after(stream.Item{Number: at.any + 1, Kind: c.kind})
		before := reads
		for range 3 {
			read(at, "/summary")
			read(at, "/posts?limit=50")
			read(at, channelNames)
		}
		require.Equal(t, c.reads, reads-before, c.kind)
	}
	newer := at.after(stream.Item{Number: at.any + 1, Kind: "delivery"})
	read(newer, "/summary")
	before := reads
	read(at, "/summary")
	require.Equal(t, before, reads, "a later answer shows an earlier change")
	require.Equal(t, newer, newer.after(stream.Item{Number: newer.any - 1, Kind: "delivery"}), "a version does not go back")
}

// A page without a read is rendered again later: that is not an error.
func TestAPageWithoutAReadIsDeferred(t *testing.T) {
	t.Parallel()
	l := newLive(nil)
	l.limit = rate.NewLimiter(rate.Limit(0.01), 1)
	run := func(context.Context) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }
	_, err := l.read(t.Context(), version{any: 1}, rest.Key{}, "/summary", run)
	require.NoError(t, err)
	_, err = l.read(t.Context(), version{any: 1}, rest.Key{}, "/overview", run)
	require.ErrorIs(t, err, errDeferred)
	require.Equal(t, http.StatusTooManyRequests, errDeferred.Status)
	_, err = l.read(t.Context(), version{any: 1}, rest.Key{}, "/summary", run)
	require.NoError(t, err, "a known answer needs no read")
	require.Less(t, l.limit.Tokens(), 1.0)
	require.GreaterOrEqual(t, l.limit.Tokens(), 0.0, "a page that does not wait takes no turn")
}
