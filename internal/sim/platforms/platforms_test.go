package platforms_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/platforms"
	"autopost/internal/sim/telegram"
	"autopost/internal/sim/twitter"
	"autopost/internal/sim/webhook"
	"autopost/internal/sim/youtube"
)

const (
	telegramToken = "1234567:AAExampleToken"
	maxToken      = "f9LHod-EXAMPLE-TOKEN"
)

func newWorld(t *testing.T) (*platforms.Server, string) {
	t.Helper()
	w := platforms.New(platforms.Options{})
	require.NoError(t, w.Telegram.AddBot(telegramToken))
	require.NoError(t, w.MAX.AddBot(maxToken))
	w.Telegram.AddChat(telegram.Chat{ID: -1001, Title: "News <ru>"})
	w.MAX.AddChat(maxmessenger.Chat{ID: -7, Title: "Shop"})
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	return w, server.URL
}

func do(t *testing.T, method, url, authorization, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(got)
}

func TestEverythingUnderOneHandler(t *testing.T) {
	w, url := newWorld(t)
	status, _ := do(t, "POST", url+"/telegram/bot"+telegramToken+"/sendMessage", "",
		`{"chat_id":-1001,"text":"<b>Hi</b> <a href=\"https://e.org/\">there</a> &lt;script&gt;","parse_mode":"HTML"}`)
	require.Equal(t, 200, status)
	status, _ = do(t, "POST", url+"/max/messages?chat_id=-7", maxToken, `{"text":"hello"}`)
	require.Equal(t, 200, status)
	status, _ = do(t, "POST", url+"/max/messages?chat_id=-8", maxToken, `{"text":"lost"}`)
	require.Equal(t, 404, status)
	_, slot := do(t, "POST", url+"/max/uploads?type=file", maxToken, "")
	require.Contains(t, slot, url+"/max/upload/file/", "upload URLs are absolute")
	status, _ = do(t, "GET", url+"/files/photo-1.png", "", "")
	require.Equal(t, 200, status)
	status, _ = do(t, "GET", url+"/feeds/none", "", "")
	require.Equal(t, 404, status)
	require.Len(t, w.Telegram.Messages(-1001), 1)
	require.Len(t, w.MAX.Messages(-7), 1)

	var log struct {
		Totals  sim.Totals  `json:"totals"`
		Entries []sim.Entry `json:"entries"`
	}
	_, body := do(t, "GET", url+"/_control/log?platform=telegram&chat=-1001", "", "")
	require.NoError(t, json.Unmarshal([]byte(body), &log))
	require.Len(t, log.Entries, 1)
	require.Equal(t, "Hi there <script>", log.Entries[0].Text)
	require.Equal(t, int64(2), log.Totals.Messages)
	require.NotContains(t, body, telegramToken)

	status, page := do(t, "GET", url+"/", "", "")
	require.Equal(t, 200, status)
	for _, part := range []string{
		`<span class="bold">Hi</span>`, `href="https://e.org/"`, "&lt;script&gt;", "News &lt;ru&gt;", "hello",
		"chat.not.found: Chat -8 not found", "prefers-color-scheme: dark", `name="viewport"`,
		"files photo-1.png (1)", // requested, but not a chat
	} {
		require.Contains(t, page, part)
	}
	require.NotContains(t, page, "photo-1.png</h2>")
	require.NotContains(t, page, "AAExampleToken")
	require.NotContains(t, page, maxToken)
	_, page = do(t, "GET", url+"/_control/?platform=max&chat=-7", "", "")
	require.NotContains(t, page, "News &lt;ru&gt;</h2>")
	require.Contains(t, page, "Shop</h2>")
}

