package youtube_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
)

// tape is a long video that is generated while it is read.
type tape struct {
	size, at int64
}

func (f *tape) Read(p []byte) (int, error) {
	n := int(min(int64(len(p)), f.size-f.at))
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		at := f.at + int64(i)
		p[i] = byte(at*2654435761>>16 ^ at)
		if at < 12 {
			p[i] = "\x00\x00\x00\x18ftypisom"[at]
		}
	}
	f.at += int64(n)
	return n, nil
}

func (f *tape) Seek(offset int64, _ int) (int64, error) {
	f.at = offset
	return offset, nil
}

func (*tape) Close() error { return nil }

// tapes is media access to one long video.
type tapes struct {
	*adaptertest.MediaAccess
	size int64
}

func (o tapes) Open(context.Context, string) (*autopost.Content, error) {
	return &autopost.Content{ReadSeekCloser: &tape{size: o.size}, Size: o.size, ContentType: "video/mp4", Filename: "tape.mp4"}, nil
}

func TestMemoryOfALongUploadIsBounded(t *testing.T) {
	size := int64(64 << 20)
	if os.Getenv("AUTOPOST_LONG") != "" {
		size = 2 << 30
	}
	b := newBenchWith(t, nil) // a check of the requests would keep them in memory
	b.cfg.PartBytes = 0
	b.connect(b.base)
	d := b.show(kib)
	call := b.call(d)
	call.Media = tapes{b.media, size}
	var most uint64
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	before := memory.HeapAlloc
	call.Renew = func(context.Context) error {
		runtime.GC()
		runtime.ReadMemStats(&memory)
		most = max(most, memory.HeapAlloc)
		return nil
	}
	began := time.Now()
	o := b.adapter.Send(t.Context(), call)
	require.True(t, o.OK, "%v", o.Error)
	sum := sha256.New()
	_, err := io.Copy(sum, &tape{size: size})
	require.NoError(t, err)
	v := b.server.Videos(channelID)[0]
	require.Equal(t, hex.EncodeToString(sum.Sum(nil)), v.Media.Digest)
	require.Equal(t, size, v.Media.Size)
	require.Positive(t, most)
	require.Less(t, int64(most)-int64(before), int64(8<<20), "heap of the adapter and the simulator")
	t.Logf("%d MiB in %s, %d KiB of heap more than before", size>>20, time.Since(began).Round(time.Millisecond), (int64(most)-int64(before))>>10)
}
