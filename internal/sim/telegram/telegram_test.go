package telegram_test

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
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/wait"
)

const (
	token   = "1234567:AAExampleToken"
	other   = "7654321:BBOtherToken"
	channel = int64(-1001234567890)
	group   = int64(-1009876543210)

	// patience bounds waits that only a fault makes long.
	patience = wait.Bound
)

type fixture struct {
	*telegram.Server
	core *sim.Core
	url  string
}

type answer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
	status int
	header http.Header
}

type sentMessage struct {
	MessageID    int64               `json:"message_id"`
	Text         string              `json:"text"`
	Caption      string              `json:"caption"`
	Entities     []telegram.Entity   `json:"entities"`
	MediaGroupID string              `json:"media_group_id"`
	Date         int64               `json:"date"`
	SenderChat   *struct{ ID int64 } `json:"sender_chat"`
	From         *struct{ ID int64 } `json:"from"`
	Photo        []struct {
		FileID string `json:"file_id"`
		Width  int    `json:"width"`
	} `json:"photo"`
	Video *struct {
		FileID   string `json:"file_id"`
		Width    int    `json:"width"`
		Height   int    `json:"height"`
		Duration int    `json:"duration"`
	} `json:"video"`
	Document *struct {
		FileID string `json:"file_id"`
	} `json:"document"`
	Origin *struct {
		Type      string `json:"type"`
		MessageID int64  `json:"message_id"`
	} `json:"forward_origin"`
}

func newFixture(t *testing.T, limits telegram.Limits) fixture {
	t.Helper()
	core := sim.NewCore(0)
	s := telegram.New(core, telegram.Options{Limits: &limits})
	require.NoError(t, s.AddBot(token))
	require.NoError(t, s.AddBot(other))
	s.AddChat(telegram.Chat{ID: channel, Title: "Demo shop", Username: "demo_shop"})
	s.AddChat(telegram.Chat{ID: group, Type: "supergroup", Threads: []int64{7}})
	return fixture{Server: s, core: core, url: serveHTTP(t, s)}
}

func (f fixture) do(t *testing.T, token, method, contentType string, body io.Reader) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/bot"+token+"/"+method, body)
	require.NoError(t, err)
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	a := answer{status: response.StatusCode, header: response.Header}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&a))
	if a.OK {
		require.Equal(t, http.StatusOK, a.status)
	} else {
		require.Equal(t, a.ErrorCode, a.status)
	}
	return a
}

func (f fixture) call(t *testing.T, method string, args map[string]any) answer {
	t.Helper()
	body, err := json.Marshal(args)
	require.NoError(t, err)
	return f.do(t, token, method, "application/json", bytes.NewReader(body))
}

func (f fixture) send(t *testing.T, text, mode string) answer {
	t.Helper()
	return f.call(t, "sendMessage", map[string]any{"chat_id": channel, "text": text, "parse_mode": mode})
}

