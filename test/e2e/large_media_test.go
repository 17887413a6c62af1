package e2e

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/s3test"
	"autopost/test/harness"
)

// movie is a video of any length that is nowhere: each eight bytes are their own place.
type movie struct{ size, at int64 }

const movieHead = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"

func (m *movie) Read(p []byte) (int, error) {
	if m.at >= m.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), m.size-m.at, 64<<10))
	for i := 0; i < n; {
		place := m.at + int64(i)
		if place < int64(len(movieHead)) {
			i += copy(p[i:n], movieHead[place:])
			continue
		}
		var word [8]byte
		binary.BigEndian.PutUint64(word[:], uint64(place/8)*0x9e3779b97f4a7c15)
		i += copy(p[i:n], word[place%8:])
	}
	m.at += int64(n)
	return n, nil
}

func (m *movie) Seek(offset int64, whence int) (int64, error) {
	m.at = map[int]int64{io.SeekStart: 0, io.SeekCurrent: m.at, io.SeekEnd: m.size}[whence] + offset
	return m.at, nil
}

// cinema shows one movie, slowly, and breaks off when the test asks for it.
type cinema struct {
	*httptest.Server
	// sent counts bytes, asked requests, and parts those for a part.
	sent, asked, parts atomic.Int64
	// breakAt drops each connection that gets there, once.
	breakAt atomic.Int64
}

// newCinema shows size bytes at so many a second; 0 is as fast as it goes.
func newCinema(t *testing.T, size int64, rate int64) *cinema {
	c := &cinema{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked.Add(1)
		if r.Header.Get("Range") != "" {
			c.parts.Add(1)
		}
		w.Header().Set("ETag", `"first-cut"`)
		w.Header().Set("Content-Type", "video/mp4")
		http.ServeContent(&projector{ResponseWriter: w, c: c, rate: rate, began: time.Now()}, r, "", time.Time{}, &movie{size: size})
	}))
	t.Cleanup(c.Close)
	t.Cleanup(c.CloseClientConnections)
	return c
}

type projector struct {
	http.ResponseWriter
	c       *cinema
	rate    int64
	began   time.Time
	written int64
}

func (p *projector) Write(b []byte) (int, error) {
	if at := p.c.breakAt.Load(); at > 0 && p.c.sent.Load() >= at && p.c.breakAt.CompareAndSwap(at, 0) {
		panic(http.ErrAbortHandler)
	}
	if p.rate > 0 {
		if ahead := time.Duration(p.written)*time.Second/time.Duration(p.rate) - time.Since(p.began); ahead > 0 {
			<-time.After(ahead)
		}
	}
	n, err := p.ResponseWriter.Write(b)
	p.written += int64(n)
	p.c.sent.Add(int64(n))
	return n, err
}

// residence is what a process has held in memory at most, in bytes, and how much of
// that is its own program, which the kernel maps from the file and shares.
func residence(t *testing.T, pid int) (most, program int64) {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		if into := map[string]*int64{"VmHWM": &most, "RssFile": &program}[name]; into != nil {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			require.NoError(t, err)
			*into = kb << 10
		}
	}
	require.Positive(t, most, "the kernel shows VmHWM")
	return most, program
}

// memoryLimit is what the daemon may hold beside its program while a video of any
// length passes.
const memoryLimit = 64 << 20

// A long video comes from a slow source, once through a daemon that is killed half way
// and once through a connection that breaks: it lies in the folder, or in S3, whole and
// under its digest, and the daemon stays small. Its full size is 2 GiB.
func TestLongVideo(t *testing.T) {
	t.Parallel()
	size, rate := int64(64<<20), int64(48<<20)
	if pgtest.Long() {
		size, rate = 2<<30, 64<<20
	}
	digest := sha256.New()
	_, err := io.Copy(digest, &movie{size: size})
	require.NoError(t, err)
	ref := "sha256:" + hex.EncodeToString(digest.Sum(nil))
	for _, store := range []string{"folder", "s3"} {
		for name, rate := range map[string]int64{"slow": rate, "as fast as it goes": 0} {
			t.Run(store+" "+name, func(t *testing.T) {
				t.Parallel()
				longVideo(t, store, size, rate, ref)
			})
		}
	}
}

func longVideo(t *testing.T, kind string, size, rate int64, ref string) {
	h, _, _ := newsroom(t)
	h.Exec(`update autopost.settings set value = '3' where key = 'submission_lease_seconds'`)
	extra := []string{fmt.Sprint("MAX_MEDIA_BYTES_VIDEO=", size), "DOWNLOAD_TIMEOUT_MS=900000"}
	url := "file://" + h.Folder("data/media")
	if kind == "s3" {
		url, _ = s3test.Start(t)
		extra = append(append(extra, "AUTOPOST_BLOB_URL="+url), s3test.Environment...)
	}
	c := newCinema(t, size, rate)
	d := h.Serve(extra...)
	began := time.Now()
	h.Push(d, "secret-cms", harness.Post("text", "Long", "media", []any{map[string]any{"type": "video", "url": c.URL + "/long.mp4"}}))
	if rate > 0 {
		h.Until("half of it came", func() bool { return c.sent.Load() > size/2 })
		d.Kill()
		began = time.Now()
		c.sent.Store(0)
		c.breakAt.Store(size / 3)
		d = h.Serve(extra...)
	}
	h.Until("it is a message", func() bool { return pgtest.Value[bool](h.DB, `select exists (select 1 from autopost.messages)`) })
	took := time.Since(began)
	most, program := residence(t, d.PID())
	require.Equal(t, []string{ref}, pgtest.Column[string](h.DB, `select blob_ref from autopost.media_origin where size_bytes = $1 and content_type = 'video/mp4'`, size))
	if rate > 0 {
		require.EqualValues(t, 3, c.asked.Load(), "before the kill, after it, and for the rest")
		require.EqualValues(t, 1, c.parts.Load(), "the broken connection went on where it was")
	}
	require.Less(t, most-program, int64(memoryLimit), "bytes at once")

	bucket, err := media.OpenStore(t.Context(), url)
	require.NoError(t, err)
	opened, err := bucket.Open(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, size, opened.Size)
	digest := sha256.New()
	read, err := io.Copy(digest, opened)
	require.NoError(t, err)
	require.NoError(t, opened.Close())
	require.NoError(t, bucket.Close())
	require.Equal(t, size, read)
	require.Equal(t, ref, "sha256:"+hex.EncodeToString(digest.Sum(nil)))

	// Too long for a platform: it says so, where one looks for it.
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries d
		join autopost.channels c on c.workspace_id = d.workspace_id and c.channel_id = d.channel_id
		where c.platform = $1 and d.status = 'failed_permanent' and d.last_error ->> 'message' like '%takes at most 52428800'`, string(autopost.Telegram)))
	const mib = 1 << 20
	t.Logf("%d MiB: %.1f MB/s; in memory at most %.1f MiB, and %.1f MiB of the program", size/mib, float64(size)/1e6/took.Seconds(), float64(most-program)/mib, float64(program)/mib)
	require.Zero(t, d.Stop())
}
