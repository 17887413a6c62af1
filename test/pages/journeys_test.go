//go:build pages

package pages

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// tasks are what a new user tries. Each returns its journey.
var tasks = []struct {
	name string
	// clicks is the largest number of clicks. Typing and the address of the first page do not count.
	clicks int
	do     func(t *testing.T) *journey
}{
	{"connect a bot and see the first post arrive", 6, connectsABot},
	{"post with a picture to tagged channels tomorrow at 10:00", 3, writesAPost},
	{"approve from a phone", 2, approvesFromAPhone},
	{"find out why one channel did not get a post", 2, findsOutWhy},
	{"retry the dead ones of yesterday", 3, retriesTheDeadOnes},
	{"pause a group", 5, pausesAGroup},
	{"replace a token", 2, replacesAToken},
	{"move a post in the calendar", 2, movesAPost},
	{"invite a moderator", 3, invitesAModerator},
	{"see the bot's last conversation", 2, seesTheLastConversation},
}

// A new user does the ten tasks. The table has the clicks and seconds of each; the seconds are those of the pages.
func TestTenTasks(t *testing.T) {
	t.Parallel()
	journeys := make([]*journey, len(tasks))
	t.Run("tasks", func(t *testing.T) {
		for i, task := range tasks {
			t.Run(task.name, func(t *testing.T) {
				t.Parallel()
				journeys[i] = task.do(t)
			})
		}
	})
	var table strings.Builder
	for i, task := range tasks {
		if journeys[i] == nil {
			continue // this part failed, or was not chosen
		}
		fmt.Fprintf(&table, "%-58s %2d clicks %6.1f s\n", task.name, journeys[i].clicks, journeys[i].seconds)
		require.LessOrEqual(t, journeys[i].clicks, task.clicks, task.name)
	}
	t.Logf("tasks of a new user:\n%s", table.String())
}

// journey counts the clicks and seconds of a task.
type journey struct {
	*browser

	clicks  int
	began   time.Time
	seconds float64
}

func (b *browser) journey() *journey { return &journey{browser: b, began: time.Now()} }

func (j *journey) click(selector string) {
	j.t.Helper()
	j.clicks++
	js[bool](j.browser, fmt.Sprintf(`document.querySelector(%q)?.scrollIntoView({block: "center"}); true`, selector))
	j.do(chromedp.Click(selector))
}

// tap clicks something and waits until the page shows something else.
func (j *journey) tap(selector, until string) {
	j.t.Helper()
	j.click(selector)
	j.until(until, until)
}

// send submits the form that has this button and waits for the next page.
func (j *journey) send(button string) {
	j.t.Helper()
	j.clicks++
	j.browser.send(button)
}

