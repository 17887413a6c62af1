package maxmessenger_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/testing/wait"
)

const (
	token   = "f9LHod-EXAMPLE-TOKEN"
	other   = "f9LHod-OTHER-TOKEN"
	channel = int64(-70801090403050)

	// patience bounds waits that only a fault makes long.
	patience = wait.Bound
)

type fixture struct {
	*maxmessenger.Server
	core *sim.Core
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

func newFixture(t *testing.T, limits maxmessenger.Limits) fixture {
	t.Helper()
	core := sim.NewCore(0)
	s := maxmessenger.New(core, maxmessenger.Options{Limits: &limits})
	require.NoError(t, s.AddBot(token))
	require.NoError(t, s.AddBot(other))
	s.AddChat(maxmessenger.Chat{ID: channel, Title: "Demo shop", Username: "demo_shop"})
	s.AddChat(maxmessenger.Chat{ID: 182, Type: "dialog", UserID: 77})
	return fixture{Server: s, core: core}
}

// serve answers in memory, so that tests can use synctest.
func (f fixture) serve(token, method, target, contentType string, body io.Reader) reply {
	request := httptest.NewRequest(method, target, body)
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, request)
	return reply{status: w.Code, header: w.Header(), body: w.Body.Bytes()}
}

func (f fixture) do(method, target, body string) reply {
	return f.serve(token, method, target, "application/json", strings.NewReader(body))
}

func (f fixture) send(body string) reply {
	return f.do("POST", fmt.Sprintf("/messages?chat_id=%d", channel), body)
}

func (f fixture) sendText(t *testing.T, text, format string) reply {
	t.Helper()
	body, err := json.Marshal(map[string]any{"text": text, "format": format})
	require.NoError(t, err)
	return f.send(string(body))
}

func (r reply) into(t *testing.T, v any) {
	t.Helper()
	require.Equal(t, 200, r.status, "%s", r.body)
	require.NoError(t, json.Unmarshal(r.body, v))
}

type sentMessage struct {
	Recipient struct {
		ChatID   int64  `json:"chat_id"`
		ChatType string `json:"chat_type"`
		UserID   *int64 `json:"user_id"`
	} `json:"recipient"`
	Timestamp int64 `json:"timestamp"`
	Body      struct {
		Mid         string            `json:"mid"`
		Seq         int64             `json:"seq"`
		Text        string            `json:"text"`
		Attachments []json.RawMessage `json:"attachments"`
		Markup      []sim.Mark        `json:"markup"`
	} `json:"body"`
	Sender struct {
		UserID int64 `json:"user_id"`
		IsBot  bool  `json:"is_bot"`
	} `json:"sender"`
	URL string `json:"url"`
}

func (r reply) message(t *testing.T) sentMessage {
	t.Helper()
	var answer struct {
		Message sentMessage `json:"message"`
	}
	r.into(t, &answer)
	return answer.Message
}

