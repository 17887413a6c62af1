//go:build pages

package pages

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// No hostile value runs in a browser or violates the policy of the pages.
func TestHostileValuesInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	var dialogs atomic.Int64
	require.NoError(t, chromedp.Listen(b.ctx, func(event any) {
		if _, ok := event.(*page.EventJavascriptDialogOpening); ok {
			dialogs.Add(1)
		}
	}))
	c := s.poison()
	b.visit("/login")
	b.do(chromedp.SendKeys("#email", ann), chromedp.SendKeys("#password", password))
	b.send(`form[action="/login"] button`)
	b.visit("/compose")
	b.do(chromedp.SendKeys("#text", hostileText()))
	b.until("the dry run has the text", `document.querySelector("#plan .pv")?.textContent.includes("</textarea>")`)
	for _, corpus := range corpora {
		s.Exec(`select public.poison_all($1, $2)`, corpus, append(decided, chosen...))
		c.openAll()
		b.said()
		opened := map[string]bool{}
		for _, path := range c.paths {
			if shape := shapeOf(path); !opened[shape] && c.shapes[shape] && !strings.HasPrefix(path, "/setup/config/export") {
				opened[shape] = true
				b.visit(path)
				js[bool](b, `document.querySelectorAll("details").forEach(d => d.open = true); document.querySelectorAll("a[href]").length > 0`)
				for _, fault := range b.said() {
					if !strings.Contains(fault, "the server responded with a status of 4") {
						t.Errorf("%s: %s", path, fault)
					}
				}
			}
		}
	}
	require.Zero(t, dialogs.Load(), "no script of a value ran")
}
