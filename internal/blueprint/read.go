package blueprint

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

// Place is where something is written: a line of a file, and of a table the number of its column.
type Place struct {
	File         string
	Line, Column int
}

// String is the place as editors understand it.
func (p Place) String() string {
	if p.Column > 0 {
		return fmt.Sprintf("%s:%d: column %d", p.File, p.Line, p.Column)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Item is one thing that is configured.
type Item struct {
	// Kind is the name of one of Kinds.
	Kind string
	// ID is the thing's own: of a group "PLATFORM/GROUP", of a template "NAME" or
	// "NAME/PLATFORM", of a quota "SUBJECT/SECONDS".
	ID string
	// Fields are by their name, as JSON.
	Fields map[string]json.RawMessage
	// Retire puts the thing out of use; no file says that.
	Retire bool
	At     Place

	fields map[string]Place
}

// Where is the place of a field, or of what is inside one ("settings.utm"), as near as it is written; of the item itself when it is not.
func (i Item) Where(field string) Place {
	if at, ok := i.fields[field]; ok {
		return at
	}
	field, _, _ = strings.Cut(field, ".")
	if at, ok := i.fields[field]; ok {
		return at
	}
	return i.At
}

// Workspace is one with all that it holds. The first item is the workspace itself;
// each refers to earlier ones only.
type Workspace struct {
	ID    string
	Items []Item
}

// File is a configuration.
type File struct {
	// Settings are those of the whole installation; nil when the file says nothing of settings.
	Settings   map[string]json.RawMessage
	Workspaces []Workspace

	settings map[string]Place
	section  Place
}

// WhereSetting is the place of a setting, or of the settings.
func (f File) WhereSetting(key string) Place {
	if at, ok := f.settings[key]; ok {
		return at
	}
	return f.section
}

// Read reads a configuration; name is that of the file, for errors. Every field of
// a thing has a value then: one that is not written is null, which is its default.
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
		return File{}, fmt.Errorf("%s is empty: write workspaces, as autopost config export shows", name)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return File{}, fmt.Errorf("%s holds more than one document: write one file for each", name)
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

// mapping visits the pairs of a mapping; nothing is an empty one.
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
			return fmt.Errorf("%s: a key of %s is no plain text", r.at(key), what)
		}
		if line, twice := seen[key.Value]; twice {
			return fmt.Errorf("%s: %q is in line %d already", r.at(key), key.Value, line)
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
		at := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Section == key.Value })
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

// item is one whose fields are all at their defaults.
func (r reader) item(k Kind, id *yaml.Node) Item {
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

// fields reads a mapping whose keys are not known here.
func (r reader) fields(n *yaml.Node, what string, into map[string]json.RawMessage, places map[string]Place) error {
	return r.mapping(n, what, func(key, value *yaml.Node) (err error) {
		places[key.Value] = r.at(key)
		into[key.Value], err = r.json(value)
		return err
	})
}

// json is the value of a node. What YAML takes for an instant is the text that was written.
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
		return nil, fmt.Errorf("%s: an alias is not understood here: write the value out", r.at(n))
	}
}

func (r reader) scalar(n *yaml.Node) (json.RawMessage, error) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return json.Marshal(n.Value)
	case "!!null":
		return json.RawMessage("null"), nil
	case "!!int", "!!float":
		// A number that JSON writes alike stays as it is, digit by digit.
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
		return nil, fmt.Errorf("%s: %s is no value that can be kept", r.at(n), n.Value)
	}
	return raw, nil
}

// Unknown says that a name is not known, and which one may have been meant.
func Unknown(at Place, what, written string, names []string) error {
	if name := nearest(written, names); name != "" {
		return fmt.Errorf("%s: there is no %s %q: did you mean %s?", at, what, written, name)
	}
	return fmt.Errorf("%s: there is no %s %q: use %s", at, what, written, strings.Join(names, ", "))
}
