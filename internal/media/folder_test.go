package media_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
)

// Other users of the machine can neither open nor list media, also if an older version made the folders.
func TestFolderIsClosedToOtherUsers(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "media")
	open := filepath.Join(root, "tmp")
	require.NoError(t, os.MkdirAll(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o755))
	store, err := media.OpenStore(t.Context(), "file://"+root)
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	_, err = store.Put(t.Context(), bytes.NewReader(mp4Of(1000)), autopost.MediaVideo, media.Limits{})
	require.NoError(t, err)
	files := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "%s has mode %s", path, info.Mode())
		if !entry.IsDir() {
			files++
		}
		return nil
	}))
	require.Positive(t, files)
}
