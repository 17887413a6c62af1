package pages

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	nethtml "golang.org/x/net/html"
)

// hostile are values that would run in a browser if a page showed them as markup, in each place of a page.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg onload=alert(1)>`, `</textarea><script>alert(1)</script>`, `" autofocus onfocus="alert(1)`,
	`javascript:alert(1)`, `<a href="javascript:alert(1)">x</a>`, `{{constructor.constructor('alert(1)')()}}`, `<iframe srcdoc="<script>alert(1)</script>">`, `</title><script>alert(1)</script>`,
	`<details open ontoggle=alert(1)>`, `<meta http-equiv=refresh content="0;url=javascript:alert(1)">`, `<base href=//evil.example>`, `<form action=//evil.example><button>`, "`-alert(1)-`",
}

// hostileText is all of them in one text.
func hostileText() string { return strings.Join(hostile, " ") }

// harmless opens a page that shows hostile values, and checks that none of them became markup.
func (p *person) harmless(path string) answer {
	p.s.t.Helper()
	got := p.get(path)
	require.Contains(p.s.t, []int{http.StatusOK, http.StatusUnprocessableEntity, http.StatusNotFound}, got.status, path)
	p.s.harmless(path, got.body)
	return got
}

// places are the attributes with addresses.
var places = []string{"href", "src", "action", "formaction", "hx-get", "hx-post", "data", "xlink:href"}

func (s *site) harmless(path, body string) {
	s.t.Helper()
	tree, err := nethtml.Parse(strings.NewReader(body))
	require.NoError(s.t, err)
	for n := range tree.Descendants() {
		if n.Type != nethtml.ElementNode {
			continue
		}
		require.NotContains(s.t, []string{"iframe", "object", "embed", "base", "style"}, n.Data, path)
		src := ""
		for _, a := range n.Attr {
			name := strings.ToLower(a.Key)
			require.False(s.t, strings.HasPrefix(name, "on") || name == "srcdoc" || name == "style", "%s: <%s %s>", path, n.Data, name)
			if slices.Contains(places, name) {
				value := strings.ToLower(strings.TrimSpace(a.Val))
				require.False(s.t, strings.HasPrefix(value, "javascript:") || strings.HasPrefix(value, "data:") || strings.Contains(value, "evil.example"), "%s: <%s %s=%s>", path, n.Data, name, a.Val)
			}
			if name == "src" {
				src = a.Val
			}
			require.False(s.t, name == "http-equiv", path)
		}
		if n.Data == "script" || n.Data == "img" {
			require.True(s.t, strings.HasPrefix(src, "/"), "%s: <%s src=%s>", path, n.Data, src)
		}
	}
}