// upload sends a multipart form. files maps names of parts to contents.
func (f fixture) upload(t *testing.T, token, method string, fields, files map[string]string) answer {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, value := range fields {
		require.NoError(t, w.WriteField(name, value))
	}
	for name, content := range files {
		part, err := w.CreateFormFile(name, name+".bin")
		require.NoError(t, err)
		_, err = io.WriteString(part, content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return f.do(t, token, method, w.FormDataContentType(), &b)
}

func (a answer) message(t *testing.T) sentMessage {
	t.Helper()
	require.True(t, a.OK, a.Description)
	var m sentMessage
	require.NoError(t, json.Unmarshal(a.Result, &m))
	return m
}

func (a answer) album(t *testing.T) []sentMessage {
	t.Helper()
	require.True(t, a.OK, a.Description)
	var m []sentMessage
	require.NoError(t, json.Unmarshal(a.Result, &m))
	return m
}

func (a answer) refused(t *testing.T, code int, description string) {
	t.Helper()
	require.False(t, a.OK)
	require.Equal(t, description, a.Description)
	require.Equal(t, code, a.ErrorCode)
}

func picture(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.String()
}

func TestTokensAndPaths(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	require.True(t, f.call(t, "getMe", nil).OK)
	require.True(t, f.call(t, "GETME", nil).OK, "the case of method names is ignored")
	f.do(t, "1234567:WrongSecret", "getMe", "", nil).refused(t, 401, "Unauthorized")
	f.do(t, "nonsense", "getMe", "", nil).refused(t, 401, "Unauthorized: invalid token specified")
	f.call(t, "sendPigeon", nil).refused(t, 404, "Not Found: method not found")
	f.RevokeBot(token)
	f.call(t, "getMe", nil).refused(t, 401, "Unauthorized")

	response, err := http.Get(f.url + "/nothing")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, 404, response.StatusCode)
	require.Error(t, f.AddBot("no token"))
}

func TestEncodings(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	form := url.Values{"chat_id": {strconv.FormatInt(channel, 10)}, "text": {"hi"}, "entities": {`[{"type":"bold","offset":0,"length":2}]`}}
	bold := []telegram.Entity{{Type: "bold", Offset: 0, Length: 2}}
	require.Equal(t, bold, f.do(t, token, "sendMessage", "application/x-www-form-urlencoded", strings.NewReader(form.Encode())).message(t).Entities)
	require.Equal(t, bold, f.do(t, token, "sendMessage?"+form.Encode(), "", nil).message(t).Entities)
	require.Equal(t, bold, f.upload(t, token, "sendMessage", map[string]string{
		"chat_id": "@demo_shop", "text": "hi", "entities": form.Get("entities"),
	}, nil).message(t).Entities)
	m := f.call(t, "sendMessage", map[string]any{"chat_id": channel, "text": "hi", "entities": bold}).message(t)
	require.Equal(t, bold, m.Entities)
	require.Equal(t, int64(4), m.MessageID, "ids increase per chat")
	require.Equal(t, channel, m.SenderChat.ID)
	require.Nil(t, m.From)

	f.do(t, token, "sendMessage", "application/json", strings.NewReader(`{"text":`)).refused(t, 400, "Bad Request: message text is empty")
	f.do(t, token, "sendMessage", "application/json", strings.NewReader(`"`+strings.Repeat("x", 1<<20)+`"`)).
		refused(t, 413, "Request Entity Too Large: too much parameters")
	f.call(t, "sendMessage", map[string]any{"chat_id": channel, "text": "hi", "entities": "[{"}).refused(t, 400, "Bad Request: can't parse entities JSON object")
	f.call(t, "sendMessage", map[string]any{"chat_id": channel, "text": "hi", "colour": "red"}).message(t)
	entries := f.core.Log.Entries()
	require.Equal(t, []string{"unknown parameter colour"}, entries[len(entries)-1].Notes)
}

func TestTextLimitsCountCodePointsAfterParsing(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	require.True(t, f.send(t, strings.Repeat("😀", 4096), "").OK)
	f.send(t, strings.Repeat("😀", 4097), "").refused(t, 400, "Bad Request: message is too long")
	require.True(t, f.send(t, "<b>"+strings.Repeat("x", 4096)+"</b>", "HTML").OK)
	f.send(t, strings.Repeat("&amp;", 6554), "HTML").refused(t, 400, "Bad Request: text is too long")
	f.send(t, "", "").refused(t, 400, "Bad Request: message text is empty")
	f.send(t, " \n\t ", "").refused(t, 400, "Bad Request: text must be non-empty")
	f.send(t, "x", "BBCode").refused(t, 400, "Bad Request: unsupported parse_mode")
	form := url.Values{"chat_id": {"@demo_shop"}, "text": {"\xff"}}
	f.do(t, token, "sendMessage", "application/x-www-form-urlencoded", strings.NewReader(form.Encode())).
		refused(t, 400, "Bad Request: strings must be encoded in UTF-8")

	fields := map[string]string{"chat_id": "@demo_shop", "caption": strings.Repeat("x", 1025)}
	files := map[string]string{"photo": picture(t, 10, 10)}
	f.upload(t, token, "sendPhoto", fields, files).refused(t, 400, "Bad Request: message caption is too long")
	fields["caption"] = strings.Repeat("😀", 1024)
	require.True(t, f.upload(t, token, "sendPhoto", fields, files).OK)
}

func TestTrimMovesEntities(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	m := f.send(t, "  \r\n<b> bold\r\n </b>", "HTML").message(t)
	require.Equal(t, "bold", m.Text)
	require.Equal(t, []telegram.Entity{{Type: "bold", Offset: 0, Length: 4}}, m.Entities)
}

func TestHTML(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	for _, c := range []struct {
		in, text string
		entities []telegram.Entity
	}{
		{"<b>Sale</b> 10 &amp; 18", "Sale 10 & 18", []telegram.Entity{{Type: "bold", Length: 4}}},
		{"😀<I>x</I>", "😀x", []telegram.Entity{{Type: "italic", Offset: 2, Length: 1}}},
		{"&nbsp; & &lt;&gt;&quot;&#65;&#x42;", "&nbsp; & <>\"AB", nil},
		{`<a href="https://e.org/?a=1&amp;b=2">x</a>`, "x", []telegram.Entity{{Type: "text_link", Length: 1, URL: "https://e.org/?a=1&b=2"}}},
		{`<a href="e.org">x</a>`, "x", []telegram.Entity{{Type: "text_link", Length: 1, URL: "http://e.org/"}}},
		{`<a href="nonsense">x</a>`, "x", nil},
		{"<pre><code class='language-go'>a</code></pre>", "a", []telegram.Entity{{Type: "pre", Length: 1, Language: "go"}}},
		{"<code class='language-go'>a</code>", "a", []telegram.Entity{{Type: "code", Length: 1}}},
		{"<blockquote expandable>q</blockquote><span class=\"tg-spoiler\">s</span>", "qs",
			[]telegram.Entity{{Type: "expandable_blockquote", Length: 1}, {Type: "spoiler", Offset: 1, Length: 1}}},
		{"<b>a<i>b</i></b>", "ab", []telegram.Entity{{Type: "bold", Length: 2}, {Type: "italic", Offset: 1, Length: 1}}},
		{"<u></u>x</ ", "", nil},
	} {
		t.Run(c.in, func(t *testing.T) {
			if c.text == "" {
				require.False(t, f.send(t, c.in, "html").OK)
				return
			}
			m := f.send(t, c.in, "html").message(t)
			require.Equal(t, c.text, m.Text)
			require.Equal(t, c.entities, m.Entities)
		})
	}
}

func TestMarkupErrors(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	for _, c := range []struct{ mode, in, description string }{
		{"HTML", "<br>", `Unsupported start tag "br" at byte offset 0`},
		{"HTML", "ab <p>x</p>", `Unsupported start tag "p" at byte offset 3`},
		{"HTML", "a < b>", `Unsupported start tag "" at byte offset 2`},
		{"HTML", "x <b", "Unclosed start tag at byte offset 2"},
		{"HTML", "<a href", `Unclosed start tag "a" at byte offset 0`},
		{"HTML", `<a ="x">y</a>`, `Empty attribute name in the tag "a" at byte offset 0`},
		{"HTML", "<a href=x/>y</a>", "Unexpected end of name token at byte offset 8"},
		{"HTML", "<span>x</span>", `Tag "span" must have class "tg-spoiler" at byte offset 0`},
		{"HTML", "x</b>", "Unexpected end tag at byte offset 1"},
		{"HTML", "<b>x</b", "Unclosed end tag at byte offset 4"},
		{"HTML", "<b>x</i>", `Unmatched end tag at byte offset 4, expected "</b>", found "</i>"`},
		{"HTML", "<b>x", `Can't find end tag corresponding to start tag "b"`},
		{"HTML", `<tg-emoji emoji-id="x">y</tg-emoji>`, "Invalid custom emoji identifier specified"},
		{"MarkdownV2", "1.0", `Character '.' is reserved and must be escaped with the preceding '\'`},
		{"MarkdownV2", "🏟 🏟>", `Character '>' is reserved and must be escaped with the preceding '\'`},
		{"MarkdownV2", "🏟 🏟_abacaba", "Can't find end of Italic entity at byte offset 9"},
		{"MarkdownV2", "🏟 🏟_abac * asd _", "Can't find end of Italic entity at byte offset 21"},
		{"MarkdownV2", "🏟 🏟__🏟 _🏟___", "Can't find end of Italic entity at byte offset 23"},
		{"MarkdownV2", "🏟 🏟```a", "Can't find end of Pre entity at byte offset 9"},
		{"MarkdownV2", "🏟 🏟```a ", "Can't find end of PreCode entity at byte offset 9"},
		{"MarkdownV2", "[telegram](asd", "Can't find end of a URL at byte offset 10"},
		{"MarkdownV2", ">*b\n>ld \n>bo\nld*\nasd", "Can't find end of Bold entity at byte offset 1"},
	} {
		t.Run(c.in, func(t *testing.T) {
			f.send(t, c.in, c.mode).refused(t, 400, "Bad Request: can't parse entities: "+c.description)
		})
	}
}

func TestMarkdownV2(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	for _, c := range []struct {
		in, text string
		entities []telegram.Entity
	}{
		{`*b* _i_ __u__ ~s~ ||p||`, "b i u s p", []telegram.Entity{{Type: "bold", Length: 1}, {Type: "italic", Offset: 2, Length: 1},
			{Type: "underline", Offset: 4, Length: 1}, {Type: "strikethrough", Offset: 6, Length: 1}, {Type: "spoiler", Offset: 8, Length: 1}}},
		{`1\.0 \\ \*`, `1.0 \ *`, nil},
		{"[x](https://e.org/a\\)b)", "x", []telegram.Entity{{Type: "text_link", Length: 1, URL: "https://e.org/a)b"}}},
		{"`a.b`", "a.b", []telegram.Entity{{Type: "code", Length: 3}}},
		{"```go\nx.y```", "x.y", []telegram.Entity{{Type: "pre", Length: 3, Language: "go"}}},
		{"_a __b___", "a b", []telegram.Entity{{Type: "italic", Length: 3}, {Type: "underline", Offset: 2, Length: 1}}},
		{"a\n>b\n>c\nd", "a\nb\nc\nd", []telegram.Entity{{Type: "blockquote", Offset: 2, Length: 4}}},
		{">asd\n>q||e||w||\nz", "asd\nqew\nz", []telegram.Entity{{Type: "expandable_blockquote", Length: 7}, {Type: "spoiler", Offset: 5, Length: 1}}},
	} {
		t.Run(c.in, func(t *testing.T) {
			m := f.send(t, c.in, "MarkdownV2").message(t)
			require.Equal(t, c.text, m.Text)
			require.Equal(t, c.entities, m.Entities)
		})
	}
}

func TestChatsAndRights(t *testing.T) {
	for _, c := range []struct {
		name        string
		chat        telegram.Chat
		code        int
		description string
	}{
		{"kicked from channel", telegram.Chat{ID: -1, Access: telegram.AccessKicked}, 403, "Forbidden: bot was kicked from the channel chat"},
		{"kicked from group", telegram.Chat{ID: -1, Type: "supergroup", Access: telegram.AccessKicked}, 403, "Forbidden: bot was kicked from the supergroup chat"},
		{"not a member", telegram.Chat{ID: -1, Access: telegram.AccessNone}, 403, "Forbidden: bot is not a member of the channel chat"},
		{"blocked", telegram.Chat{ID: 1, Access: telegram.AccessKicked}, 403, "Forbidden: bot was blocked by the user"},
		{"member of channel", telegram.Chat{ID: -1, Access: telegram.AccessMember}, 400, "Bad Request: need administrator rights in the channel chat"},
		{"channel without right", telegram.Chat{ID: -1, Access: telegram.AccessReadOnly}, 400, "Bad Request: need administrator rights in the channel chat"},
		{"muted in group", telegram.Chat{ID: -1, Type: "group", Access: telegram.AccessReadOnly}, 400, "Bad Request: not enough rights to send text messages to the chat"},
		{"member of group", telegram.Chat{ID: -1, Type: "group", Access: telegram.AccessMember}, 200, ""},
		{"admin", telegram.Chat{ID: -1}, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, telegram.Limits{})
			f.AddChat(c.chat)
			a := f.call(t, "sendMessage", map[string]any{"chat_id": c.chat.ID, "text": "x"})
			require.Equal(t, c.code, a.status)
			require.Equal(t, c.description, a.Description)
			require.Len(t, f.Messages(c.chat.ID), map[bool]int{true: 1}[a.OK])
		})
	}
	f := newFixture(t, telegram.Limits{})
	for _, id := range []any{-42, "@unknown", "nonsense"} {
		f.call(t, "sendMessage", map[string]any{"chat_id": id, "text": "x"}).refused(t, 400, "Bad Request: chat not found")
	}
	f.call(t, "sendMessage", map[string]any{"text": "x"}).refused(t, 400, "Bad Request: chat_id is empty")
	f.call(t, "sendMessage", map[string]any{"chat_id": group, "text": "x", "message_thread_id": 8}).refused(t, 400, "Bad Request: message thread not found")
	require.True(t, f.call(t, "sendMessage", map[string]any{"chat_id": group, "text": "x", "message_thread_id": 7}).OK)

	f.Migrate(group, -100777)
	a := f.call(t, "sendMessage", map[string]any{"chat_id": group, "text": "x"})
	a.refused(t, 400, "Bad Request: group chat was upgraded to a supergroup chat")
	require.Equal(t, int64(-100777), a.Parameters.MigrateTo)
	require.True(t, f.call(t, "sendMessage", map[string]any{"chat_id": -100777, "text": "x"}).OK)
}

