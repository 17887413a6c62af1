package twitter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
)

func TestCheckReturnsTheAccountOfACredential(t *testing.T) {
	b := newBench(t)
	targets := []string{account, "nyx", "@NYX", "43", "no name"}
	standing, failure := newAdapter(t, b.url).Check(t.Context(), autopost.NewSecret(signed), targets)
	require.Nil(t, failure)
	require.Equal(t, "@nyx", standing.Account)
	var may []string
	for i, right := range standing.Rights {
		require.Equal(t, targets[i], right.Target)
		require.Equal(t, right.MayPost, right.Reason == "", "%+v", right)
		if right.MayPost {
			may = append(may, right.Target)
		}
	}
	require.Len(t, standing.Rights, len(targets))
	require.Equal(t, []string{account, "nyx", "@NYX"}, may)
	require.Contains(t, standing.Rights[3].Reason, "belongs to @nyx, id 42")
	for _, entry := range b.core.Log.Entries() {
		require.Equal(t, "GET /2/users/me", entry.Method, "a check changes nothing")
	}
	require.Len(t, b.core.Log.Entries(), 1)

	_, failure = newAdapter(t, b.url).Check(t.Context(), autopost.NewSecret("canary of another"), targets)
	require.Equal(t, "x_unauthorized", failure.Code)
	require.NotContains(t, failure.String(), "canary")
}
