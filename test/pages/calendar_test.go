package pages

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

func (s *site) calendarPaths() []string {
	planned := pgtest.Value[string](s.DB, `select to_char(date_trunc('hour', now()) + interval '2 hours', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`)
	if s.ids["planned"] == "" {
		s.ids["planned"] = s.planned("Запланированная публикация", planned)
	}
	if s.ids["repeat"] == "" {
		s.ids["repeat"] = s.repeated(`["Доброе утро", "Добрый день"]`)
	}
	return []string{"/calendar/repeats/" + s.ids["repeat"], "/calendar", "/calendar?range=month", "/calendar?range=day&hours=all", "/calendar?range=day&at=2027-10-31", "/calendar?move=" + s.ids["planned"] + "&from=" + planned}
}

// repeated is a post that repeats with these texts.
func (s *site) repeated(texts string) string {
	return s.JSON(`select autopost.put_recurrence('news', null, jsonb_build_object('endpoint_id', 'in', 'rule', 'FREQ=WEEKLY;BYDAY=MO,FR', 'zone', 'Europe/Moscow', 'starts_at', '2026-12-01T10:00',
		'payloads', (select jsonb_agg(jsonb_build_object('text', t, 'tags', '["утро"]'::jsonb)) from jsonb_array_elements_text($1::jsonb) t)), 'ann', 'test', false)`, texts)["recurrence_id"].(string)
}

// planned is a post that waits for a time.
func (s *site) planned(text, at string) string {
	return s.JSON(`select autopost.submit_post('news', 'in', 'api', jsonb_build_object('text', $1::text, 'scheduled_for', $2::text))`, text, at)["message_id"].(string)
}

func scheduled(s *site, message string) string {
	return pgtest.Value[string](s.DB, `select string_agg(distinct to_char(scheduled_for at time zone 'UTC', 'YYYY-MM-DD HH24:MI'), ',') from autopost.deliveries where message_id = $1::uuid`, message)
}

var newTime = regexp.MustCompile(`name="to" value="([^"]+)"`)

// Moving a post asks first, with the result of a dry run.
func TestAPostMovesInTheCalendar(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	id := s.planned("Ярмарка <b>завтра</b>", "2027-01-12T09:30:00Z")
	week := p.get("/calendar?range=week&at=2027-01-13").body
	require.Contains(t, week, "Ярмарка &lt;b&gt;завтра&lt;/b&gt;")
	require.Contains(t, week, "1 post is planned here.")
	require.NotContains(t, p.get("/calendar?range=week&at=2027-01-20").body, "Ярмарка")
	require.Contains(t, p.get("/calendar?range=month&at=2027-01-31").body, "/posts/"+id)
	ask := "/calendar?at=2027-01-13&from=2027-01-12T09%3A30%3A00Z&move=" + id + "&range=week"
	require.Contains(t, strings.ReplaceAll(week, "&amp;", "&"), ask)
	require.Contains(t, p.get(ask).body, "Move this post?")
	checked := p.get(ask + "&date=2027-01-14&time=11:00").body
	require.Contains(t, checked, "It moves in 3 channels.")
	require.Equal(t, "2027-01-12 09:30", scheduled(s, id), "a question changes nothing")
	past := p.get(ask + "&date=2020-01-14&time=11:00").body
	require.Contains(t, past[strings.Index(past, `id="move"`):], "must be in the future")
	done := p.post("/calendar/move", "message", id, "to", newTime.FindStringSubmatch(checked)[1], "back", "/calendar?range=week&at=2027-01-13")
	require.Equal(t, "/calendar?range=week&at=2027-01-13&done=calendar_move", done.header.Get("Location"), done.body)
	require.Equal(t, "2027-01-14 11:00", scheduled(s, id))
	viewer := s.member("viewer")
	require.NotContains(t, viewer.get("/calendar?range=week&at=2027-01-13").body, "data-move", "no action that is refused")
	require.Equal(t, http.StatusForbidden, viewer.post("/calendar/move", "message", id, "to", "2027-01-15T10:00:00Z").status)
	require.Equal(t, http.StatusNotFound, p.post("/calendar/move", "message", "x", "to", "2027-01-15T10:00:00Z").status)
	require.Equal(t, http.StatusUnprocessableEntity, p.get("/calendar?at=tomorrow").status)
}

