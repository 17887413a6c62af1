package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"autopost/internal/outbound"
)

// maxResumes is how often one download may resume after a broken connection.
const maxResumes = 8

// download is a body that resumes after a broken connection. The source must support ranges and a strong ETag.
type download struct {
	ctx   context.Context
	doer  Doer
	url   *url.URL
	body  io.ReadCloser
	total int64
	// version is the strong ETag; "" if the download cannot resume.
	version string
	read    int64
	resumes int
	// err is the error of the connection. It distinguishes a broken download from an error of the media store.
	err error
}

// request makes the request for the uncompressed medium from the given byte.
func request(ctx context.Context, u *url.URL, from int64, version string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		req.Header.Set("If-Range", version)
	}
	return req, nil
}

// newDownload starts with response, which must be a 200.
func newDownload(ctx context.Context, doer Doer, u *url.URL, response *http.Response) *download {
	d := &download{ctx: ctx, doer: doer, url: u, body: response.Body, total: response.ContentLength}
	etag := response.Header.Get("ETag")
	if d.total > 0 && response.Header.Get("Accept-Ranges") == "bytes" && strings.HasPrefix(etag, `"`) {
		d.version = etag
	}
	return d
}

func (d *download) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	d.read += int64(n)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if errors.Is(err, outbound.ErrTooLarge) || d.resume() != nil {
		d.err = err
		return n, err
	}
	return n, nil
}

var errNoResume = errors.New("the source cannot resume the download")

// resume requests the rest.
func (d *download) resume() error {
	if d.version == "" || d.resumes == maxResumes || d.ctx.Err() != nil {
		return errNoResume
	}
	d.resumes++
	req, err := request(d.ctx, d.url, d.read, d.version)
	if err != nil {
		return err
	}
	response, err := d.doer.Do(req)
	if err != nil {
		return err
	}
	want := fmt.Sprintf("bytes %d-%d/%d", d.read, d.total-1, d.total)
	if response.StatusCode != http.StatusPartialContent || response.Header.Get("Content-Range") != want ||
		response.Header.Get("ETag") != d.version || response.Uncompressed {
		return errors.Join(errNoResume, response.Body.Close())
	}
	_ = d.body.Close() // it is broken
	d.body = response.Body
	return nil
}

func (d *download) Close() error { return d.body.Close() }
