//go:build pages

package pages

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// clippedLabels returns the labels of the bar that are wider than their cell or taller than one line.
const clippedLabels = `[...document.querySelectorAll(".tabs5 a > span:not(.dot), .tabs5 button > span")].flatMap(e => {
	const range = document.createRange(), cell = e.parentElement.getBoundingClientRect();
	range.selectNodeContents(e);
	const r = range.getBoundingClientRect();
	return r.left < cell.left || r.right > cell.right || r.bottom > cell.bottom || range.getClientRects().length > 1
		? [e.textContent + " " + Math.round(r.width) + " of " + Math.round(cell.width) + " px"] : [];
})`

// The bar of a narrow phone shows each label whole, in each language, also the bold one of the open page.
func TestLabelsOfTheBarAreWhole(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	b.do(chromedp.EmulateViewport(360, 740))
	for _, language := range []string{"en", "ru"} {
		js[string](b, fmt.Sprintf(`document.cookie = "autopost-language=%s; path=/"`, language))
		for _, path := range []string{"/", "/posts", "/decisions"} {
			b.visit(path)
			require.Equal(t, 4, js[int](b, `document.querySelectorAll(".tabs5 a > span:not(.dot), .tabs5 button > span").length`), "all labels; the new post has none")
			require.Empty(t, js[[]string](b, clippedLabels), "%s %s", language, path)
		}
	}
	js[bool](b, `(document.querySelector(".tabs5 a > span").textContent = "Публикации и каналы", true)`)
	require.Len(t, js[[]string](b, clippedLabels), 1, "the check finds a long label")
}
