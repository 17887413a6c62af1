package bench

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountedFunctionsAreThoseOfADaemon(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../pg/dispatch.go")
	require.NoError(t, err)
	for _, stage := range stages {
		require.Contains(t, string(source), "from autopost."+stage.function+"(", stage.name)
	}
}
