package outbound

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// maxInflation bounds the ratio of decompressed to compressed size. It applies only after
	// inflationGrace bytes, because short repetitive texts compress far better than long ones.
	maxInflation   = 100
	inflationGrace = 1 << 20
)

// unzipped requests gzip unless the caller sets Accept-Encoding, and rejects any other encoding.
// Multiple encodings are a decompression bomb or a mistake.
type unzipped struct{ next http.RoundTripper }

func (u *unzipped) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Accept-Encoding") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Accept-Encoding", "gzip")
	}
	resp, err := u.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	encodings := resp.Header.Values("Content-Encoding")
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(encodings, ",")))
	switch {
	case encoding == "" || encoding == "identity" || resp.Body == http.NoBody:
		return resp, nil
	case encoding != "gzip" && encoding != "x-gzip":
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w: the encoding is %.40q", ErrEncoding, encoding)
	}
	resp.Body = &inflating{packed: &counter{r: resp.Body}, body: resp.Body}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	resp.Uncompressed = true
	return resp, nil
}

// CloseIdleConnections passes the call on to the transport.
func (u *unzipped) CloseIdleConnections() {
	if t, ok := u.next.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// inflating decompresses a body while it is read, and stops at the limit.
type inflating struct {
	packed *counter
	body   io.Closer
	reader *gzip.Reader
	out    int64
}

func (i *inflating) Read(p []byte) (int, error) {
	if i.reader == nil {
		reader, err := gzip.NewReader(i.packed)
		if err != nil {
			return 0, i.damaged(err)
		}
		i.reader = reader
	}
	n, err := i.reader.Read(p)
	i.out += int64(n)
	if i.out > inflationGrace && i.out > maxInflation*i.packed.n {
		return 0, fmt.Errorf("%w: it inflates more than %d times", ErrTooLarge, maxInflation)
	}
	return n, i.damaged(err)
}

// damaged distinguishes invalid gzip data from a broken connection.
func (i *inflating) damaged(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return fmt.Errorf("%w: the body is not valid gzip", ErrEncoding)
	}
	return err
}

func (i *inflating) Close() error { return i.body.Close() }
