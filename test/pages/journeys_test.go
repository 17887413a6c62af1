//go:build pages

package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// journey counts the clicks of a task, and prints them with its seconds.
type journey struct {
	*browser
	name   string
	clicks int
	begin  time.Time
}

func (b *browser) journey(name string) *journey {
	return &journey{browser: b, name: name, begin: time.Now()}
}

func (j *journey) click(selector string) {
	j.t.Helper()
	j.clicks++
	js[bool](j.browser, fmt.Sprintf(`document.querySelector(%q)?.scrollIntoView({block: "center"}); true`, selector))
	j.do(chromedp.Click(selector))
}

func (j *journey) end() {
	j.t.Logf("journey: %s: %d clicks, %.1f s", j.name, j.clicks, time.Since(j.begin).Seconds())
}

// until waits for an expression of the page.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	b.s.Until(what, func() bool { return js[bool](b, `document.readyState === "complete" && !!(`+expression+`)`) })
}

// choose gives a file to a field.
func (b *browser) choose(selector, name string, content []byte) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), name)
	require.NoError(b.t, os.WriteFile(path, content, 0o600))
	b.do(chromedp.SetUploadFiles(selector, []string{path}))
}

// A person writes a post with a picture to tagged channels for tomorrow at 10:00. The draft survives the closed page.
func TestAPersonWritesAPost(t *testing.T) {
	t.Parallel()
	s := open(t)
	posttest.Channel(s.DB, "news", "tagged", posttest.MaxParallel(10))
	s.Exec(`update autopost.channels set route_filter = '{"include_any": ["снег"]}' where channel_id = 'tagged'`)
	s.Exec(`update autopost.channels set enabled = false where channel_id <> 'tagged'`)
	b := s.browser()
	b.start()
	j := b.journey("post with a picture to tagged channels tomorrow at 10:00")
	b.visit("/compose")
	b.until("the toolbar works", `!document.querySelector("[data-tools]").hidden`)
	b.do(chromedp.SendKeys("#text", "Первый снег"))
	js[bool](b, `document.querySelector("#text").select(); true`)
	j.click(`[data-tool=bold]`)
	require.Equal(t, "**Первый снег**", js[string](b, `document.querySelector("#text").value`))
	b.choose("#files", "снег.png", picture(t))
	b.until("the picture is stored", `document.querySelector("#media input[name=medium]")`)
	b.do(chromedp.SendKeys("#media input[name=alt]", "Снег на мосту"))
	b.do(chromedp.SendKeys("#tags", "снег"))
	b.until("the lengths are shown", `document.querySelector("#counts").textContent.includes("of 4096")`)
	j.click(`.seg label:has(#w-at)`)
	b.until("a time is chosen", `document.querySelector("#w-at").checked`)
	b.until("the dry run knows the channel", `document.querySelector("#l-dry").textContent.startsWith("1 of ") && document.querySelector("#plan .pv b")`)
	b.until("the draft is kept", `location.pathname.length > 20 && document.querySelector("#kept").textContent.includes("Draft kept")`)
	address := js[string](b, `location.pathname`)

	// What is typed last is kept although the page is left at once.
	b.do(chromedp.SendKeys("#comment", "в последний миг"))
	b.visit("/posts")
	s.Until("the last words are kept", func() bool {
		return pgtest.Value[bool](s.DB, `select exists (select 1 from autopost.drafts where payload ->> 'first_comment' = 'в последний миг')`)
	})
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(*)::int from autopost.drafts`))
	b.visit(address)
	require.Equal(t, "**Первый снег**", js[string](b, `document.querySelector("#text").value`))
	require.Equal(t, "Снег на мосту", js[string](b, `document.querySelector("#media input[name=alt]").value`))
	j.clicks++
	b.send(`[data-submit]`)
	b.shown("in the queue")
	j.end()
	planned := pgtest.Value[time.Time](s.DB, `select scheduled_for from autopost.deliveries where channel_id = 'tagged'`)
	require.Equal(t, "10:00", planned.In(zoneOf(t, js[string](b, `Intl.DateTimeFormat().resolvedOptions().timeZone`))).Format("15:04"))
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where render_meta -> 'steps' @? '$[*].items'`))
	require.Empty(t, b.said())
}

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	return zone
}

