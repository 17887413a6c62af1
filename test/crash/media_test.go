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

	"autopost/internal/pgtest"
	"autopost/test/house"
)

// clips serves each name its own video: half of it at once, the rest when nobody
// holds it back.
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
func stored(t *testing.T, h *house.House, part string) (n int) {
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

// mediaPoints are where the daemon is killed: with half a file, with the object and no
// row, with the row and no message. Each holds the daemon there and answers how to know
// that it is, and how to let go.
var mediaPoints = []struct {
	name string
	hold func(t *testing.T, h *house.House, c *clips, holder *pgtest.Session, name string) (there func() bool, release func())
}{
	{"half of it came", func(t *testing.T, h *house.House, c *clips, _ *pgtest.Session, _ string) (func() bool, func()) {
		held := make(chan struct{})
		c.held.Store(&held)
		return func() bool { return len(c.halves) > 0 && stored(t, h, "tmp") > 0 }, func() {
			close(held)
			<-c.halves
			c.held.Store(nil)
		}
	}},
	{"stored, not registered", func(t *testing.T, h *house.House, c *clips, holder *pgtest.Session, name string) (func() bool, func()) {
		before := stored(t, h, "sha256")
		holder.Exec(`begin`)
		holder.Exec(`select pg_advisory_xact_lock(hashtextextended('autopost.media_origin/' || $1, 0))`, c.ref(name))
		return func() bool { return stored(t, h, "sha256") > before }, func() { holder.Exec(`rollback`) }
	}},
	{"registered, not enqueued", func(_ *testing.T, h *house.House, c *clips, holder *pgtest.Session, name string) (func() bool, func()) {
		holder.Exec(`begin`)
		holder.Exec(`lock table autopost.messages in exclusive mode`)
		return func() bool {
			return pgtest.Value[bool](h.DB, `select exists (select 1 from autopost.media_origin where blob_ref = $1)`, c.ref(name))
		}, func() { holder.Exec(`rollback`) }
	}},
}

// The daemon is killed between the first byte of a medium and the message that shows
// it. What was acknowledged arrives, once, and nothing stays in the media origin that
// the sweep does not know of.
func TestKilledBetweenMediaAndMessage(t *testing.T) {
	t.Parallel()
	const seeds = 3
	h := house.New(t)
	random := rand.New(rand.NewPCG(seed, 4))
	station(h, 2, house.Channel{})
	h.Exec(`update autopost.settings set value = '2' where key = 'submission_lease_seconds'`)
	c := newClips(t, random, seeds*len(mediaPoints))
	holder := h.Session("holder", "")
	d := h.Serve(quick...)
	posts := 0
	for range seeds {
		for _, point := range mediaPoints {
			name := fmt.Sprintf("/clip-%d.mp4", posts)
			there, release := point.hold(t, h, c, holder, name)
			answer := h.Push(d, "secret-cms", house.Post("source_ref", name, "text", "Clip "+name, "media", []any{map[string]any{"type": "video", "url": c.URL + name}}))
			require.Equal(t, "accepted", answer.Text("status"))
			posts++
			h.Until(point.name, 20*time.Second, there)
			<-time.After(time.Duration(random.IntN(30)) * time.Millisecond)
			d.Kill()
			release()
			d = h.Serve(quick...)
			h.Until("the post is a message", 30*time.Second, func() bool {
				return pgtest.Value[int](h.DB, `select count(*)::int from autopost.messages`) == posts
			})
			h.Drained("news")
		}
	}
	toll := h.Judge("news")
	require.Equal(t, house.Toll{Deliveries: posts * 2, Sent: posts * 2}, toll, "each clip once in each channel")
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
	var swept []struct {
		What  string
		Count int
	}
	result := h.Run(nil, "media", "sweep", "--json")
	require.NoError(t, json.Unmarshal([]byte(result.Stdout), &swept), result.Stderr)
	require.Equal(t, 0, swept[0].Count+swept[1].Count, "all else is some message's")
	require.Equal(t, temporary, swept[2].Count)
	require.Zero(t, stored(t, h, "tmp"))
	require.Equal(t, posts, stored(t, h, "sha256"))
	t.Logf("seed %d: %d kills at %d points, %+v, %d temporary objects swept", seed, posts, len(mediaPoints), toll, temporary)
}
