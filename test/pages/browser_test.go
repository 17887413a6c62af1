package pages

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/axe.js
var axe string

// bound catches a browser that hangs.
const bound = 5 * time.Minute

// browser is one window of Chromium, signed in as the first person.
type browser struct {
	t   *testing.T
	ctx context.Context
	s   *site

	mu       sync.Mutex
	messages []string
}

// chromium returns the program of the browser.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.FailNow(t, "Chromium is missing", "make setup installs it; or type: sudo apt-get install chromium")
	return ""
}

func (s *site) browser() *browser {
	s.t.Helper()
	allocator, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(chromium(s.t)), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(s.t.TempDir()), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true))
	s.t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	s.t.Cleanup(end)
	b := &browser{t: s.t, s: s, ctx: ctx}
	require.NoError(s.t, chromedp.Do(ctx)) // the browser starts here; its context has no bound
	require.NoError(s.t, chromedp.Listen(ctx, b.listen))
	return b
}

// listen keeps errors and warnings of the console. Violations of the policy are among them.
func (b *browser) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			text = fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			text = fmt.Sprintf("console.%s", e.Type)
			for _, a := range e.Args {
				text += " " + string(a.Value)
			}
		}
	}
	if text == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, text)
}

// said returns the messages since the last call.
func (b *browser) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.messages
	b.messages = nil
	return all
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, bound)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// js returns the value of an expression. A promise is awaited.
func js[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, bound)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return value
}

func (b *browser) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.s.url + path))
}

// send submits the form that has this button and waits for the next page.
func (b *browser) send(button string) {
	b.t.Helper()
	js[bool](b, fmt.Sprintf(`window.before = true; document.querySelector(%q)?.scrollIntoView({block: "center"}); true`, button))
	b.do(chromedp.Click(button))
	b.s.Until("the form is answered", func() bool {
		return js[bool](b, `!window.before && location.protocol === "http:" && document.readyState === "complete"`)
	})
}

// shown checks the line that says what a form did.
func (b *browser) shown(text string) {
	b.t.Helper()
	require.Contains(b.t, js[string](b, `document.querySelector("[role=status]")?.textContent ?? document.body.innerText`), text)
}

// start opens the first link and creates the account by the keyboard.
func (b *browser) start() {
	b.t.Helper()
	b.visit(b.s.link)
	for id, text := range map[string]string{"#email": ann, "#name": "Анна Личутина", "#workspace": "news", "#password": password} {
		b.do(chromedp.SendKeys(id, text))
	}
	b.send(`form[method=post]:not([action]) button[type=submit]`)
	require.Equal(b.t, "/", js[string](b, `location.pathname`))
}

