package secret_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/secret"
)

func TestResolve(t *testing.T) {
	t.Setenv("SECRET_TEST_TOKEN", " 1:a b ")
	t.Setenv("SECRET_TEST_EMPTY", "")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return "file:" + path
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "json"), filepath.Join(dir, "link")))

	for name, c := range map[string]struct{ ref, want, wantErr string }{
		"variable":            {ref: "env:SECRET_TEST_TOKEN", want: " 1:a b "},
		"empty variable":      {ref: "env:SECRET_TEST_EMPTY", wantErr: `"SECRET_TEST_EMPTY" is not set`},
		"no variable":         {ref: "env:SECRET_TEST_NONE", wantErr: `"SECRET_TEST_NONE" is not set`},
		"no name":             {ref: "env:", wantErr: "is not set"},
		"file":                {ref: file("json", "{\"a\":\n\"b\"}\r\n"), want: "{\"a\":\n\"b\"}"},
		"file without break":  {ref: file("plain", "token"), want: "token"},
		"link, as mounted":    {ref: "file:" + filepath.Join(dir, "link"), want: "{\"a\":\n\"b\"}"},
		"largest":             {ref: file("largest", strings.Repeat("x", secret.MaxBytes)), want: strings.Repeat("x", secret.MaxBytes)},
		"too large":           {ref: file("large", strings.Repeat("x", secret.MaxBytes+1)), wantErr: "larger than"},
		"empty file":          {ref: file("empty", "\n"), wantErr: "is empty"},
		"absent file":         {ref: "file:" + filepath.Join(dir, "absent"), wantErr: "no such file"},
		"folder":              {ref: "file:" + dir, wantErr: "not a regular file"},
		"pipe does not hang":  {ref: "file:" + filepath.Join(dir, "pipe"), wantErr: "not a regular file"},
		"relative path":       {ref: "file:token", wantErr: "must be absolute"},
		"sealed":              {ref: "sealed:main", wantErr: "no secret is stored: set it with autopost credential set or link"},
		"a token by mistake":  {ref: "12345:hunter2", wantErr: "use env:NAME or file:/path"},
		"a word by mistake":   {ref: "hunter2", wantErr: "use env:NAME or file:/path"},
		"nothing":             {ref: "", wantErr: "use env:NAME or file:/path"},
		"schemes are in full": {ref: "ENV:SECRET_TEST_TOKEN", wantErr: "use env:NAME or file:/path"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := secret.Resolve(c.ref)
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				require.NotContains(t, err.Error(), "hunter2")
				require.True(t, got.IsZero())
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got.Reveal())
		})
	}
}
