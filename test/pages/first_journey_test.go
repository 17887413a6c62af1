//go:build pages

package pages

import (
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
)

// firstJourney counts the clicks of a person, and the seconds with the time that the pages take.
type firstJourney struct {
	b      *browser
	began  time.Time
	clicks int
}

func (j *firstJourney) click(at string) {
	j.b.t.Helper()
	j.clicks++
	j.b.do(chromedp.Click(at))
}

// send clicks a button and waits for the next page.
func (j *firstJourney) send(at string) {
	j.b.t.Helper()
	j.clicks++
	j.b.send(at)
}

func (j *firstJourney) until(what, expression string) {
	j.b.t.Helper()
	j.b.s.Until(what, func() bool { return js[bool](j.b, expression) })
}

func (j *firstJourney) end(what string) {
	j.b.t.Helper()
	j.b.t.Logf("%s: %d clicks, %.1f s", what, j.clicks, time.Since(j.began).Seconds())
	require.Empty(j.b.t, j.b.said())
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
func TestFirstRunInABrowser(t *testing.T) {
	t.Parallel()
	s := bare(t)
	b := s.browser()
	j := &firstJourney{b: b, began: time.Now()}
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
	j.end("first run")
	require.Len(t, s.Accepted(sim.Filter{Platform: telegram.Platform, Method: "sendMessage"}), 1)
}

// A person replaces a token.
func TestATokenIsReplacedInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	require.NoError(t, s.World.Telegram.AddBot(botToken))
	b := s.browser()
	b.start()
	j := &firstJourney{b: b, began: time.Now()}
	b.visit("/setup/credentials")
	j.send(`#credential-bot a[href*="ask=replace"]`)
	b.do(chromedp.SendKeys(`#secret-value`, botToken))
	j.send(`form[action="/setup/credentials/set"] button[type=submit]`)
	b.shown("The platform accepts the secret")
	j.end("replace a token")
}

// An owner invites a moderator, who accepts and decides.
func TestAModeratorIsInvitedInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	owner, moderator := s.browser(), s.browser()
	owner.start()
	j := &firstJourney{b: owner, began: time.Now()}
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
	j.end("invite a moderator")
	require.Equal(t, http.StatusNotFound, s.person().get(link).status)
}
