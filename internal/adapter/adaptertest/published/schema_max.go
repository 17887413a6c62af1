package published

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// maxAPI is the part of the published OpenAPI document that describes requests.
type maxAPI struct {
	Paths      map[string]map[string]maxOperation `json:"paths"`
	Components struct {
		Schemas map[string]maxSchema `json:"schemas"`
	} `json:"components"`
}

type maxParameter struct {
	Name     string `json:"name"`
	In       string `json:"in"`
	Required bool   `json:"required"`
}

type maxOperation struct {
	Parameters  []maxParameter `json:"parameters"`
	RequestBody *struct {
		Content map[string]struct {
			Schema maxSchema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]json.RawMessage `json:"responses"`
}

type maxSchema struct {
	Ref           string               `json:"$ref"`
	Type          string               `json:"type"`
	Nullable      bool                 `json:"nullable"`
	MaxLength     int                  `json:"maxLength"`
	Enum          []any                `json:"enum"`
	Properties    map[string]maxSchema `json:"properties"`
	Required      maxNames             `json:"required"`
	Items         *maxSchema           `json:"items"`
	AllOf         []maxSchema          `json:"allOf"`
	Additional    *json.RawMessage     `json:"additionalProperties"`
	Discriminator *struct {
		PropertyName string         `json:"propertyName"`
		Mapping      map[string]any `json:"mapping"`
	} `json:"discriminator"`
}

// maxNames are the required properties of an object. The document contains a boolean in some
// properties, which OpenAPI does not define.
type maxNames []string

func (n *maxNames) UnmarshalJSON(raw []byte) error {
	if string(raw) == "true" || string(raw) == "false" {
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(n))
}

// MAX checks API requests, but not those to upload hosts, against the published OpenAPI document.
func MAX(t testing.TB) Schema {
	api, ok := patched(t)
	if !ok {
		return func(*http.Request, []byte) error { return nil }
	}
	return func(r *http.Request, body []byte) error {
		if strings.HasPrefix(r.URL.Path, "/upload/") {
			return nil
		}
		operation, ok := api.operation(r)
		if !ok {
			return fmt.Errorf("there is no %s %s", r.Method, r.URL.Path)
		}
		if err := operation.query(r); err != nil {
			return fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
		}
		if operation.RequestBody == nil {
			if len(body) > 0 {
				return fmt.Errorf("%s %s takes no body", r.Method, r.URL.Path)
			}
			return nil
		}
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			return err
		}
		return api.check(operation.RequestBody.Content["application/json"].Schema, "body", value)
	}
}

// patched is the description with the query parameters of the later version.
func patched(t testing.TB) (api maxAPI, ok bool) {
	const key = "MAX, patched"
	if known, found := parsed.Load(key); found {
		return known.(maxAPI), true
	}
	if !Data(t, "max-bot-api.openapi.json", &api) {
		return api, false
	}
	api.addParameters(t, "max-bot-api-0.0.33.patch.json")
	parsed.Store(key, api)
	return api, true
}

// addParameters adds the query parameters of a later version, which is a JSON patch. Its other changes
// are not applied: a request must fit both versions.
func (api maxAPI) addParameters(t testing.TB, name string) {
	t.Helper()
	var patch []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if !Data(t, name, &patch) {
		return
	}
	for _, change := range patch {
		parts := strings.Split(change.Path, "/") // "", "paths", path, method, "parameters", "-"
		if len(parts) != 6 || parts[4] != "parameters" || parts[5] != "-" {
			continue
		}
		var added maxParameter
		require.NoError(t, json.Unmarshal(change.Value, &added))
		methods := api.Paths[strings.ReplaceAll(parts[2], "~1", "/")]
		operation := methods[parts[3]]
		operation.Parameters = append(operation.Parameters, added)
		methods[parts[3]] = operation
	}
}

// MAXError checks the body of an error against the published document.
func MAXError(t testing.TB) func(body []byte) error {
	var api maxAPI
	if !Data(t, "max-bot-api.openapi.json", &api) {
		return func([]byte) error { return nil }
	}
	return func(body []byte) error {
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			return err
		}
		return api.check(maxSchema{Ref: "#/components/schemas/Error"}, "error", value)
	}
}

