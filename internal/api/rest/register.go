package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Operation is one route of the API.
type Operation struct {
	// ID is the key in the table access.
	ID     string
	Method string
	// Root is the path before Path; "" means /api/v1.
	Root string
	// Path is the path after Root.
	Path        string
	Summary     string
	Description string
	// Status of a success; 0 means 200.
	Status int
	// Also lists further statuses: successes with the same body, or problems.
	Also []int
	// Answer is a value of the type of the answer.
	Answer any
	// Example is an example of the body; nil for an operation without a body.
	Example any
	// Body is a value of the type of the body, if only the database validates the body.
	Body any
	// Change describes the body of a change of configuration. Its Title is the name of the schema.
	Change *huma.Schema
	// Stream means that the body is a medium.
	Stream bool
	// Types are the types of an answer that is a medium; nil for JSON.
	Types []string
	// Events means that the answer is a stream of server-sent events, each with an Answer.
	Events bool
}

// Reply is a success.
type Reply struct {
	// Status replaces the status of the operation, unless it is 0.
	Status   int
	Body     json.RawMessage
	replayed bool
}

// IsReplayed reports whether this is the answer to an earlier request.
func (r Reply) IsReplayed() bool { return r.replayed }

type output struct {
	Status   int
	Replayed string `header:"Idempotent-Replayed" doc:"true if this is the answer to an earlier request with the same Idempotency-Key."`
	Body     json.RawMessage
}

type cookieOutput struct {
	Status int
	Cookie string `header:"Set-Cookie" doc:"The cookie of the session."`
	Body   json.RawMessage
}

// RegisterCookie adds an operation that sets a cookie.
func RegisterCookie[In any](d *Server, op Operation, do func(context.Context, *In) (Reply, *http.Cookie, error)) {
	described := describe(d, &op)
	huma.Register(d.API, described, func(ctx context.Context, in *In) (*cookieOutput, error) {
		reply, cookie, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		return &cookieOutput{Status: op.Status, Cookie: cookie.String(), Body: reply.Body}, nil
	})
	describeBody(d.API.OpenAPI(), described.Path, op)
}

// Register adds an operation. It panics if access has no entry for it.
func Register[In any](d *Server, op Operation, do func(context.Context, *In) (Reply, error)) {
	described := describe(d, &op)
	huma.Register(d.API, described, func(ctx context.Context, in *In) (*output, error) {
		reply, err := do(context.WithValue(ctx, operationKey{}, op.ID), in)
		if err != nil {
			return nil, err
		}
		out := &output{Status: op.Status, Body: reply.Body}
		if reply.Status != 0 {
			out.Status = reply.Status
		}
		if reply.replayed {
			out.Replayed = "true"
		}
		return out, nil
	})
	describeBody(d.API.OpenAPI(), described.Path, op)
}

// RegisterEvents adds an operation whose answer is a stream of server-sent events. do returns what writes them.
func RegisterEvents[In any](d *Server, op Operation, do func(context.Context, *In) (func(*Events), error)) {
	op.Events = true
	huma.Register(d.API, describe(d, &op), func(ctx context.Context, in *In) (*huma.StreamResponse, error) {
		write, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(answer huma.Context) { write(newEvents(answer)) }}, nil
	})
}

// describe returns the description of an operation, with the check of its role.
func describe(d *Server, op *Operation) huma.Operation {
	need, known := Access(op.ID)
	if !known {
		panic("access has no entry for " + op.ID)
	}
	if op.Status == 0 {
		op.Status = http.StatusOK
	}
	resource, _, _ := strings.Cut(strings.TrimPrefix(op.Path, "/"), "/")
	described := huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: cmp.Or(op.Root, "/api/v1") + op.Path, Summary: op.Summary, DefaultStatus: op.Status,
		Description: op.Description + "\n\n" + need.words(op.ID),
		Tags:        []string{resource}, Errors: errorsOf(*op), MaxBodyBytes: maxBody,
		BodyReadTimeout: -1, // Bound has read the body; the deadline of huma would end the request after five seconds
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			if refused := need.refusal(Caller(ctx.Context()), op.ID, ctx.Query("dry_run") == "true"); refused != nil {
				writeProblem(ctx, refused)
				return
			}
			next(ctx)
		}},
		Responses: map[string]*huma.Response{},
	}
	if need.Role == "" {
		described.Security = []map[string][]string{{}}
	}
	form := "application/json"
	if op.Events {
		form = eventStream
	}
	for _, status := range append([]int{op.Status}, op.Also...) {
		if status < http.StatusBadRequest {
			described.Responses[strconv.Itoa(status)] = &huma.Response{Description: "Done.", Content: contentOf(d.API, *op, form)}
		}
	}
	switch {
	case op.Stream:
		described.RequestBody = &huma.RequestBody{Required: true, Description: "The bytes of the medium.",
			Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}}
	case op.Body != nil:
		described.SkipValidateBody = true
		described.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: schemaOf(d.API, op.Body)}}}
	}
	return described
}

// contentOf returns the bodies of a success.
func contentOf(api huma.API, op Operation, form string) map[string]*huma.MediaType {
	if len(op.Types) == 0 {
		return map[string]*huma.MediaType{form: {Schema: schemaOf(api, op.Answer)}}
	}
	bodies := map[string]*huma.MediaType{}
	for _, kind := range op.Types {
		bodies[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return bodies
}

// describeBody adds the example of a body, and the schema of a change, after huma has taken its own for the validation.
func describeBody(document *huma.OpenAPI, path string, op Operation) {
	registered := document.Paths[path]
	for _, o := range []*huma.Operation{registered.Post, registered.Put, registered.Patch} {
		if o == nil || o.OperationID != op.ID || op.Example == nil {
			continue
		}
		body := o.RequestBody.Content["application/json"]
		body.Example = op.Example
		if op.Change != nil {
			document.Components.Schemas.Map()[op.Change.Title] = op.Change
			body.Schema = &huma.Schema{Ref: "#/components/schemas/" + op.Change.Title}
		}
	}
}

type operationKey struct{}

// operationOf returns the id of the operation that ctx belongs to.
func operationOf(ctx context.Context) string {
	id, _ := ctx.Value(operationKey{}).(string)
	return id
}

func schemaOf(api huma.API, value any) *huma.Schema {
	kind := reflect.TypeOf(value)
	return api.OpenAPI().Components.Schemas.Schema(kind, true, kind.Name())
}

// errorsOf returns the statuses of the problems of an operation.
func errorsOf(op Operation) []int {
	all := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusInsufficientStorage}
	if strings.Contains(op.Path, "{") {
		all = append(all, http.StatusNotFound)
	}
	if op.Method != http.MethodGet {
		all = append(all, http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	for _, status := range op.Also {
		if status >= http.StatusBadRequest {
			all = append(all, status)
		}
	}
	return all
}