// A refused submit shows its errors in the form and keeps everything; the composer looks right in each look.
func TestTheComposerInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, c := range []struct{ id, platform, target string }{{"max-city", "max", "-7001"}, {"x-city", "x", "city"}, {"video-city", "youtube", "UC0123456789012345678901"}} {
		posttest.Channel(s.DB, "news", c.id, posttest.MaxParallel(10))
		s.Exec(fmt.Sprintf(`update autopost.channels set platform = '%s', target_id = '%s' where channel_id = '%s'`, c.platform, c.target, c.id))
	}
	b := s.browser()
	b.start()
	b.visit("/compose")
	b.do(chromedp.SendKeys("#text", "**Первый снег в Архангельске**\n\nНочью город проснулся белым: за шесть часов выпало 11 сантиметров. "+strings.Repeat("На улицы вышли 84 машины. ", 12)+"[Все фото](https://sever.example/sneg)"))
	for i := range 3 {
		b.choose("#files", fmt.Sprintf("снег-%d.png", i), picture(t))
		b.until("the picture is stored", fmt.Sprintf(`document.querySelectorAll("#media input[name=medium]").length === %d`, i+1))
	}
	js[bool](b, `document.querySelector("[name=pane][value=x]").click(); true`)
	b.do(chromedp.SendKeys("#text-x", "Снег. sever.example/sneg"), chromedp.SendKeys("[name=button_text]", "Все фото"), chromedp.SendKeys("[name=button_url]", "https://sever.example/sneg"))
	b.do(chromedp.SendKeys("[name=part]", "Вторая часть"), chromedp.SendKeys("#link", "no link"))
	b.send(`[data-submit]`)
	require.Contains(t, js[string](b, `document.querySelector(".err").textContent`), "The link is refused")
	require.Equal(t, "Снег. sever.example/sneg", js[string](b, `document.querySelector("#text-x").value`))
	require.Equal(t, 3, js[int](b, `document.querySelectorAll("#media input[name=medium]").length`))
	js[bool](b, `document.querySelector("#link").value = ""; true`)
	b.do(chromedp.SendKeys("#comment", "Комментарий"))
	b.until("the previews are there", `document.querySelectorAll("#plan .pv").length >= 2`)
	b.until("the draft is kept", `document.querySelector("#kept [name=version]").value > 1`)
	id := js[string](b, `document.querySelector("#kept [name=draft]").value`)
	b.said() // the refused submit is an error in the console
	for _, l := range looks() {
		b.check("draft", "/compose/"+id, l)
	}
}

// A person drags a post to another hour, sees what that does, and moves it.
func TestAPersonMovesAPost(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.planned("Ярмарка", "2027-01-12T09:30:00Z")
	b := s.browser()
	b.start()
	b.do(chromedp.EmulateViewport(1440, 900))
	js[bool](b, `document.cookie = "autopost-zone=UTC; path=/"; true`)
	j := b.journey("move a post in the calendar")
	b.visit("/calendar?range=week&at=2027-01-12")
	js[bool](b, `(function () {
		const data = new DataTransfer(), from = document.querySelector("[data-move]"), to = document.querySelector('[data-at^="2027-01-14T11:00"]');
		from.dispatchEvent(new DragEvent("dragstart", {bubbles: true, dataTransfer: data}));
		to.dispatchEvent(new DragEvent("dragover", {bubbles: true, cancelable: true, dataTransfer: data}));
		to.dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: data}));
		return true;
	})()`)
	j.clicks++
	b.until("the question is shown", `document.querySelector("#move [name=to]")`)
	require.Contains(t, js[string](b, `document.querySelector("#move").textContent`), "It moves in 3 channels.")
	j.clicks++
	b.send(`#move form[method=post] button`)
	b.shown("It is moved.")
	j.end()
	require.Equal(t, "2027-01-14 11:30", scheduled(s, id))
	require.Empty(t, b.said())
}

// A person finds out why one channel did not get a post.
func TestAPersonFindsOutWhy(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	j := b.journey("find out why one channel did not get a post")
	b.visit("/posts")
	j.click(`.views a[href*="view=dead"]`)
	b.until("the dead are listed", `document.querySelectorAll("#posts tbody tr").length === 1`)
	j.click(`#posts tbody a`)
	b.until("the reason is shown", `document.querySelector(".hold .why")`)
	require.Contains(t, js[string](b, `document.querySelector(".hold").textContent`), "ended without being sent")
	j.end()
}
