package published

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// document is a description of an API whose bodies are JSON: OpenAPI, or a discovery document of Google.
type document struct {
	// schemas are by the last part of their reference.
	schemas map[string]schema
	// method is the id of the method whose body is checked; "" in OpenAPI.
	method string
}

// schema is the part of a JSON schema that both forms of documents use.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	Format     string            `json:"format"`
	Nullable   bool              `json:"nullable"`
	Enum       []any             `json:"enum"`
	Pattern    string            `json:"pattern"`
	MinLength  int               `json:"minLength"`
	MaxLength  int               `json:"maxLength"`
	Minimum    any               `json:"minimum"`
	Maximum    any               `json:"maximum"`
	MinItems   int               `json:"minItems"`
	MaxItems   int               `json:"maxItems"`
	Unique     bool              `json:"uniqueItems"`
	Items      *schema           `json:"items"`
	Properties map[string]schema `json:"properties"`
	Required   any               `json:"required"`
	AnyOf      []schema          `json:"anyOf"`
	// Annotations name the methods of a discovery document that require the property.
	Annotations struct {
		Required []string `json:"required"`
	} `json:"annotations"`
}

// file is the value of a part of a form that is a file.
type file struct{}

func (d document) resolve(s schema) schema {
	for s.Ref != "" {
		s = d.schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
	}
	return s
}

// check compares a value of JSON with its schema. A property that the schema does not name is an error
// at every depth, whether or not the schema says so.
func (d document) check(s schema, at string, value any) error {
	s = d.resolve(s)
	if len(s.AnyOf) > 0 {
		var all error
		for _, one := range s.AnyOf {
			err := d.check(one, at, value)
			if err == nil {
				return nil
			}
			all = errors.Join(all, err)
		}
		return all
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		return fmt.Errorf("%s: %v is not one of %v", at, value, s.Enum)
	}
	switch v := value.(type) {
	case nil:
		if !s.Nullable {
			return fmt.Errorf("%s is null", at)
		}
	case file:
		if s.Format != "binary" {
			return fmt.Errorf("%s is a file, wanted %s", at, s.Type)
		}
	case string:
		return s.checkText(at, v)
	case bool:
		return s.mustBe(at, "boolean")
	case float64:
		return s.checkNumber(at, v)
	case []any:
		return d.checkItems(s, at, v)
	case map[string]any:
		return d.checkObject(s, at, v)
	}
	return nil
}

func (s schema) mustBe(at string, types ...string) error {
	if !slices.Contains(types, s.Type) {
		return fmt.Errorf("%s is of type %s, wanted %q", at, types[0], s.Type)
	}
	return nil
}

func (s schema) checkText(at, value string) error {
	length := utf8.RuneCountInString(value)
	switch {
	case s.Type != "string" && s.Type != "any":
		return fmt.Errorf("%s is a string, wanted %q", at, s.Type)
	case length < s.MinLength || s.MaxLength > 0 && length > s.MaxLength:
		return fmt.Errorf("%s has %d characters, wanted %d to %d", at, length, s.MinLength, s.MaxLength)
	case s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(value):
		return fmt.Errorf("%s: %q does not match %s", at, value, s.Pattern)
	case s.Format == "date-time":
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

// bound reads a limit of a number; Google writes it as a string.
func bound(given any, otherwise float64) float64 {
	switch v := given.(type) {
	case float64:
		return v
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return n
		}
	}
	return otherwise
}

func (s schema) checkNumber(at string, value float64) error {
	if s.Type == "integer" && value != float64(int64(value)) {
		return fmt.Errorf("%s: %v is not a whole number", at, value)
	}
	if value < bound(s.Minimum, value) || value > bound(s.Maximum, value) {
		return fmt.Errorf("%s: %v is not between %v and %v", at, value, s.Minimum, s.Maximum)
	}
	return s.mustBe(at, "integer", "number")
}

func (d document) checkItems(s schema, at string, items []any) error {
	switch {
	case s.Items == nil:
		return fmt.Errorf("%s is an array, wanted %q", at, s.Type)
	case len(items) < s.MinItems || s.MaxItems > 0 && len(items) > s.MaxItems:
		return fmt.Errorf("%s has %d items, wanted %d to %d", at, len(items), s.MinItems, s.MaxItems)
	}
	for i, item := range items {
		if s.Unique && slices.ContainsFunc(items[:i], func(other any) bool { return reflect.DeepEqual(other, item) }) {
			return fmt.Errorf("%s has %v twice", at, item)
		}
		if err := d.check(*s.Items, fmt.Sprintf("%s[%d]", at, i), item); err != nil {
			return err
		}
	}
	return nil
}

func (d document) checkObject(s schema, at string, object map[string]any) error {
	if required, ok := s.Required.([]any); ok {
		for _, name := range required {
			if _, given := object[name.(string)]; !given {
				return fmt.Errorf("%s.%s is missing", at, name)
			}
		}
	}
	for name, property := range s.Properties {
		if _, given := object[name]; !given && d.method != "" && slices.Contains(property.Annotations.Required, d.method) {
			return fmt.Errorf("%s.%s is missing: %s requires it", at, name, d.method)
		}
	}
	for name, value := range object {
		property, known := s.Properties[name]
		if !known {
			return fmt.Errorf("%s.%s is unknown", at, name)
		}
		if err := d.check(property, at+"."+name, value); err != nil {
			return err
		}
	}
	return nil
}

// checkQuery compares one parameter of a query with its schema. The values of a list are joined by commas.
func (d document) checkQuery(s schema, name, given string) error {
	s = d.resolve(s)
	if s.Type == "array" {
		var items []any
		for item := range strings.SplitSeq(given, ",") {
			items = append(items, typed(d.resolve(*s.Items), item))
		}
		return d.check(s, name, items)
	}
	return d.check(s, name, typed(s, given))
}

// typed reads the text of a query or a form as its schema wants it; a text that it cannot read stays one.
func typed(s schema, text string) any {
	switch s.Type {
	case "integer", "number":
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	return text
}

// secretParameters are those by which a token may be given in a query, where logs of proxies keep it.
var secretParameters = []string{"access_token", "oauth_token", "key"}

func checkNoSecret(query url.Values) error {
	for _, name := range secretParameters {
		if query.Has(name) {
			return fmt.Errorf("%s is in the query: a token belongs into the header", name)
		}
	}
	return nil
}
