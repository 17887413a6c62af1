package config

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"

	"github.com/knadh/koanf/v2"
)

// lines parses files with lines NAME=value, like systemd and container runtimes do. A value
// may have single or double quotes. A line that starts with # is a comment.
type lines struct{}

// Unmarshal implements koanf.Parser.
func (lines) Unmarshal(text []byte) (map[string]any, error) {
	values := map[string]any{}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok {
			return nil, fmt.Errorf("line %d must be NAME=value", n)
		}
		value = strings.TrimSpace(value)
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[0] == value[len(value)-1] {
			value = value[1 : len(value)-1]
		}
		values[strings.TrimSpace(name)] = value
	}
	return values, scanner.Err()
}

// Marshal implements koanf.Parser.
func (lines) Marshal(values map[string]any) ([]byte, error) {
	var out bytes.Buffer
	for name, value := range values {
		_, _ = fmt.Fprintf(&out, "%s=%v\n", name, value)
	}
	return out.Bytes(), nil
}

var _ koanf.Parser = lines{}
