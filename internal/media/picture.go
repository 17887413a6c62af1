package media

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	_ "image/gif"  // registers the format for DecodeConfig
	_ "image/jpeg" // registers the format for DecodeConfig
	_ "image/png"  // registers the format for DecodeConfig
	"io"

	_ "golang.org/x/image/webp" // registers the format for DecodeConfig
)

const (
	// maxPixels limits the memory to decode a picture or a frame.
	maxPixels = 50_000_000
	// maxSides is the largest sum of width and height.
	maxSides = 20_000
	// maxAnimationPixels limits the sum of all frames of an animation.
	maxAnimationPixels = 1_000_000_000
	// headerBytes limits the header of a PNG, GIF or WebP.
	headerBytes = 1 << 20
)

// framesOf are the functions that read the frames of types with animations. They read only lengths and sizes and decode
// nothing. The reader starts at the first byte of the file.
var framesOf = map[string]func(r *bufio.Reader, canvas area) (frames, error){
	"image/png":  pngFrames,
	"image/gif":  gifFrames,
	"image/webp": webpFrames,
}

// pictureTypes are the types that platforms show as pictures.
var pictureTypes = map[string]bool{"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true}

type area struct{ width, height int }

func (a area) pixels() int { return a.width * a.height }

func (a area) decodable() bool {
	return a.width > 0 && a.height > 0 && a.width+a.height <= maxSides && a.pixels() <= maxPixels
}

// frames are the count of frames, the largest width and height, and the sum of the pixels.
type frames struct {
	count   int
	largest area
	pixels  int
}

func (f *frames) add(a area) {
	f.count++
	f.largest = area{max(f.largest.width, a.width), max(f.largest.height, a.height)}
	f.pixels = min(f.pixels+a.pixels(), maxAnimationPixels+1)
}

// measure returns the size of a picture from its headers. It refuses a picture that is damaged or too large to decode
// safely.
func measure(r io.Reader, contentType string) (width, height int, err error) {
	read := framesOf[contentType]
	var seen bytes.Buffer
	header := r
	if read != nil {
		header = io.TeeReader(io.LimitReader(r, headerBytes), &seen)
	}
	config, _, err := image.DecodeConfig(header)
	if err != nil {
		return 0, 0, wrongType("%s must be a valid picture; use JPEG, PNG, GIF or WebP", contentType)
	}
	canvas := area{config.Width, config.Height}
	if !canvas.decodable() {
		return 0, 0, tooManyPixels(canvas)
	}
	if read == nil {
		return canvas.width, canvas.height, nil
	}
	found, err := read(bufio.NewReader(io.MultiReader(&seen, r)), canvas)
	switch {
	case err != nil:
		return 0, 0, wrongType("%s is damaged: %v; save the picture again", contentType, err)
	case found.count > 0 && !found.largest.decodable():
		return 0, 0, tooManyPixels(found.largest)
	case found.pixels > maxAnimationPixels:
		return 0, 0, wrongType("an animation of %d frames of %dx%d pixels is too large; it must have at most %d pixels in all",
			found.count, canvas.width, canvas.height, maxAnimationPixels)
	}
	return canvas.width, canvas.height, nil
}

func tooManyPixels(a area) *Rejection {
	return wrongType("a picture of %dx%d pixels is refused; it must have 1 to %d pixels, and width plus height at most %d",
		a.width, a.height, maxPixels, maxSides)
}

var errNoFrame = errors.New("it has no frame")

// pngFrames reads the count of frames, which precedes the first pixels.
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
			found.pixels = min(int(count), maxAnimationPixels+1) * canvas.pixels()
		}
		if _, err := io.CopyN(io.Discard, r, int64(chunk.Length)+4); err != nil {
			return found, errNoFrame
		}
	}
}

// gifFrames reads all blocks. It accepts a file that ends after a frame.
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
			return found, errors.New("it has an unknown block")
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

// colours returns the length of the color table of a GIF, in bytes.
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

// webpFrames reads the chunks, because the pixels of a still picture may exceed the size in its header.
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
			return found, errors.New("a frame is larger than the picture")
		}
		if _, err := io.CopyN(io.Discard, r, 8+length+length%2); err != nil && found.count == 0 {
			return found, errNoFrame
		}
	}
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