func (r reply) refused(t *testing.T, status int, code, message string) {
	t.Helper()
	require.JSONEq(t, string(must(json.Marshal(map[string]string{"code": code, "message": message}))), string(r.body))
	require.Equal(t, status, r.status)
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func picture(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.String()
}

type openedSlot struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

func (f fixture) slot(t *testing.T, kind string) openedSlot {
	t.Helper()
	var s openedSlot
	f.do("POST", "/uploads?type="+kind, "").into(t, &s)
	return s
}

func (f fixture) put(t *testing.T, target, field, filename, content string) reply {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile(field, filename)
	require.NoError(t, err)
	_, err = io.WriteString(part, content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return f.serve("", "POST", target, w.FormDataContentType(), &b)
}

var filenames = map[string]string{"image": "a.png", "video": "a.mp4", "audio": "a.mp3", "file": "a.pdf"}

// uploaded makes a whole upload and returns the attachment token.
func (f fixture) uploaded(t *testing.T, kind string) string {
	t.Helper()
	s := f.slot(t, kind)
	content := "content of a " + kind
	if kind == "image" {
		content = picture(t, 10, 10)
	}
	answer := f.put(t, s.URL, "data", filenames[kind], content)
	require.Equal(t, 200, answer.status, "%s", answer.body)
	switch kind {
	case "image":
		var photos struct {
			Photos map[string]struct{ Token string }
		}
		answer.into(t, &photos)
		require.Len(t, photos.Photos, 1)
		for _, p := range photos.Photos {
			return p.Token
		}
	case "file":
		var file struct{ Token string }
		answer.into(t, &file)
		return file.Token
	}
	require.Equal(t, `<?xml version="1.0" encoding="UTF-8" standalone="no"?><retval>1</retval>`, string(answer.body))
	return s.Token
}

func attachments(kindAndToken ...string) string {
	var list []string
	for i := 0; i < len(kindAndToken); i += 2 {
		list = append(list, fmt.Sprintf(`{"type":%q,"payload":{"token":%q}}`, kindAndToken[i], kindAndToken[i+1]))
	}
	return `{"text":"x","attachments":[` + strings.Join(list, ",") + `]}`
}

func TestAuthorization(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	for _, wrong := range []string{"", "unknown-token", "Bearer " + token} {
		f.serve(wrong, "GET", "/me", "", nil).refused(t, 401, "verify.token", "Invalid access_token")
	}
	f.serve("", "GET", "/me?access_token="+token, "", nil).refused(t, 401, "verify.token", "Invalid access_token")
	var me struct {
		IsBot  bool  `json:"is_bot"`
		UserID int64 `json:"user_id"`
	}
	f.do("GET", "/me", "").into(t, &me)
	require.True(t, me.IsBot)
	require.Positive(t, me.UserID)
	f.RevokeBot(token)
	f.do("GET", "/me", "").refused(t, 401, "verify.token", "Invalid access_token")
	for _, e := range f.core.Log.Entries() {
		require.NotContains(t, e.Credential, "EXAMPLE")
	}
	require.Error(t, f.AddBot("a b"))
}

func TestPathsAndMethods(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	f.do("GET", "/chats", "").refused(t, 404, "not.found", "Path /chats is not recognized")
	f.do("PATCH", "/messages", "").refused(t, 405, "method.not.allowed", "Method not allowed")
	f.do("POST", "/uploads?type=photo", "").refused(t, 400, "proto.payload", "Invalid upload type: photo")
	f.send(strings.Repeat(" ", 1<<20+1)).refused(t, 413, "proto.payload", "Request is too large")
}

func TestSendText(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	m := f.sendText(t, "<b>Скидка</b> до вечера", "html").message(t)
	require.Equal(t, "Скидка до вечера", m.Body.Text)
	require.Equal(t, []sim.Mark{{Type: "strong", From: 0, Length: 6}}, m.Body.Markup)
	require.Equal(t, channel, m.Recipient.ChatID)
	require.Equal(t, "channel", m.Recipient.ChatType)
	require.Nil(t, m.Recipient.UserID)
	require.Greater(t, m.Body.Seq, int64(1)<<53)
	require.Regexp(t, `^mid\.[0-9a-f]{32}$`, m.Body.Mid)
	require.True(t, m.Sender.IsBot)
	require.True(t, strings.HasPrefix(m.URL, "https://max.ru/demo_shop/"))
	require.Greater(t, f.send(`{"text":"next"}`).message(t).Body.Seq, m.Body.Seq)

	d := f.do("POST", "/messages?user_id=77", `{"text":"x"}`).message(t)
	require.Equal(t, "dialog", d.Recipient.ChatType)
	require.Equal(t, int64(77), *d.Recipient.UserID)
	e := f.core.Log.Entries()[0]
	require.Equal(t, strconv.FormatInt(channel, 10), e.Chat)
	require.Equal(t, []string{m.Body.Mid}, e.MessageIDs)
	require.Equal(t, sim.Digest([]byte("<b>Скидка</b> до вечера")), e.TextDigest)
}

func TestMarkup(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	for _, c := range []struct {
		format, in, text string
		marks            []sim.Mark
	}{
		{"html", `<a href="https://e.org/?a=1&amp;b=2">x</a> &lt;`, "x <", []sim.Mark{{Type: "link", Length: 1, URL: "https://e.org/?a=1&b=2"}}},
		{"html", "<blockquote>q</blockquote><br>", "q", nil},
		{"html", "😀<u>u</u><s>s</s><mark>m</mark><code>c</code>", "😀usmc", []sim.Mark{{Type: "underline", From: 2, Length: 1},
			{Type: "strikethrough", From: 3, Length: 1}, {Type: "highlighted", From: 4, Length: 1}, {Type: "monospaced", From: 5, Length: 1}}},
		{"html", "2 < 3 <b>open", "2 < 3 open", nil},
		{"markdown", "**b** *i* ~~s~~ ++u++ `c` ^^h^^", "b i s u c h", []sim.Mark{{Type: "strong", Length: 1}, {Type: "emphasized", From: 2, Length: 1},
			{Type: "strikethrough", From: 4, Length: 1}, {Type: "underline", From: 6, Length: 1}, {Type: "monospaced", From: 8, Length: 1}, {Type: "highlighted", From: 10, Length: 1}}},
		{"markdown", "# Head\n[t](https://e.org) \\*x\\*", "Head\nt *x*", []sim.Mark{{Type: "heading", Length: 4}, {Type: "link", From: 5, Length: 1, URL: "https://e.org"}}},
		{"markdown", "2 * 3", "2 * 3", nil},
	} {
		t.Run(c.in, func(t *testing.T) {
			m := f.sendText(t, c.in, c.format).message(t)
			require.Equal(t, c.text, m.Body.Text)
			require.Equal(t, c.marks, m.Body.Markup)
		})
	}
	require.Equal(t, "<b>x</b>", f.send(`{"text":"<b>x</b>"}`).message(t).Body.Text, "without a format, markup is text")
}

func TestBodyRefusals(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	for _, c := range []struct{ name, body, message string }{
		{"no body", "", "Missing required parameter: body"},
		{"no JSON", "{", "Invalid request: unexpected EOF"},
		{"unknown field", `{"text":"x","parse_mode":"HTML"}`, `Invalid request: unknown field "parse_mode"`},
		{"two objects", `{"text":"x"}{}`, "Invalid request: data after the object"},
		{"format", `{"text":"x","format":"plain"}`, "Invalid enum value for field 'format': plain"},
		{"empty", `{"text":" "}`, "Missing required parameter: text or attachments"},
		{"too long", `{"text":"` + strings.Repeat("x", 4001) + `"}`, "Field 'text' size (4001) must be at most 4000"},
		{"too long in UTF-16", `{"text":"` + strings.Repeat("😀", 2001) + `"}`, "Field 'text' size (4002) must be at most 4000"},
		{"too long by markup", `{"format":"html","text":"<b>` + strings.Repeat("x", 3994) + `</b>"}`, "Field 'text' size (4001) must be at most 4000"},
		{"attachment type", `{"attachments":[{"type":"photo","payload":{"token":"x"}}]}`, "Invalid attachment type: photo"},
		{"no payload", `{"attachments":[{"type":"image"}]}`, "Missing required parameter: payload"},
		{"two sources", `{"attachments":[{"type":"image","payload":{"token":"x","url":"https://e.org/"}}]}`, "Must be exactly one of url, token, photos in attachment payload"},
		{"video by url", `{"attachments":[{"type":"video","payload":{"url":"https://e.org/"}}]}`, "Missing required parameter: token"},
		{"picture url", `{"attachments":[{"type":"image","payload":{"url":"ftp://e.org/"}}]}`, "Invalid photo url: ftp://e.org/"},
		{"unknown photo token", attachments("image", "nope"), "Invalid photo token provided: nope"},
		{"unknown file token", attachments("file", "nope"), "Invalid file token provided: nope"},
		{"sticker with others", `{"attachments":[{"type":"sticker","payload":{"code":"x"}},{"type":"image","payload":{"url":"https://e.org/"}}]}`, "Attachment must be the only one in message"},
		{"thirteen", `{"attachments":[` + strings.TrimSuffix(strings.Repeat(`{"type":"image","payload":{"url":"https://e.org/"}},`, 13), ",") + `]}`,
			"Field 'attachments' size (13) must be at most 12"},
		{"location", `{"attachments":[{"type":"location"}]}`, "Missing required parameter: latitude, longitude"},
		{"link type", `{"link":{"type":"copy","mid":"x"}}`, "Invalid enum value for field 'link.type': copy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.send(c.body).refused(t, 400, "proto.payload", c.message)
		})
	}
	f.send(`{"link":{"type":"reply","mid":"mid.x"}}`).refused(t, 404, "not.found", "Message mid.x not found")
	require.Empty(t, f.Messages(channel))
	require.Equal(t, 200, f.send(`{"text":"`+strings.Repeat("x", 4000)+`"}`).status)
}

func TestKeyboardLimits(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	keyboard := func(rows, perRow int, button string) string {
		row := "[" + strings.TrimSuffix(strings.Repeat(button+",", perRow), ",") + "]"
		return `{"text":"x","attachments":[{"type":"inline_keyboard","payload":{"buttons":[` + strings.TrimSuffix(strings.Repeat(row+",", rows), ",") + `]}}]}`
	}
	const link, callback = `{"type":"link","text":"Open","url":"https://e.org/"}`, `{"type":"callback","text":"x","payload":"y"}`
	for _, c := range []struct{ name, body, message string }{
		{"rows", keyboard(31, 1, callback), "errors.maxRows"},
		{"wide row", keyboard(1, 4, link), "errors.maxButtonsInRow"},
		{"row", keyboard(1, 8, callback), "errors.maxButtonsInRow"},
		{"scheme", keyboard(1, 1, `{"type":"link","text":"x","url":"tg://x"}`), "Must have only http/https links format in buttons"},
		{"text", keyboard(1, 1, `{"type":"link","text":"","url":"https://e.org/"}`), "Field 'text' size (0) of a button must be from 1 to 128"},
		{"url", keyboard(1, 1, `{"type":"link","text":"x","url":"https://e.org/`+strings.Repeat("x", 2048)+`"}`), "Field 'url' of a button must be at most 2048"},
		{"payload", keyboard(1, 1, `{"type":"callback","text":"x","payload":"`+strings.Repeat("x", 1025)+`"}`), "Field 'payload' of a button must be at most 1024"},
		{"type", keyboard(1, 1, `{"type":"chat","text":"x"}`), "Invalid button type: chat"},
		{"none", keyboard(0, 0, ""), "Missing required parameter: buttons"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.send(c.body).refused(t, 400, "proto.payload", c.message)
		})
	}
	require.Equal(t, 200, f.send(keyboard(30, 7, callback)).status)
	require.Len(t, f.send(keyboard(1, 3, link)).message(t).Body.Attachments, 1)
	entries := f.core.Log.Entries()
	require.Equal(t, "https://e.org/", entries[len(entries)-1].Buttons[0][2].URL)
}

