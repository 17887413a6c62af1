package media_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
	"autopost/internal/outbound"
)

func pngOf(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black})))
	return b.Bytes()
}

func gifOf(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, 2, 2), color.Palette{color.Black}), nil))
	return b.Bytes()
}

// mp4Of returns a file type box followed by random bytes, which is enough for the type detection.
func mp4Of(size int) []byte {
	b := append([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"), make([]byte, size)...)
	_, _ = rand.Read(b[24:])
	return b
}

func mp3Of(size int) []byte {
	return append([]byte{0xFF, 0xFB, 0x90, 0x64}, make([]byte, size)...)
}

func folderStore(t *testing.T) (*media.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "media")
	store, err := media.OpenStore(t.Context(), "file://"+dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store, dir
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".attrs") {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return names
}

func TestPutStoresUnderTheDigestAndOpens(t *testing.T) {
	store, dir := folderStore(t)
	content := pngOf(t, 30, 20)
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])

	origin, err := store.Put(t.Context(), bytes.NewReader(content), autopost.MediaImage, media.Limits{})
	require.NoError(t, err)
	key := "sha256/" + digest[:2] + "/" + digest[2:4] + "/" + digest
	require.Equal(t, media.Origin{
		BlobRef: "sha256:" + digest, OriginURL: "file://" + dir + "/" + key, SHA256: digest, ContentType: "image/png",
		SizeBytes: int64(len(content)), Kind: autopost.MediaImage, Width: 30, Height: 20,
	}, origin)
	require.Equal(t, []string{key}, files(t, dir), "no temporary object may stay")

	opened, err := store.Open(t.Context(), origin.BlobRef)
	require.NoError(t, err)
	got, err := io.ReadAll(opened)
	require.NoError(t, err)
	require.NoError(t, opened.Close())
	require.Equal(t, content, got)
	require.Equal(t, int64(len(content)), opened.Size)
	require.Equal(t, "image/png", opened.ContentType)
	require.Equal(t, digest[:16]+".png", opened.Filename)
	require.NoError(t, store.Writable(t.Context()))
}

