package adapter

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
)

const (
	// maxMovie limits how much of a moov box is read, in bytes. Its useful boxes are at its beginning.
	maxMovie = 4 << 20
	// maxBoxes limits how many boxes before the moov box are skipped.
	maxBoxes = 64
)

// VideoSize is the size of a video as its file states it.
type VideoSize struct {
	// Width and Height are those of the picture as shown, in pixels: rotation is applied.
	Width, Height int
	// Seconds is the rounded duration, at least 1; 0 if the file does not state it.
	Seconds int
}

// MeasureVideo reads the size of an MP4 or MOV file from its header, and leaves r at any position. The
// result is false for other content and for a file without a picture.
func MeasureVideo(r io.ReadSeeker) (VideoSize, bool) {
	var size VideoSize
	for kind, body := range boxes(readMovie(r)) {
		switch kind {
		case "mvhd":
			size.Seconds = movieSeconds(body)
		case "trak":
			if size.Width == 0 {
				size.Width, size.Height = trackSize(body)
			}
		}
	}
	return size, size.Width > 0 && size.Height > 0
}

// readMovie returns the content of the moov box, cut at maxMovie; nil if there is none.
func readMovie(r io.ReadSeeker) []byte {
	for range maxBoxes {
		var header [16]byte
		if _, err := io.ReadFull(r, header[:8]); err != nil {
			return nil
		}
		length, kind := int64(binary.BigEndian.Uint32(header[:4])), header[4:8]
		head := int64(8)
		if length == 1 { // a length of 64 bits follows
			if _, err := io.ReadFull(r, header[8:]); err != nil {
				return nil
			}
			length, head = int64(binary.BigEndian.Uint64(header[8:])), 16
		}
		if bytes.Equal(kind, []byte("moov")) {
			movie, err := io.ReadAll(io.LimitReader(r, min(max(length-head, 0), maxMovie)))
			if err != nil {
				return nil
			}
			return movie
		}
		if length < head || bytes.ContainsFunc(kind, func(c rune) bool { return c < ' ' || c > '~' }) {
			return nil
		}
		if _, err := r.Seek(length-head, io.SeekCurrent); err != nil {
			return nil
		}
	}
	return nil
}

// boxes iterates the boxes of a container. The last one may be cut.
func boxes(content []byte) func(yield func(kind string, body []byte) bool) {
	return func(yield func(string, []byte) bool) {
		for len(content) >= 8 {
			length, head := uint64(binary.BigEndian.Uint32(content)), uint64(8)
			if length == 1 && len(content) >= 16 {
				length, head = binary.BigEndian.Uint64(content[8:]), 16
			}
			if length == 0 || length > uint64(len(content)) {
				length = uint64(len(content))
			}
			if length < head || !yield(string(content[4:8]), content[head:length]) {
				return
			}
			content = content[length:]
		}
	}
}

// box returns the content of the first box of a kind; nil if there is none.
func box(content []byte, want string) []byte {
	for kind, body := range boxes(content) {
		if kind == want {
			return body
		}
	}
	return nil
}

// movieSeconds reads the duration from the content of an mvhd box. Version 1 has times of 64 bits.
func movieSeconds(mvhd []byte) int {
	var scale, duration uint64
	switch {
	case len(mvhd) >= 32 && mvhd[0] == 1:
		scale, duration = uint64(binary.BigEndian.Uint32(mvhd[20:])), binary.BigEndian.Uint64(mvhd[24:])
	case len(mvhd) >= 20 && mvhd[0] == 0:
		scale, duration = uint64(binary.BigEndian.Uint32(mvhd[12:])), uint64(binary.BigEndian.Uint32(mvhd[16:]))
	}
	if scale == 0 || duration == 0 || duration == math.MaxUint32 || duration == math.MaxUint64 {
		return 0
	}
	return int(min(max(1, math.Round(float64(duration)/float64(scale))), math.MaxInt32))
}

// trackSize reads the size of the picture from the content of a trak box; 0 for other tracks. A matrix
// that turns the picture to its side swaps width and height.
func trackSize(trak []byte) (width, height int) {
	handler := box(box(trak, "mdia"), "hdlr")
	if len(handler) < 12 || string(handler[8:12]) != "vide" {
		return 0, 0
	}
	tkhd := box(trak, "tkhd")
	matrix := 40
	if len(tkhd) > 0 && tkhd[0] == 1 {
		matrix = 52
	}
	if len(tkhd) < matrix+44 {
		return 0, 0
	}
	// Sizes are fixed-point numbers of 16 and 16 bits.
	width, height = int(binary.BigEndian.Uint16(tkhd[matrix+36:])), int(binary.BigEndian.Uint16(tkhd[matrix+40:]))
	a, d := binary.BigEndian.Uint32(tkhd[matrix:]), binary.BigEndian.Uint32(tkhd[matrix+16:])
	if a == 0 && d == 0 {
		return height, width
	}
	return width, height
}
