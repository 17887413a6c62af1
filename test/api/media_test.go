package api

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
)

// A medium is accepted with and without a Content-Length, is stored once, and can be used in a post. An incomplete one
// is not stored.
func TestMediaAreStreamed(t *testing.T) {
	t.Parallel()
	w := open(t)
	const at = "/api/v1/media?kind=image"
	count := func() int {
		return pgtest.Value[int](w.DB, `select count(*)::int from autopost.media_origin where workspace_id = 'acme'`)
	}
	before := count()
	first := w.ask(call{method: http.MethodPost, path: at, key: w.keys["editor"], body: picture, header: map[string]string{"Content-Type": "image/png"}})
	require.Equal(t, 201, first.status, first.raw)
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, first.body["blob_ref"])
	require.EqualValues(t, len(picture), first.body["size_bytes"])
	require.Equal(t, "image/png", first.body["content_type"])

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+at, io.MultiReader(strings.NewReader(picture[:10]), strings.NewReader(picture[10:])))
	require.NoError(t, err)
	require.EqualValues(t, 0, request.ContentLength, "chunked")
	request.Header.Set("Authorization", "Bearer "+w.keys["editor"])
	response, err := client.Do(request)
	require.NoError(t, err)
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, first.raw, string(raw))
	require.Equal(t, before+1, count())

	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	require.NoError(t, connection.SetDeadline(time.Now().Add(wait.Bound)))
	_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s!", at, w.keys["editor"], len(picture)+100, picture)
	require.NoError(t, err)
	require.NoError(t, connection.(*net.TCPConn).CloseWrite())
	cut, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(t, err)
	require.NoError(t, cut.Body.Close())
	require.Equal(t, 400, cut.StatusCode)
	require.Equal(t, before+1, count())

	post := w.ask(call{method: http.MethodPost, path: "/api/v1/posts", key: w.keys["editor"], body: fmt.Sprintf(`{"text": "look", "media": [{"type": "image", "blob_ref": %q}]}`, first.body["blob_ref"])})
	require.Equal(t, 202, post.status, post.raw)
	require.Equal(t, "enqueued", post.body["status"])
}

// Content whose object is being removed is not acknowledged. The answer has Retry-After, and no stored answer prevents
// the retry.
func TestUploadDuringARemoval(t *testing.T) {
	t.Parallel()
	w := open(t)
	content := picture + "once more"
	sum := sha256.Sum256([]byte(content))
	ref := "sha256:" + hex.EncodeToString(sum[:])
	removal := w.JSON(`select autopost.begin_media_removal($1)`, ref)
	upload := call{
		method: http.MethodPost, path: "/api/v1/media?kind=image", key: w.keys["editor"], body: content,
		header: map[string]string{"Content-Type": "image/png", "Idempotency-Key": "being removed"},
	}
	busy := w.ask(upload)
	busy.problem(t, http.StatusServiceUnavailable)
	require.NotEmpty(t, busy.header.Get("Retry-After"))

	w.Exec(`select autopost.end_media_removal($1, $2)`, ref, removal["token"])
	taken := w.ask(upload)
	require.Equal(t, http.StatusCreated, taken.status, taken.raw)
	require.Equal(t, ref, taken.body["blob_ref"])
}

// A picture of the own workspace is served so that a browser shows it and runs nothing. Other media are not served.
func TestPicturesAreServed(t *testing.T) {
	t.Parallel()
	w := open(t)
	get := func(ref string) reply {
		return w.ask(call{method: http.MethodGet, path: "/api/v1/media/" + ref, key: w.keys["viewer"]})
	}
	own := w.ids["acme"]["blob_ref"]
	r := get(own)
	require.Equal(t, 200, r.status, r.raw)
	require.Equal(t, picture+"acme", r.raw)
	for name, want := range map[string]string{"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"} {
		require.Equal(t, want, r.header.Get(name))
	}
	require.Contains(t, r.header.Get("Content-Security-Policy"), "sandbox")
	require.Regexp(t, `^inline; filename=[0-9a-f]{16}\.png$`, r.header.Get("Content-Disposition"))
	require.Equal(t, 404, get(w.ids["rival"]["blob_ref"]).status, "a picture of another workspace")
	for content, kind := range map[string]string{"<html><script>alert(1)</script></html>": "file", "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>": "file"} {
		stored := w.ask(call{method: http.MethodPost, path: "/api/v1/media?kind=" + kind, key: w.keys["editor"], body: content, header: map[string]string{"Content-Type": "image/png"}})
		require.Equal(t, 201, stored.status, stored.raw)
		require.Equal(t, 404, get(stored.body["blob_ref"].(string)).status)
	}
	w.Exec(`update autopost.media_origin set deleted_at = now() where workspace_id = 'acme' and blob_ref = $1`, own)
	require.Equal(t, 404, get(own).status, "it is being removed")

	list := w.ask(call{method: http.MethodGet, path: "/api/v1/media?limit=2", key: w.keys["viewer"]})
	require.Len(t, list.body["items"], 2)
	rest := w.ask(call{method: http.MethodGet, path: "/api/v1/media?limit=2&cursor=" + list.body["next_cursor"].(string), key: w.keys["viewer"]})
	require.Len(t, rest.body["items"], 1)
	require.Nil(t, rest.body["next_cursor"])
	require.Equal(t, true, rest.body["items"].([]any)[0].(map[string]any)["forgotten"])
	require.Empty(t, w.ask(call{method: http.MethodGet, path: "/api/v1/media?kind=video", key: w.keys["viewer"]}).body["items"])
}
