package password

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPasswordMatchesItsHashOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	hash, err := Hash(ctx, "correct horse battery")
	require.NoError(t, err)
	require.Regexp(t, `^\$argon2id\$v=19\$m=19456,t=2,p=1\$`, hash)
	for password, want := range map[string]bool{"correct horse battery": true, "correct horse": false, "": false, strings.Repeat("x", 1<<20): false} {
		match, err := Check(ctx, password, hash)
		require.NoError(t, err)
		require.Equal(t, want, match)
	}
	match, err := Check(ctx, "correct horse battery", "")
	require.NoError(t, err)
	require.False(t, match, "a person who does not exist")
}

func TestLengthsOfNewPasswords(t *testing.T) {
	t.Parallel()
	require.Empty(t, Fault("двенадцать букв"))
	require.Equal(t, "must have 12 to 200 characters, got 5", Fault("пять5"))
	require.NotEmpty(t, Fault(strings.Repeat("x", 201)))
	require.NotEmpty(t, Fault("\xff\xfe invalid encoding"))
}

func TestACheckThatWaitsEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	for range atOnce {
		running <- struct{}{}
	}
	cancel()
	_, err := Check(ctx, "x", "")
	require.ErrorIs(t, err, context.Canceled)
	for range atOnce {
		<-running
	}
}