// end stops the watch. The console has no error.
func (j *journey) end() {
	j.t.Helper()
	j.seconds = time.Since(j.began).Seconds()
	require.Empty(j.t, j.said())
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

// look judges the page as it is now, in both widths.
func (b *browser) look(name string) {
	b.t.Helper()
	for _, width := range []int64{360, 1440} {
		b.do(chromedp.EmulateViewport(width, 900))
		b.shoot(name + " " + map[int64]string{360: "360", 1440: "1440"}[width])
		require.Empty(b.t, b.violations(), name)
		require.Empty(b.t, b.wide(), name)
		require.Empty(b.t, b.small(), name)
	}
}

// From an empty database to the post that arrived, by clicks.
func connectsABot(t *testing.T) *journey {
	s := bare(t)
	b := s.browser()
	j := b.journey()
	b.visit(s.link)
	for id, text := range map[string]string{"#email": ann, "#name": "Анна Личутина", "#workspace": "news", "#password": password} {
		b.do(chromedp.SendKeys(id, text))
	}
	j.send(`form[method=post]:not([action]) button[type=submit]`)
	require.Equal(t, "/setup", js[string](b, `location.pathname`))
	b.look("first 1")
	b.do(chromedp.SendKeys(`#secret`, botToken))
	j.click(`h1`) // leaving the field checks the token
	j.until("the name of the bot is shown", `document.querySelector("#standing").textContent.includes("@")`)
	b.look("first 1 checked")
	j.send(`form[action="/setup/first/bot"] button[type=submit]`)
	b.look("first 2")
	s.joinChat(newsChat, "Северные новости")
	j.until("the chat appears on the open page", `!!document.querySelector("#first-chats input[type=checkbox]")`)
	b.look("first 2 found")
	j.send(`form[action="/setup/first/chats"] button[type=submit]`)
	b.look("first 3")
	j.send(`form[action="/setup/first/post"] button[type=submit]`)
	j.until("the post arrives on the open page", `document.querySelector("#first-arrival").textContent.includes("Arrived at")`)
	b.look("first 4")
	j.send(`#first-arrival a.go`)
	require.Equal(t, "/", js[string](b, `location.pathname`))
	j.end()
	require.Len(t, s.Accepted(sim.Filter{Platform: telegram.Platform, Method: "sendMessage"}), 1)
	return j
}

// A person writes a post with a picture to tagged channels for tomorrow at 10:00. The draft survives the closed page.
func writesAPost(t *testing.T) *journey {
	s := open(t)
	posttest.Channel(s.DB, "news", "tagged", posttest.MaxParallel(10))
	s.Exec(`update autopost.channels set route_filter = '{"include_any": ["снег"]}' where channel_id = 'tagged'`)
	s.Exec(`update autopost.channels set enabled = false where channel_id <> 'tagged'`)
	b := s.browser()
	b.start()
	j := b.journey()
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
	j.send(`[data-submit]`)
	b.shown("in the queue")
	j.end()
	planned := pgtest.Value[time.Time](s.DB, `select scheduled_for from autopost.deliveries where channel_id = 'tagged'`)
	require.Equal(t, "10:00", planned.In(zoneOf(t, js[string](b, `Intl.DateTimeFormat().resolvedOptions().timeZone`))).Format("15:04"))
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where render_meta -> 'steps' @? '$[*].items'`))
	require.Empty(t, b.said())
	return j
}

// A person approves a post from a phone of 360 px by touch.
func approvesFromAPhone(t *testing.T) *journey {
	s := open(t)
	b := s.browser()
	b.start()
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
	b.visit("/")
	id := pgtest.Value[string](s.DB, `select submission_id::text from autopost.submissions where status = 'pending' order by submission_id desc limit 1`)
	j := b.journey()
	j.tap(`.tabs5 a[href="/decisions"]`, `location.pathname === "/decisions" && document.querySelector(".verdict")`)
	require.True(t, js[bool](b, `document.querySelector(".verdict .go").getBoundingClientRect().bottom <= innerHeight`), "the button is in reach without scrolling")
	require.GreaterOrEqual(t, js[float64](b, `document.querySelector(".verdict .go").getBoundingClientRect().height`), 36.0)
	j.tap(`.verdict .go`, `document.querySelector("[role=status]")?.textContent.includes("approved")`)
	j.end()
	require.Equal(t, "enqueued", pgtest.Value[string](s.DB, `select status from autopost.submissions where submission_id = $1::uuid`, id))
	require.Empty(t, b.wide())
	require.Empty(t, b.said())
	return j
}

// A person finds out why one channel did not get a post.
func findsOutWhy(t *testing.T) *journey {
	s := open(t)
	b := s.browser()
	b.start()
	j := b.journey()
	b.visit("/posts")
	j.click(`.views a[href*="view=dead"]`)
	b.until("the dead are listed", `document.querySelectorAll("#posts tbody tr").length === 1`)
	j.click(`#posts tbody a`)
	b.until("the reason is shown", `document.querySelector(".hold .why")`)
	require.Contains(t, js[string](b, `document.querySelector(".hold").textContent`), "ended without being sent")
	j.end()
	return j
}

// A person sends the dead deliveries of yesterday again.
func retriesTheDeadOnes(t *testing.T) *journey {
	s := open(t)
	b := s.browser()
	b.start()
	s.deadIn("city")
	b.visit("/operations/dead")
	require.Equal(t, 2, js[int](b, `document.querySelectorAll("#dead tbody tr").length`))
	j := b.journey()
	j.tap(`.fields .bs a:last-child`, `location.search.includes("from=") && document.querySelectorAll("#dead tbody tr").length === 2`)
	j.tap(`#dead header button`, `document.activeElement?.id === "reason"`)
	b.do(chromedp.SendKeys("#reason", "the bot is back"))
	j.tap(`.question button[type=submit]`, `document.querySelector("[role=status]")?.textContent.includes("in the queue again")`)
	j.end()
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where status = 'dead'`))
	require.Empty(t, b.said())
	return j
}

// A person pauses a group of channels for an hour and sees that it is paused.
func pausesAGroup(t *testing.T) *journey {
	s := open(t)
	b := s.browser()
	b.start()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.visit("/")
	j := b.journey()
	j.tap(`.side a[href="/setup"]`, `location.pathname === "/setup"`)
	j.tap(`main a[href="/setup/limits"]`, `location.pathname === "/setup/limits"`)
	j.tap(`main a[href^="/setup/groups/telegram"]`, `document.querySelector('a[href$="ask=pause"]')`)
	j.tap(`a[href$="ask=pause"]`, `document.querySelector(".question button[type=submit]")`)
	j.send(`.question button[type=submit]`)
	j.end()
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.channels where rate_group = 'bot' and platform = 'telegram' and paused_until is null`))
	return j
}

