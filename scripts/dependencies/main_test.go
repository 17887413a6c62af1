package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoticesAreUpToDate(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	want, err := notices(root)
	require.NoError(t, err)
	kept, err := os.ReadFile(filepath.Join(root, noticesFile))
	require.NoError(t, err)
	require.True(t, string(kept) == string(want), "THIRD_PARTY_NOTICES is out of date: run make notices")
}

func TestTheBillOfMaterialsHasEachModule(t *testing.T) {
	t.Parallel()
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	info.Deps = append(info.Deps, &debug.Module{Path: "example.com/a", Version: "v1.2.3"})
	text, err := sbom(info)
	require.NoError(t, err)
	var document struct {
		BOMFormat  string
		Components []component
	}
	require.NoError(t, json.Unmarshal(text, &document))
	require.Equal(t, "CycloneDX", document.BOMFormat)
	require.Len(t, document.Components, len(info.Deps)+1, "and the standard library")
	require.Contains(t, string(text), `"purl": "pkg:golang/example.com/a@v1.2.3"`)
}

// The program needs no library of the machine that runs it, and names no path of the one that built it.
func TestTheBuildIsStaticAndReproducible(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	require.NoError(t, err)
	_, build, found := strings.Cut(string(makefile), "\nbuild:")
	require.True(t, found)
	build, _, _ = strings.Cut(build, "\n\n")
	require.Contains(t, build, "CGO_ENABLED=0")
	require.Contains(t, build, "-trimpath")
}
