package configfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Write writes a configuration in the format of Read: settings and workspaces sorted by
// name, fields in the order of their resource. The same configuration gives the same bytes.
func Write(to io.Writer, file File) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	if len(file.Settings) > 0 {
		settings, err := node(file.Settings, slices.Sorted(maps.Keys(file.Settings)))
		if err != nil {
			return err
		}
		add(root, "settings", settings)
	}
	workspaces := &yaml.Node{Kind: yaml.MappingNode}
	for _, w := range slices.SortedFunc(slices.Values(file.Workspaces), func(a, b Workspace) int { return strings.Compare(a.ID, b.ID) }) {
		written, err := workspaceNode(w)
		if err != nil {
			return fmt.Errorf("workspace %s: %w", w.ID, err)
		}
		add(workspaces, w.ID, written)
	}
	add(root, "workspaces", workspaces)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return err
	}
	_, err := to.Write(out.Bytes())
	return err
}

func workspaceNode(w Workspace) (*yaml.Node, error) {
	written := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{}
	for _, item := range slices.SortedFunc(slices.Values(w.Items), func(a, b Item) int { return strings.Compare(a.ID, b.ID) }) {
		kind := KindOf(item.Kind)
		fields, err := node(item.Fields, kind.Names())
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", item.Kind, item.ID, err)
		}
		if kind.Section == "" {
			written.Content = append(written.Content, fields.Content...)
			continue
		}
		if sections[kind.Section] == nil {
			sections[kind.Section] = &yaml.Node{Kind: yaml.MappingNode}
		}
		add(sections[kind.Section], item.ID, fields)
	}
	for _, kind := range Kinds {
		if section := sections[kind.Section]; section != nil {
			add(written, kind.Section, section)
		}
	}
	return written, nil
}

// node returns a mapping of the fields that have a value, in the given order.
func node(fields map[string]json.RawMessage, order []string) (*yaml.Node, error) {
	written := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range order {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		value, err := valueNode(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		add(written, name, value)
	}
	return written, nil
}

// valueNode returns a JSON value as YAML. The keys of objects are sorted; a list is one line.
func valueNode(raw json.RawMessage) (*yaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case map[string]any:
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, err
		}
		return node(fields, slices.Sorted(maps.Keys(fields)))
	case []any:
		var entries []json.RawMessage
		if err := json.Unmarshal(raw, &entries); err != nil {
			return nil, err
		}
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, entry := range entries {
			written, err := valueNode(entry)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, written)
		}
		return list, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(value.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value.String()}, nil
	case string:
		return textNode(value), nil
	default:
		written := &yaml.Node{}
		return written, written.Encode(value)
	}
}

// plainLines matches texts that are safe as a YAML block of lines.
var plainLines = regexp.MustCompile(`^(?:\PC*\S\n+)*\PC*\S\n?$`)

// textNode returns a text as YAML: several lines as a block if that is safe, and quoted if
// YAML would read it as another type.
func textNode(text string) *yaml.Node {
	written := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }):
	case strings.Contains(text, "\n"):
		if plainLines.MatchString(text) && text[0] > ' ' {
			written.Style = yaml.LiteralStyle
		}
	default:
		_ = written.Encode(text) // never fails for a text
	}
	return written
}

func add(to *yaml.Node, key string, value *yaml.Node) {
	to.Content = append(to.Content, textNode(key), value)
}