// operation returns the operation of a request: by its exact path, else by a path with parameters.
func (api maxAPI) operation(r *http.Request) (maxOperation, bool) {
	method := strings.ToLower(r.Method)
	if operation, ok := api.Paths[r.URL.Path][method]; ok {
		return operation, true
	}
	given := strings.Split(r.URL.Path, "/")
	for path, methods := range api.Paths {
		parts := strings.Split(path, "/")
		if len(parts) != len(given) || methods[method].Responses == nil {
			continue
		}
		for i, part := range parts {
			if strings.HasPrefix(part, "{") && given[i] != "" {
				parts[i] = given[i]
			}
		}
		if slices.Equal(parts, given) {
			return methods[method], true
		}
	}
	return maxOperation{}, false
}

func (o maxOperation) query(r *http.Request) error {
	known := map[string]bool{}
	for _, p := range o.Parameters {
		if p.In == "query" {
			known[p.Name] = true
			if p.Required && !r.URL.Query().Has(p.Name) {
				return fmt.Errorf("%s is missing", p.Name)
			}
		}
	}
	for name := range r.URL.Query() {
		if !known[name] {
			return fmt.Errorf("%s is unknown", name)
		}
	}
	return nil
}

// flat resolves references and joins the parts of a schema. It follows a discriminator once, because
// the schemas that it names refer back.
func (api maxAPI) flat(s maxSchema, value any, followed bool) maxSchema {
	if s.Ref != "" {
		return api.flat(api.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")], value, followed)
	}
	if object, ok := value.(map[string]any); ok && s.Discriminator != nil && !followed {
		name, _ := object[s.Discriminator.PropertyName].(string)
		if ref, ok := s.Discriminator.Mapping[name].(string); ok {
			return api.flat(maxSchema{Ref: ref}, value, true)
		}
	}
	out := s
	out.Properties = map[string]maxSchema{}
	for name, property := range s.Properties {
		out.Properties[name] = property
	}
	out.Required = slices.Clone(s.Required)
	for _, part := range s.AllOf {
		part = api.flat(part, value, followed)
		for name, property := range part.Properties {
			out.Properties[name] = property
		}
		out.Required = append(out.Required, part.Required...)
		out.Enum = append(out.Enum, part.Enum...)
		if out.Type == "" {
			out.Type = part.Type
		}
	}
	return out
}

func (api maxAPI) check(s maxSchema, at string, value any) error {
	s = api.flat(s, value, false)
	if value == nil {
		if !s.Nullable {
			return fmt.Errorf("%s is null", at)
		}
		return nil
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		return fmt.Errorf("%s: must be one of %[3]v, got %[2]v", at, value, s.Enum)
	}
	switch v := value.(type) {
	case string:
		if s.Type != "string" && (s.Type != "" || len(s.Enum) == 0) || (s.MaxLength > 0 && len(utf16.Encode([]rune(v))) > s.MaxLength) {
			return fmt.Errorf("%s is a string, wanted %s of at most %d", at, s.Type, s.MaxLength)
		}
	case bool:
		if s.Type != "boolean" {
			return fmt.Errorf("%s is a boolean, wanted %s", at, s.Type)
		}
	case float64:
		if s.Type != "integer" && s.Type != "number" {
			return fmt.Errorf("%s is a number, wanted %s", at, s.Type)
		}
	case []any:
		if s.Items == nil {
			return fmt.Errorf("%s is an array, wanted %s", at, s.Type)
		}
		for i, item := range v {
			if err := api.check(*s.Items, fmt.Sprintf("%s[%d]", at, i), item); err != nil {
				return err
			}
		}
	case map[string]any:
		return api.object(s, at, v)
	}
	return nil
}

func (api maxAPI) object(s maxSchema, at string, value map[string]any) error {
	for _, name := range s.Required {
		// MessageBody requires a link that it does not describe, and that no recorded answer has.
		if _, described := s.Properties[name]; !described {
			continue
		}
		if _, ok := value[name]; !ok {
			return fmt.Errorf("%s.%s is missing", at, name)
		}
	}
	for name, v := range value {
		property, ok := s.Properties[name]
		if !ok {
			if s.Additional != nil {
				continue
			}
			return fmt.Errorf("%s.%s is unknown", at, name)
		}
		if err := api.check(property, at+"."+name, v); err != nil {
			return err
		}
	}
	return nil
}
