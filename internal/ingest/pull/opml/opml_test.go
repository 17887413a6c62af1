package opml

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOPML(t *testing.T) {
	feeds, err := Read([]byte("\uFEFF" + `<?xml version="1.0" encoding="UTF-8"?><opml version="2.0"><head><title>mine</title></head><body>
		<outline text="News"><outline text="City"><outline type="rss" text="A &amp; B" xmlUrl="https://www.a.example/feed?x=1&amp;y=2" htmlUrl="https://a.example"/></outline>
			<outline title="Titled" text="t" xmlUrl=" feed://b.example/rss " category="/Deals/Flats,Rent"/></outline>
		<outline text="again" xmlUrl="https://www.a.example/feed?x=1&amp;y=2"/><outline text="empty folder"/></body></opml>`))
	require.NoError(t, err)
	require.Len(t, feeds, 2)
	require.Equal(t, "A & B", feeds[0].Title)
	require.Equal(t, "https://www.a.example/feed?x=1&y=2", feeds[0].URL)
	require.Equal(t, []string{"News", "City"}, feeds[0].Tags)
	require.Regexp(t, `^a-example-[0-9a-f]{8}$`, feeds[0].ID)
	require.Equal(t, Feed{ID: feeds[1].ID, URL: "https://b.example/rss", Title: "Titled", Tags: []string{"News", "Deals", "Flats", "Rent"}}, feeds[1])
}

func TestOPMLInAnotherCharset(t *testing.T) {
	feeds, err := Read([]byte("<?xml version='1.0' encoding='windows-1251'?><opml><body><outline text='\xcd\xee\xe2\xee\xf1\xf2\xe8' xmlUrl='https://h.example/'/></body></opml>"))
	require.NoError(t, err)
	require.Equal(t, "Новости", feeds[0].Title)
}

func TestCSV(t *testing.T) {
	feeds, err := Read([]byte("Title, url,tags\n\"One, two\",https://h.example/1,\"a; b,c\"\nThree,https://h.example/2\n"))
	require.NoError(t, err)
	require.Equal(t, []Feed{
		{ID: feeds[0].ID, URL: "https://h.example/1", Title: "One, two", Tags: []string{"a", "b", "c"}},
		{ID: feeds[1].ID, URL: "https://h.example/2", Title: "Three"},
	}, feeds)
	require.NotEqual(t, feeds[0].ID, feeds[1].ID)
}

func TestInvalidListsContainTheRemedy(t *testing.T) {
	for name, c := range map[string]struct{ raw, says string }{
		"nothing":       {"", "must contain a feed"},
		"no feeds":      {"<opml><body><outline text='x'/></body></opml>", "must contain a feed"},
		"HTML":          {"<html></html>", "must be valid OPML"},
		"cut off":       {"<opml><body>", "must be valid OPML"},
		"entities":      {`<!DOCTYPE x [<!ENTITY a "b">]><opml><body><outline text="&a;" xmlUrl="https://h"/></body></opml>`, "must be valid OPML"},
		"no header":     {"https://h.example/1,One\n", "write url,title,tags"},
		"a wrong line":  {"url\nhttps://h.example\nftp://h.example\n", "line 3"},
		"broken quotes": {"url,title\n\"x", "must be OPML or CSV"},
		"a bad outline": {"<opml><body><outline text='Bad' xmlUrl='file:///etc/passwd'/></body></opml>", `"Bad"`},
		"too deep":      {"<opml><body>" + strings.Repeat("<outline text='a'>", maxDepth+2) + strings.Repeat("</outline>", maxDepth+2) + "</body></opml>", "levels"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(c.raw))
			require.ErrorContains(t, err, c.says)
		})
	}
}
