package pages

import (
	"net/http"
	"net/url"
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

func (s *site) harmless(path, body string) {
	s.t.Helper()
	require.Empty(s.t, harmful(body), path)
}

// places are the attributes with addresses.
var places = []string{"href", "src", "action", "formaction", "hx-get", "hx-post", "hx-put", "hx-patch", "hx-delete", "sse-connect", "data", "xlink:href", "poster", "srcset", "ping", "background"}

// foreign are elements that no page of ours has.
var foreign = []string{"iframe", "object", "embed", "base", "style", "frame", "frameset", "applet", "math", "video", "audio"}

// harmful returns what a hostile value could have made of a page.
func harmful(body string) (faults []string) {
	tree, err := nethtml.Parse(strings.NewReader(body))
	if err != nil {
		return []string{err.Error()}
	}
	for n := range tree.Descendants() {
		if n.Type != nethtml.ElementNode {
			continue
		}
		fault := func(what string) { faults = append(faults, "<"+n.Data+"> "+what) }
		if slices.Contains(foreign, n.Data) {
			fault("is not ours")
		}
		src := ""
		for _, a := range n.Attr {
			name := strings.ToLower(a.Key)
			if a.Namespace != "" {
				name = a.Namespace + ":" + name
			}
			switch {
			case strings.HasPrefix(name, "on"), strings.HasPrefix(name, "hx-on"), name == "srcdoc", name == "style", name == "http-equiv":
				fault(name)
			case strings.HasPrefix(strings.TrimSpace(a.Val), "js:"), strings.HasPrefix(strings.TrimSpace(a.Val), "javascript:") && name != "value" && name != "title" && name != "aria-label":
				fault(name + "=" + a.Val)
			case slices.Contains(places, name) && !isSafe(a.Val, n.Data == "a" && name == "href"):
				fault(name + "=" + a.Val)
			}
			if name == "src" {
				src = a.Val
			}
		}
		if (n.Data == "script" || n.Data == "img") && !strings.HasPrefix(src, "/") {
			fault("src=" + src)
		}
	}
	return faults
}

// isSafe reports whether an address leads to a page of ours, or, where a link may, to another one by http.
func isSafe(address string, isLink bool) bool {
	read := strings.Map(func(r rune) rune { // as browsers read it
		switch {
		case r == '\\':
			return '/'
		case r < ' ':
			return -1
		}
		return r
	}, strings.TrimSpace(address))
	u, err := url.Parse(read)
	if err != nil {
		return false
	}
	if u.Host == "" && u.Scheme == "" {
		return !strings.HasPrefix(read, "//")
	}
	return isLink && (u.Scheme == "http" || u.Scheme == "https")
}