// A refused move says why in the language of the person, in the question and after it.
func TestARefusedMoveIsExplained(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	const at = "2027-01-12T09:30:00Z"
	id := s.planned("Ярмарка", at)
	said := func(message string) (asked, moved string) {
		to := "&from=" + url.QueryEscape(at) + "&to=" + url.QueryEscape(at)
		refused := p.post("/calendar/move", "message", message, "to", at, "back", "/calendar")
		require.Equal(t, http.StatusConflict, refused.status)
		return p.get("/calendar?range=week&at=2027-01-12&move=" + message + to).body, refused.body
	}
	asked, moved := said(id)
	require.Contains(t, asked, `<li lang="en">city: it has this time already</li>`)
	require.Contains(t, moved, "city: it has this time already")
	asked, moved = said(s.ids["sent"])
	require.Contains(t, asked, "Nothing of this post waits.")
	require.Contains(t, moved, "Nothing of this post waits.")

	p.cookies["autopost-language"] = "ru"
	asked, moved = said(id)
	require.Contains(t, asked, `<li lang="ru">city: это время уже выбрано</li>`)
	require.Contains(t, moved, "city: это время уже выбрано")
	require.NotContains(t, asked+moved, "it has this time already")
	asked, moved = said(s.ids["sent"])
	require.Contains(t, asked, "Ничего из этой публикации не ждёт.")
	require.Contains(t, moved, "Ничего из этой публикации не ждёт.")
	require.NotContains(t, asked+moved, "Nothing was changed")
}

// A post takes the next free slot of each channel, from the calendar and from the composer.
func TestAPostTakesTheNextFreeSlot(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.Exec(`update autopost.channels set settings = settings || '{"min_gap_seconds": 3600}' where channel_id = 'city'`)
	id := s.planned("Ярмарка", "2099-01-12T09:30:00Z")
	ask := "/calendar?range=week&at=2099-01-12&from=2099-01-12T09%3A30%3A00Z&move=" + id
	require.Contains(t, p.get(ask).body, `name="slot" value="next_free"`)
	done := p.post("/calendar/move", "message", id, "slot", "next_free", "back", "/calendar")
	require.Equal(t, "/calendar?done=calendar_move", done.header.Get("Location"), done.body)
	at := func(message string) string {
		return pgtest.Value[string](s.DB, `select to_char(coalesce(scheduled_for, now()), 'YYYY-MM-DD"T"HH24:MI:SS') from autopost.deliveries where message_id = $1::uuid and channel_id = 'city'`, message)
	}
	require.NotContains(t, at(id), "2099", "an earlier slot is free")

	location := p.post("/compose/submit", "text", "The next one", "endpoint", "in", "to", "these", "channel", "city", "when", "slot", "zone", "UTC").header.Get("Location")
	require.Regexp(t, `^/posts/[0-9a-f-]{36}\?done=posted_enqueued$`, location)
	next, _, _ := strings.Cut(strings.TrimPrefix(location, "/posts/"), "?")
	require.NotEqual(t, at(id), at(next))
	apart := pgtest.Value[int](s.DB, `select min(abs(extract(epoch from coalesce(a.scheduled_for, a.created_at) - b.scheduled_for)))::int from autopost.deliveries a
		join autopost.deliveries b on b.channel_id = 'city' and b.message_id = $1::uuid where a.channel_id = 'city' and a.message_id = $2::uuid`, next, id)
	require.GreaterOrEqual(t, apart, 3599, "the gap of the channel is kept")
}

