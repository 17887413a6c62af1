package rss

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/ingest/pull/httpfetch"
	"autopost/internal/testing/pgtest"
)

// memoryOfASource is the most memory that one source may need, in bytes.
const memoryOfASource = 64 << 20

// peak returns how much the live heap grows while f runs, in bytes. Tests that run at the same time would count too.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var most uint64
	done := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
		ticks := time.NewTicker(time.Millisecond)
		defer ticks.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-ticks.C:
			case <-done:
				return
			}
		}
	})
	f()
	close(done)
	sampler.Wait()
	return most - min(most, before.HeapAlloc)
}

// sample names the documents of make test; make test-long has all.
var sample = map[string]bool{"base of many segments": true, "long link of channel": true, "empty items": true, "unknown elements": true, "values of JSON": true}

// A feed of a few hundred kilobytes must not fill the memory of the daemon: each case is the worst small document of its kind.
func TestMemoryOfOneSourceIsBounded(t *testing.T) {
	long := "http://x.example/" + strings.Repeat("a", 100<<10) + "/"
	items := func(n int, inner string) string { return strings.Repeat("<item>"+inner+"</item>", n) }
	rss := func(root, inner string) string {
		return `<rss version="2.0"` + root + `><channel><title>t</title>` + inner + `</channel></rss>`
	}
	for name, body := range map[string]string{
		"long base":             rss(` xml:base="`+long+`"`, items(1500, `<title>t</title><link>p</link>`)+strings.Repeat(`<a href="x"/>`, 1500)),
		"base of many segments": rss(` xml:base="http://x/`+strings.Repeat("a/", 4000)+`"`, strings.Repeat(`<a href="x"/>`, 50_000)),
		"bases within bases":    rss("", strings.Repeat(`<a xml:base="`+strings.Repeat("b/", 3000)+`">`, 90)+strings.Repeat("</a>", 90)),
		"long link of channel":  rss("", `<link>`+long+`</link>`+items(3000, `<title>t</title><link>p</link>`)),
		"long link of items":    rss("", items(80, `<link>`+long+`</link>`)),
		"empty items":           rss("", strings.Repeat("<item/>", 480_000)),
		"empty elements":        rss("", "<item>"+strings.Repeat("<category/>", 700_000)+"</item>"),
		"unknown elements":      rss(` xmlns:m="urn:m"`, "<item>"+strings.Repeat(`<m:a b="c"/>`, 79_000)+"</item>"),
		"enclosures":            rss("", "<item>"+strings.Repeat(`<enclosure url="http://x.example/1.jpg" type="image/jpeg"/>`, 100_000)+"</item>"),
		"attributes":            rss("", "<item>"+strings.Repeat("<a"+strings.Repeat(` b="c"`, 99)+"/>", 10_000)+"</item>"),
		"entities":              rss("", items(100, "<title>"+strings.Repeat("&amp;", 10_000)+"</title>")),
		"one long text":         rss("", items(1, "<description>"+strings.Repeat("&lt;p&gt;x", 800_000)+"</description>")),
		"values of JSON":        `{"version": "https://jsonfeed.org/version/1.1", "items": [` + strings.Repeat(`{},`, 2_000_000) + `{}]}`,
		"deep JSON":             `{"version": "https://jsonfeed.org/version/1.1", "items": [], "a": ` + strings.Repeat(`[`, 1_000_000),
		"spaces":                strings.Repeat(" ", httpfetch.MaxBody-1),
	} {
		if !pgtest.Long() && !sample[name] {
			continue
		}
		address := serve(t, []byte(body), "text/xml")
		s := source(map[string]any{"url": address, "template": "{title} {summary} {link}"})
		var err error
		grown := peak(func() { _, err = New(client).Fetch(t.Context(), s) })
		t.Logf("%s: %d kB give %d MB, error %v", name, len(body)>>10, grown>>20, err)
		require.LessOrEqual(t, grown, uint64(memoryOfASource), name)
	}
}
