package api

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// problemTexts describes each problem status.
var problemTexts = map[int]string{
	400: "The body must be complete JSON in UTF-8.",
	401: "No valid API key.",
	403: "The role or the scopes of the key do not allow the operation. The detail names the required ones.",
	404: "The object does not exist in this workspace.",
	406: "The caller must accept application/json.",
	409: "The operation is not possible now: see reason. Or the request with this Idempotency-Key is still running.",
	413: "The body is too large.",
	415: "The body is not application/json.",
	422: "The request is invalid: errors name each field, the reason and the remedy.",
	429: "The key has too many running requests, or its address sent too many wrong keys.",
	500: "A defect of autopost.",
	503: "The database is unavailable. Retry after Retry-After.",
	507: "A disk is full and nothing was stored. The operator must free disk space.",
}

// later are the problems with Retry-After.
var later = []int{409, 429, 503, 507}

// complete adds what huma omits: an example of each answer, and the problems with description and headers. All
// operations share the problems.
func complete(document *huma.OpenAPI) {
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
			words, found := problemTexts[code]
			if !found {
				continue
			}
			response.Description = words
			if slices.Contains(later, code) {
				response.Headers = map[string]*huma.Param{"Retry-After": {Description: "Seconds.", Schema: &huma.Schema{Type: huma.TypeInteger}, Example: 5}}
			}
			for _, media := range response.Content {
				example := media.Example.(map[string]any)
				example["status"], example["title"], example["detail"] = code, http.StatusText(code), words
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
		for _, operation := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch} {
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
