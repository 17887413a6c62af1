package door

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Operation is one route of the API.
type Operation struct {
	// ID is its name in the table of who may do what.
	ID     string
	Method string
	// Path is what follows /api/v1.
	Path        string
	Summary     string
	Description string
	// Status is that of a success; 0 is 200.
	Status int
	// Also are the statuses that it answers besides that and those of its kind: successes with the same body, or problems.
	Also []int
	// Answer is a value of the type that a success has as its body.
	Answer any
	// Example is a body that could be sent; nil for an operation without one.
	Example any
	// Body is a value of the type that the body has, where the database alone judges it.
	Body any
	// Stream says that the body is bytes of a medium.
	Stream bool
}

// Reply is a success.
type Reply struct {
	// Status is 0 for the operation's own.
	Status   int
	Body     json.RawMessage
	replayed bool
}

type output struct {
	Status   int
	Replayed string `header:"Idempotent-Replayed" doc:"true where this is the answer of an earlier request with the same Idempotency-Key."`
	Body     json.RawMessage
}

// Register adds an operation. It panics for one that the table of who may do what does not know.
func Register[In any](d *Door, op Operation, do func(context.Context, *In) (Reply, error)) {
	need, known := Access(op.ID)
	if !known {
		panic("no one may " + op.ID + ": give it a line in access")
	}
	if op.Status == 0 {
		op.Status = http.StatusOK
	}
	resource, _, _ := strings.Cut(strings.TrimPrefix(op.Path, "/"), "/")
	described := huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: "/api/v1" + op.Path, Summary: op.Summary, DefaultStatus: op.Status,
		Description: fmt.Sprintf("%s\n\nNeeds the role %s; of a key that is narrowed, the scope %s.", op.Description, need.role(), need.Scope),
		Tags:        []string{resource}, Errors: errorsOf(op), MaxBodyBytes: maxBody,
		BodyReadTimeout: -1, // Bound has read the body; the library's deadline would end the request five seconds later
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			if problem := need.refusal(Caller(ctx.Context())); problem != nil {
				writeProblem(ctx, problem)
				return
			}
			next(ctx)
		}},
		Responses: map[string]*huma.Response{},
	}
	for _, status := range append([]int{op.Status}, op.Also...) {
		if status < http.StatusBadRequest {
			described.Responses[strconv.Itoa(status)] = &huma.Response{
				Description: "Done.",
				Content:     map[string]*huma.MediaType{"application/json": {Schema: schemaOf(d.API, op.Answer)}},
			}
		}
	}
	switch {
	case op.Stream:
		described.RequestBody = &huma.RequestBody{Required: true, Description: "The medium itself, as it is.",
			Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}}
	case op.Body != nil:
		described.SkipValidateBody = true
		described.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: schemaOf(d.API, op.Body)}}}
	}
	huma.Register(d.API, described, func(ctx context.Context, in *In) (*output, error) {
		reply, err := do(ctx, in)
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
	if op.Example != nil {
		registered := d.API.OpenAPI().Paths[described.Path]
		for _, o := range []*huma.Operation{registered.Post, registered.Put, registered.Patch} {
			if o != nil && o.OperationID == op.ID {
				o.RequestBody.Content["application/json"].Example = op.Example
			}
		}
	}
}

func schemaOf(api huma.API, value any) *huma.Schema {
	kind := reflect.TypeOf(value)
	return api.OpenAPI().Components.Schemas.Schema(kind, true, kind.Name())
}

// errorsOf are the problems that an operation may answer.
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
