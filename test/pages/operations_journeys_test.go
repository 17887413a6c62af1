//go:build pages

package pages

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// task counts the clicks and seconds of a task.
type task struct {
	*browser
	clicks int
	begin  time.Time
}

func (b *browser) task() *task { return &task{browser: b, begin: time.Now()} }

// tap clicks something and waits until the page shows something else.
func (j *task) tap(selector, until string) {
	j.t.Helper()
	j.clicks++
	j.do(chromedp.Click(selector))
	j.s.Until(until, func() bool { return js[bool](j.browser, `document.readyState === "complete" && !!(`+until+`)`) })
}

func (j *task) report(name string) {
	j.t.Helper()
	j.t.Logf("task: %s: %d clicks, %.1f s", name, j.clicks, time.Since(j.begin).Seconds())
}

// A person approves a post from a phone of 360 px by touch.
func TestAPersonApprovesFromAPhone(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
	b.visit("/")
	id := pgtest.Value[string](s.DB, `select submission_id::text from autopost.submissions where status = 'pending' order by submission_id desc limit 1`)
	j := b.task()
	j.tap(`.tabs5 a[href="/decisions"]`, `location.pathname === "/decisions" && document.querySelector(".verdict")`)
	require.True(t, js[bool](b, `document.querySelector(".verdict .go").getBoundingClientRect().bottom <= innerHeight`), "the button is in reach without scrolling")
	require.GreaterOrEqual(t, js[float64](b, `document.querySelector(".verdict .go").getBoundingClientRect().height`), 36.0)
	j.tap(`.verdict .go`, `document.querySelector("[role=status]")?.textContent.includes("approved")`)
	j.report("approve from a phone")
	require.Equal(t, "enqueued", pgtest.Value[string](s.DB, `select status from autopost.submissions where submission_id = $1::uuid`, id))
	require.Empty(t, b.wide())
	require.Empty(t, b.said())
}

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
	s.Until("the next one is open", func() bool { return js[bool](b, `location.search.includes("done=reject")`) })
	press("a", `location.search.includes("done=approve")`)
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(*)::int from autopost.submissions where status = 'pending'`))
	require.Empty(t, b.said())
}

// A person sends the dead deliveries of yesterday again.
func TestAPersonRetriesTheDeadOnesOfYesterday(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	s.deadIn("city")
	b.visit("/operations/dead")
	require.Equal(t, 2, js[int](b, `document.querySelectorAll("#dead tbody tr").length`))
	j := b.task()
	j.tap(`.fields .bs a:last-child`, `location.search.includes("from=") && document.querySelectorAll("#dead tbody tr").length === 2`)
	j.tap(`#dead header button`, `document.activeElement?.id === "reason"`)
	b.do(chromedp.SendKeys("#reason", "the bot is back"))
	j.tap(`.question button[type=submit]`, `document.querySelector("[role=status]")?.textContent.includes("in the queue again")`)
	j.report("retry the dead ones of a day")
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where status = 'dead'`))
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

// A person sees the last conversation of the bot.
func TestAPersonSeesTheLastConversation(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.converse("Delivery takes 2 days.", "How long does delivery take?")
	b := s.browser()
	b.start()
	b.visit("/")
	j := b.task()
	j.tap(`.side a[href="/bot"]`, `location.pathname === "/bot/chats"`)
	j.tap(`#chats a.lead`, `document.querySelector("#talk")?.textContent.includes("Delivery takes 2 days.")`)
	j.report("see the bot's last conversation")
	require.Empty(t, b.said())
}
