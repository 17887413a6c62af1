package adapter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"sync"

	"autopost"
)

// Form is a multipart/form-data body that streams its files with an exact Content-Length. Platforms
// reject or mishandle chunked uploads.
type Form struct {
	head   bytes.Buffer
	writer *multipart.Writer
	parts  []io.Reader
	files  []*autopost.Content
	length int64
	// close closes the files once: net/http may close a body on two goroutines.
	close func() error
}

// NewForm returns an empty form.
func NewForm() *Form {
	f := &Form{}
	f.writer = multipart.NewWriter(&f.head)
	f.close = sync.OnceValue(func() error {
		var err error
		for _, file := range f.files {
			err = errors.Join(err, file.Close())
		}
		return err
	})
	return f
}

// Field adds a plain value.
func (f *Form) Field(name, value string) {
	// Writing to a buffer does not fail.
	_ = f.writer.WriteField(name, value)
}

// File adds a file. The form closes it.
func (f *Form) File(name string, content *autopost.Content) {
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", multipart.FileContentDisposition(name, content.Filename))
	header.Set("Content-Type", content.ContentType)
	_, _ = f.writer.CreatePart(header)
	f.flush()
	f.parts = append(f.parts, Exactly(content, content.Size))
	f.files = append(f.files, content)
	f.length += content.Size
}

func (f *Form) flush() {
	f.length += int64(f.head.Len())
	f.parts = append(f.parts, bytes.NewReader(bytes.Clone(f.head.Bytes())))
	f.head.Reset()
}

// Attach completes the form and makes it the body of req, which closes the files. The form can be sent
// once. Do not call Close after it.
func (f *Form) Attach(req *http.Request) {
	_ = f.writer.Close()
	f.flush()
	req.Body = &body{Reader: io.MultiReader(f.parts...), form: f}
	req.ContentLength = f.length
	req.Header.Set("Content-Type", f.writer.FormDataContentType())
}

// Close closes the files of a form that was not attached.
func (f *Form) Close() error { return f.close() }

type body struct {
	io.Reader
	form *Form
}

func (b *body) Close() error { return b.form.Close() }

// Exactly reads the given number of bytes from the content's current position. It fails if the content
// ends earlier.
func Exactly(content *autopost.Content, bytes int64) io.Reader {
	return &exact{content: content, left: bytes}
}

// exact reads a file that must have the announced size.
type exact struct {
	content *autopost.Content
	left    int64
}

func (e *exact) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.content.Read(p)
	e.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && e.left > 0:
		return n, fmt.Errorf("%w: %s ends %d bytes early", errContent, e.content.Filename, e.left)
	case err != nil && !errors.Is(err, io.EOF):
		return n, fmt.Errorf("%w: read %s: %w", errContent, e.content.Filename, err)
	}
	return n, nil
}
