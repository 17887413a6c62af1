package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// Call runs the operation at method and target, such as GET "/api/v1/posts?limit=20", for a caller who is already
// authenticated. It checks the role and the request as for any other caller. body marshals to JSON; nil for none. An
// io.Reader is the body of an upload. A refusal is a *problem.Problem.
func (s *Server) Call(ctx context.Context, caller rest.Key, method, target string, body any) (json.RawMessage, error) {
	content, isUpload := body.(io.Reader)
	if !isUpload {
		encoded := []byte(nil)
		if body != nil {
			var err error
			if encoded, err = json.Marshal(body); err != nil {
				return nil, fmt.Errorf("encode the body of %s %s: %w", method, target, err)
			}
		}
		content = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(rest.WithCaller(ctx, caller), method, target, content)
	if err != nil {
		return nil, fmt.Errorf("call %s %s: %w", method, target, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if fields, ok := body.(map[string]any); ok && method == http.MethodDelete { // its operations read no body
		r.Header.Set(rest.ReasonHeader, fmt.Sprint(fields["reason"]))
	}
	answer := recorder{header: http.Header{}, status: http.StatusOK}
	s.operations().inside.ServeHTTP(&answer, r)
	if answer.status < http.StatusBadRequest {
		return answer.body.Bytes(), nil
	}
	var p problem.Problem
	if err := json.Unmarshal(answer.body.Bytes(), &p); err != nil || p.Status == 0 {
		return nil, fmt.Errorf("call %s %s: status %d", method, target, answer.status)
	}
	return nil, &p
}

// recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
