package twitter

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"

	"autopost"
	"autopost/internal/adapter"
)

// chunkSize is below X's limit of 5 MB for a chunk. A thousand chunks exceed X's limit for a file.
const chunkSize = 4 << 20

// upload uploads the content in chunks. An interrupted upload is not resumed: X refuses a repeated chunk,
// and it is unknown whether X has a chunk whose answer was lost.
func (s *sender) upload(ctx context.Context, it *item) (upload, *autopost.Error) {
	content, failure := adapter.Open(ctx, s.call.Media, it.medium, s.hide)
	if failure != nil {
		return upload{}, failure
	}
	defer func() { _ = content.Close() }()
	it.category = categories[it.medium.Type][0]
	if it.medium.Type == autopost.MediaAnimation && content.ContentType != "image/gif" {
		it.category = categoryVideo
	}
	var got struct {
		Data upload `json:"data"`
	}
	if failure := s.postJSON(ctx, "2/media/upload/initialize", map[string]any{
		"media_type": content.ContentType, "total_bytes": content.Size, "media_category": it.category,
	}, &got); failure != nil {
		return upload{}, failure
	}
	if got.Data.ID == "" {
		return upload{}, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeCallFailed, "the answer of X has no upload id")
	}
	at := "2/media/upload/" + got.Data.ID
	for n, left := 0, content.Size; left > 0; n++ {
		size := min(left, chunkSize)
		if failure := s.append(ctx, at, n, content, size); failure != nil {
			return upload{}, failure
		}
		left -= size
	}
	failure = s.postJSON(ctx, at+"/finalize", nil, &got)
	return got.Data, failure
}

// postJSON makes one call of an upload. body may be nil.
func (s *sender) postJSON(ctx context.Context, path string, body, into any) *autopost.Error {
	var encoded io.Reader
	if body != nil {
		encoded = bytes.NewReader(encode(body))
	}
	req, failure := s.request(ctx, http.MethodPost, path, nil, encoded)
	if failure != nil {
		return failure
	}
	return uploadFailure(s.exchange(req, into))
}

// append sends the next size bytes of the content as chunk number n.
func (s *sender) append(ctx context.Context, at string, n int, content *autopost.Content, size int64) *autopost.Error {
	req, failure := s.request(ctx, http.MethodPost, at+"/append", nil, nil)
	if failure != nil {
		return failure
	}
	part := &chunk{ReadSeeker: content, closed: make(chan struct{})}
	form := adapter.NewForm()
	form.Field("segment_index", strconv.Itoa(n))
	form.File("media", &autopost.Content{ReadSeekCloser: part, Size: size, ContentType: "application/octet-stream", Filename: content.Filename})
	form.Attach(req)
	failure = uploadFailure(s.exchange(req, nil))
	// The transport may still be reading after an early answer; it closes the body in any case.
	<-part.closed
	return failure
}

// chunk is a part of the content. The next chunk continues the same reader.
type chunk struct {
	io.ReadSeeker
	once   sync.Once
	closed chan struct{}
}

// Close ends the use of the part and leaves the content open.
func (c *chunk) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}