func TestConcurrentPutsOfTheSameContent(t *testing.T) {
	store, dir := folderStore(t)
	content := mp4Of(300_000)
	var group sync.WaitGroup
	refs := make([]string, 8)
	errs := make([]error, len(refs))
	for i := range refs {
		group.Go(func() {
			var origin media.Origin
			origin, errs[i] = store.Put(context.Background(), bytes.NewReader(content), autopost.MediaVideo, media.Limits{})
			refs[i] = origin.BlobRef
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, ref := range refs {
		require.Equal(t, refs[0], ref)
		require.NotEmpty(t, ref)
	}
	require.Len(t, files(t, dir), 1)
}

func TestPutRepairsADamagedObject(t *testing.T) {
	store, dir := folderStore(t)
	content := pngOf(t, 3, 3)
	origin, err := store.Put(t.Context(), bytes.NewReader(content), autopost.MediaImage, media.Limits{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, files(t, dir)[0]), nil, 0o600))

	_, err = store.Put(t.Context(), bytes.NewReader(content), autopost.MediaImage, media.Limits{})
	require.NoError(t, err)
	opened, err := store.Open(t.Context(), origin.BlobRef)
	require.NoError(t, err)
	require.Equal(t, int64(len(content)), opened.Size)
	require.NoError(t, opened.Close())
}

func TestPutRefuses(t *testing.T) {
	html := []byte("<!DOCTYPE html><html><body>Please sign in</body></html>")
	// The header of a picture of 60000x60000 pixels, without its pixels.
	bomb := append([]byte(nil), pngOf(t, 1, 1)...)
	copy(bomb[16:24], []byte{0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60})
	binary.BigEndian.PutUint32(bomb[29:33], crc32.ChecksumIEEE(bomb[12:29]))
	limits := media.Limits{ImageBytes: 1000, VideoBytes: 2000}
	cases := map[string]struct {
		content []byte
		kind    autopost.MediaKind
		code    string
		says    string
	}{
		"a page for a picture":    {html, autopost.MediaImage, media.CodeWrongType, "HTML page"},
		"a video for a picture":   {mp4Of(100), autopost.MediaImage, media.CodeWrongType, "video/mp4"},
		"a picture for a video":   {pngOf(t, 1, 1), autopost.MediaVideo, media.CodeWrongType, "image/png"},
		"a picture for audio":     {pngOf(t, 1, 1), autopost.MediaAudio, media.CodeWrongType, "image/png"},
		"a still for animation":   {pngOf(t, 1, 1), autopost.MediaAnimation, media.CodeWrongType, "image/png"},
		"an SVG":                  {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"></svg>`), autopost.MediaImage, media.CodeWrongType, "JPEG"},
		"too many pixels":         {bomb, autopost.MediaImage, media.CodeWrongType, "60000x60000"},
		"nothing":                 {nil, autopost.MediaImage, media.CodeWrongType, "empty"},
		"an unknown kind":         {pngOf(t, 1, 1), "sticker", media.CodeWrongType, "sticker"},
		"a picture over its cap":  {append(pngOf(t, 1, 1), make([]byte, 1000)...), autopost.MediaImage, autopost.CodeMediaTooLarge, "1000"},
		"a video over its cap":    {mp4Of(2001), autopost.MediaVideo, autopost.CodeMediaTooLarge, "2000"},
		"audio over videos' cap":  {mp3Of(2001), autopost.MediaAudio, autopost.CodeMediaTooLarge, "2000"},
		"a file over videos' cap": {make([]byte, 2001), autopost.MediaFile, autopost.CodeMediaTooLarge, "2000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			store, dir := folderStore(t)
			_, err := store.Put(t.Context(), bytes.NewReader(c.content), c.kind, limits)
			var rejection *media.Rejection
			require.ErrorAs(t, err, &rejection)
			require.Equal(t, c.code, rejection.Code)
			require.Contains(t, rejection.Message, c.says)
			require.Empty(t, files(t, dir))
		})
	}
}

func TestPutAcceptsTheExactLimit(t *testing.T) {
	limits := media.Limits{ImageBytes: 1000, VideoBytes: 2000}
	cases := map[string]struct {
		content []byte
		kind    autopost.MediaKind
		is      string
	}{
		"picture at its cap":  {append(pngOf(t, 1, 1), make([]byte, 1000-len(pngOf(t, 1, 1)))...), autopost.MediaImage, "image/png"},
		"video at its cap":    {mp4Of(2000 - 24), autopost.MediaVideo, "video/mp4"},
		"audio":               {mp3Of(50), autopost.MediaAudio, "audio/mpeg"},
		"animation as GIF":    {gifOf(t), autopost.MediaAnimation, "image/gif"},
		"animation as video":  {mp4Of(50), autopost.MediaAnimation, "video/mp4"},
		"any content as file": {[]byte("name;price\n"), autopost.MediaFile, "text/plain"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			store, err := media.OpenStore(t.Context(), "mem://")
			require.NoError(t, err)
			origin, err := store.Put(t.Context(), bytes.NewReader(c.content), c.kind, limits)
			require.NoError(t, err)
			require.Equal(t, c.is, origin.ContentType)
			require.Equal(t, int64(len(c.content)), origin.SizeBytes)
		})
	}
}

func TestPutOfABrokenStreamStoresNothing(t *testing.T) {
	for name, at := range map[string]int{"in its head": 100, "behind its head": 50_000} {
		t.Run(name, func(t *testing.T) {
			store, dir := folderStore(t)
			broken := io.MultiReader(bytes.NewReader(mp4Of(at)), iotest.ErrReader(io.ErrUnexpectedEOF))
			_, err := store.Put(t.Context(), broken, autopost.MediaVideo, media.Limits{})
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Empty(t, files(t, dir))
		})
	}
}

func TestOpenMissingContent(t *testing.T) {
	store, _ := folderStore(t)
	_, err := store.Open(t.Context(), "sha256:"+strings.Repeat("0", 64))
	require.ErrorIs(t, err, autopost.ErrNoOrigin)
	for _, ref := range []string{"", "sha256:", "sha256:../../etc/passwd", strings.Repeat("0", 64), "sha256:" + strings.Repeat("A", 64)} {
		_, err := store.Open(t.Context(), ref)
		require.ErrorContains(t, err, "blob_ref")
	}
}

// do is a Doer that calls itself.
type do func(*http.Request) (*http.Response, error)

func (d do) Do(r *http.Request) (*http.Response, error) { return d(r) }

func fetcher(t *testing.T, doer media.Doer) *media.Fetcher {
	t.Helper()
	store, err := media.OpenStore(t.Context(), "mem://")
	require.NoError(t, err)
	return &media.Fetcher{Store: store, Doer: doer, Limits: media.Limits{ImageBytes: 5000, VideoBytes: 9000}}
}

func TestFetchStores(t *testing.T) {
	content := pngOf(t, 4, 5)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// The label is wrong on purpose: the content decides.
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(content)
	}))
	defer server.Close()
	origin, failed := fetcher(t, server.Client()).Fetch(t.Context(), server.URL+"/a.png", autopost.MediaImage)
	require.Nil(t, failed)
	require.Equal(t, "image/png", origin.ContentType)
	require.Equal(t, []int{4, 5}, []int{origin.Width, origin.Height})
}

