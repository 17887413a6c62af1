package api

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// Field is a row of a table of fields. In a table with inner objects its name is a path, like media[].type.
type Field struct {
	Name, Type, Words string
	Required          bool
}

// parts are the types of a post, by the names of their schemas.
var parts = map[string]any{"Post": post{}, "Medium": medium{}, "Button": button{}, "Routing": routing{}, "RouteFilter": routeFilter{},
	"PostTemplate": postTemplate{}, "ThreadPart": threadPart{}, "Variant": variant{}, "Captions": captions{}}

// schemas returns the schemas of the document.
var schemas = sync.OnceValue(func() huma.Registry { return newAPI(http.NewServeMux(), Deps{}).API.OpenAPI().Components.Schemas })

// Fields returns the fields of a part of a post in the order of its type.
func Fields(schema string) ([]Field, error) {
	part, ok := parts[schema]
	if !ok {
		return nil, fmt.Errorf("unknown part of a post: %s", schema)
	}
	described := schemas().Map()[schema]
	var rows []Field
	for _, f := range reflect.VisibleFields(reflect.TypeOf(part)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if property, ok := described.Properties[name]; ok {
			rows = append(rows, fieldOf(schemas(), described, name, property))
		}
	}
	return rows, nil
}

func fieldOf(schemas huma.Registry, schema *huma.Schema, name string, property *huma.Schema) Field {
	return Field{Name: name, Type: typeOf(schemas, property), Words: wordsOf(schemas, property), Required: slices.Contains(schema.Required, name)}
}

// fieldsOf lists the fields of a schema and of the objects in it, in the order of their names. A schema that contains
// itself is not entered again.
func fieldsOf(schemas huma.Registry, schema *huma.Schema, at string, entered []string) []Field {
	if schema.Ref != "" {
		if slices.Contains(entered, schema.Ref) {
			return nil
		}
		entered = append(entered, schema.Ref)
		schema = schemas.SchemaFromRef(schema.Ref)
	}
	var rows []Field
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		row := fieldOf(schemas, schema, name, property)
		row.Name = at + name
		rows = append(rows, row)
		inner, mark := property, ""
		for inner.Items != nil {
			inner, mark = inner.Items, mark+"[]"
		}
		if values, ok := inner.AdditionalProperties.(*huma.Schema); ok {
			inner, mark = values, mark+".*"
		}
		rows = append(rows, fieldsOf(schemas, inner, row.Name+mark+".", entered)...)
	}
	return rows
}

// typeNames are the names of types and formats.
var typeNames = map[string]string{"date-time": "time", "uuid": "UUID", huma.TypeString: "text", huma.TypeBoolean: "true or false",
	huma.TypeInteger: "integer", huma.TypeNumber: "number", huma.TypeObject: "object"}

// typeOf names the type of a value.
func typeOf(schemas huma.Registry, schema *huma.Schema) string {
	switch {
	case schema.Ref != "":
		return typeOf(schemas, schemas.SchemaFromRef(schema.Ref))
	case schema.Items != nil:
		return "list of " + strings.TrimSuffix(typeOf(schemas, schema.Items), " or null") + orNull(schema)
	case typeNames[schema.Format] != "":
		return typeNames[schema.Format] + orNull(schema)
	case schema.Type == "":
		return "any"
	}
	return typeNames[schema.Type] + orNull(schema)
}

func orNull(schema *huma.Schema) string {
	if schema.Nullable {
		return " or null"
	}
	return ""
}

// wordsOf describes a field with its values and bounds.
func wordsOf(schemas huma.Registry, schema *huma.Schema) string {
	words := []string{schema.Description}
	if schema.Ref != "" {
		words[0] = schemas.SchemaFromRef(schema.Ref).Description
	}
	values := schema.Enum
	if len(values) > 0 {
		all := make([]string, 0, len(values))
		for _, v := range values {
			all = append(all, fmt.Sprint(v))
		}
		words = append(words, "One of "+strings.Join(all, ", ")+".")
	}
	if schema.MaxLength != nil {
		words = append(words, fmt.Sprintf("At most %d characters.", *schema.MaxLength))
	}
	if schema.MaxItems != nil {
		words = append(words, fmt.Sprintf("At most %d.", *schema.MaxItems))
	}
	if schema.Minimum != nil && schema.Maximum != nil {
		words = append(words, fmt.Sprintf("From %g to %g.", *schema.Minimum, *schema.Maximum))
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}
