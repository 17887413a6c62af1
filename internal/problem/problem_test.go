package problem_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/problem"
)

// The catalogue contains every declared kind once, by status.
func TestCatalogueIsComplete(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "catalogue.go", nil, 0)
	require.NoError(t, err)
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if name, ok := lit.Type.(*ast.Ident); ok && name.Name == "Kind" && len(lit.Elts) > 0 {
				declared++
			}
		}
		return true
	})
	all := problem.Catalogue()
	require.Len(t, all, declared)
	seen := map[string]bool{}
	for i, k := range all {
		require.Regexp(t, regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`), k.Slug)
		require.False(t, seen[k.Slug], k.Slug)
		seen[k.Slug] = true
		require.Regexp(t, `\.$`, k.Meaning, k.Slug)
		require.Regexp(t, `\.$`, k.Remedy, k.Slug)
		require.NotEmpty(t, k.Title, k.Slug)
		require.True(t, i == 0 || all[i-1].Status <= k.Status, "%s is not in the order of the statuses", k.Slug)
		found, ok := problem.Of(k.URN())
		require.True(t, ok)
		require.Equal(t, k, found)
	}
	_, ok := problem.Of("about:blank")
	require.False(t, ok)
}

func TestQuotaFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		quota         problem.Quota
		policy, state string
	}{
		{problem.Quota{Name: "ingress_rps", Most: 5, Window: time.Second, Left: 4, Reset: 200 * time.Millisecond}, `"ingress_rps";q=5;w=1`, `"ingress_rps";r=4;t=1`},
		{problem.Quota{Name: "ingress_rps", Most: 1, Window: 2500 * time.Millisecond, Reset: 2500 * time.Millisecond}, `"ingress_rps";q=1;w=3`, `"ingress_rps";r=0;t=3`},
		{problem.Quota{Name: "running", Most: 64, Left: 63}, `"running";q=64;qu="concurrent-requests"`, `"running";r=63`},
		{problem.Quota{}, "", ""},
	} {
		w := httptest.NewRecorder()
		c.quota.Show(w)
		require.Equal(t, c.policy, w.Header().Get("RateLimit-Policy"))
		require.Equal(t, c.state, w.Header().Get("RateLimit"))
	}
}