// violations returns what axe finds, one line each.
func (b *browser) violations() []string {
	b.t.Helper()
	js[bool](b, axe+`; true`)
	return js[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + (n.any[0] || n.all[0] || n.none[0] || {message: ""}).message)))`)
}

// wide returns the elements that are wider than the window, and the panels that cut their content off.
func (b *browser) wide() []string {
	b.t.Helper()
	return js[[]string](b, `(() => {
		const named = e => e.tagName + "." + e.className + " " + e.id + " " + Math.round(e.getBoundingClientRect().right)
		const cut = [...document.querySelectorAll(".panel")].filter(e => e.scrollWidth > e.clientWidth + 1 && !/auto|scroll/.test(getComputedStyle(e).overflowX))
		const over = document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
		return [...cut, ...over].map(named).slice(0, 9)
	})()`)
}

// small returns the controls that are smaller than 24 px. Links in a sentence may be.
func (b *browser) small() []string {
	b.t.Helper()
	return js[[]string](b, `[...document.querySelectorAll("a[href], button, select, input:not([type=hidden])")]
		.filter(e => e.checkVisibility() && !e.closest(".skip, p, dd, h3, .vh") && !e.matches(".skip, .vh"))
		.map(e => [e, e.getBoundingClientRect()]).filter(([e, r]) => r.height < 24 || r.width < 24)
		.map(([e, r]) => e.outerHTML.slice(0, 120) + " " + Math.round(r.width) + "x" + Math.round(r.height))`)
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// shoot writes a picture of the page into the folder of AUTOPOST_SHOTS.
func (b *browser) shoot(name string) {
	folder := os.Getenv("AUTOPOST_SHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, bound)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.MkdirAll(folder, 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, unfit.ReplaceAllString(name, "-")+".png"), png, 0o600))
}

// look is how a page is opened.
type look struct {
	width    int64
	theme    string
	language string
}

// check opens a page and reports everything that is wrong with it.
func (b *browser) check(name, path string, l look) {
	b.t.Helper()
	at := fmt.Sprintf("%s %d %s %s", name, l.width, l.theme, l.language)
	b.do(chromedp.EmulateViewport(l.width, 900))
	js[string](b, fmt.Sprintf(`document.cookie = "autopost-theme=%s; path=/"; document.cookie = "autopost-language=%s; path=/"`, l.theme, l.language))
	b.said()
	b.visit(path)
	b.shoot(at)
	for what, faults := range map[string][]string{"axe": b.violations(), "too wide": b.wide(), "too small": b.small(), "console": b.said()} {
		if len(faults) > 0 {
			b.t.Errorf("%s: %s:\n  %s", at, what, strings.Join(faults, "\n  "))
		}
	}
	require.Equal(b.t, l.theme, js[string](b, `document.documentElement.dataset.theme`), at)
	require.Equal(b.t, 1, js[int](b, `document.querySelectorAll("h1").length`), at)
}

// isWhole reports whether each page is opened in every look. The sample of make test opens each page once.
func isWhole() bool { return os.Getenv("AUTOPOST_PAGES") == "all" }

// looks are the looks of the sample, or of the whole test.
func looks() []look {
	if isWhole() {
		return []look{{360, "light", "en"}, {360, "dark", "ru"}, {1440, "light", "ru"}, {1440, "dark", "en"}}
	}
	return []look{{360, "dark", "ru"}, {1440, "light", "en"}}
}

// Each page has no violation of axe, no error in the console and nothing wider than the window.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	for _, l := range looks() {
		b.visit("/login")
		b.check("login", "/login", l)
		b.check("first", s.link, l)
	}
	b.start()
	s.Exec(`select autopost.raise_alert('news', 'auth_lost', 'credential:bot', '{"message": "the token was revoked"}', '{}')`)
	invited := s.Run(nil, "user", "invite", "bob@example.org", "--role", "editor", "--workspace", "news")
	require.Zero(t, invited.Code, invited.Stderr)
	_, path, _ := strings.Cut(strings.TrimSpace(invited.Stdout), "/invite/")
	for n, l := range looks() {
		b.check("invite", "/invite/"+path, l)
		for i, path := range s.paths() {
			if !isWhole() && i%2 != n {
				continue
			}
			name, _, _ := strings.Cut(strings.NewReplacer(s.ids["message"], "waiting", s.ids["dead"], "dead", s.ids["sent"], "sent", s.ids["submission"], "one").Replace(path), "&")
			b.check(fmt.Sprintf("%02d%s", i, name), path, l)
		}
	}
}

// A person approves a post and filters the list in a browser, with scripts and by the keyboard alone.
func TestAPersonWorksInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	b.visit("/decisions")
	b.send(`.verdict button[type=submit]`)
	b.shown("approved")
	b.visit("/posts")
	js[bool](b, `window.before = true`)
	b.do(chromedp.SendKeys(`.filters input[name=q]`, "Кузнечиху\r"))
	s.Until("the list is replaced", func() bool { return js[int](b, `document.querySelectorAll("#posts tbody tr").length`) == 1 })
	require.True(t, js[bool](b, `window.before`), "the page was not loaded again")
	require.Contains(t, js[string](b, `decodeURIComponent(location.search)`), "q=Кузнечиху")
	b.visit("/posts/" + s.ids["dead"])
	b.do(chromedp.Click(`a[href*="ask=retry"]`))
	s.Until("the question is shown", func() bool { return js[bool](b, `document.activeElement?.id === "reason"`) })
	b.do(chromedp.SendKeys(`#reason`, "the bot is back"))
	b.send(`.question button[type=submit]`)
	b.shown("in the queue again")
	b.visit("/setup")
	b.send(`#account form[action="/logout"] button`)
	require.Equal(t, "/login", js[string](b, `location.pathname`))
	require.Empty(t, b.said())
}

// A row that leaves an open list stays readable.
func TestALeavingRowIsStruckOut(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	b.visit("/decisions?view=queue")
	s.Exec(`select autopost.decide_submission('news', $1::uuid, 'approve', '{"source": "sql"}', 'olga', 'fine')`, s.ids["submission"])
	s.Until("the row has left", func() bool { return js[bool](b, `!!document.querySelector("[data-rows] > .gone")`) })
	require.Equal(t, []string{"s-" + s.ids["submission"]}, js[[]string](b, `[...document.querySelectorAll("[data-rows] > *")]
		.filter(row => getComputedStyle(row).textDecorationLine === "line-through").map(row => row.id)`))
	require.Empty(t, b.violations())
}