func TestFaultsOverHTTP(t *testing.T) {
	w, url := newWorld(t)
	faults := url + "/_control/faults"
	status, _ := do(t, "POST", faults, "", `{"platform":"telegram","method":"getMe","effect":"status","status":500,"to":1}`)
	require.Equal(t, 200, status)
	status, _ = do(t, "POST", faults, "", `[{"effect":"slow","delay_ms":1,"chat":"x"},{"effect":"hang","chat":"y"}]`)
	require.Equal(t, 200, status)
	getMe := url + "/telegram/bot" + telegramToken + "/getMe"
	status, _ = do(t, "GET", getMe, "", "")
	require.Equal(t, 500, status)
	status, _ = do(t, "GET", getMe, "", "")
	require.Equal(t, 200, status)

	var rules []sim.Fault
	_, body := do(t, "GET", faults, "", "")
	require.NoError(t, json.Unmarshal([]byte(body), &rules))
	require.Len(t, rules, 3)
	require.Equal(t, 2, rules[0].Matched)
	require.Equal(t, 1, rules[0].Applied)

	for _, wrong := range []string{`{"effect":"explode"}`, `{"effect":"hang","colour":1}`, `nonsense`, `[{"effect":"hang"},{"effect":"slow"}]`} {
		status, _ = do(t, "POST", faults, "", wrong)
		require.Equal(t, 400, status, wrong)
	}
	require.Len(t, w.Faults.List(), 3, "all rules of a request or none")
	status, _ = do(t, "DELETE", faults+"?id=1", "", "")
	require.Equal(t, 204, status)
	status, _ = do(t, "DELETE", faults+"?id=1", "", "")
	require.Equal(t, 404, status)
	status, _ = do(t, "DELETE", faults, "", "")
	require.Equal(t, 204, status)
	require.Empty(t, w.Faults.List())
}

func TestReset(t *testing.T) {
	w, url := newWorld(t)
	w.Feeds.Set("a", "text/plain", []byte("x"))
	require.NoError(t, w.Faults.Add(sim.Fault{Chat: "z", Effect: sim.EffectHang}))
	do(t, "POST", url+"/telegram/bot"+telegramToken+"/sendMessage", "", `{"chat_id":-1001,"text":"x"}`)
	do(t, "POST", url+"/max/messages?chat_id=-7", maxToken, `{"text":"x"}`)
	status, _ := do(t, "POST", url+"/_control/reset", "", "")
	require.Equal(t, 204, status)
	require.Empty(t, w.Log.Entries())
	require.Empty(t, w.Faults.List())
	require.Empty(t, w.Telegram.Messages(-1001))
	require.Empty(t, w.MAX.Messages(-7))
	_, _, ok := w.Feeds.Get("a")
	require.False(t, ok)
	status, _ = do(t, "POST", url+"/telegram/bot"+telegramToken+"/sendMessage", "", `{"chat_id":-1001,"text":"x"}`)
	require.Equal(t, 200, status, "bots and chats stay")
	require.Equal(t, int64(2), w.Telegram.Messages(-1001)[0].ID, "message ids keep growing")
}

