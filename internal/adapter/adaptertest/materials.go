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

// Materials is a media origin and a cache of platform ids in memory. It is safe
// for concurrent use.
type Materials struct {
	mu       sync.Mutex
	contents map[string]stored
	ids      map[string]string
	forgets  []string
	open     int
	stalled  context.Context //nolint:containedctx // whose end is the end of the stall
}

type stored struct {
	bytes     []byte
	mediaType string
	extension string
}

// NewMaterials makes an empty origin.
func NewMaterials() *Materials {
	return &Materials{contents: map[string]stored{}, ids: map[string]string{}}
}

// Add stores new content of a kind and returns its blob_ref. Pictures are real PNGs, videos begin like an MP4.
func (m *Materials) Add(kind autopost.MediaKind) string {
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
func (m *Materials) Put(content []byte, mediaType string) string {
	return m.put(stored{content, mediaType, "bin"})
}

func (m *Materials) put(content stored) string {
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

// Stall lets every content break off in its middle and go on only when ctx is over.
func (m *Materials) Stall(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stalled = ctx
}

// Lose takes content out of the origin.
func (m *Materials) Lose(blobRef string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.contents, blobRef)
}

// Forgets lists "blob_ref kind" of every Forget.
func (m *Materials) Forgets() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.forgets...)
}

// OpenContents is how many contents are open now.
func (m *Materials) OpenContents() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// Cached implements autopost.Materials.
func (m *Materials) Cached(_ context.Context, blobRef, kind string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.ids[blobRef+" "+kind]
	return id, ok, nil
}

// Keep implements autopost.Materials.
func (m *Materials) Keep(_ context.Context, blobRef, kind, fileID string, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids[blobRef+" "+kind] = fileID
	return nil
}

// Forget implements autopost.Materials.
func (m *Materials) Forget(_ context.Context, blobRef, kind string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgets = append(m.forgets, blobRef+" "+kind)
	delete(m.ids, blobRef+" "+kind)
	return nil
}

// Open implements autopost.Materials.
func (m *Materials) Open(_ context.Context, blobRef string) (*autopost.Content, error) {
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
	origin  *Materials
	once    sync.Once
	stalled context.Context //nolint:containedctx // as of Materials
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

var _ autopost.Materials = (*Materials)(nil)

// noExpiry is the zero time: until refused.
var noExpiry time.Time

// digests are those of the contents in the origin.
func (m *Materials) digests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for ref := range m.contents {
		out = append(out, strings.TrimPrefix(ref, "sha256:"))
	}
	return out
}
