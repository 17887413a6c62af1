package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPictureHasTheCurrentSource(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	source, err := os.ReadFile(filepath.Join(root, sourceFile))
	require.NoError(t, err)
	picture, err := os.ReadFile(filepath.Join(root, pictureFile))
	require.NoError(t, err)
	require.True(t, bytes.Contains(picture, chunk(digest(source))), "docs/architecture.png is out of date: run make diagram")
}