// A day on which the clocks change has its hours as they are: a repeated one twice, a skipped one with its label.
func TestTheCalendarFollowsTheClocks(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	p.cookies["autopost-zone"] = url.QueryEscape("Europe/Berlin")
	s.planned("first two", "2027-10-31T00:30:00Z")
	s.planned("second two", "2027-10-31T01:30:00Z")
	autumn := p.get("/calendar?range=day&at=2027-10-31&hours=all").body
	require.Contains(t, autumn, "again, UTC+01:00")
	row := func(at string) string {
		_, after, _ := strings.Cut(autumn, `data-at="`+at+`"`)
		cell, _, _ := strings.Cut(after, "</td>")
		return cell
	}
	require.Contains(t, row("2027-10-31T02:00:00+02:00"), "first two")
	require.Contains(t, row("2027-10-31T02:00:00+01:00"), "second two")
	require.Equal(t, 25, strings.Count(autumn, "data-at="))
	spring := p.get("/calendar?range=day&at=2027-03-28&hours=all").body
	require.Contains(t, spring, "The clocks skip this hour.")
	require.Equal(t, 23, strings.Count(spring, "data-at="))
}

func TestPostsThatRepeatAreInTheCalendar(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.Exec(`update autopost.channels set enabled = false`)
	s.Exec(`update autopost.workspaces set status = 'active'`)
	at := time.Now().UTC().AddDate(0, 0, 2)
	day := at.Format(time.DateOnly)
	require.Equal(t, http.StatusSeeOther, p.post("/compose/submit", "text", "Every day", "endpoint", "in", "to", "tags", "when", "repeat", "every", "day", "date", day, "time", "10:00", "zone", "UTC").status)
	page := "/calendar?range=day&at=" + day
	s.Until("the occurrence is expected", func() bool {
		return pgtest.Value[bool](s.DB, `select exists (select 1 from autopost.occurrences where status = 'expected')`)
	})
	body := p.get(page).body
	require.Contains(t, body, "expected from a post that repeats")
	require.Contains(t, body, "every day, UTC")
	id := pgtest.Value[string](s.DB, `select recurrence_id::text from autopost.recurrences`)
	asked := p.get(page + "&recurrence=" + id + "&from=" + day + "T10:00:00Z&date=" + day + "&time=12:00").body
	occurrence := regexp.MustCompile(`name="occurrence" value="([^"]+)"`).FindStringSubmatch(asked)[1]
	require.Equal(t, page+"&done=calendar_move", p.post("/calendar/move", "recurrence", id, "occurrence", occurrence, "to", newTime.FindStringSubmatch(asked)[1], "back", page).header.Get("Location"))
	require.Equal(t, day+" 12:00", pgtest.Value[string](s.DB, `select to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI') from autopost.occurrences where occurrence_id = $1::uuid`, occurrence))
	require.Equal(t, page+"&done=calendar_skip", p.post("/calendar/skip", "recurrence", id, "occurrence", occurrence, "back", page).header.Get("Location"))
	require.Equal(t, "skipped", pgtest.Value[string](s.DB, `select status from autopost.occurrences where occurrence_id = $1::uuid`, occurrence))
	for act, enabled := range map[string]bool{"disable": false} {
		require.Equal(t, http.StatusSeeOther, p.post("/calendar/"+act, "recurrence", id, "back", page).status)
		require.Equal(t, enabled, pgtest.Value[bool](s.DB, `select enabled from autopost.recurrences`))
	}
	require.Equal(t, http.StatusSeeOther, p.post("/calendar/remove", "recurrence", id, "back", page).status)
	require.NotContains(t, p.get(page).body, "every day, UTC")
}

