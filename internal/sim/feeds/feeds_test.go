package feeds_test

import (
	"bytes"
	"image"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/feeds"
)

func do(h http.Handler, method, path, body string, header ...string) *http.Response {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return w.Result()
}

func TestConditionalGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := sim.NewCore(0)
		s := feeds.NewFeeds(core)
		require.Equal(t, 404, do(s, "GET", "/news.xml", "").StatusCode)
		s.Set("news.xml", "application/rss+xml", []byte("<rss/>"))
		first := do(s, "GET", "/news.xml", "")
		require.Equal(t, 200, first.StatusCode)
		require.Equal(t, "application/rss+xml", first.Header.Get("Content-Type"))
		etag, modified := first.Header.Get("ETag"), first.Header.Get("Last-Modified")

		for _, c := range []struct {
			name   string
			header []string
			status int
		}{
			{"same tag", []string{"If-None-Match", etag}, 304},
			{"one of many, weak", []string{"If-None-Match", `"x", W/` + etag}, 304},
			{"any", []string{"If-None-Match", "*"}, 304},
			{"other tag", []string{"If-None-Match", `"x"`}, 200},
			{"same date", []string{"If-Modified-Since", modified}, 304},
			{"older date", []string{"If-Modified-Since", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)}, 200},
			{"the tag decides", []string{"If-None-Match", `"x"`, "If-Modified-Since", modified}, 200},
		} {
			require.Equal(t, c.status, do(s, "GET", "/news.xml", "", c.header...).StatusCode, c.name)
		}
		<-time.After(time.Minute)
		s.Set("news.xml", "application/rss+xml", []byte("<rss/>"))
		require.Equal(t, modified, do(s, "GET", "/news.xml", "").Header.Get("Last-Modified"), "equal content changes nothing")
		s.Set("news.xml", "application/rss+xml", []byte("<rss>new</rss>"))
		require.Equal(t, 200, do(s, "GET", "/news.xml", "", "If-None-Match", etag).StatusCode)
		require.Equal(t, 200, do(s, "GET", "/news.xml", "", "If-Modified-Since", modified).StatusCode)
		entries := core.Log.Entries(sim.Filter{Platform: "feeds", Chat: "news.xml"})
		require.Len(t, entries, 12)
		for _, e := range entries {
			require.True(t, e.ReplyDelivered, "%d", e.Status)
		}
	})
}

func TestPut(t *testing.T) {
	s := feeds.NewFeeds(sim.NewCore(0))
	require.Equal(t, 204, do(s, "PUT", "/f.json", `{"items":[]}`, "Content-Type", "application/feed+json").StatusCode)
	contentType, body, ok := s.Get("f.json")
	require.True(t, ok)
	require.Equal(t, "application/feed+json", contentType)
	require.JSONEq(t, `{"items":[]}`, string(body))
	require.Equal(t, 400, do(s, "PUT", "/", "x").StatusCode)
	require.Equal(t, 405, do(s, "DELETE", "/f.json", "").StatusCode)
	s.Reset()
	require.Equal(t, 404, do(s, "HEAD", "/f.json", "").StatusCode)
}

func TestFaults(t *testing.T) {
	core := sim.NewCore(0)
	s := feeds.NewFeeds(core)
	s.Set("a", "text/plain", []byte("x"))
	require.NoError(t, core.Faults.Add(sim.Fault{Platform: "feeds", Chat: "a", To: 1, Effect: sim.EffectStatus, Status: 503, RetryAfter: 9}))
	failed := do(s, "GET", "/a", "")
	require.Equal(t, 503, failed.StatusCode)
	require.Equal(t, "9", failed.Header.Get("Retry-After"))
	require.Equal(t, 200, do(s, "GET", "/a", "").StatusCode)
}

func TestGeneratedFiles(t *testing.T) {
	files := feeds.NewFiles(sim.NewCore(0))
	for name, sniffed := range map[string]string{
		"photo-1.png": "image/png", "photo-2.jpg": "image/jpeg", "photo-3.gif": "image/gif",
		"video-1.mp4": "video/mp4", "audio-1.mp3": "audio/mpeg", "document-1.pdf": "application/pdf",
	} {
		t.Run(name, func(t *testing.T) {
			contentType, body, ok := files.Get(name)
			require.True(t, ok)
			require.Equal(t, sniffed, contentType)
			require.Equal(t, sniffed, http.DetectContentType(body))
			if strings.HasPrefix(name, "photo") {
				_, _, err := image.Decode(bytes.NewReader(body))
				require.NoError(t, err)
			}
			_, again, _ := feeds.Generate(name)
			require.Equal(t, body, again)
		})
	}
	_, one, _ := files.Get("photo-1.png")
	_, two, _ := files.Get("photo-2.png")
	require.NotEqual(t, one, two)
	_, _, ok := files.Get("video-1.png")
	require.False(t, ok)
	require.Equal(t, 200, do(files, "GET", "/photo-9.png", "").StatusCode)
	files.Set("photo-9.png", "image/png", []byte("set"))
	_, body, _ := files.Get("photo-9.png")
	require.Equal(t, "set", string(body))
}