func TestUploadsAndComposition(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	photo, photo2, video, audio, file := f.uploaded(t, "image"), f.uploaded(t, "image"), f.uploaded(t, "video"), f.uploaded(t, "audio"), f.uploaded(t, "file")
	require.Len(t, f.send(attachments("image", photo, "image", photo2, "video", video)).message(t).Body.Attachments, 3)
	require.Equal(t, 200, f.send(attachments("image", photo)).status, "tokens are reusable")
	require.Equal(t, 200, f.send(attachments("audio", audio)).status)
	require.Equal(t, 200, f.send(attachments("file", file)).status)
	for _, mix := range []string{attachments("file", file, "file", file), attachments("file", file, "image", photo)} {
		f.send(mix).refused(t, 400, "proto.payload", "Must be only one file attachment in message")
	}
	f.send(attachments("audio", audio, "image", photo)).refused(t, 400, "proto.payload", "Must be only one audio attachment in message")
	f.send(attachments("image", file)).refused(t, 400, "proto.payload", "Invalid photo token provided: "+file)
	photos := fmt.Sprintf(`{"attachments":[{"type":"image","payload":{"photos":{"k":{"token":%q}}}}]}`, photo)
	require.Equal(t, 200, f.send(photos).status)

	foreign := f.serve(other, "POST", fmt.Sprintf("/messages?chat_id=%d", channel), "application/json", strings.NewReader(attachments("image", photo)))
	foreign.refused(t, 400, "proto.payload", "Invalid photo token provided: "+photo)
	f.ExpireTokens()
	f.send(attachments("image", photo)).refused(t, 400, "proto.payload", "Invalid photo token provided: "+photo)

	e := f.core.Log.Entries(sim.Filter{Method: "upload image"})
	require.Len(t, e, 2)
	require.Equal(t, sim.Digest([]byte(picture(t, 10, 10))), e[0].Media[0].Digest)
	require.Equal(t, sim.CredentialHash(token), e[0].Credential)
	require.Empty(t, e[0].Notes)
}

