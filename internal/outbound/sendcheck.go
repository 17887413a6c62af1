package outbound

import (
	"context"
	"net/http"
)

type sendCheck struct{}

// WithSendCheck makes every request under ctx call check before it is sent. If check returns an error,
// the request fails with it and nothing is written.
func WithSendCheck(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, sendCheck{}, check)
}

func checkSend(req *http.Request) error {
	if check, ok := req.Context().Value(sendCheck{}).(func() error); ok {
		return check()
	}
	return nil
}
