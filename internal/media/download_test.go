package media_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
)

// breaking serves content. It closes the connection during each of the first breaks answers.
func breaking(t *testing.T, content []byte, piece int, breaks int64, head func(http.Header, int64)) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		head(w.Header(), n)
		if n <= breaks {
			w = &cutting{ResponseWriter: w, left: piece}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// cutting drops the connection after a number of bytes of the body.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) <= c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func TestBrokenDownloadResumes(t *testing.T) {
	content := mp4Of(1 << 20)
	url, asked := breaking(t, content, 200_000, 4, func(h http.Header, _ int64) { h.Set("ETag", `"v1"`) })
	f := fetcher(t, http.DefaultClient)
	f.Limits = media.Limits{}
	origin, failed := f.Fetch(t.Context(), url, autopost.MediaVideo)
	require.Nil(t, failed)
	sum := sha256.Sum256(content)
	require.Equal(t, hex.EncodeToString(sum[:]), origin.SHA256)
	require.Equal(t, int64(len(content)), origin.SizeBytes)
	require.EqualValues(t, 5, asked.Load())
}

func TestBrokenDownloadStartsOver(t *testing.T) {
	content := mp4Of(1 << 20)
	for name, c := range map[string]struct {
		head  func(http.Header, int64)
		asked int64
	}{
		"an invalid version":           {func(http.Header, int64) {}, 1},
		"a version that is weak":       {func(h http.Header, _ int64) { h.Set("ETag", `W/"v1"`) }, 1},
		"another version by now":       {func(h http.Header, n int64) { h.Set("ETag", `"v`+string(rune('0'+n))+`"`) }, 2},
		"broken again and again":       {func(h http.Header, _ int64) { h.Set("ETag", `"v1"`) }, 9},
		"a source that knows no parts": {func(h http.Header, _ int64) { h.Set("ETag", `"v1"`); h.Set("Content-Encoding", "identity") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			url, asked := breaking(t, content, 1000, 100, c.head)
			f := fetcher(t, http.DefaultClient)
			f.Limits = media.Limits{}
			_, failed := f.Fetch(t.Context(), url, autopost.MediaVideo)
			require.NotNil(t, failed)
			require.Equal(t, media.CodeFetchFailed, failed.Code)
			require.Equal(t, autopost.Transient, failed.Category, "the next attempt starts over")
			require.Equal(t, c.asked, asked.Load())
		})
	}
}

func TestFetchReturnsTheNameOfTheFile(t *testing.T) {
	for _, c := range []struct{ path, disposition, want string }{
		{"/dir/price%20list.pdf?signature=s", "", "price list.pdf"},
		{"/download", "", ""},
		{"/", "", ""},
		{"/download?id=4", `attachment; filename="report.pdf"`, "report.pdf"},
		{"/a.pdf", `attachment; filename*=UTF-8''%D1%86%D0%B5%D0%BD%D1%8B.pdf`, "цены.pdf"},
		{"/a.pdf", `attachment; filename="../../etc/passwd"`, "passwd"},
		{"/a.pdf", `attachment; filename="..\\x.pdf"`, "x.pdf"},
		{"/a.pdf", "attachment", "a.pdf"},
		{"/a%0A.pdf", "", ""},
		{"/" + strings.Repeat("a", 252) + ".pdf", "", ""},
	} {
		address, _ := breaking(t, []byte("%PDF-1.7 content"), 0, 0, func(h http.Header, _ int64) {
			if c.disposition != "" {
				h.Set("Content-Disposition", c.disposition)
			}
		})
		origin, failed := fetcher(t, http.DefaultClient).Fetch(t.Context(), address+c.path, autopost.MediaFile)
		require.Nil(t, failed, "%v", failed)
		require.Equal(t, c.want, origin.Filename, "%s %s", c.path, c.disposition)
	}
}
