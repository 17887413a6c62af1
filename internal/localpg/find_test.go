package localpg

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs creates a folder of fake programs that print the given version.
func programs(t *testing.T, dir, version string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
	for _, name := range []string{"initdb", "postgres"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	old := programs(t, filepath.Join(root, "12", "bin"), "12.4")
	nine := programs(t, filepath.Join(root, "versions", "9.6", "bin"), "9.6.24")
	fifteen := programs(t, filepath.Join(root, "versions", "15", "bin"), "15.18 (Debian 15.18-0+deb12u1)")
	seventeen := programs(t, filepath.Join(root, "versions", "17", "bin"), "17rc1")
	glob := search{globs: []string{filepath.Join(root, "versions", "*", "bin")}}
	empty := filepath.Join(root, "empty")
	require.NoError(t, os.Mkdir(empty, 0o755))

	for name, c := range map[string]struct {
		search  search
		bin     string
		cluster int
		want    string
		wantErr string
	}{
		"newest of the versioned folders":   {search: glob, want: seventeen},
		"the cluster's major, if it exists": {search: glob, cluster: 15, want: fifteen},
		"path comes last":                   {search: search{globs: glob.globs, path: old}, want: seventeen},
		"path":                              {search: search{path: empty + ":" + fifteen}, want: fifteen},
		"major 9 is older than 10":          {search: search{path: nine}, wantErr: "PostgreSQL 9;"},
		"too old":                           {search: search{path: old}, wantErr: "12; version 15 or newer"},
		"nothing":                           {search: search{}, wantErr: "apt-get install postgresql"},
		"nothing for the cluster":           {search: glob, cluster: 16, wantErr: "the existing data needs PostgreSQL 16"},
		"given folder wins":                 {search: glob, bin: fifteen, want: fifteen},
		"given folder without programs":     {search: glob, bin: empty, wantErr: "AUTOPOST_PG_BIN: " + empty + " has no program initdb"},
		"given folder of the wrong major":   {search: glob, bin: seventeen, cluster: 15, wantErr: "is not changed"},
		"given folder too old":              {search: glob, bin: old, wantErr: "15 or newer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := c.search.find(t.Context(), c.bin, c.cluster)
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, found.bin)
		})
	}
}

func TestNoBinariesIsRecognised(t *testing.T) {
	t.Parallel()
	_, err := search{}.find(t.Context(), "", 0)
	require.ErrorIs(t, err, ErrNoBinaries)
}
