package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"autopost/internal/problem"
)

// later are the statuses with Retry-After.
var later = []int{409, 429, 503, 507}

// complete adds what huma omits: descriptions of fields, an example of each answer, the headers, and the problems of the
// catalogue. All operations share the problems.
func complete(document *huma.OpenAPI) {
	explain(document)
	document.Components.Headers = map[string]*huma.Header{
		"RateLimit-Policy": {Description: "The most requests of the key at once.", Schema: &huma.Schema{Type: huma.TypeString}, Example: `"running";q=64;qu="concurrent-requests"`},
		"RateLimit":        {Description: "How many more requests of the key may run now.", Schema: &huma.Schema{Type: huma.TypeString}, Example: `"running";r=63`},
		"Retry-After":      {Description: "Seconds to wait before the next attempt.", Schema: &huma.Schema{Type: huma.TypeInteger}, Example: 5},
	}
	document.Components.Responses = map[string]*huma.Response{}
	for _, operation := range Operations(document) {
		for status, response := range operation.Responses {
			code, err := strconv.Atoi(status)
			if err != nil {
				continue
			}
			for _, media := range response.Content {
				media.Example = exampleOf(document.Components.Schemas, media.Schema)
			}
			if response.Headers == nil {
				response.Headers = map[string]*huma.Param{}
			}
			if code != http.StatusUnauthorized && response.Content["text/event-stream"] == nil {
				response.Headers["RateLimit"] = &huma.Param{Ref: "#/components/headers/RateLimit"}
				response.Headers["RateLimit-Policy"] = &huma.Param{Ref: "#/components/headers/RateLimit-Policy"}
			}
			kinds := problem.OfAPI(code)
			if len(kinds) == 0 {
				continue
			}
			if slices.Contains(later, code) {
				response.Headers["Retry-After"] = &huma.Param{Ref: "#/components/headers/Retry-After"}
			}
			var words []string
			for _, k := range kinds {
				words = append(words, fmt.Sprintf("`%s`: %s %s", k.Slug, k.Meaning, k.Remedy))
			}
			response.Description = strings.Join(words, "\n\n")
			for _, media := range response.Content {
				example := media.Example.(map[string]any)
				example["status"], example["title"], example["detail"], example["type"] = code, kinds[0].Title, kinds[0].Meaning+" "+kinds[0].Remedy, kinds[0].URN()
			}
			name := "Problem" + status
			document.Components.Responses[name] = response
			operation.Responses[status] = &huma.Response{Ref: "#/components/responses/" + name}
		}
	}
}

// Operations returns the operations of a document in the order of their paths.
func Operations(document *huma.OpenAPI) []*huma.Operation {
	var all []*huma.Operation
	paths := make([]string, 0, len(document.Paths))
	for at := range document.Paths {
		paths = append(paths, at)
	}
	slices.Sort(paths)
	for _, at := range paths {
		item := document.Paths[at]
		for _, operation := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if operation != nil {
				all = append(all, operation)
			}
		}
	}
	return all
}

// exampleOf returns a value for a schema, made from the examples of its fields.
func exampleOf(registry huma.Registry, schema *huma.Schema) any {
	if schema == nil {
		return nil
	}
	if schema.Ref != "" {
		schema = registry.SchemaFromRef(schema.Ref)
	}
	switch {
	case len(schema.Examples) > 0:
		return schema.Examples[0]
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case schema.Nullable && schema.Type != huma.TypeArray:
		return nil
	}
	switch schema.Type {
	case huma.TypeObject:
		object := map[string]any{}
		for name, property := range schema.Properties {
			if slices.Contains(schema.Required, name) || property.Examples != nil {
				object[name] = exampleOf(registry, property)
			}
		}
		return object
	case huma.TypeArray:
		return []any{exampleOf(registry, schema.Items)}
	case huma.TypeBoolean:
		return true
	case huma.TypeInteger, huma.TypeNumber:
		return 0
	case huma.TypeString:
		switch schema.Format {
		case "uuid":
			return "0199c6a0-0000-7000-8000-000000000000"
		case "date-time":
			return "2026-12-01T10:00:00Z"
		}
		return ""
	}
	return map[string]any{}
}
