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