func TestUploadRefusals(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	image := func() string { return f.slot(t, "image").URL }
	content := picture(t, 5, 5)
	f.serve("", "PUT", image(), "multipart/form-data; boundary=x", nil).refused(t, 405, "method.not.allowed", "Method not allowed")
	f.put(t, image(), "file", "a.png", content).refused(t, 400, "proto.payload", "File part 'data' with a filename expected")
	f.put(t, image()+"x", "data", "a.png", content).refused(t, 404, "not.found", "Unknown upload URL")
	f.put(t, strings.Replace(image(), "/image/", "/file/", 1), "data", "a.png", content).refused(t, 404, "not.found", "Unknown upload URL")
	f.put(t, image(), "data", "a.txt", content).refused(t, 415, "proto.payload", "File extension is forbidden")
	f.put(t, f.slot(t, "file").URL, "data", "a.exe", content).refused(t, 415, "proto.payload", "File extension is forbidden")
	f.put(t, image(), "data", "a.png", "").refused(t, 400, "proto.payload", "Empty file")
	f.put(t, image(), "data", "a.png", picture(t, 7681, 1)).refused(t, 400, "proto.payload", "Image dimensions are too large")
	f.put(t, image(), "data", "a.png", content+strings.Repeat("x", 50<<20)).refused(t, 413, "proto.payload", "File is too large")
	f.serve("", "POST", image(), "image/png", strings.NewReader(content)).refused(t, 400, "proto.payload", "multipart/form-data expected")
	once := image()
	require.Equal(t, 200, f.put(t, once, "data", "a.png", content).status)
	f.put(t, once, "data", "a.png", content).refused(t, 400, "proto.payload", "Upload URL has been used already")
}

