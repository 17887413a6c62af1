package adapter_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/adapter"
)

// atom makes an MP4 box.
func atom(kind string, body ...[]byte) []byte {
	content := bytes.Join(body, nil)
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(content))), kind...), content...)
}

func words(values ...uint32) []byte {
	var out []byte
	for _, v := range values {
		out = binary.BigEndian.AppendUint32(out, v)
	}
	return out
}

// track makes a trak box. The matrix is a, b, c, d; its other values are zero.
func track(handler string, version byte, width, height uint32, matrix [4]uint32) []byte {
	times := make([]byte, 20)
	if version == 1 {
		times = make([]byte, 32)
	}
	tkhd := atom("tkhd", []byte{version, 0, 0, 3}, times, make([]byte, 16),
		words(matrix[0], matrix[1], 0, matrix[2], matrix[3], 0, 0, 0, 1<<30, width<<16, height<<16))
	return atom("trak", tkhd, atom("mdia", atom("hdlr", make([]byte, 8), []byte(handler), make([]byte, 12))))
}

func TestMeasureVideo(t *testing.T) {
	upright, turned := [4]uint32{1 << 16, 0, 0, 1 << 16}, [4]uint32{0, 1 << 16, 0xffff0000, 0}
	ftyp, mdat := atom("ftyp", []byte("isom")), atom("mdat", make([]byte, 5000))
	mvhd := atom("mvhd", words(0, 0, 0, 600, 4500), make([]byte, 80))
	long := atom("mvhd", []byte{1, 0, 0, 0}, make([]byte, 16), words(1000, 0, 61_499), make([]byte, 80))
	large := append(words(1), append([]byte("mdat"), append(words(0, 16+100), make([]byte, 100)...)...)...)
	sound := track("soun", 0, 0, 0, upright)
	for name, c := range map[string]struct {
		content []byte
		want    adapter.VideoSize
	}{
		"header first":        {bytes.Join([][]byte{ftyp, atom("moov", mvhd, track("vide", 0, 1280, 720, upright)), mdat}, nil), adapter.VideoSize{Width: 1280, Height: 720, Seconds: 8}},
		"header last":         {bytes.Join([][]byte{ftyp, mdat, atom("moov", mvhd, sound, track("vide", 0, 1280, 720, upright))}, nil), adapter.VideoSize{Width: 1280, Height: 720, Seconds: 8}},
		"turned":              {bytes.Join([][]byte{ftyp, atom("moov", mvhd, track("vide", 0, 1280, 720, turned))}, nil), adapter.VideoSize{Width: 720, Height: 1280, Seconds: 8}},
		"64 bits":             {bytes.Join([][]byte{ftyp, large, atom("moov", long, track("vide", 1, 64, 36, turned))}, nil), adapter.VideoSize{Width: 36, Height: 64, Seconds: 61}},
		"short":               {bytes.Join([][]byte{ftyp, atom("moov", atom("mvhd", words(0, 0, 0, 600, 10)), track("vide", 0, 64, 36, upright))}, nil), adapter.VideoSize{Width: 64, Height: 36, Seconds: 1}},
		"duration is unknown": {bytes.Join([][]byte{ftyp, atom("moov", atom("mvhd", words(0, 0, 0, 600, 0)), track("vide", 0, 64, 36, upright))}, nil), adapter.VideoSize{Width: 64, Height: 36}},
	} {
		t.Run(name, func(t *testing.T) {
			size, ok := adapter.MeasureVideo(bytes.NewReader(c.content))
			require.True(t, ok)
			require.Equal(t, c.want, size)
		})
	}
	for name, content := range map[string][]byte{
		"empty": nil, "text": []byte(strings.Repeat("plain text ", 100)), "GIF": []byte("GIF89a\x01\x00\x01\x00"), "sound": atom("moov", mvhd, sound),
		"cut": atom("moov", mvhd, track("vide", 0, 64, 36, upright))[:60], "no header": bytes.Repeat(ftyp, 100), "huge length": words(1, 0x6d646174, 0xffffffff, 0xffffffff),
		"length below its head": append(words(4), "mdat"...),
	} {
		t.Run(name, func(t *testing.T) {
			_, ok := adapter.MeasureVideo(bytes.NewReader(content))
			require.False(t, ok)
		})
	}
}

func FuzzMeasureVideo(f *testing.F) {
	f.Add(atom("moov", atom("mvhd", words(0, 0, 0, 600, 10)), track("vide", 0, 64, 36, [4]uint32{})))
	f.Fuzz(func(t *testing.T, content []byte) {
		size, ok := adapter.MeasureVideo(bytes.NewReader(content))
		require.Equal(t, ok, size.Width > 0 && size.Height > 0)
	})
}