func TestKeyboards(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	send := func(button map[string]any) answer {
		return f.call(t, "sendMessage", map[string]any{"chat_id": channel, "text": "x",
			"reply_markup": map[string]any{"inline_keyboard": [][]any{{button}}}})
	}
	require.True(t, send(map[string]any{"text": "Open", "url": "https://e.org/"}).OK)
	require.Equal(t, [][]sim.Button{{{Text: "Open", URL: "https://e.org/"}}}, f.core.Log.Entries()[0].Buttons)
	send(map[string]any{"text": "x", "url": "nonsense"}).refused(t, 400, "Bad Request: inline keyboard button URL 'nonsense' is invalid: Wrong HTTP URL")
	send(map[string]any{"text": "x", "callback_data": strings.Repeat("x", 65)}).refused(t, 400, "Bad Request: BUTTON_DATA_INVALID")
	send(map[string]any{"text": "x"}).refused(t, 400, "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
}

func TestRates(t *testing.T) {
	t.Run("chat", func(t *testing.T) {
		f := newFixture(t, telegram.Limits{Chat: sim.Rate{PerSecond: 0.1, Burst: 2}})
		require.True(t, f.send(t, "1", "").OK)
		require.True(t, f.send(t, "2", "").OK)
		a := f.send(t, "3", "")
		a.refused(t, 429, fmt.Sprintf("Too Many Requests: retry after %d", a.Parameters.RetryAfter))
		require.InDelta(t, 10, a.Parameters.RetryAfter, 1)
		require.Equal(t, strconv.Itoa(a.Parameters.RetryAfter), a.header.Get("Retry-After"))
		require.True(t, f.call(t, "sendMessage", map[string]any{"chat_id": group, "text": "x"}).OK, "another chat has its own limit")
		entries := f.core.Log.Entries()
		require.Equal(t, a.Parameters.RetryAfter, entries[2].RetryAfter)
		require.Len(t, f.Messages(channel), 2)
	})
	t.Run("token", func(t *testing.T) {
		f := newFixture(t, telegram.Limits{Token: sim.Rate{PerSecond: 0.1, Burst: 1}})
		require.True(t, f.send(t, "1", "").OK)
		require.Equal(t, 429, f.call(t, "sendMessage", map[string]any{"chat_id": group, "text": "x"}).status)
		require.True(t, f.call(t, "getMe", nil).OK, "only messages count")
		a := f.do(t, other, "sendMessage", "application/json", strings.NewReader(fmt.Sprintf(`{"chat_id":%d,"text":"x"}`, channel)))
		require.True(t, a.OK, "another bot has its own limit")
	})
	t.Run("group, album costs its items", func(t *testing.T) {
		f := newFixture(t, telegram.Limits{Group: sim.Rate{PerSecond: 0.1, Burst: 3}})
		album := []map[string]any{{"type": "photo", "media": "https://e.org/1"}, {"type": "photo", "media": "https://e.org/2"}}
		require.True(t, f.call(t, "sendMediaGroup", map[string]any{"chat_id": group, "media": album}).OK)
		require.Equal(t, 429, f.call(t, "sendMediaGroup", map[string]any{"chat_id": group, "media": album}).status)
		require.True(t, f.call(t, "sendMessage", map[string]any{"chat_id": group, "text": "x"}).OK)
		require.True(t, f.call(t, "sendMediaGroup", map[string]any{"chat_id": channel, "media": album}).OK, "a channel is not a group")
	})
	t.Run("published", func(t *testing.T) {
		l := telegram.DefaultLimits()
		require.InDelta(t, 30, l.Token.PerSecond, 0)
		require.InDelta(t, 1, l.Chat.PerSecond, 0)
		require.InDelta(t, 20, l.Group.PerSecond*60, 1e-9)
	})
}

func TestWebhooks(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	set := func(args map[string]any) answer { return f.call(t, "setWebhook", args) }
	set(map[string]any{"url": "http://e.org/"}).refused(t, 400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
	set(map[string]any{"url": "https://e.org:9000/"}).refused(t, 400, "Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
	set(map[string]any{"url": "https://e.org/", "secret_token": "a b"}).refused(t, 400, "Bad Request: secret token contains unallowed characters")
	require.True(t, f.call(t, "getUpdates", nil).OK)
	require.Equal(t, "Webhook was set", set(map[string]any{"url": "https://e.org/", "allowed_updates": []string{"channel_post"}}).Description)
	require.JSONEq(t, `{"url":"https://e.org/","has_custom_certificate":false,"pending_update_count":0,"max_connections":40,"allowed_updates":["channel_post"]}`,
		string(f.call(t, "getWebhookInfo", nil).Result))
	require.Equal(t, 409, f.call(t, "getUpdates", nil).status)
	require.Equal(t, "Webhook was deleted", f.call(t, "deleteWebhook", nil).Description)
	require.Equal(t, "Webhook is already deleted", f.call(t, "deleteWebhook", nil).Description)
}

func TestHealthChecks(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	f.AddChat(telegram.Chat{ID: channel, Title: "Demo shop", Username: "demo_shop", Protected: true})
	require.JSONEq(t, fmt.Sprintf(`{"id":%d,"type":"channel","title":"Demo shop","username":"demo_shop","has_protected_content":true,"accent_color_id":0,"max_reaction_count":11}`, channel),
		string(f.call(t, "getChat", map[string]any{"chat_id": "@demo_shop"}).Result))
	for access, status := range map[telegram.Access]string{
		telegram.AccessAdmin: "administrator", telegram.AccessReadOnly: "administrator", telegram.AccessNone: "left", telegram.AccessKicked: "kicked",
	} {
		f.SetAccess(channel, access)
		var member struct {
			Status  string `json:"status"`
			MayPost bool   `json:"can_post_messages"`
		}
		a := f.call(t, "getChatMember", map[string]any{"chat_id": channel, "user_id": 1234567})
		require.NoError(t, json.Unmarshal(a.Result, &member))
		require.Equal(t, status, member.Status)
		require.Equal(t, access == telegram.AccessAdmin, member.MayPost)
	}
	f.SetAccess(channel, telegram.AccessMember)
	f.call(t, "getChatMember", map[string]any{"chat_id": channel, "user_id": 1234567}).refused(t, 400, "Bad Request: member list is inaccessible")
	f.call(t, "getChatMember", map[string]any{"chat_id": channel, "user_id": 5}).refused(t, 400, "Bad Request: PARTICIPANT_ID_INVALID")
}

func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}
