//go:build !failpoint

package failpoint

import "io"

// Hit is a point of the code.
func Hit(Point) {}

// Within is a point of time, within the call that begins now.
func Within(Point) {}

// Halfway is a point in the middle of the size bytes of a content.
func Halfway(_ Point, content io.ReadSeekCloser, _ int64) io.ReadSeekCloser { return content }