// A post that repeats is changed on its page with the checks of the API. Other fields of its posts stay, and nothing of a
// refused form is lost.
func TestARuleIsChangedOnItsPage(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	id := s.repeated(`["One", "Two"]`)
	at := "/calendar/repeats/" + id
	require.Contains(t, p.get("/calendar").body, at)
	page := p.get(at).body
	seen := regexp.MustCompile(`name="seen" value="([^"]+)"`).FindStringSubmatch(page)[1]
	for _, part := range []string{"One</textarea>", "Two</textarea>", `value="2026-12-01"`, `value="10:00"`, `value="Europe/Moscow"`} {
		require.Contains(t, page, part)
	}
	form := func(more ...string) []string {
		return append([]string{"seen", seen, "every", "rule", "rule", "FREQ=DAILY;INTERVAL=2", "date", "2027-01-01", "time", "09:30", "zone", "Europe/Moscow", "text", "One"}, more...)
	}
	stored := func() string {
		return pgtest.Value[string](s.DB, `select rule || ' ' || starts_at || ' ' || payloads::text from autopost.recurrences where recurrence_id = $1::uuid`, id)
	}
	before := stored()
	// The form has two texts, which a map of fields cannot have.
	send := func(act string, fields ...string) answer {
		t.Helper()
		values := url.Values{"csrf": {hiddenToken.FindStringSubmatch(page)[1]}}
		for i := 0; i < len(fields); i += 2 {
			values.Add(fields[i], fields[i+1])
		}
		return p.do(http.MethodPost, at+"/"+act, values)
	}
	p.header.Set("HX-Target", "next")
	shown := send("check", form("text", "Two")...)
	require.Equal(t, http.StatusOK, shown.status)
	require.True(t, strings.HasPrefix(shown.body, `<section class="panel" id="next"`), shown.body)
	require.Contains(t, shown.body, "2027-01-01T06:30:00Z")
	require.Contains(t, shown.body, "2027-01-03T06:30:00Z")
	p.header.Del("HX-Target")
	require.Equal(t, before, stored(), "a look changes nothing")

	for field, wrong := range map[string]string{"rule": "FREQ=SOMETIMES", "zone": "Mars/Olympus", "time": "", "text": strings.Repeat("x", 100_001)} {
		fields := form("text", "Three, which stays")
		for i := 0; i < len(fields); i += 2 {
			if fields[i] == field {
				fields[i+1] = wrong
				break
			}
		}
		refused := send("save", fields...)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status, field)
		require.Contains(t, refused.body, "Three, which stays", field)
		require.Contains(t, refused.body, `role="alert"`, field)
	}
	require.Equal(t, before, stored())
	p.cookies["autopost-language"] = "ru"
	spoken := send("save", "seen", seen, "every", "rule", "rule", "FREQ=SOMETIMES", "date", "2027-01-01", "time", "09:30", "zone", "Europe/Moscow", "text", "One", "text", "Two")
	require.Contains(t, spoken.body, "правило не читается", "what is wrong is said in the language of the person")
	require.NotContains(t, spoken.body, "SOMETIMES is")
	p.cookies["autopost-language"] = "en"
	require.Equal(t, at+"?done=recurrence", send("save", form("text", "Two and more")...).header.Get("Location"))
	require.Equal(t, `FREQ=DAILY;INTERVAL=2 2027-01-01 09:30:00 [{"tags": ["утро"], "text": "One"}, {"tags": ["утро"], "text": "Two and more"}]`, stored())

	// Another person was faster: both versions are kept until the second save.
	late := send("save", form("text", "Mine")...)
	require.Equal(t, http.StatusConflict, late.status)
	require.Contains(t, late.body, "Mine</textarea>")
	seen = regexp.MustCompile(`name="seen" value="([^"]+)"`).FindStringSubmatch(late.body)[1]
	require.Equal(t, http.StatusSeeOther, send("save", form("text", "Mine")...).status)
	require.Contains(t, stored(), "Mine")

	require.NotContains(t, s.member("viewer").get(at).body, `class="dock"`, "a viewer has no button")
	require.Equal(t, http.StatusNotFound, p.get("/calendar/repeats/x").status)
	require.Equal(t, http.StatusNotFound, send("explode").status)
}

// The next times follow the form as a person types.
func TestTheNextTimesFollowTheForm(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := "/calendar/repeats/" + s.repeated(`["Every week"]`)
	b := s.browser()
	b.start()
	b.check("post that repeats", at, look{360, "light", "ru"})
	b.check("post that repeats", at, look{1440, "dark", "en"})
	js[bool](b, `(() => { const e = document.querySelector("#every"); e.value = "day"; e.dispatchEvent(new Event("change", {bubbles: true})); return true; })()`)
	s.Until("the times are those of the new rule", func() bool {
		return strings.Contains(js[string](b, `document.querySelector("#next").innerText`), "These are the times after the change")
	})
	require.Equal(t, 10, js[int](b, `document.querySelectorAll("#next time").length`))
	b.shoot("post that repeats, changed")
	b.send("#repeat .dock button.go")
	b.shown("It is changed.")
	require.Equal(t, "FREQ=DAILY", pgtest.Value[string](s.DB, `select rule from autopost.recurrences`))
	require.Empty(t, b.said())
}
