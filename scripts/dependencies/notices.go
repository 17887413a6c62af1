package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is a module that the programs link.
type module struct {
	Path, Version, Dir string
	Main               bool
}

// licenseFile matches the names of files with terms.
var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([.-].*)?$`)

// notices returns the text of THIRD_PARTY_NOTICES. Modules with the same terms share one text.
func notices(root string) ([]byte, error) {
	modules, err := linked(root)
	if err != nil {
		return nil, err
	}
	var order []string
	users := map[string][]string{}
	for _, m := range modules {
		terms, err := termsOf(m)
		if err != nil {
			return nil, err
		}
		if users[terms] == nil {
			order = append(order, terms)
		}
		users[terms] = append(users[terms], m.Path+" "+m.Version)
	}
	var text bytes.Buffer
	text.WriteString("The programs of autopost contain these modules. Written by make notices; do not edit.\n")
	for _, terms := range order {
		fmt.Fprintf(&text, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(users[terms], "\n"), terms)
	}
	return text.Bytes(), nil
}

// linked returns the modules of the programs for Linux, by path. It needs no network if the programs can be built.
func linked(root string) ([]module, error) {
	list := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/...") //nolint:noctx // it ends with the program
	list.Dir = root
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	list.Stderr = os.Stderr
	raw, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := map[string]module{}
	for decoder := json.NewDecoder(bytes.NewReader(raw)); ; {
		var p struct{ Module *module }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Module != nil && !p.Module.Main {
			found[p.Module.Path] = *p.Module
		}
	}
	modules := slices.Collect(maps.Values(found))
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// termsOf returns the license files of a module, in the order of their names.
func termsOf(m module) (string, error) {
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return "", err
	}
	var terms []string
	for _, f := range files {
		if f.IsDir() || !licenseFile.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, f.Name()))
		if err != nil {
			return "", err
		}
		terms = append(terms, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if len(terms) == 0 {
		return "", fmt.Errorf("module %s has no license file: find out its terms before you use it", m.Path)
	}
	return strings.Join(terms, "\n\n"), nil
}
