package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Place is a position in a file.
type Place struct {
	File string
	Line int
	// Column is the column number of a CSV table; 0 in YAML files.
	Column int
}

// String formats the place as FILE:LINE, which editors understand.
func (p Place) String() string {
	if p.Column > 0 {
		return fmt.Sprintf("%s:%d: column %d", p.File, p.Line, p.Column)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Item is one configured row, for example one channel.
type Item struct {
	// Kind is the name of one of Kinds.
	Kind string
	// ID identifies the row: "PLATFORM/GROUP" for a group, "NAME" or "NAME/PLATFORM" for a
	// template, "SUBJECT/SECONDS" for a quota, "PLATFORM/CODE" for a retry policy.
	ID string
	// Fields are JSON values by field name.
	Fields map[string]json.RawMessage
	// Retire disables the row. No file sets it.
	Retire bool
	// At is the place of the id.
	At Place

	fields map[string]Place
}

// PlaceOf returns the place of a field, or of a key inside a field ("settings.utm"). If that
// place is unknown, it returns the place of the item.
func (i Item) PlaceOf(field string) Place {
	if at, ok := i.fields[field]; ok {
		return at
	}
	field, _, _ = strings.Cut(field, ".")
	if at, ok := i.fields[field]; ok {
		return at
	}
	return i.At
}

// Workspace is the configuration of one workspace. The first item is the workspace itself.
// Items refer only to earlier items.
type Workspace struct {
	ID    string
	Items []Item
}

// File is a configuration file.
type File struct {
	// Settings are those of the installation. They are nil if the file has no settings.
	Settings   map[string]json.RawMessage
	Workspaces []Workspace

	settings map[string]Place
	section  Place
}

// SettingPlace returns the place of a setting, or of the section of settings.
func (f File) SettingPlace(key string) Place {
	if at, ok := f.settings[key]; ok {
		return at
	}
	return f.section
}

// Read reads a configuration file. The name is used in errors. In the result each field of
// an item has a value: a missing field is null, which means its default.
func Read(name string, from io.Reader) (File, error) {
	raw, err := io.ReadAll(from)
	if err != nil {
		return File{}, err
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	if document.Kind == 0 {
		return File{}, fmt.Errorf("%s must not be empty: write workspaces like autopost config export does", name)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return File{}, fmt.Errorf("%s must contain one document, got several: write one file for each", name)
	}
	r := reader{name}
	var file File
	err = r.mapping(document.Content[0], "a configuration", func(key, value *yaml.Node) error {
		switch key.Value {
		case "settings":
			file.section, file.Settings, file.settings = r.at(key), map[string]json.RawMessage{}, map[string]Place{}
			return r.fields(value, "settings", file.Settings, file.settings)
		case "workspaces":
			return r.mapping(value, "workspaces", func(key, value *yaml.Node) error {
				w, err := r.workspace(key, value)
				file.Workspaces = append(file.Workspaces, w)
				return err
			})
		default:
			return Unknown(r.at(key), "key", key.Value, []string{"settings", "workspaces"})
		}
	})
	return file, err
}

type reader struct{ name string }

func (r reader) at(n *yaml.Node) Place { return Place{File: r.name, Line: n.Line} }

// mapping visits the pairs of a mapping. Null is an empty mapping.
func (r reader) mapping(n *yaml.Node, what string, visit func(key, value *yaml.Node) error) error {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("%s: %s must be a mapping of keys to values", r.at(n), what)
	}
	seen := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return fmt.Errorf("%s: a key of %s must be plain text: write the keys out", r.at(key), what)
		}
		if line, twice := seen[key.Value]; twice {
			return fmt.Errorf("%s: %q must appear only once, it is also in line %d", r.at(key), key.Value, line)
		}
		seen[key.Value] = key.Line
		if err := visit(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (r reader) workspace(key, value *yaml.Node) (Workspace, error) {
	w := Workspace{ID: key.Value}
	kind := KindOf("workspace")
	self := r.item(kind, key)
	sections := map[string][]Item{}
	names := kind.Names()
	for _, k := range Kinds[1:] {
		names = append(names, k.Section)
	}
	err := r.mapping(value, "workspace "+w.ID, func(key, value *yaml.Node) error {
		if _, ok := kind.Field(key.Value); ok {
			return r.field(self, key, value)
		}
		at := slices.IndexFunc(Kinds, func(k Resource) bool { return k.Section == key.Value })
		if at < 1 {
			return Unknown(r.at(key), "key", key.Value, names)
		}
		return r.mapping(value, key.Value, func(id, value *yaml.Node) error {
			item := r.item(Kinds[at], id)
			sections[key.Value] = append(sections[key.Value], item)
			return r.mapping(value, item.Kind+" "+item.ID, func(key, value *yaml.Node) error {
				if _, ok := Kinds[at].Field(key.Value); !ok {
					return Unknown(r.at(key), "field", key.Value, Kinds[at].Names())
				}
				return r.field(item, key, value)
			})
		})
	})
	w.Items = []Item{self}
	for _, k := range Kinds[1:] {
		w.Items = append(w.Items, sections[k.Section]...)
	}
	return w, err
}

// item returns an item with all fields at their defaults.
func (r reader) item(k Resource, id *yaml.Node) Item {
	item := Item{Kind: k.Name, ID: id.Value, Fields: map[string]json.RawMessage{}, At: r.at(id), fields: map[string]Place{}}
	for _, f := range k.Fields {
		item.Fields[f.Name] = json.RawMessage("null")
	}
	return item
}

func (r reader) field(item Item, key, value *yaml.Node) error {
	raw, err := r.json(value)
	item.Fields[key.Value], item.fields[key.Value] = raw, r.at(key)
	if value.Kind == yaml.MappingNode {
		for i := 0; i < len(value.Content); i += 2 {
			item.fields[key.Value+"."+value.Content[i].Value] = r.at(value.Content[i])
		}
	}
	return err
}

// fields reads a mapping with arbitrary keys.
func (r reader) fields(n *yaml.Node, what string, into map[string]json.RawMessage, places map[string]Place) error {
	return r.mapping(n, what, func(key, value *yaml.Node) (err error) {
		places[key.Value] = r.at(key)
		into[key.Value], err = r.json(value)
		return err
	})
}

// json returns the value of a node as JSON. A YAML timestamp stays text.
func (r reader) json(n *yaml.Node) (json.RawMessage, error) {
	switch n.Kind {
	case yaml.MappingNode:
		object := map[string]json.RawMessage{}
		if err := r.fields(n, "a value", object, map[string]Place{}); err != nil {
			return nil, err
		}
		return json.Marshal(object)
	case yaml.SequenceNode:
		array := make([]json.RawMessage, 0, len(n.Content))
		for _, entry := range n.Content {
			value, err := r.json(entry)
			if err != nil {
				return nil, err
			}
			array = append(array, value)
		}
		return json.Marshal(array)
	case yaml.ScalarNode:
		return r.scalar(n)
	default:
		return nil, fmt.Errorf("%s: a value must not be an alias: write the value out", r.at(n))
	}
}

func (r reader) scalar(n *yaml.Node) (json.RawMessage, error) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return json.Marshal(n.Value)
	case "!!null":
		return json.RawMessage("null"), nil
	case "!!int", "!!float":
		// A number that is valid JSON keeps its digits.
		if json.Valid([]byte(n.Value)) {
			return json.RawMessage(n.Value), nil
		}
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return nil, fmt.Errorf("%s: %w", r.at(n), err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%s: a value must be representable as JSON, got %s", r.at(n), n.Value)
	}
	return raw, nil
}

// Unknown is the error for an unknown name. It suggests a similar name.
func Unknown(at Place, what, written string, names []string) error {
	if name := nearest(written, names); name != "" {
		return fmt.Errorf("%s: unknown %s %q: did you mean %s?", at, what, written, name)
	}
	return fmt.Errorf("%s: unknown %s %q: use %s", at, what, written, strings.Join(names, ", "))
}
