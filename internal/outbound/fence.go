package outbound

import (
	"context"
	"net/http"
)

type fence struct{}

// Fenced gives every request under ctx a last question before it goes out: it is
// not sent when open says why not. Nothing of it has been written then.
func Fenced(ctx context.Context, open func() error) context.Context {
	return context.WithValue(ctx, fence{}, open)
}

func fenced(req *http.Request) error {
	if open, ok := req.Context().Value(fence{}).(func() error); ok {
		return open()
	}
	return nil
}
