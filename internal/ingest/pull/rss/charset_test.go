package rss

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// titleOf parses an RSS document with this title and returns the title of its item.
func titleOf(t *testing.T, declaration, title, contentType string) string {
	t.Helper()
	address := &url.URL{Scheme: "https", Host: "feed.example", Path: "/"}
	body := declaration + `<rss version="2.0"><channel><item><title>` + title + `</title></item></channel></rss>`
	read, err := parse([]byte(body), contentType, address)
	require.NoError(t, err)
	require.Len(t, read.entries, 1)
	return read.entries[0].Title
}

func TestBadBytesBecomeReplacementCharacters(t *testing.T) {
	russian := strings.Repeat("Новости дня ", 5)
	cases := map[string]struct{ title, want string }{
		"one byte in ASCII":        {"It\x92s", "It\uFFFDs"},
		"one byte among Cyrillic":  {russian + "\xff", russian + "\uFFFD"},
		"a character cut in two":   {"caf\xc3", "caf\uFFFD"},
		"two bytes of three":       {"5 \xe2\x82 x", "5 \uFFFD x"},
		"an overlong form":         {"a\xc0\xafb", "a\uFFFD\uFFFDb"},
		"a surrogate":              {"a\xed\xa0\x80b", "a\uFFFD\uFFFD\uFFFDb"},
		"a noncharacter":           {"a\uFFFFb", "a\uFFFDb"},
		"its own U+FFFD":           {strings.Repeat("\uFFFD", 30), strings.Repeat("\uFFFD", 30)},
		"a reference to a control": {"a&#8;b&#x1F;c", "abc"},
		"a reference to zero":      {"a&#0;b", "a\uFFFDb"},
		"a reference to half":      {"a&#xD83D;b", "a\uFFFDb"},
		"a reference to U+FFFF":    {"a&#65535;b", "a\uFFFDb"},
	}
	for name, c := range cases {
		for _, contentType := range []string{"text/xml", "text/xml; charset=utf-8"} {
			require.Equal(t, c.want, titleOf(t, "", c.title, contentType), name)
		}
	}
}

func TestWindows1252ReferencesAreReadAsInHTML(t *testing.T) {
	require.Equal(t, "It’s 5 €", titleOf(t, "", "It&#146;s 5 &#x80;", "text/xml"))
	require.Equal(t, "It’s 5 €", titleOf(t, "", "<![CDATA[It&#146;s 5 &#x80;]]>", "text/xml"))
}

func TestLabelsAreReadAsInBrowsers(t *testing.T) {
	russian := strings.Repeat("Новости дня ", 5)
	cases := map[string]struct{ declaration, title, contentType, want string }{
		"latin1 is windows-1252":         {`<?xml version="1.0" encoding="ISO-8859-1"?>`, "It\x92s 5 \x80", "text/xml", "It’s 5 €"},
		"ascii is windows-1252":          {`<?xml version="1.0" encoding="us-ascii"?>`, "It\x92s", "text/xml", "It’s"},
		"the header names latin1":        {"", "It\x92s", "text/xml; charset=iso-8859-1", "It’s"},
		"x-user-defined":                 {`<?xml version="1.0" encoding="x-user-defined"?>`, "It\x92s", "text/xml", "It’s"},
		"a header of UTF-8 is a default": {`<?xml version="1.0" encoding="windows-1252"?>`, "It\x92s", "text/xml; charset=utf-8", "It’s"},
		"UTF-16 that is ASCII":           {`<?xml version="1.0" encoding="utf-16"?>`, "It\x92s", "text/xml", "It\uFFFDs"},
		"an unknown label":               {`<?xml version="1.0" encoding="x-made-up"?>`, "It\x92s", "text/xml", "It\uFFFDs"},
		"a label of a disabled charset":  {`<?xml version="1.0" encoding="iso-2022-kr"?>`, "It\x92s", "text/xml", "It\uFFFDs"},
		"damaged UTF-8 named latin1":     {"", russian + "\xff", "text/xml; charset=iso-8859-1", russian + "\uFFFD"},
		"damaged UTF-8 named cp1251":     {`<?xml version="1.0" encoding="windows-1251"?>`, russian + "\xff", "text/xml", russian + "\uFFFD"},
		"windows-1251 named so":          {`<?xml version="1.0" encoding="windows-1251"?>`, "\xcd\xee\xe2\xee\xf1\xf2\xfc", "text/xml", "Новость"},
		"UTF-8 with an escape, latin1":   {"", "\x1b" + "Ёж", "text/xml; charset=iso-8859-1", "Ёж"},
		"ISO-2022-JP":                    {`<?xml version="1.0" encoding="iso-2022-jp"?>`, "\x1b$B$\"\x1b(B", "text/xml", "あ"},
		"Shift_JIS":                      {`<?xml version="1.0" encoding="shift_jis"?>`, "\x83\x6a\x83\x85\x81\x5b\x83\x58", "text/xml", "ニュース"},
		"GBK named gb2312":               {`<?xml version="1.0" encoding="gb2312"?>`, "\xd0\xc2\xce\xc5", "text/xml", "新闻"},
		"a byte order mark decides":      {"\uFEFF" + `<?xml version="1.0" encoding="windows-1251"?>`, russian + "\xff", "text/xml; charset=koi8-r", russian + "\uFFFD"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, titleOf(t, c.declaration, c.title, c.contentType))
		})
	}
}

// A feed in a charset that it does not name would be published as a row of U+FFFD.
func TestUnreadableTextIsRejected(t *testing.T) {
	address := &url.URL{Scheme: "https", Host: "feed.example", Path: "/"}
	body := `<rss><channel><item><title>` + strings.Repeat("\xcd\xee\xe2\xee\xf1\xf2\xfc ", 50) + `</title></item></channel></rss>`
	for _, contentType := range []string{"text/xml", "text/xml; charset=utf-8", "text/xml; charset=x-made-up"} {
		_, err := parse([]byte(body), contentType, address)
		requireFailure(t, err, "pull_malformed", "must name its charset")
	}
}
