package adaptertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"sync"
	"time"

	"autopost"
)

// MediaAccess is an in-memory media store and cache of platform ids. It is safe for concurrent use.
type MediaAccess struct {
	mu       sync.Mutex
	contents map[string]stored
	ids      map[string]string
	sources  map[string]string
	forgets  []string
	open     int
	stalled  context.Context //nolint:containedctx // its end ends the stall
}

type stored struct {
	bytes     []byte
	mediaType string
	extension string
}

// NewMediaAccess returns an empty store.
func NewMediaAccess() *MediaAccess {
	return &MediaAccess{contents: map[string]stored{}, ids: map[string]string{}, sources: map[string]string{}}
}

// Add stores new content of a kind and returns its blob_ref. Pictures are real PNGs; videos start like
// an MP4.
func (m *MediaAccess) Add(kind autopost.MediaKind) string {
	m.mu.Lock()
	n := len(m.contents)
	m.mu.Unlock()
	content := stored{[]byte(fmt.Sprintf("%s content %d %s", kind, n, strings.Repeat("x", 40_000))), "application/pdf", "pdf"}
	switch kind {
	case autopost.MediaImage:
		content = stored{picture(n), "image/png", "png"}
	case autopost.MediaVideo, autopost.MediaAnimation:
		content.mediaType, content.extension = "video/mp4", "mp4"
		content.bytes = append([]byte("\x00\x00\x00\x18ftypisom"), content.bytes...)
	case autopost.MediaAudio:
		content.mediaType, content.extension = "audio/mpeg", "mp3"
	}
	return m.put(content)
}

// Put stores content of a media type and returns its blob_ref.
func (m *MediaAccess) Put(content []byte, mediaType string) string {
	return m.put(stored{content, mediaType, "bin"})
}

func (m *MediaAccess) put(content stored) string {
	sum := sha256.Sum256(content.bytes)
	ref := "sha256:" + hex.EncodeToString(sum[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents[ref] = content
	return ref
}

func picture(n int) []byte {
	img := image.NewRGBA(image.Rect(0, 0, 120, 80))
	for x := range 120 {
		img.Set(x, n%80, color.RGBA{R: uint8(n), G: uint8(x), A: 255})
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		panic("adaptertest: encode a picture: " + err.Error())
	}
	return buf.Bytes()
}

// Stall makes every content stop in its middle until ctx ends.
func (m *MediaAccess) Stall(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stalled = ctx
}

// Lose removes content from the store.
func (m *MediaAccess) Lose(blobRef string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.contents, blobRef)
}

// Forgets lists "blob_ref kind" of every call of Forget.
func (m *MediaAccess) Forgets() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.forgets...)
}

// OpenContents returns the number of open contents.
func (m *MediaAccess) OpenContents() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// Cached implements autopost.MediaAccess.
func (m *MediaAccess) Cached(_ context.Context, blobRef, kind string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.ids[blobRef+" "+kind]
	return id, ok, nil
}

// Allow lets the platform fetch the content from url, under a kind.
func (m *MediaAccess) Allow(blobRef, kind, url string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sources[blobRef+" "+kind] = url
}

// SourceURL implements autopost.MediaAccess.
func (m *MediaAccess) SourceURL(_ context.Context, blobRef, kind string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	url, ok := m.sources[blobRef+" "+kind]
	return url, ok, nil
}

// Keep implements autopost.MediaAccess.
func (m *MediaAccess) Keep(_ context.Context, blobRef, kind, fileID string, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids[blobRef+" "+kind] = fileID
	return nil
}

// Forget implements autopost.MediaAccess.
func (m *MediaAccess) Forget(_ context.Context, blobRef, kind string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgets = append(m.forgets, blobRef+" "+kind)
	delete(m.ids, blobRef+" "+kind)
	delete(m.sources, blobRef+" "+kind)
	return nil
}

// Open implements autopost.MediaAccess.
func (m *MediaAccess) Open(_ context.Context, blobRef string) (*autopost.Content, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.contents[blobRef]
	if !ok {
		return nil, autopost.ErrNoOrigin
	}
	m.open++
	return &autopost.Content{
		ReadSeekCloser: &opened{ReadSeeker: bytes.NewReader(content.bytes), origin: m, stalled: m.stalled, left: len(content.bytes) / 2},
		Size:           int64(len(content.bytes)), ContentType: content.mediaType,
		Filename: strings.TrimPrefix(blobRef, "sha256:")[:16] + "." + content.extension,
	}, nil
}

type opened struct {
	io.ReadSeeker
	origin  *MediaAccess
	once    sync.Once
	stalled context.Context //nolint:containedctx // as in MediaAccess
	left    int
}

// Read implements io.Reader.
func (o *opened) Read(p []byte) (int, error) {
	if o.stalled == nil {
		return o.ReadSeeker.Read(p)
	}
	if o.left == 0 {
		<-o.stalled.Done()
		return 0, o.stalled.Err()
	}
	n, err := o.ReadSeeker.Read(p[:min(len(p), o.left)])
	o.left -= n
	return n, err
}

func (o *opened) Close() error {
	o.once.Do(func() {
		o.origin.mu.Lock()
		defer o.origin.mu.Unlock()
		o.origin.open--
	})
	return nil
}

var _ autopost.MediaAccess = (*MediaAccess)(nil)

// noExpiry is the zero time: valid until rejected.
var noExpiry time.Time

// digests returns the digests of the stored contents.
func (m *MediaAccess) digests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for ref := range m.contents {
		out = append(out, strings.TrimPrefix(ref, "sha256:"))
	}
	return out
}
