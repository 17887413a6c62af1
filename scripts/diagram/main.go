// Command diagram draws docs/architecture.png from docs/architecture.dot with Graphviz. It
// stores the digest of the source in the picture, so that a test finds a picture that is
// out of date. Run it in the root of the repository.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"time"
)

const (
	sourceFile  = "docs/architecture.dot"
	pictureFile = "docs/architecture.png"
	keyword     = "Source\x00sha256:"
	// trailer is the length of the last chunk of a PNG file, IEND, in bytes.
	trailer = 12
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "diagram:", err)
		os.Exit(1)
	}
}

func run() error {
	source, err := os.ReadFile(sourceFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dot := exec.CommandContext(ctx, "dot", "-Tpng", "-Gdpi=110")
	dot.Stdin, dot.Stderr = bytes.NewReader(source), os.Stderr
	picture, err := dot.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("dot is missing: apt-get install graphviz")
	}
	if err != nil {
		return fmt.Errorf("dot: %w", err)
	}
	end := len(picture) - trailer
	return os.WriteFile(pictureFile, append(append(picture[:end:end], chunk(digest(source))...), picture[end:]...), 0o644)
}

// digest is the text that the picture keeps of its source.
func digest(source []byte) string {
	sum := sha256.Sum256(source)
	return keyword + hex.EncodeToString(sum[:])
}

// chunk returns a tEXt chunk of a PNG file (https://www.w3.org/TR/png/#11tEXt).
func chunk(text string) []byte {
	body := append([]byte("tEXt"), text...)
	out := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	out = append(out, body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
}
