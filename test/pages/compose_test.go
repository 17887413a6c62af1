package pages

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

func (s *site) composePaths() []string {
	return []string{"/compose", "/compose?view=drafts", "/submissions/" + s.ids["submission"]}
}

// picture is a PNG of one pixel.
func picture(t *testing.T) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	require.NoError(t, err)
	return raw
}

// attach sends the form of the composer with a file, as a browser without script does.
func (p *person) attach(path, token, name, kind string, content []byte, fields ...string) answer {
	t := p.s.t
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	require.NoError(t, w.WriteField("csrf", token))
	for i := 0; i < len(fields); i += 2 {
		require.NoError(t, w.WriteField(fields[i], fields[i+1]))
	}
	part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="files"; filename="` + name + `"`}, "Content-Type": {kind}})
	require.NoError(t, err)
	_, err = part.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.WriteField("comment", "after the file"))
	require.NoError(t, w.Close())
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, p.s.url+path, &body)
	require.NoError(t, err)
	r.Header.Set("Content-Type", w.FormDataContentType())
	for name, value := range p.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	return p.send(r)
}

func (p *person) token() string {
	p.s.t.Helper()
	return hiddenToken.FindStringSubmatch(p.get("/setup").body)[1]
}

var draftAddress = regexp.MustCompile(`^/compose/([0-9a-f-]{36})\?done=draft_kept$`)

func (s *site) payload(draft string) map[string]any {
	s.t.Helper()
	raw := pgtest.Value[string](s.DB, `select payload::text from autopost.drafts where draft_id = $1::uuid`, draft)
	var p map[string]any
	require.NoError(s.t, json.Unmarshal([]byte(raw), &p))
	return p
}

// A form with a picture works without script. All that a person wrote is in the draft, and is shown again.
func TestADraftKeepsAll(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	p.cookies["autopost-zone"] = "Europe%2FMoscow"
	token := p.token()
	written := []string{
		"endpoint", "editors", "text", "**Snow**\r\nand ice", "markup", "Markdown", "link", "https://example.org/1", "tags", "#city, ice", "to", "these", "channel", "city", "channel", "sport",
		"when", "at", "date", "2027-01-10", "time", "10:00", "zone", "Europe/Moscow", "text-x", "Snow on X", "title-youtube", "Snow film", "button_text", "Open", "button_url", "https://example.org/2",
		"button_row", "", "part", "And then", "part_media", "1", "no_preview", "1", "remove_date", "2027-01-11", "remove_time", "09:30",
		"rest", `{"links": ["https://example.org/3"], "variants": {"x": {"reply_settings": "everyone"}, "city": {"text": "own"}}}`,
	}
	kept := p.attach("/compose/save", token, "снег.png", "image/png", picture(t), written...)
	require.Equal(t, http.StatusSeeOther, kept.status, kept.body)
	id := draftAddress.FindStringSubmatch(kept.header.Get("Location"))[1]
	digest := pgtest.Value[string](s.DB, `select blob_ref from autopost.media_origin limit 1`)
	want := map[string]any{
		"text": "**Snow**\nand ice", "parse_mode": "Markdown", "link": "https://example.org/1", "tags": []any{"city", "ice"}, "first_comment": "after the file", "disable_preview": true,
		"routing": map[string]any{"include_channels": []any{"city", "sport"}}, "scheduled_for": "2027-01-10T10:00:00+03:00", "remove_at": "2027-01-11T09:30:00+03:00",
		"variants": map[string]any{"x": map[string]any{"text": "Snow on X", "reply_settings": "everyone"}, "youtube": map[string]any{"title": "Snow film"}, "city": map[string]any{"text": "own"}},
		"buttons":  []any{[]any{map[string]any{"text": "Open", "url": "https://example.org/2"}}}, "thread": []any{map[string]any{"text": "And then", "media": []any{1.0}}},
		"media": []any{map[string]any{"type": "image", "blob_ref": digest, "meta": map[string]any{"filename": "снег.png", "width": 1.0, "height": 1.0}}}, "links": []any{"https://example.org/3"},
	}
	require.Equal(t, want, s.payload(id))
	page := p.get("/compose/" + id).body
	for _, text := range []string{"**Snow**\nand ice", "снег.png", `<img src="/api/v1/media/` + digest + `"`, `value="2027-01-11"`, "Snow on X", "Snow film", "And then", "after the file", "https://example.org/2", "Draft kept at"} {
		require.Contains(t, page, text)
	}
	require.Contains(t, p.get("/compose?view=drafts").body, "/compose/"+id)
	require.Equal(t, http.StatusNotFound, s.member("editor").get("/compose/"+id).status, "a draft is that of its author")

	// What is shown is kept again as it was.
	form := fieldsOf(page)
	again := p.do(http.MethodPost, "/compose/save", form)
	require.Equal(t, http.StatusSeeOther, again.status, again.body)
	require.Equal(t, want, s.payload(id))
	// A second page with the old version does not overwrite it.
	form.Set("text", "old")
	require.Equal(t, http.StatusConflict, p.do(http.MethodPost, "/compose/save", form).status)
	require.Equal(t, want, s.payload(id))
	form.Set("mine", "1")
	require.Equal(t, http.StatusSeeOther, p.do(http.MethodPost, "/compose/save", form).status)
	require.Equal(t, "old", s.payload(id)["text"])

	require.Equal(t, http.StatusForbidden, p.attach("/compose/upload", "wrong", "a.png", "image/png", picture(t)).status, "a file needs the token of the form")
	require.Equal(t, http.StatusForbidden, s.member("viewer").post("/compose/save", "text", "x").status)
	refused := p.attach("/compose/save", token, "a.png", "image/png", []byte("no picture"), "text", "stays")
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.body, "stays")
}

// The dry run says who gets a post and who not, from the plan of the API.
func TestTheComposerShowsThePlan(t *testing.T) {
	t.Parallel()
	s := open(t)
	posttest.Channel(s.DB, "news", "tagged", posttest.MaxParallel(10))
	s.Exec(`update autopost.channels set route_filter = '{"include_any": ["snow"]}' where channel_id = 'tagged'`)
	p := s.owner()
	plan := p.post("/compose/plan", "text", "**Snow** <i>now</i>", "markup", "Markdown", "tags", "ice", "to", "tags", "when", "now", "zone", "UTC")
	require.Equal(t, http.StatusOK, plan.status, plan.body)
	for _, text := range []string{"3 of 5 channels get it", "The channel is disabled.", "1 channel does not take these tags", "The workspace is paused", "<b>Snow</b> &lt;i&gt;now&lt;/i&gt;", `id="counts" hx-swap-oob="true"`, "of 4096"} {
		require.Contains(t, plan.body, text)
	}
	require.True(t, strings.HasPrefix(plan.body, `<div class="stack tight" id="plan">`), "the answer is a part of the page")
	require.Contains(t, p.post("/compose/plan", "text", "", "to", "tags").body, "Write a text or add a picture")
	wrong := p.post("/compose/plan", "text", "x", "link", "javascript:alert(1)", "to", "these", "when", "at", "zone", "UTC")
	require.Contains(t, wrong.body, "The link is refused:")
	require.Contains(t, wrong.body, "Give a date and a time.")
	require.Contains(t, wrong.body, "Choose a channel")
	// Berlin skips an hour on 28 March 2027.
	require.Contains(t, p.post("/compose/plan", "text", "x", "to", "tags", "when", "at", "date", "2027-03-28", "time", "02:30", "zone", "Europe/Berlin").body, "The clocks skip this time")
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.drafts`), "a dry run writes nothing")
}

func TestAPostIsSubmittedOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	refused := p.post("/compose/submit", "text", "Kept text", "link", "no link", "to", "tags", "when", "now", "zone", "UTC", "part", "kept part")
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	for _, text := range []string{"Kept text", "kept part", "The link is refused:", "1 thing is wrong."} {
		require.Contains(t, refused.body, text)
	}
	form := fieldsOf(refused.body)
	form.Set("link", "https://example.org/")
	form.Set("endpoint", "in")
	done := p.do(http.MethodPost, "/compose/submit", form)
	require.Equal(t, http.StatusSeeOther, done.status, done.body)
	require.Regexp(t, `^/posts/[0-9a-f-]{36}\?done=posted_enqueued$`, done.header.Get("Location"))
	post, _, _ := strings.Cut(done.header.Get("Location"), "?")
	require.Equal(t, "page", pgtest.Value[string](s.DB, `select source ->> 'kind' from autopost.messages where message_id = $1::uuid`, strings.TrimPrefix(post, "/posts/")))
	second := p.do(http.MethodPost, "/compose/submit", form)
	require.NotEqual(t, http.StatusOK, second.status)
	require.Equal(t, post, p.get("/compose/"+form.Get("draft")).header.Get("Location"), "a submitted draft is its post")

	waits := p.post("/compose/submit", "text", "Decide about me", "endpoint", "editors", "to", "tags", "when", "now", "zone", "UTC").header.Get("Location")
	require.Regexp(t, `^/submissions/[0-9a-f-]{36}\?done=`, waits)
	require.Contains(t, p.get(waits).body, "The post waits for a decision.")
	require.Contains(t, p.get(waits).body, "Decide about me")

	repeats := p.post("/compose/submit", "text", "Every week", "endpoint", "in", "to", "tags", "when", "repeat", "every", "week", "day", "MO", "date", "2027-01-04", "time", "10:00", "zone", "Europe/Moscow")
	require.Equal(t, "/calendar?done=repeats", repeats.header.Get("Location"))
	require.Equal(t, "FREQ=WEEKLY;BYDAY=MO Europe/Moscow 2027-01-04 10:00:00", pgtest.Value[string](s.DB, `select rule || ' ' || zone || ' ' || starts_at from autopost.recurrences`))
	require.NotContains(t, p.get("/compose?view=drafts").body, "Every week", "its draft is gone")

	draft := draftAddress.FindStringSubmatch(p.post("/compose/save", "text", "gone soon", "to", "tags").header.Get("Location"))[1]
	require.Equal(t, "/compose?view=drafts&done=draft_removed", p.post("/compose/remove", "draft", draft).header.Get("Location"))
	require.Equal(t, http.StatusNotFound, p.get("/compose/"+draft).status)
}