func TestNotReady(t *testing.T) {
	notReady := func(t *testing.T, r reply, kind string) {
		t.Helper()
		r.refused(t, 400, "attachment.not.ready", "Key: errors.process.attachment."+kind+".not.processed")
	}
	t.Run("attempts", func(t *testing.T) {
		f := newFixture(t, maxmessenger.Limits{})
		f.SetProcessing(maxmessenger.Processing{Attempts: 2})
		file := f.uploaded(t, "file")
		notReady(t, f.send(attachments("file", file)), "file")
		notReady(t, f.send(attachments("file", file)), "file")
		require.Equal(t, 200, f.send(attachments("file", file)).status)
		require.Equal(t, 200, f.send(attachments("file", file)).status)
	})
	t.Run("delay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, maxmessenger.Limits{})
			f.SetProcessing(maxmessenger.Processing{Delay: time.Minute})
			video := f.uploaded(t, "video")
			<-time.After(59 * time.Second)
			notReady(t, f.send(attachments("video", video)), "video")
			<-time.After(time.Second)
			require.Equal(t, 200, f.send(attachments("video", video)).status)
		})
	})
	t.Run("before the upload", func(t *testing.T) {
		f := newFixture(t, maxmessenger.Limits{})
		notReady(t, f.send(attachments("video", f.slot(t, "video").Token)), "video")
	})
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, maxmessenger.DefaultLimits())
		require.Equal(t, 200, f.send(`{"text":"1"}`).status)
		require.Equal(t, 200, f.send(`{"text":"2"}`).status)
		limited := f.send(`{"text":"3"}`)
		limited.refused(t, 429, "too.many.requests", "Too many requests")
		require.Empty(t, limited.header.Get("Retry-After"))
		require.Equal(t, 200, f.do("POST", "/messages?chat_id=182", `{"text":"x"}`).status, "another chat has its own limit")
		<-time.After(500 * time.Millisecond)
		require.Equal(t, 200, f.send(`{"text":"3"}`).status)

		<-time.After(time.Minute)
		for range 30 {
			require.Equal(t, 200, f.do("GET", "/me", "").status)
		}
		f.do("GET", "/me", "").refused(t, 429, "too.many.requests", "Too many requests")
		require.Equal(t, 200, f.serve(other, "GET", "/me", "", nil).status)
		f.SetLimits(maxmessenger.Limits{})
		require.Equal(t, 200, f.do("GET", "/me", "").status)
	})
}
