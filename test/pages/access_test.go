//go:build pages

package pages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// controls defines visibleControls(): what Tab reaches, in the order of the page. A group of radio buttons is one stop.
const controls = `window.visibleControls = () => {
	const groups = new Set();
	return [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")].filter(e => {
		if (e.tabIndex < 0 || e.disabled || !e.checkVisibility({visibilityProperty: true}) || e.closest("[inert], details:not([open]) > :not(summary)")) { return false; }
		if (e.type !== "radio") { return true; }
		const group = e.form?.id + " " + e.name, all = [...document.getElementsByName(e.name)].filter(r => r.form === e.form);
		if (groups.has(group) || all.some(r => r.checked) && !e.checked) { return false; }
		groups.add(group);
		return true;
	});
};
window.nameOf = e => e.outerHTML.slice(0, 110);
window.reached = [];
window.faults = [];
document.addEventListener("focusin", event => {
	const e = event.target, shown = e.matches("[type=radio], [type=checkbox], [type=file]") ? e.closest("label") ?? e : e;
	if (reached[reached.length - 1] === e) { return; }
	reached.push(e);
	const rings = [e, shown, e.nextElementSibling, e.closest(".ed, .seg, .vars, label")].filter(Boolean).map(x => getComputedStyle(x));
	if (!rings.some(c => c.outlineStyle !== "none" && parseFloat(c.outlineWidth) > 0 || c.boxShadow !== "none")) { faults.push("no visible focus: " + nameOf(e)); }
	requestAnimationFrame(() => {
		const r = shown.getBoundingClientRect(), x = (Math.max(r.left, 0) + Math.min(r.right, innerWidth)) / 2, y = (Math.max(r.top, 0) + Math.min(r.bottom, innerHeight)) / 2;
		if (document.activeElement !== e || e.matches(".skip")) { return; } // the skip link slides in
		const top = document.elementFromPoint(x, y);
		if (!top || !(shown.contains(top) || top.contains(shown) && !top.matches(".dock, .tabs5, .bar"))) { faults.push("hidden focus: " + nameOf(e) + " under " + (top ? nameOf(top) : "nothing")); }
	});
}, true);
true`

// tab presses Tab n times.
func (b *browser) tab(n int) {
	b.t.Helper()
	steps := make([]chromedp.Action[chromedp.Void], n)
	for i := range steps {
		steps[i] = chromedp.KeyEvent(kb.Tab)
	}
	b.do(steps...)
}