func TestFetchClassifiesAnswers(t *testing.T) {
	cases := []struct {
		status   int
		category autopost.Category
		retryMS  int64
	}{
		{204, autopost.Permanent, 0}, {400, autopost.Permanent, 0}, {401, autopost.Permanent, 0}, {403, autopost.Permanent, 0},
		{404, autopost.Transient, 7000}, {408, autopost.Transient, 7000}, {410, autopost.Permanent, 0},
		{429, autopost.Transient, 7000}, {500, autopost.Transient, 7000}, {503, autopost.Transient, 7000},
	}
	for _, c := range cases {
		t.Run(http.StatusText(c.status), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(c.status)
			}))
			defer server.Close()
			_, failed := fetcher(t, server.Client()).Fetch(t.Context(), server.URL, autopost.MediaImage)
			require.NotNil(t, failed)
			require.Equal(t, c.category, failed.Category)
			require.Equal(t, autopost.ScopeDelivery, failed.Scope)
			require.Regexp(t, `^media_fetch_\d{3}$`, failed.Code)
			require.True(t, failed.Known)
			require.Equal(t, c.retryMS, failed.RetryAfterMS)
		})
	}
}

func TestFetchClassifiesFailures(t *testing.T) {
	body := func(r io.Reader, length int64) do {
		return func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(r), ContentLength: length}, nil
		}
	}
	fails := func(err error) do {
		return func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: err}
		}
	}
	cases := map[string]struct {
		doer     media.Doer
		category autopost.Category
		code     string
	}{
		"blocked address":     {fails(outbound.ErrBlockedAddress), autopost.Permanent, media.CodeBlockedAddress},
		"blocked port":        {fails(outbound.ErrBlockedPort), autopost.Permanent, media.CodeBlockedAddress},
		"no such host":        {fails(outbound.ErrNoPublicAddress), autopost.Permanent, media.CodeBlockedAddress},
		"resolver is down":    {fails(&net.DNSError{IsTemporary: true}), autopost.Transient, media.CodeFetchFailed},
		"refused":             {fails(errors.New("connection refused")), autopost.Transient, media.CodeFetchFailed},
		"too late":            {fails(context.DeadlineExceeded), autopost.Transient, media.CodeFetchTimeout},
		"untrusted":           {fails(outbound.ErrUntrusted), autopost.Permanent, autopost.CodeTLSUntrusted},
		"too many redirects":  {fails(outbound.ErrRedirect), autopost.Permanent, media.CodeBadURL},
		"announced too large": {body(strings.NewReader(""), 5001), autopost.Permanent, autopost.CodeMediaTooLarge},
		"turns out too large": {body(bytes.NewReader(append(pngOf(t, 1, 1), make([]byte, 5000)...)), -1), autopost.Permanent, autopost.CodeMediaTooLarge},
		"a page":              {body(strings.NewReader("<html><body>x</body></html>"), -1), autopost.Permanent, media.CodeWrongType},
		"cut off": {body(io.MultiReader(bytes.NewReader(pngOf(t, 1, 1)), iotest.ErrReader(io.ErrUnexpectedEOF)), -1),
			autopost.Transient, media.CodeFetchFailed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, failed := fetcher(t, c.doer).Fetch(t.Context(), "https://cdn.example/a?token=canary-5f2", autopost.MediaImage)
			require.NotNil(t, failed)
			require.Equal(t, c.category, failed.Category)
			require.Equal(t, c.code, failed.Code)
			require.NotContains(t, failed.Message, "canary")
		})
	}
	t.Run("no URL", func(t *testing.T) {
		for _, raw := range []string{"", "/a.png", "ftp://h/a.png", "file:///etc/passwd", "http://%zz"} {
			_, failed := fetcher(t, nil).Fetch(t.Context(), raw, autopost.MediaImage)
			require.NotNil(t, failed)
			require.Equal(t, media.CodeBadURL, failed.Code)
		}
	})
}

