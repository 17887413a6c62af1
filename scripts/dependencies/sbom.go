package main

import (
	"cmp"
	"encoding/json"
	"runtime/debug"
	"strings"
)

// component is a component of CycloneDX 1.5.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// sbom returns the CycloneDX document of a program. It has no time, so that the same program has the same document.
func sbom(info *debug.BuildInfo) ([]byte, error) {
	components := []component{library("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, library(m.Path, m.Version))
	}
	program := library(info.Main.Path, cmp.Or(info.Main.Version, "(devel)"))
	program.Type = "application"
	text, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{"component": program}, "components": components,
	}, "", "  ")
	return append(text, '\n'), err
}

func library(path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}
