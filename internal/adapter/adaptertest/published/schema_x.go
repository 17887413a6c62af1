package published

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// xAPI is X's published OpenAPI document.
type xAPI struct {
	document
	Paths      map[string]map[string]xOperation `json:"paths"`
	Components struct {
		Schemas    map[string]schema     `json:"schemas"`
		Parameters map[string]xParameter `json:"parameters"`
	} `json:"components"`
	// oldFields are accepted parameters that the document does not have.
	oldFields []string
}

type xOperation struct {
	OperationID string       `json:"operationId"`
	Parameters  []xParameter `json:"parameters"`
	RequestBody *struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

type xParameter struct {
	Ref      string `json:"$ref"`
	Name     string `json:"name"`
	In       string `json:"in"`
	Required bool   `json:"required"`
	Schema   schema `json:"schema"`
}

// X checks requests to the API of X, except token requests, against its published OpenAPI document.
func X(t testing.TB) Schema { return xSchema(t) }

// XWithOldFields also accepts the parameter tweet.fields. The document has it for streams only; it is for
// tests of the fallback to the old names.
func XWithOldFields(t testing.TB) Schema { return xSchema(t, "tweet.fields") }

func xSchema(t testing.TB, oldFields ...string) Schema {
	api, ok := description[xAPI](t, "x-api.openapi.json")
	if !ok {
		return func(*http.Request, []byte) error { return nil }
	}
	api.oldFields = oldFields
	api.schemas = api.Components.Schemas
	return func(r *http.Request, body []byte) error {
		if strings.HasPrefix(r.URL.Path, "/2/oauth2/") {
			return checkNoSecret(r.URL.Query())
		}
		operation, path, ok := api.operation(r)
		if !ok {
			return fmt.Errorf("there is no %s %s", r.Method, r.URL.Path)
		}
		if err := api.checkParameters(operation, path, r); err != nil {
			return fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
		}
		if err := api.checkBody(operation, r, body); err != nil {
			return fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
		}
		return nil
	}
}

// operation returns the operation of a request and the values in its path. The path with the most fixed parts wins.
func (api xAPI) operation(r *http.Request) (found xOperation, values map[string]string, ok bool) {
	given := strings.Split(r.URL.Path, "/")
	best := -1
	for path, methods := range api.Paths {
		operation, has := methods[strings.ToLower(r.Method)]
		parts := strings.Split(path, "/")
		if !has || len(parts) != len(given) {
			continue
		}
		fixed, in, matches := 0, map[string]string{}, true
		for i, part := range parts {
			switch {
			case part == given[i]:
				fixed++
			case strings.HasPrefix(part, "{") && given[i] != "":
				in[strings.Trim(part, "{}")] = given[i]
			default:
				matches = false
			}
		}
		if matches && fixed > best {
			best, found, values, ok = fixed, operation, in, true
		}
	}
	return found, values, ok
}

func (api xAPI) checkParameters(operation xOperation, path map[string]string, r *http.Request) error {
	query := r.URL.Query()
	if err := checkNoSecret(query); err != nil {
		return err
	}
	known := slices.Clone(api.oldFields)
	for _, p := range operation.Parameters {
		if p.Ref != "" {
			p = api.Components.Parameters[p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]]
		}
		if p.In == "path" {
			if err := api.checkQuery(p.Schema, p.Name, path[p.Name]); err != nil {
				return err
			}
			continue
		}
		known = append(known, p.Name)
		switch {
		case !query.Has(p.Name) && p.Required:
			return fmt.Errorf("%s is missing", p.Name)
		case len(query[p.Name]) > 1:
			return fmt.Errorf("%s is given %d times", p.Name, len(query[p.Name]))
		case query.Has(p.Name):
			if err := api.checkQuery(p.Schema, p.Name, query.Get(p.Name)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the parameter %s is unknown", name)
		}
	}
	return nil
}

func (api xAPI) checkBody(operation xOperation, r *http.Request, body []byte) error {
	if operation.RequestBody == nil {
		if len(body) > 0 {
			return fmt.Errorf("there is no body, %d bytes were sent", len(body))
		}
		return nil
	}
	kind, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	content, ok := operation.RequestBody.Content[kind]
	if !ok {
		return fmt.Errorf("content type %s is not one of %v", kind, slices.Sorted(maps.Keys(operation.RequestBody.Content)))
	}
	var value any
	if kind == "application/json" {
		if err := json.Unmarshal(body, &value); err != nil {
			return err
		}
		return api.check(content.Schema, "body", value)
	}
	value, err = api.form(content.Schema, multipart.NewReader(bytes.NewReader(body), options["boundary"]))
	if err != nil {
		return err
	}
	return api.check(content.Schema, "form", value)
}

// form reads the parts of a form as an object, each by its schema.
func (d document) form(s schema, parts *multipart.Reader) (map[string]any, error) {
	s = d.resolve(s)
	object := map[string]any{}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return object, nil
		}
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" {
			object[part.FormName()] = file{}
			continue
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		object[part.FormName()] = typed(d.resolve(s.Properties[part.FormName()]), string(text))
	}
}
