package published

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

type telegramField struct {
	Name     string   `json:"name"`
	Types    []string `json:"types"`
	Required bool     `json:"required"`
}

type telegramObject struct {
	Fields []telegramField `json:"fields"`
}

// telegramAPI is the published description of methods and types.
type telegramAPI struct {
	Methods map[string]telegramObject `json:"methods"`
	Types   map[string]telegramObject `json:"types"`
}

// Telegram checks requests against the published methods and types.
func Telegram(t testing.TB) Schema {
	api, ok := description[telegramAPI](t, "telegram-bot-api.json")
	if !ok {
		return func(*http.Request, []byte) error { return nil }
	}
	return func(r *http.Request, body []byte) error {
		method := path.Base(r.URL.Path)
		described, ok := api.Methods[method]
		if !ok {
			return fmt.Errorf("there is no method %s", method)
		}
		params, attached, err := telegramParams(r, body, described)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		for name := range attached {
			if !strings.Contains(string(body), "attach://"+name) {
				return fmt.Errorf("%s: part %s belongs to nothing", method, name)
			}
		}
		return api.object(method, described, params)
	}
}

// telegramParams returns the parameters as JSON values, files as "file", and the file parts that are
// not parameters.
func telegramParams(r *http.Request, body []byte, described telegramObject) (map[string]any, map[string]bool, error) {
	params, attached := map[string]any{}, map[string]bool{}
	if r.Method == http.MethodGet {
		return params, attached, described.read(r.URL.Query(), params)
	}
	mediaType, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, nil, err
	}
	if mediaType == "application/json" {
		return params, attached, json.Unmarshal(body, &params)
	}
	if mediaType == "application/x-www-form-urlencoded" {
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, nil, err
		}
		return params, attached, described.read(values, params)
	}
	form, err := multipart.NewReader(bytes.NewReader(body), options["boundary"]).ReadForm(1 << 26)
	if err != nil {
		return nil, nil, err
	}
	for name := range form.File {
		if slices.ContainsFunc(described.Fields, func(f telegramField) bool { return f.Name == name }) {
			params[name] = "file"
		} else {
			attached[name] = true
		}
	}
	return params, attached, described.read(form.Value, params)
}

// read adds the values of a form or a query. All except texts are JSON.
func (o telegramObject) read(values map[string][]string, params map[string]any) error {
	types := map[string][]string{}
	for _, field := range o.Fields {
		types[field.Name] = field.Types
	}
	for name, given := range values {
		params[name] = given[0]
		var value any
		if known := types[name]; len(known) > 0 && json.Unmarshal([]byte(given[0]), &value) == nil {
			params[name] = value
		} else if len(known) > 0 && known[len(known)-1] != "String" {
			return fmt.Errorf("%s is not JSON", name)
		}
		if types[name] != nil && types[name][0] == "String" {
			params[name] = given[0]
		}
	}
	return nil
}

func (api telegramAPI) object(name string, described telegramObject, value map[string]any) error {
	known := map[string]bool{}
	for _, field := range described.Fields {
		known[field.Name] = true
		v, given := value[field.Name]
		if !given {
			if field.Required {
				return fmt.Errorf("%s: %s is missing", name, field.Name)
			}
			continue
		}
		if err := api.any(field.Types, v); err != nil {
			return fmt.Errorf("%s: %s: %w", name, field.Name, err)
		}
	}
	for given := range value {
		if !known[given] {
			return fmt.Errorf("%s: %s is unknown", name, given)
		}
	}
	return nil
}

// any accepts a value that matches one of the types. The items of an array may have different types, as
// in an album.
func (api telegramAPI) any(types []string, value any) error {
	if items, ok := value.([]any); ok {
		var inner []string
		for _, name := range types {
			if of, ok := strings.CutPrefix(name, "Array of "); ok {
				inner = append(inner, of)
			}
		}
		for i, item := range items {
			if err := api.any(inner, item); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
		return nil
	}
	err := fmt.Errorf("%v fits none of %s", value, strings.Join(types, ", "))
	for _, name := range types {
		mismatch := api.one(name, value)
		if mismatch == nil {
			return nil
		}
		err = fmt.Errorf("%w; %w", err, mismatch)
	}
	return err
}

func (api telegramAPI) one(name string, value any) error {
	ok := false
	switch name {
	case "Integer":
		number, isNumber := value.(float64)
		ok = isNumber && strconv.FormatFloat(number, 'f', -1, 64) == strconv.FormatInt(int64(number), 10)
	case "Boolean":
		_, ok = value.(bool)
	case "String", "InputFile":
		_, ok = value.(string)
	default:
		fields, isObject := value.(map[string]any)
		if isObject {
			return api.object(name, api.Types[name], fields)
		}
	}
	if !ok {
		return fmt.Errorf("%T is no %s", value, name)
	}
	return nil
}
