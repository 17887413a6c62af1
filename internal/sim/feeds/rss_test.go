package feeds_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/feeds"
)

func TestGeneratedFeeds(t *testing.T) {
	plain, err := feeds.RSS{Items: 2, First: 5}.Document()
	require.NoError(t, err)
	require.Contains(t, string(plain), "<title>Item 6</title>")
	require.Contains(t, string(plain), "<title>Item 5</title>")
	require.NotContains(t, string(plain), "Item 4")
	russian, err := feeds.RSS{Items: 1, Charset: "windows-1251"}.Document()
	require.NoError(t, err)
	require.Contains(t, string(russian), "<title>\xcd\xee\xe2\xee\xf1\xf2\xfc 1</title>")
	large, err := feeds.RSS{Items: 100, Size: 5 << 20}.Document()
	require.NoError(t, err)
	require.Greater(t, len(large), 5<<20)
	_, err = feeds.RSS{Items: 1, Charset: "x-none"}.Document()
	require.ErrorContains(t, err, "x-none")
}

func TestRedirectAndGone(t *testing.T) {
	s := feeds.NewFeeds(sim.NewCore(0))
	s.Redirect("old", 301, "/new")
	moved := do(s, "GET", "/old", "")
	require.Equal(t, 301, moved.StatusCode)
	require.Equal(t, "/new", moved.Header.Get("Location"))
	s.SetHeader("new", "Cache-Control", "max-age=60")
	s.Set("new", "text/xml", []byte("<rss/>"))
	answer := do(s, "GET", "/new", "")
	require.Equal(t, "max-age=60", answer.Header.Get("Cache-Control"))
	require.NotEmpty(t, answer.Header.Get("ETag"))
	s.Gone("new")
	require.Equal(t, 410, do(s, "GET", "/new", "").StatusCode)
	s.Set("new", "text/xml", []byte("<rss/>"))
	require.Equal(t, 200, do(s, "GET", "/new", "").StatusCode)
}