// byKeyboard goes through a page with Tab alone and returns what is wrong.
func (b *browser) byKeyboard(path string) []string {
	b.t.Helper()
	b.visit(path)
	js[bool](b, `document.activeElement?.blur(); `+controls)
	n := js[int](b, `(window.expected = visibleControls()).length`)
	// Focus begins where the page puts it: one round more than the controls reaches all. A date and a time have up to four
	// stops, and what scrolls has one.
	b.tab(n + 2 + js[int](b, `3 * document.querySelectorAll("[type=date], [type=time], [type=datetime-local]").length + [...document.querySelectorAll("main *, nav")].filter(e => e.tabIndex < 0 && (e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1) && /auto|scroll/.test(getComputedStyle(e).overflow)).length`))
	return js[[]string](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
		expected = expected.filter(e => e.isConnected); // a change may have replaced others
		const first = reached.indexOf(expected[0]), order = first < 0 ? reached : reached.slice(first), found = [...faults];
		expected.forEach(e => { if (!reached.includes(e)) { found.push("not reached: " + nameOf(e)); } });
		const seen = order.filter(e => expected.includes(e)).map(e => expected.indexOf(e));
		for (let i = 1; i < seen.length; i++) {
			if (seen[i] !== seen[i - 1] + 1 && seen[i] !== 0) { found.push("out of order: " + nameOf(expected[seen[i]]) + " after " + nameOf(expected[seen[i - 1]])); break; }
		}
		done(found);
	})))`)
}

// heard returns what a screen reader would miss on the open page.
func (b *browser) heard() []string {
	b.t.Helper()
	return js[[]string](b, `(() => {
		const found = [], text = id => document.getElementById(id)?.textContent.trim();
		let level = 0;
		for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
			if (!h.checkVisibility()) { continue; }
			if (+h.tagName[1] > level + 1) { found.push("heading skips a level: " + nameOf(h)); }
			level = +h.tagName[1];
		}
		for (const e of visibleControls()) {
			const name = e.ariaLabel || (e.getAttribute("aria-labelledby") ?? "").split(" ").map(text).join(" ").trim() || [...(e.labels ?? [])].map(l => l.textContent).join(" ").trim() || e.textContent.trim() || e.title;
			if (!name || e.matches("select") && !e.labels?.length && !e.ariaLabel) { found.push("no name: " + nameOf(e)); }
		}
		for (const e of document.querySelectorAll("[aria-describedby], [aria-labelledby], [aria-controls]")) {
			for (const id of ["aria-describedby", "aria-labelledby"].flatMap(a => (e.getAttribute(a) ?? "").split(" ")).filter(Boolean)) {
				if (!document.getElementById(id)) { found.push("refers to nothing, " + id + ": " + nameOf(e)); }
			}
		}
		for (const e of document.querySelectorAll("[aria-invalid=true]")) {
			if (!(e.getAttribute("aria-describedby") ?? "").split(" ").some(id => document.getElementById(id)?.matches(".err, :has(.c-fail)") && text(id))) { found.push("error without words: " + nameOf(e)); }
		}
		if (document.querySelector("[data-live]") && !document.querySelector("[role=status]")) { found.push("changes are not announced"); }
		return found;
	})()`)
}

// Each page works by the keyboard alone: Tab reaches all controls in the order of the page, and focus is visible. A screen
// reader gets names, headings in order, and the words of errors.
func TestEachPageWorksByTheKeyboard(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	s.Exec(`select autopost.raise_alert('news', 'auth_lost', 'credential:bot', '{"message": "the token was revoked"}', '{}')`)
	for _, width := range []int64{1440, 360} {
		b.do(chromedp.EmulateViewport(width, 900))
		for _, path := range s.paths() {
			faults := append(b.byKeyboard(path), b.heard()...)
			if len(faults) > 0 {
				t.Errorf("%d %s:\n  %s", width, path, strings.Join(faults, "\n  "))
			}
		}
	}
}

// Popovers close with Escape and return the focus.
func TestFloatsReturnTheFocus(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	for _, at := range []struct {
		width  int64
		opener string
	}{{1440, `.side [data-palette]`}, {360, `.bar [data-palette]`}, {360, `.tabs5 [popovertarget]`}} {
		b.do(chromedp.EmulateViewport(at.width, 900))
		b.visit("/posts")
		js[bool](b, fmt.Sprintf(`(window.opener2 = document.querySelector(%q)).focus() ?? true`, at.opener))
		b.do(chromedp.KeyEvent(kb.Enter))
		s.Until("it is open", func() bool { return js[bool](b, `!!document.querySelector(":popover-open")`) })
		require.True(t, js[bool](b, `document.querySelector(":popover-open").contains(document.activeElement) || document.activeElement === opener2`), at.opener)
		b.do(chromedp.KeyEvent(kb.Escape))
		s.Until("it is closed", func() bool { return js[bool](b, `!document.querySelector(":popover-open")`) })
		require.Equal(t, "/posts", js[string](b, `location.pathname`), at.opener)
		require.True(t, js[bool](b, `document.activeElement === opener2`), "%s: the focus is on %s", at.opener, js[string](b, `document.activeElement.outerHTML.slice(0, 200)`))
	}
}

// A refused form moves the focus to what is wrong, and each wrong field has its error as its description.
func TestErrorsAreTiedToTheirFields(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	for _, form := range []struct{ path, button string }{
		{"/channels?add=1", `.dock button[type=submit]:last-of-type`}, {"/setup/sources?add=1", `.dock button[type=submit]:last-of-type`},
		{"/setup/webhooks?add=1", `.dock button[type=submit]:last-of-type`}, {"/bot/rules?form=new", `form.stack button[type=submit], .panel form button[type=submit]`},
	} {
		b.visit(form.path)
		js[bool](b, `document.querySelectorAll("form").forEach(f => f.noValidate = true); true`)
		b.send(form.button)
		js[bool](b, controls)
		require.Empty(t, b.heard(), form.path)
		require.Positive(t, js[int](b, `document.querySelectorAll("[aria-invalid=true], [role=alert]").length`), form.path)
	}
}