// A submission whose media cannot be fetched says why, and an operator tries again.
func TestAFailedSubmissionIsRetried(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	id := s.JSON(`select autopost.submit_post('news', 'in', 'api', '{"text": "With a picture", "media": [{"type": "image", "url": "https://127.0.0.1/1.png"}]}')`)["submission_id"].(string)
	s.Exec(`update autopost.submissions set status = 'failed', attempt = 5, last_error = '{"category": "PERMANENT", "scope": "delivery", "code": "media_forbidden_address", "known": true, "message": "the address is private"}' where submission_id = $1::uuid`, id)
	page := p.get("/submissions/" + id).body
	require.Contains(t, page, "The media of the post could not be fetched.")
	require.Contains(t, page, "?ask=retry")
	require.NotContains(t, s.member("editor").get("/submissions/"+id).body, "?ask=retry")
	require.Contains(t, p.get("/submissions/"+id+"?ask=retry").body, "Fetch the media again?")
	require.Equal(t, http.StatusForbidden, s.member("approver").post("/submissions/"+id+"/retry").status)
	require.Equal(t, "/submissions/"+id+"?done=submission_retry", p.post("/submissions/"+id+"/retry", "reason", "moved").header.Get("Location"))
	require.Equal(t, http.StatusNotFound, p.get("/submissions/0199c6a0-0000-7000-8000-000000000000").status)
}

// A person reads what is wrong with a post in the language of the pages.
func TestFaultsOfAPostAreInTheLanguageOfThePerson(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	written := []string{"endpoint", "in", "text", "A post", "to", "tags", "when", "now", "zone", "UTC", "link", "ftp://example.org", "button_text", "Open", "button_url", "nowhere", "button_row", ""}
	english := p.post("/compose/plan", written...).body
	require.Contains(t, english, "link must be an http or https URL")
	p.cookies["autopost-language"] = "ru"
	russian := p.post("/compose/plan", written...).body
	require.Contains(t, russian, "напишите адрес http или https без пробелов")
	require.Contains(t, russian, "у каждой кнопки должны быть текст до 128 знаков")
	require.NotContains(t, russian, "must be")
}

// A picture is shown beside its alternative text.
func TestADraftShowsItsPictures(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.browser()
	b.start()
	p := s.person()
	require.Equal(t, http.StatusSeeOther, p.post("/login", "email", ann, "password", password).status)
	drawn := image.NewRGBA(image.Rect(0, 0, 320, 200))
	for y := range 200 {
		for x := range 320 {
			drawn.Set(x, y, color.RGBA{uint8(x / 2), 90, uint8(y), 255})
		}
	}
	var raw bytes.Buffer
	require.NoError(t, png.Encode(&raw, drawn))
	kept := p.attach("/compose/save", p.token(), "мост вечером.png", "image/png", raw.Bytes(), "endpoint", "in", "text", "The bridge", "to", "tags", "when", "now", "zone", "UTC")
	at := "/compose/" + draftAddress.FindStringSubmatch(kept.header.Get("Location"))[1]
	for _, l := range []look{{360, "light", "ru"}, {1440, "dark", "en"}} {
		b.check("draft with a picture", at, l)
		s.Until("the picture is drawn", func() bool { return js[int](b, `document.querySelector(".med img").naturalWidth`) == 320 })
	}
	b.do(chromedp.SendKeys(`.med input[name=alt]`, "Bridge at night"))
	b.shoot("draft with an alternative text")
	require.Empty(t, b.said())
}
