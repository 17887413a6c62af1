package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"autopost/internal/api/rest"
	"autopost/internal/api/stream"
	"autopost/internal/problem"
)

// heartbeat is the pause after which a stream without changes sends a comment. Proxies close silent connections.
const heartbeat = 15 * time.Second

type streamInput struct {
	LastEventID string `header:"Last-Event-ID" maxLength:"100" doc:"The id of the last event that the reader has. Browsers send it when they connect again."`
	Seconds     int    `query:"seconds" minimum:"1" maximum:"900" default:"900" example:"60" doc:"After how many seconds the stream ends. The reader connects again then."`
}

// streamedEvents is the documented answer: a text in the form of server-sent events.
type streamedEvents string

// Schema implements huma.SchemaProvider.
func (streamedEvents) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: "Server-sent events. The data of each is a JSON object.",
		Examples: []any{"id: 4f1c2a9b7d3e-7\nevent: submission\ndata: {\"submission_id\": \"0199c6a0-0000-7000-8000-000000000000\", \"status\": \"enqueued\"}\n\n"}}
}

func registerStream(d *server, hub *stream.Hub) {
	rest.RegisterEvents(d.Server, rest.Operation{
		ID: "open-stream", Method: http.MethodGet, Path: "/stream", Summary: "Follow the changes of the workspace", Answer: streamedEvents(""),
		Description: "Server-sent events, each at most two seconds after its change. Data of `submission`: submission_id, kind, status, message_id, decision, decided_by, event_type. " +
			"Of `delivery`: delivery_id, message_id, channel_id, status, attempt, action (of its last event). Of `post`, which got deliveries: message_id, enqueued, deduped, invalid. " +
			"Of `alert`: alert_id, kind, subject, severity, what, state (open, acknowledged or ended). Of `change`, an operator action: action, subject. `reset` begins a stream, and stands for changes that were left out: read then what you " +
			"show; everything later follows. A stream with Last-Event-ID continues without a reset if nothing was lost. An event may be repeated.",
	}, func(ctx context.Context, in *streamInput) (func(*rest.Events), error) {
		key := rest.Caller(ctx)
		s, err := hub.Open(stream.Reader{WorkspaceID: key.WorkspaceID, Holder: key.KeyID, KeyID: key.KeyID}, in.LastEventID)
		tooMany := (*stream.TooManyError)(nil)
		switch {
		case errors.As(err, &tooMany):
			return nil, huma.ErrorWithHeaders(problem.TooManyRunning.Says("This %s has %d open streams. Close one, or try again later.", tooMany.Of, tooMany.Most),
				http.Header{"Retry-After": {rest.RetrySeconds}})
		case err != nil:
			return nil, huma.ErrorWithHeaders(problem.Unavailable.Says("The daemon stops. Connect again."), http.Header{"Retry-After": {rest.RetrySeconds}})
		}
		return func(to *rest.Events) {
			defer s.Close()
			ctx, cancel := context.WithTimeout(ctx, time.Duration(in.Seconds)*time.Second)
			defer cancel()
			follow(ctx, s, to)
		}, nil
	})
}

// follow writes the items of a stream until its end, that of ctx, or that of the connection.
func follow(ctx context.Context, s *stream.Stream, to *rest.Events) {
	if to.Comment("open") != nil {
		return
	}
	for {
		items := s.Next(ctx, heartbeat)
		for _, item := range items {
			if to.Send(item.ID, item.Kind, item.Data) != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Done():
			return
		default:
		}
		if items == nil && to.Comment("alive") != nil {
			return
		}
	}
}
