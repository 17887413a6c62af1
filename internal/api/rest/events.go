package rest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

const (
	// StreamPath answers with server-sent events. Such a request may last, and has bounds of its own.
	StreamPath = "/api/v1/stream"
	// StreamTime is the longest time of a stream. Then its reader connects again.
	StreamTime  = 15 * time.Minute
	eventStream = "text/event-stream"
	// eventTimeout bounds the write of one event.
	eventTimeout = 10 * time.Second
)

// Events writes server-sent events to one caller.
type Events struct {
	to         http.ResponseWriter
	connection *http.ResponseController
}

// newEvents sends the headers.
func newEvents(answer huma.Context) *Events {
	_, w := humago.Unwrap(answer)
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep the events back
	e := &Events{to: w, connection: http.NewResponseController(w)}
	// The deadline of the request would end it. The connection of a test has none.
	_ = e.connection.SetReadDeadline(time.Time{})
	w.WriteHeader(http.StatusOK)
	return e
}

// Send writes one event. data has no line feed, like every compact JSON text. An error means that the caller is gone.
func (e *Events) Send(id, event string, data []byte) error {
	return e.write("id: %s\nevent: %s\ndata: %s\n\n", id, event, data)
}

// Comment writes a line that readers ignore. It keeps the connection open.
func (e *Events) Comment(text string) error { return e.write(": %s\n\n", text) }

func (e *Events) write(format string, args ...any) error {
	// The connection of a test has no deadline.
	_ = e.connection.SetWriteDeadline(time.Now().Add(eventTimeout))
	if _, err := fmt.Fprintf(e.to, format, args...); err != nil {
		return err
	}
	return e.connection.Flush()
}
