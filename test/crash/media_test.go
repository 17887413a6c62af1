package crash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// clips serves a video per name: half of it at once, the rest unless the test holds it.
type clips struct {
	*httptest.Server
	random   *rand.Rand
	contents map[string][]byte
	held     atomic.Pointer[chan struct{}]
	halves   chan string
}

func newClips(t *testing.T, random *rand.Rand, names int) *clips {
	c := &clips{random: random, contents: map[string][]byte{}, halves: make(chan string, names)}
	for i := range names {
		content := append([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"), make([]byte, 200_000+random.IntN(400_000))...)
		for at := 24; at < len(content); at += 97 {
			content[at] = byte(random.Uint32())
		}
		c.contents[fmt.Sprintf("/clip-%d.mp4", i)] = content
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := c.contents[r.URL.Path]
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content[:len(content)/2])
		_ = http.NewResponseController(w).Flush()
		if held := c.held.Load(); held != nil {
			c.halves <- r.URL.Path
			select {
			case <-*held:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = w.Write(content[len(content)/2:])
	}))
	t.Cleanup(c.Close)
	t.Cleanup(c.CloseClientConnections)
	return c
}

func (c *clips) ref(name string) string {
	sum := sha256.Sum256(c.contents[name])
	return "sha256:" + hex.EncodeToString(sum[:])
}

// stored counts the files under a part of the media origin.
func stored(t *testing.T, h *harness.Harness, part string) (n int) {
	t.Helper()
	err := filepath.WalkDir(h.Folder("data/media/"+part), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".attrs") {
			n++
		}
		return err
	})
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return n
}

// mediaPoints are the places of the kills: half a file, an object without a row, a row without a message.
// hold stops the daemon there; its results report that and release it.
var mediaPoints = []struct {
	name string
	hold func(t *testing.T, h *harness.Harness, c *clips, holder *pgtest.Session, name string) (there func() bool, release func())
}{
	{"half of it came", func(t *testing.T, h *harness.Harness, c *clips, _ *pgtest.Session, _ string) (func() bool, func()) {
		held := make(chan struct{})
		c.held.Store(&held)
		return func() bool { return len(c.halves) > 0 && stored(t, h, "tmp") > 0 }, func() {
			close(held)
			<-c.halves
			c.held.Store(nil)
		}
	}},
	{"stored, not registered", func(t *testing.T, h *harness.Harness, c *clips, holder *pgtest.Session, name string) (func() bool, func()) {
		before := stored(t, h, "sha256")
		holder.Exec(`begin`)
		holder.Exec(`select pg_advisory_xact_lock(hashtextextended('autopost.media_origin/' || $1, 0))`, c.ref(name))
		return func() bool { return stored(t, h, "sha256") > before }, func() { holder.Exec(`rollback`) }
	}},
	{"registered, not enqueued", func(_ *testing.T, h *harness.Harness, c *clips, holder *pgtest.Session, name string) (func() bool, func()) {
		holder.Exec(`begin`)
		holder.Exec(`lock table autopost.messages in exclusive mode`)
		return func() bool {
			return pgtest.Value[bool](h.DB, `select exists (select 1 from autopost.media_origin where blob_ref = $1)`, c.ref(name))
		}, func() { holder.Exec(`rollback`) }
	}},
}

// patientLeases give uploads enough time on a busy machine. No call is in flight when the test kills them.
var patientLeases = []string{"MONITOR_INTERVAL_SECONDS=1"}

// The daemon is killed between the first byte of a medium and its message. Each acknowledged post arrives
// once, and the sweep finds all leftovers of the media store.
func TestKilledBetweenMediaAndMessage(t *testing.T) {
	t.Parallel()
	const seeds = 3
	h := harness.New(t)
	random := rand.New(rand.NewPCG(seed, 4))
	station(h, 2, harness.Channel{})
	h.Exec(`update autopost.settings set value = '2' where key = 'submission_lease_seconds'`)
	c := newClips(t, random, seeds*len(mediaPoints))
	holder := h.Session("holder", "")
	d := h.Serve(patientLeases...)
	posts := 0
	for range seeds {
		for _, point := range mediaPoints {
			name := fmt.Sprintf("/clip-%d.mp4", posts)
			there, release := point.hold(t, h, c, holder, name)
			answer := h.Push(d, "secret-cms", harness.Post("source_ref", name, "text", "Clip "+name, "media", []any{map[string]any{"type": "video", "url": c.URL + name}}))
			require.Equal(t, "accepted", answer.Text("status"))
			posts++
			h.Until(point.name, there)
			<-time.After(time.Duration(random.IntN(30)) * time.Millisecond)
			d.Kill()
			release()
			d = h.Serve(patientLeases...)
			h.Until("the post is a message", func() bool {
				return pgtest.Value[int](h.DB, `select count(*)::int from autopost.messages`) == posts
			})
			h.Drained("news")
		}
	}
	totals := h.Judge("news")
	require.Equal(t, harness.Totals{Deliveries: posts * 2, Sent: posts * 2}, totals, "each clip once in each channel")
	require.Equal(t, posts, stored(t, h, "sha256"))
	require.Zero(t, d.Stop())
	h.Verified()

	temporary := stored(t, h, "tmp")
	require.Equal(t, seeds, temporary, "a dead writer leaves what it had")
	old := time.Now().Add(-25 * time.Hour)
	require.NoError(t, filepath.WalkDir(h.Folder("data/media"), func(path string, _ fs.DirEntry, err error) error {
		require.NoError(t, err)
		return os.Chtimes(path, old, old)
	}))
	var listed struct {
		Items []struct {
			What  string
			Count int
		}
	}
	result := h.Run(nil, "media", "sweep", "--json")
	require.NoError(t, json.Unmarshal([]byte(result.Stdout), &listed), result.Stderr)
	swept := listed.Items
	require.Equal(t, 0, swept[0].Count+swept[1].Count, "all else is some message's")
	require.Equal(t, temporary, swept[2].Count)
	require.Zero(t, stored(t, h, "tmp"))
	require.Equal(t, posts, stored(t, h, "sha256"))
	t.Logf("seed %d: %d kills at %d points, %+v, %d temporary objects swept", seed, posts, len(mediaPoints), totals, temporary)
}
