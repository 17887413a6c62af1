//go:build pages

package pages

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// The queue of decisions works by the keyboard: j, k, e, r and a.
func TestDecisionsByTheKeyboard(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	b.visit("/decisions")
	first := js[string](b, `document.querySelector(".q [aria-current]").id`)
	press := func(key, until string) {
		b.do(chromedp.KeyEvent(key))
		s.Until(until, func() bool { return js[bool](b, `document.readyState === "complete" && !!(`+until+`)`) })
	}
	press("j", `document.querySelector(".q [aria-current]")?.id !== "`+first+`"`)
	press("k", `document.querySelector(".q [aria-current]")?.id === "`+first+`"`)
	press("e", `document.activeElement?.id === "text"`)
	b.visit("/decisions")
	press("r", `document.activeElement?.id === "reason"`)
	b.do(chromedp.SendKeys("#reason", "too early\r"))
	s.Until("the next one is open", func() bool {
		return js[bool](b, `document.readyState === "complete" && location.search.includes("done=reject")`)
	})
	press("a", `location.search.includes("done=approve")`)
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(*)::int from autopost.submissions where status = 'pending'`))
	require.Empty(t, b.said())
}

// j and k move through the rows of a list, x marks a row, and Enter opens it.
func TestAListByTheKeyboard(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	b.visit("/operations/dead")
	marked := func() int { return js[int](b, `document.querySelectorAll("#main input[name=id]:checked").length`) }
	b.do(chromedp.KeyEvent("x"))
	require.Zero(t, marked(), "no row is in focus")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	require.Equal(t, 1, marked())
	b.do(chromedp.KeyEvent("x"))
	require.Zero(t, marked())
	b.visit("/posts")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("k"))
	first := js[string](b, `document.querySelector("#posts .lead").pathname`)
	require.Equal(t, first, js[string](b, `document.activeElement.pathname`))
	b.do(chromedp.KeyEvent("\r"))
	s.Until("the post is open", func() bool { return js[string](b, `location.pathname`) == first })
	require.Empty(t, b.said())
}

// The preview of a template follows the typing.
func TestATemplateIsPreviewedAsItIsTyped(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	s.globalX("won")
	b.visit("/x-posts")
	b.do(chromedp.SendKeys("#template-video", " Now!"))
	s.Until("the preview follows", func() bool {
		return js[bool](b, `document.querySelector("#preview-video").textContent.includes("Now!")`)
	})
	require.Empty(t, b.said())
}
