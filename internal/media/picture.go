package media

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	_ "image/gif"  // a format that DecodeConfig must know
	_ "image/jpeg" // a format that DecodeConfig must know
	_ "image/png"  // a format that DecodeConfig must know
	"io"

	_ "golang.org/x/image/webp" // a format that DecodeConfig must know
)

const (
	// maxPixels bounds the memory that decoding a picture, or a frame of it, may cost.
	maxPixels = 50_000_000
	// maxSides is the sum of width and height above which pictures are refused.
	maxSides = 20_000
	// maxMovingPixels bounds all frames of an animation together.
	maxMovingPixels = 1_000_000_000
	// headerBytes is how far the header of a PNG, GIF or WebP is looked for.
	headerBytes = 1 << 20
)

// framesOf tells, for the types that may move, how to walk their frames. Nothing is
// decoded: the walk reads lengths and sizes alone. Its reader begins at the file's first byte.
var framesOf = map[string]func(r *bufio.Reader, canvas area) (frames, error){
	"image/png":  pngFrames,
	"image/gif":  gifFrames,
	"image/webp": webpFrames,
}

// pictureTypes are those that platforms show as pictures.
var pictureTypes = map[string]bool{"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true}

type area struct{ width, height int }

func (a area) pixels() int { return a.width * a.height }

func (a area) decodable() bool {
	return a.width > 0 && a.height > 0 && a.width+a.height <= maxSides && a.pixels() <= maxPixels
}

// frames is what a walk found: how many, the largest sides, all their pixels.
type frames struct {
	count   int
	largest area
	pixels  int
}

func (f *frames) add(a area) {
	f.count++
	f.largest = area{max(f.largest.width, a.width), max(f.largest.height, a.height)}
	f.pixels = min(f.pixels+a.pixels(), maxMovingPixels+1)
}

// measure reads a picture's headers and refuses what is too big to be decoded
// safely, or is no picture that the platforms take.
func measure(r io.Reader, contentType string) (width, height int, err error) {
	walk := framesOf[contentType]
	var seen bytes.Buffer
	header := r
	if walk != nil {
		header = io.TeeReader(io.LimitReader(r, headerBytes), &seen)
	}
	config, _, err := image.DecodeConfig(header)
	if err != nil {
		return 0, 0, wrongType("%s cannot be read as a picture; use JPEG, PNG, GIF or WebP", contentType)
	}
	canvas := area{config.Width, config.Height}
	if !canvas.decodable() {
		return 0, 0, tooManyPixels(canvas)
	}
	if walk == nil {
		return canvas.width, canvas.height, nil
	}
	found, err := walk(bufio.NewReader(io.MultiReader(&seen, r)), canvas)
	switch {
	case err != nil:
		return 0, 0, wrongType("%s is damaged: %v; save the picture anew", contentType, err)
	case found.count > 0 && !found.largest.decodable():
		return 0, 0, tooManyPixels(found.largest)
	case found.pixels > maxMovingPixels:
		return 0, 0, wrongType("an animation of %d frames of %dx%d pixels is too big; at most %d pixels in all",
			found.count, canvas.width, canvas.height, maxMovingPixels)
	}
	return canvas.width, canvas.height, nil
}

func tooManyPixels(a area) *Rejection {
	return wrongType("a picture of %dx%d pixels cannot be taken; at least one pixel, at most %d, width and height together at most %d",
		a.width, a.height, maxPixels, maxSides)
}

var errNoFrame = errors.New("it holds no picture")

// pngFrames looks for the count of frames, which stands before the first pixels.
func pngFrames(r *bufio.Reader, canvas area) (found frames, err error) {
	if _, err := r.Discard(8); err != nil {
		return found, err
	}
	found.add(canvas)
	for {
		var chunk struct {
			Length uint32
			Kind   [4]byte
		}
		if err := binary.Read(r, binary.BigEndian, &chunk); err != nil {
			return found, errNoFrame
		}
		switch string(chunk.Kind[:]) {
		case "IDAT":
			return found, nil
		case "acTL":
			var count uint32
			if err := binary.Read(r, binary.BigEndian, &count); err != nil || chunk.Length < 4 {
				return found, errNoFrame
			}
			chunk.Length -= 4
			found.count = int(count)
			found.pixels = min(int(count), maxMovingPixels+1) * canvas.pixels()
		}
		if _, err := io.CopyN(io.Discard, r, int64(chunk.Length)+4); err != nil {
			return found, errNoFrame
		}
	}
}

// gifFrames walks all blocks; a file that was cut off behind a frame is let pass.
func gifFrames(r *bufio.Reader, _ area) (found frames, err error) {
	if _, err := r.Discard(10); err != nil {
		return found, errNoFrame
	}
	flags, err := r.ReadByte()
	if err != nil {
		return found, errNoFrame
	}
	if _, err := r.Discard(2 + colours(flags)); err != nil {
		return found, errNoFrame
	}
	for {
		block, err := r.ReadByte()
		switch {
		case err != nil || block == ';':
			if found.count == 0 {
				return found, errNoFrame
			}
			return found, nil
		case block == '!':
			_, err = r.Discard(1)
		case block == ',':
			err = gifFrame(r, &found)
		default:
			return found, errors.New("it holds something that is no frame")
		}
		if err == nil {
			err = skipBlocks(r)
		}
		if err != nil && found.count == 0 {
			return found, errNoFrame
		}
	}
}

func gifFrame(r *bufio.Reader, found *frames) error {
	var descriptor struct {
		Left, Top, Width, Height uint16
		Flags                    uint8
	}
	if err := binary.Read(r, binary.LittleEndian, &descriptor); err != nil {
		return err
	}
	found.add(area{int(descriptor.Width), int(descriptor.Height)})
	_, err := r.Discard(colours(descriptor.Flags) + 1)
	return err
}

// colours is the length of a GIF's table of colours, in bytes.
func colours(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

func skipBlocks(r *bufio.Reader) error {
	for {
		length, err := r.ReadByte()
		if err != nil || length == 0 {
			return err
		}
		if _, err := r.Discard(int(length)); err != nil {
			return err
		}
	}
}

// webpFrames walks the chunks: the pixels of a still picture may be larger than the
// canvas that its header tells of.
func webpFrames(r *bufio.Reader, canvas area) (found frames, err error) {
	if _, err := r.Discard(12); err != nil {
		return found, errNoFrame
	}
	for {
		head, err := r.Peek(8 + 16)
		if len(head) < 8 {
			if found.count == 0 {
				return found, errNoFrame
			}
			return found, nil
		}
		length := int64(binary.LittleEndian.Uint32(head[4:]))
		kind, body := string(head[:4]), head[8:]
		switch {
		case kind == "ANMF" && len(body) >= 12:
			found.add(area{int(uint24(body[6:])) + 1, int(uint24(body[9:])) + 1})
		case kind == "VP8 " && len(body) >= 10:
			found.add(area{int(binary.LittleEndian.Uint16(body[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(body[8:]) & 0x3fff)})
		case kind == "VP8L" && len(body) >= 5:
			bits := binary.LittleEndian.Uint32(body[1:])
			found.add(area{int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1})
		case err != nil && found.count == 0 && kind != "VP8X":
			return found, errNoFrame
		}
		if found.count > 0 && (found.largest.width > canvas.width || found.largest.height > canvas.height) {
			return found, errors.New("a frame is larger than the whole")
		}
		if _, err := io.CopyN(io.Discard, r, 8+length+length%2); err != nil && found.count == 0 {
			return found, errNoFrame
		}
	}
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
