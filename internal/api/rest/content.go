package rest

import (
	"cmp"
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Content is a medium that an operation answers with. The operation closes it.
type Content struct {
	io.ReadCloser

	// Type must be one that a browser never runs.
	Type string
	// Size is in bytes.
	Size int64
	// Filename is the name for a download.
	Filename string
}

// RegisterContent adds an operation whose answer is a medium of one of these types. A browser that opens the answer
// runs nothing of it.
func RegisterContent[In any](d *Server, op Operation, types []string, do func(context.Context, *In) (*Content, error)) {
	op.Types = types
	huma.Register(d.API, describe(d, &op), func(ctx context.Context, in *In) (*huma.StreamResponse, error) {
		content, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(answer huma.Context) {
			defer func() { _ = content.Close() }()
			_, w := humago.Unwrap(answer)
			h := w.Header()
			h.Set("Content-Type", content.Type)
			h.Set("Content-Length", strconv.FormatInt(content.Size, 10))
			h.Set("Content-Disposition", cmp.Or(mime.FormatMediaType("inline", map[string]string{"filename": content.Filename}), "inline"))
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			h.Set("Cache-Control", "private, max-age=300")
			w.WriteHeader(http.StatusOK)
			_, _ = io.CopyN(w, content, content.Size) // the caller may be gone
		}}, nil
	})
}
