package rest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A small body may have very many values, which need much more memory than their text.
func TestValuesOfABodyAreBounded(t *testing.T) {
	t.Parallel()
	require.Nil(t, unstorable([]byte(`{"text": "`+strings.Repeat(`a, [{\" `, 10_000)+`"}`)))
	require.Nil(t, unstorable([]byte(`[1`+strings.Repeat(`,1`, maxValues-2)+`]`)))
	refused := unstorable([]byte(`[1` + strings.Repeat(`,1`, maxValues) + `]`))
	require.NotNil(t, refused)
	require.Contains(t, refused.Errors[0].Reason, "at most 20000 values")
}
