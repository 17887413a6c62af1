package web

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarkupOfPlatformsIsShownSafely(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<b>Snow</b> &amp; <i>ice</i>":                  "<b>Snow</b> &amp; <i>ice</i>",
		"<script>alert(1)</script>":                     "&lt;script&gt;alert(1)&lt;/script&gt;",
		`<a href="javascript:alert(1)">x</a>`:           "<a>x</a>",
		`<a href="https://e.org/?a=1&amp;b">x</a>`:      `<a href="https://e.org/?a=1&amp;b" rel="noreferrer noopener" target="_blank">x</a>`,
		`<b onclick="alert(1)">x`:                       "<b>x</b>",
		"</div></b>x":                                   "&lt;/div&gt;x",
		`<a href="https://e.org" onmouseover="x">y</a>`: `<a href="https://e.org" rel="noreferrer noopener" target="_blank">y</a>`,
		"&lt;b&gt;": "&lt;b&gt;",
		`<a href="https://e.org/&quot; onclick=&quot;x">y</a>`: `<a href="https://e.org/%22%20onclick=%22x" rel="noreferrer noopener" target="_blank">y</a>`,
	} {
		require.Equal(t, want, richHTML(text, true), text)
	}
	require.Equal(t, "&lt;b&gt;x", richHTML("<b>x", false))
}

func TestStylesheetsAreSmall(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a :hover{margin:calc(1px + 2px) 0}b,c{d:"x y"}`, string(minified([]byte("/* no */a :hover { margin: calc(1px + 2px) 0 }\n\nb,\n c { d: \"x y\" }\n"))))
	require.Equal(t, `:root{--b:light-dark(#fff,#000);--a:2rem}@media (pointer:coarse){:root{--a:3rem}}b{gap:1rem;height:var(--a);color:var(--b,var(--a))}`, string(minified([]byte(
		":root { --gap: 1rem; --ground: light-dark(#fff, #000); --tall: 2rem; }\n@media (pointer: coarse) { :root { --tall: 3rem; } }\nb { gap: var(--gap); height: var(--tall); color: var(--ground, var(--tall)); }"))))
	require.LessOrEqual(t, len(assets()["app.css"].plain), 30<<10)
	require.LessOrEqual(t, len(assets()["app.css"].compressed), 8400)
	require.LessOrEqual(t, len(assets()["app.js"].compressed), 10_000, "our scripts, as they are sent")
	t.Logf("stylesheet: %d bytes, %d compressed", len(assets()["app.css"].plain), len(assets()["app.css"].compressed))
}