func TestPlatformsThatAcceptAnyAccount(t *testing.T) {
	w := platforms.New(platforms.Options{
		Telegram: telegram.Options{AnyBot: true, AnyChat: true}, X: twitter.Options{AnyAccount: true}, YouTube: youtube.Options{AnyAccount: true}, Webhook: webhook.Options{AnyEndpoint: true},
	})
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	url := server.URL
	post := func(body string) string {
		t.Helper()
		status, answer := do(t, "POST", url+"/x/2/tweets", "Bearer 42-token", body)
		require.Equal(t, 201, status, answer)
		var made struct{ Data struct{ ID string } }
		require.NoError(t, json.Unmarshal([]byte(answer), &made))
		return made.Data.ID
	}
	first := post(`{"text":"1/2 see https://e.org/","made_with_ai":true}`)
	second := post(`{"text":"2/2 <b>","reply":{"in_reply_to_tweet_id":"` + first + `"}}`)
	status, _ := do(t, "POST", url+"/x/2/tweets", "Bearer 42-token", `{"text":"2/2 <b>"}`)
	require.Equal(t, 403, status)
	status, _ = do(t, "DELETE", url+"/x/2/tweets/"+second, "Bearer 42-token", "")
	require.Equal(t, 200, status)

	status, session := do(t, "POST", url+"/youtube/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status", "Bearer yt-token", `{}`)
	require.Equal(t, 400, status, session)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/youtube/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status",
		strings.NewReader(`{"snippet":{"title":"Cat vibing"},"status":{"privacyStatus":"unlisted"}}`))
	require.NoError(t, err)
	for name, value := range map[string]string{"Authorization": "Bearer yt-token", "Content-Type": "application/json", "X-Upload-Content-Type": "video/mp4"} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	location := response.Header.Get("Location")
	require.True(t, strings.HasPrefix(location, url+"/youtube/upload/youtube/v3/videos?"), location)
	status, video := do(t, "PUT", location, "Bearer yt-token", "\x00\x00\x00\x18ftypisom")
	require.Equal(t, 200, status, video)
	status, _ = do(t, "GET", url+"/google/token", "", "")
	require.Equal(t, 405, status)
	status, _ = do(t, "POST", url+"/webhook/crm", "", `{"type":"post.sent"}`)
	require.Equal(t, 401, status)

	for _, call := range []string{
		"sendMessage?chat_id=@demo&text=one", "sendMessage?chat_id=@demo&text=two", "editMessageText?chat_id=@demo&message_id=1&text=1", "pinChatMessage?chat_id=@demo&message_id=2",
	} {
		status, answer := do(t, "GET", url+"/telegram/bot1:token/"+call, "", "")
		require.Equal(t, 200, status, answer)
	}

	_, page := do(t, "GET", url+"/_control/", "", "")
	for _, part := range []string{
		"made with AI", `<a class="url" href="https://e.org/"`, "2/2 &lt;b&gt;", `<div class="replies"><article>`, "duplicate content", ">removed<", ">edited<", ">pinned<",
		"Cat vibing", "unlisted", "badRequest: Media type", "webhook-id, webhook-timestamp or webhook-signature is missing",
	} {
		require.Contains(t, page, part)
	}
	status, _ = do(t, "POST", url+"/_control/reset", "", "")
	require.Equal(t, 204, status)
	require.Empty(t, w.X.Posts("42"))
}

func TestPace(t *testing.T) {
	w, url := newWorld(t)
	_, body := do(t, "GET", url+"/_control/pace", "", "")
	require.JSONEq(t, `{"factor":1}`, body)
	_, body = do(t, "PUT", url+"/_control/pace", "", `{"factor":0.01}`)
	require.JSONEq(t, `{"factor":0.01}`, body)
	for _, wrong := range []string{`{"factor":0}`, `{"factor":-1}`, `{"factor":1e9}`, `fast`} {
		status, _ := do(t, "PUT", url+"/_control/pace", "", wrong)
		require.Equal(t, 400, status, wrong)
	}
	require.InDelta(t, 0.01, w.Pace.Factor(), 1e-9)
}

func TestControlChangesChats(t *testing.T) {
	w := platforms.New(platforms.Options{Telegram: telegram.Options{Local: true}, MAX: maxmessenger.Options{AnyHook: true}})
	defer w.Close()
	require.NoError(t, w.Telegram.AddBot("7001001:AAtoken"))
	w.Telegram.AddChat(telegram.Chat{ID: -5, Title: "Demo shop"})
	host := httptest.NewServer(w)
	defer host.Close()
	came := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- string(body)
	}))
	defer hook.Close()
	ask := func(method, path, body string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, host.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, 200, ask("POST", "/telegram/bot7001001:AAtoken/setWebhook", `{"url":"`+hook.URL+`"}`))
	require.Equal(t, 204, ask("POST", "/_control/chats", `{"platform":"telegram","chat_id":-5,"access":"kicked","title":"New","text":"hi"}`))
	require.Contains(t, <-came, `"status":"kicked"`)
	require.Contains(t, <-came, `"new_chat_title":"New"`)
	require.Contains(t, <-came, `"text":"hi"`)
	require.Equal(t, 204, ask("POST", "/_control/chats", `{"platform":"max","chat_id":-5,"access":"none","title":"New","text":"hi"}`))
	require.Equal(t, 400, ask("POST", "/_control/chats", `{"platform":"x","chat_id":-5}`))
	require.Equal(t, 400, ask("POST", "/_control/chats", `{"chat":-5}`))
	require.Equal(t, 200, ask("GET", "/_control/pushes", ""))
}
