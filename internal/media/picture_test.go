package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
)

var palette = color.Palette{color.Black, color.White}

func pngBytes(width, height int) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), palette))
	return b.Bytes()
}

func chunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// withChunk inserts a chunk after the header of a PNG.
func withChunk(picture []byte, kind string, data []byte) []byte {
	return bytes.Join([][]byte{picture[:33], chunk(kind, data), picture[33:]}, nil)
}

// sized sets the width and height in the header of a PNG.
func sized(picture []byte, width, height uint32) []byte {
	b := bytes.Clone(picture)
	binary.BigEndian.PutUint32(b[16:], width)
	binary.BigEndian.PutUint32(b[20:], height)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

func gifBytes(width, height, count int) []byte {
	moving := gif.GIF{}
	for range count {
		moving.Image = append(moving.Image, image.NewPaletted(image.Rect(0, 0, width, height), palette))
		moving.Delay = append(moving.Delay, 1)
	}
	var b bytes.Buffer
	_ = gif.EncodeAll(&b, &moving)
	return b.Bytes()
}

func riff(chunks ...[]byte) []byte {
	body := append([]byte("WEBP"), bytes.Join(chunks, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

func part(kind string, data []byte) []byte {
	b := append(binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(data))), data...)
	if len(data)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

func canvas(width, height int) []byte {
	b := make([]byte, 10)
	b[0] = 0x10 | 2
	b[4], b[5], b[6] = byte(width-1), byte((width-1)>>8), byte((width-1)>>16)
	b[7], b[8], b[9] = byte(height-1), byte((height-1)>>8), byte((height-1)>>16)
	return part("VP8X", b)
}

func frame(width, height int) []byte {
	b := make([]byte, 16, 40)
	b[6], b[7], b[8] = byte(width-1), byte((width-1)>>8), byte((width-1)>>16)
	b[9], b[10], b[11] = byte(height-1), byte((height-1)>>8), byte((height-1)>>16)
	return part("ANMF", append(b, "some pixels"...))
}

func lossless(width, height int) []byte {
	bits := uint32(width-1) | uint32(height-1)<<14
	return part("VP8L", append(binary.LittleEndian.AppendUint32([]byte{0x2f}, bits), make([]byte, 20)...))
}

func jpegBytes(width, height int) []byte {
	var b bytes.Buffer
	_ = jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil)
	return b.Bytes()
}

func TestPicturesAreMeasuredByTheirHeaders(t *testing.T) {
	tall := gifBytes(3, 2, 1)
	binary.LittleEndian.PutUint16(tall[8:], 0)
	large := bytes.Clone(gifBytes(3, 2, 2))
	at := bytes.IndexByte(large[13:], ',') + 13
	binary.LittleEndian.PutUint16(large[at+5:], 65535)
	binary.LittleEndian.PutUint16(large[at+7:], 65535)
	sof := jpegBytes(8, 8)
	dims := bytes.Index(sof, []byte{0xff, 0xc0}) + 5
	copy(sof[dims:], []byte{0xff, 0xff, 0xff, 0xff})
	for name, c := range map[string]struct {
		content []byte
		is      string
		says    string // of the refusal; empty: it is taken
		sides   image.Point
	}{
		"a PNG":                     {pngBytes(30, 20), "image/png", "", image.Pt(30, 20)},
		"a PNG that moves":          {withChunk(pngBytes(30, 20), "acTL", []byte{0, 0, 0, 9, 0, 0, 0, 0}), "image/png", "", image.Pt(30, 20)},
		"a PNG that moves for ever": {withChunk(pngBytes(3000, 2000), "acTL", []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}), "image/png", "2147483647 frames", image.Point{}},
		"a PNG with a note":         {withChunk(pngBytes(3, 2), "tEXt", make([]byte, 100_000)), "image/png", "", image.Pt(3, 2)},
		"a PNG of no pixels":        {sized(pngBytes(3, 2), 0, 2), "image/png", "picture", image.Point{}},
		"a PNG of too many":         {sized(pngBytes(3, 2), 9000, 9000), "image/png", "9000x9000", image.Point{}},
		"a PNG that is long":        {sized(pngBytes(3, 2), 20_000, 1), "image/png", "20000x1", image.Point{}},
		"a PNG beyond all numbers":  {sized(pngBytes(3, 2), 0x7fffffff, 0x7fffffff), "image/png", "picture", image.Point{}},
		"a PNG without its pixels":  {pngBytes(3, 2)[:40], "image/png", "picture", image.Point{}},
		"a GIF":                     {gifBytes(30, 20, 1), "image/gif", "", image.Pt(30, 20)},
		"a GIF that moves":          {gifBytes(30, 20, 50), "image/gif", "", image.Pt(30, 20)},
		"a GIF cut off":             {gifBytes(30, 20, 50)[:600], "image/gif", "", image.Pt(30, 20)},
		"a GIF of no height":        {tall, "image/gif", "3x0", image.Point{}},
		"a GIF with a huge frame":   {large, "image/gif", "65535x65535", image.Point{}},
		"a GIF with only text":      {append(gifBytes(3, 2, 1)[:19], "<script>alert(1)</script>"...), "image/gif", "it has no frame", image.Point{}},
		"a WebP":                    {riff(lossless(30, 20)), "image/webp", "", image.Pt(30, 20)},
		"a WebP that moves":         {riff(canvas(30, 20), frame(30, 20), frame(10, 20)), "image/webp", "", image.Pt(30, 20)},
		"a WebP with a huge frame":  {riff(canvas(3, 2), frame(1<<24, 1<<24)), "image/webp", "larger than the picture", image.Point{}},
		"a WebP with huge pixels":   {riff(canvas(3, 2), lossless(16383, 16383)), "image/webp", "larger than the picture", image.Point{}},
		"a WebP of a huge canvas":   {riff(canvas(1<<24, 1<<24), frame(1, 1)), "image/webp", "must be a valid picture", image.Point{}},
		"a WebP without pixels":     {riff(canvas(3, 2)), "image/webp", "it has no frame", image.Point{}},
		"a JPEG":                    {jpegBytes(30, 20), "image/jpeg", "", image.Pt(30, 20)},
		"a JPEG of too many":        {sof, "image/jpeg", "65535x65535", image.Point{}},
		"a JPEG without its header": {jpegBytes(3, 2)[:10], "image/jpeg", "must be a valid picture", image.Point{}},
	} {
		t.Run(name, func(t *testing.T) {
			contentType, err := sniff(c.content, autopost.MediaImage)
			require.NoError(t, err)
			require.Equal(t, c.is, contentType)
			width, height, err := measure(bytes.NewReader(c.content), contentType)
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
			require.Equal(t, c.sides, image.Pt(width, height))
		})
	}
}

func TestAnimationWithTooManyPixels(t *testing.T) {
	frames := [][]byte{canvas(4000, 4000)}
	for range 63 {
		frames = append(frames, frame(4000, 4000))
	}
	_, _, err := measure(bytes.NewReader(riff(frames[:63]...)), "image/webp")
	require.NoError(t, err)
	_, _, err = measure(bytes.NewReader(riff(frames...)), "image/webp")
	require.ErrorContains(t, err, "63 frames of 4000x4000")
}

// A disguised file is refused by its real type.
func TestTypeComesFromTheContent(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		says    string
	}{
		"a page":                    {"<!DOCTYPE html><html></html>", "HTML page"},
		"a page behind spaces":      {"\n\n   <html><script></script>", "HTML page"},
		"a page behind a mark":      {"\xef\xbb\xbf<html></html>", "HTML page"},
		"an SVG":                    {`<svg xmlns="http://www.w3.org/2000/svg"/>`, "JPEG, PNG, GIF or WebP, got image/svg+xml"},
		"an SVG behind XML":         {`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`, "JPEG, PNG, GIF or WebP, got image/svg+xml"},
		"an SVG behind a comment":   {`<!-- GIF89a --><svg xmlns="http://www.w3.org/2000/svg"/>`, "JPEG, PNG, GIF or WebP, got image/svg+xml"},
		"a program":                 {"MZ\x90\x00\x03", "must match the kind image"},
		"an archive":                {"PK\x03\x04\x14\x00", "must match the kind image"},
		"a PDF":                     {"%PDF-1.7\n", "must match the kind image"},
		"words":                     {"PNG", "must match the kind image"},
		"a BMP":                     {"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00", "JPEG, PNG, GIF or WebP, got image/bmp"},
		"a TIFF":                    {"II*\x00\x08\x00\x00\x00", "JPEG, PNG, GIF or WebP, got image/tiff"},
		"an icon":                   {"\x00\x00\x01\x00\x01\x00\x10\x10", "JPEG, PNG, GIF or WebP, got image/x-icon"},
		"a phone's picture":         {"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "JPEG, PNG, GIF or WebP, got image/heic"},
		"a picture of a new format": {"\x00\x00\x00\x18ftypavif\x00\x00\x00\x00mif1avif", "JPEG, PNG, GIF or WebP, got image/avif"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sniff([]byte(c.content), autopost.MediaImage)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, autopost.MediaFile, kindOf([]byte(c.content)))
		})
	}
}

// No input panics, and accepted pictures can be decoded within the limits.
func FuzzMeasure(f *testing.F) {
	for _, seed := range [][]byte{pngBytes(3, 2), withChunk(pngBytes(3, 2), "acTL", make([]byte, 8)), gifBytes(3, 2, 2), jpegBytes(3, 2),
		riff(lossless(3, 2)), riff(canvas(3, 2), frame(3, 2))} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		contentType, err := sniff(content[:min(len(content), sniffBytes)], autopost.MediaImage)
		if err != nil {
			return
		}
		width, height, err := measure(bytes.NewReader(content), contentType)
		if err != nil {
			if _, ok := errors.AsType[*Rejection](err); !ok {
				t.Errorf("%v is not a verdict", err)
			}
			return
		}
		if !(area{width, height}).decodable() {
			t.Errorf("%dx%d passes", width, height)
		}
	})
}
