package secret_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/secret"
)

const canary = "canary-7f3a9c-secret"

var at = secret.Binding{Workspace: "w", AuthRef: "bot", Version: 1}

func ring(t *testing.T) (*secret.Keyring, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data", "master.key")
	return secret.NewKeyring(path), path
}

func sealed(t *testing.T, r *secret.Keyring) secret.Sealed {
	t.Helper()
	s, err := r.Seal(at, autopost.NewSecret(canary))
	require.NoError(t, err)
	return s
}

func TestSealedSecretOpensOnlyWithItsBinding(t *testing.T) {
	t.Parallel()
	r, path := ring(t)
	require.NoError(t, r.Make())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	s := sealed(t, r)
	again := sealed(t, r)
	require.NotEqual(t, s.Text, again.Text, "each seal differs")
	require.False(t, bytes.Contains(s.Text, []byte(canary)))
	opened, err := r.Open(at, s)
	require.NoError(t, err)
	require.Equal(t, canary, opened.Reveal())

	for _, other := range []secret.Binding{{"v", "bot", 1}, {"w", "bot2", 1}, {"w", "bot", 2}, {"w|bot", "", 1}} {
		_, err := r.Open(other, s)
		require.ErrorContains(t, err, "changed, or moved here", "%v", other)
	}
	for _, row := range []*[]byte{&s.Text, &s.WrappedKey} {
		for _, i := range []int{0, len(*row) / 2, len(*row) - 1} {
			whole := slices.Clone(*row)
			(*row)[i] ^= 1
			_, err := r.Open(at, s)
			require.ErrorContains(t, err, "autopost credential set")
			require.NotContains(t, err.Error(), canary)
			*row = whole
		}
	}
	s.WrappedKey, again.WrappedKey = again.WrappedKey, s.WrappedKey
	_, err = r.Open(at, s)
	require.Error(t, err, "another row's data key")
	_, err = r.Open(at, secret.Sealed{KeyID: s.KeyID})
	require.Error(t, err, "an empty row")
}

func TestMasterKeyFile(t *testing.T) {
	t.Parallel()
	r, path := ring(t)
	_, err := r.Seal(at, autopost.NewSecret(canary))
	require.ErrorIs(t, err, secret.ErrNoMasterKey)
	require.NoError(t, r.Make())
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, r.Make(), "a second call keeps the file")
	second, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, first, second)
	s := sealed(t, r)

	require.NoError(t, os.Chmod(path, 0o640))
	_, err = r.Open(at, s)
	require.ErrorContains(t, err, "chmod 600")
	require.NoError(t, os.Chmod(path, 0o600))

	require.NoError(t, os.WriteFile(path, []byte("c2hvcnQ=\n"), 0o600))
	_, err = r.Open(at, s)
	require.ErrorContains(t, err, "line 1 of")
	require.NoError(t, os.Remove(path))
	_, err = r.Open(at, s)
	require.ErrorIs(t, err, secret.ErrNoMasterKey)
	require.NoError(t, r.Make())
	_, err = r.Open(at, s)
	require.ErrorContains(t, err, "put that key back", "another key does not open it")
	require.ErrorContains(t, err, s.KeyID)
}

// Every secret can be opened at each step of a rotation.
func TestMasterKeyRotatesWithoutAGap(t *testing.T) {
	t.Parallel()
	r, _ := ring(t)
	require.NoError(t, r.Renew(), "the first key")
	old := sealed(t, r)
	require.NoError(t, r.Renew())
	opened, err := r.Open(at, old)
	require.NoError(t, err)
	require.Equal(t, canary, opened.Reveal())
	fresh, err := r.Rewrap(at, old)
	require.NoError(t, err)
	require.NotEqual(t, old.KeyID, fresh.KeyID)
	require.Equal(t, old.Text, fresh.Text, "the secret itself is not touched")
	ids, err := r.IDs()
	require.NoError(t, err)
	require.Equal(t, []string{fresh.KeyID, old.KeyID}, ids)
	dropped, err := r.Drop()
	require.NoError(t, err)
	require.Equal(t, 1, dropped)
	opened, err = r.Open(at, fresh)
	require.NoError(t, err)
	require.Equal(t, canary, opened.Reveal())
	_, err = r.Open(at, old)
	require.ErrorContains(t, err, old.KeyID)
}
