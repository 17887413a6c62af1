package feeds

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"regexp"
	"strconv"
)

var generatedName = regexp.MustCompile(`^(photo|video|audio|document)-([0-9]{1,6})\.(png|jpg|gif|mp4|mp3|pdf)$`)

// Generate returns a small file for a name like "photo-1.png", "photo-2.jpg", "photo-3.gif",
// "video-1.mp4", "audio-1.mp3" or "document-1.pdf". Equal names give equal bytes; different numbers
// give different bytes. Pictures are real; other files have only a valid signature.
func Generate(name string) (contentType string, body []byte, ok bool) {
	m := generatedName.FindStringSubmatch(name)
	if m == nil {
		return "", nil, false
	}
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return "", nil, false
	}
	switch m[1] + "." + m[3] {
	case "photo.png":
		return "image/png", encoded(n, func(b *bytes.Buffer, p image.Image) error { return png.Encode(b, p) }), true
	case "photo.jpg":
		return "image/jpeg", encoded(n, func(b *bytes.Buffer, p image.Image) error { return jpeg.Encode(b, p, nil) }), true
	case "photo.gif":
		return "image/gif", encoded(n, func(b *bytes.Buffer, p image.Image) error { return gif.Encode(b, p, nil) }), true
	case "video.mp4":
		return "video/mp4", fmt.Appendf([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp41"), "\x00\x00\x00\x18free%016d", n), true
	case "audio.mp3":
		return "audio/mpeg", fmt.Appendf([]byte("ID3\x04\x00\x00\x00\x00\x00\x10"), "%016d", n), true
	case "document.pdf":
		return "application/pdf", fmt.Appendf(nil, "%%PDF-1.4\n%% simulated document %d\n%%%%EOF\n", n), true
	}
	return "", nil, false
}

// encoded draws picture n, 320 by 240: a gradient with n bars.
func encoded(n int, encode func(*bytes.Buffer, image.Image) error) []byte {
	picture := image.NewRGBA(image.Rect(0, 0, 320, 240))
	for y := range 240 {
		for x := range 320 {
			c := color.RGBA{R: uint8(n*67 + x/2), G: uint8(n*131 + y/2), B: uint8(n * 29), A: 255}
			if y > 200 && x%20 < 10 && x/20 < n {
				c = color.RGBA{R: 255, G: 255, B: 255, A: 255}
			}
			picture.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := encode(&b, picture); err != nil {
		// Encoding to memory cannot fail.
		panic("generate picture: " + err.Error())
	}
	return b.Bytes()
}