func TestFetchTimesOut(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(pngOf(t, 1, 1))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	f := fetcher(t, server.Client())
	f.Timeout = 50 * time.Millisecond
	_, failed := f.Fetch(t.Context(), server.URL, autopost.MediaImage)
	require.NotNil(t, failed)
	require.Equal(t, media.CodeFetchTimeout, failed.Code)
	require.Equal(t, autopost.Transient, failed.Category)
}

func TestFetchReportsAFailedStore(t *testing.T) {
	f := fetcher(t, do(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(pngOf(t, 1, 1)))}, nil
	}))
	require.NoError(t, f.Store.Close())
	_, failed := f.Fetch(t.Context(), "https://cdn.example/a", autopost.MediaImage)
	require.NotNil(t, failed)
	require.Equal(t, media.CodeStoreFailed, failed.Code)
	require.Equal(t, autopost.Transient, failed.Category)
}

// memory is a table of media_blobs.
type memory map[media.BlobKey]media.Blob

func (m memory) GetMediaBlob(_ context.Context, key media.BlobKey) (*media.Blob, error) {
	if blob, ok := m[key]; ok {
		return &blob, nil
	}
	return nil, nil
}

func (m memory) PutMediaBlob(_ context.Context, key media.BlobKey, blob media.Blob) error {
	m[key] = blob
	return nil
}

func TestMediaAccessDependsOnCredentialAndKind(t *testing.T) {
	store, _ := folderStore(t)
	origin, err := store.Put(t.Context(), bytes.NewReader(pngOf(t, 1, 1)), autopost.MediaImage, media.Limits{})
	require.NoError(t, err)
	library := media.Provider{Store: store, Blobs: memory{}}
	mine := library.MaterialsFor(autopost.Delivery{WorkspaceID: "w", Platform: autopost.Telegram, AuthRef: "bot-a"})
	others := []autopost.MediaAccess{
		library.MaterialsFor(autopost.Delivery{WorkspaceID: "w", Platform: autopost.Telegram, AuthRef: "bot-b"}),
		library.MaterialsFor(autopost.Delivery{WorkspaceID: "v", Platform: autopost.Telegram, AuthRef: "bot-a"}),
		library.MaterialsFor(autopost.Delivery{WorkspaceID: "w", Platform: autopost.MAX, AuthRef: "bot-a"}),
	}
	ctx := t.Context()
	cached := func(m autopost.MediaAccess, kind string) string {
		id, ok, err := m.Cached(ctx, origin.BlobRef, kind)
		require.NoError(t, err)
		require.Equal(t, id != "", ok)
		return id
	}

	require.Empty(t, cached(mine, "photo"))
	require.NoError(t, mine.Keep(ctx, origin.BlobRef, "photo", "AgAC", time.Time{}))
	require.Equal(t, "AgAC", cached(mine, "photo"))
	require.Empty(t, cached(mine, "document"))
	for _, other := range others {
		require.Empty(t, cached(other, "photo"))
	}
	require.NoError(t, mine.Forget(ctx, origin.BlobRef, "photo"))
	require.Empty(t, cached(mine, "photo"))

	require.NoError(t, mine.Keep(ctx, origin.BlobRef, "photo", "old", time.Now().Add(-time.Second)))
	require.Empty(t, cached(mine, "photo"), "an expired id is not returned")
	require.NoError(t, mine.Keep(ctx, origin.BlobRef, "photo", "new", time.Now().Add(time.Hour)))
	require.Equal(t, "new", cached(mine, "photo"))

	content, err := mine.Open(ctx, origin.BlobRef)
	require.NoError(t, err)
	require.NoError(t, content.Close())
}