// A person replaces a token.
func replacesAToken(t *testing.T) *journey {
	s := open(t)
	require.NoError(t, s.World.Telegram.AddBot(botToken))
	b := s.browser()
	b.start()
	j := b.journey()
	b.visit("/setup/credentials")
	j.send(`#credential-bot a[href*="ask=replace"]`)
	b.do(chromedp.SendKeys(`#secret-value`, botToken))
	j.send(`form[action="/setup/credentials/set"] button[type=submit]`)
	b.shown("The platform accepts the secret")
	j.end()
	return j
}

// A person drags a post to another hour, sees what that does, and moves it.
func movesAPost(t *testing.T) *journey {
	s := open(t)
	id := s.planned("Ярмарка", "2027-01-12T09:30:00Z")
	b := s.browser()
	b.start()
	b.do(chromedp.EmulateViewport(1440, 900))
	js[bool](b, `document.cookie = "autopost-zone=UTC; path=/"; true`)
	j := b.journey()
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
	j.send(`#move form[method=post] button`)
	b.shown("It is moved.")
	j.end()
	require.Equal(t, "2027-01-14 11:30", scheduled(s, id))
	require.Empty(t, b.said())
	return j
}

// An owner invites a moderator, who accepts and decides.
func invitesAModerator(t *testing.T) *journey {
	s := open(t)
	owner, moderator := s.browser(), s.browser()
	owner.start()
	j := owner.journey()
	owner.visit("/setup/people")
	owner.do(chromedp.SendKeys(`form[action="/setup/people/invite"] #email`, "bob@example.org"), chromedp.SetValue(`form[action="/setup/people/invite"] #role`, "approver"))
	j.send(`form[action="/setup/people/invite"] button[type=submit]`)
	link := js[string](owner, `new URL(document.querySelector("input[readonly]").value).pathname`)
	moderator.visit(link)
	moderator.do(chromedp.SendKeys(`#name`, "Bob"), chromedp.SendKeys(`#password`, "battery horse correct"))
	j.clicks++
	moderator.send(`form[method=post]:not([action]) button[type=submit]`)
	moderator.visit("/decisions")
	j.clicks++
	moderator.send(`.verdict button[type=submit]`)
	moderator.shown("approved")
	j.end()
	require.Equal(t, http.StatusNotFound, s.person().get(link).status)
	return j
}

// A person sees the last conversation of the bot.
func seesTheLastConversation(t *testing.T) *journey {
	s := open(t)
	s.converse("Delivery takes 2 days.", "How long does delivery take?")
	b := s.browser()
	b.start()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.visit("/")
	j := b.journey()
	j.tap(`.side a[href="/bot"]`, `location.pathname === "/bot/chats"`)
	j.tap(`#chats a.lead`, `document.querySelector("#talk")?.textContent.includes("Delivery takes 2 days.")`)
	j.end()
	require.Empty(t, b.said())
	return j
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
