package published

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchemasRejectUnknownFields(t *testing.T) {
	var described map[string]any
	if !Data(t, "telegram-bot-api.json", &described) {
		return
	}
	telegram, maxBot := Telegram(t), MAX(t)
	for _, c := range []struct {
		schema Schema
		target string
		good   string
		bad    []string
	}{
		{
			telegram, "/bot1:a/sendMessage",
			`{"chat_id":-1,"text":"a","link_preview_options":{"is_disabled":true},"reply_markup":{"inline_keyboard":[[{"text":"a","url":"https://a.example"}]]}}`,
			[]string{
				`{"chat_id":-1}`, `{"chat_id":1.5,"text":"a"}`, `{"chat_id":-1,"text":1}`, `{"chat_id":-1,"text":"a","disable_web_page_preview":true}`,
				`{"chat_id":-1,"text":"a","link_preview_options":{"disabled":true}}`,
				`{"chat_id":-1,"text":"a","reply_markup":{"inline_keyboard":[[{"text":"a","href":"https://a.example"}]]}}`,
			},
		},
		{
			maxBot, "/messages?chat_id=-1",
			`{"text":"a","link":null,"attachments":[{"type":"image","payload":{"token":"t"}},{"type":"inline_keyboard","payload":{"buttons":[[{"type":"link","text":"a","url":"https://a.example"}]]}}]}`,
			[]string{
				`{"text":"a"}`, `{"text":1,"link":null,"attachments":null}`, `{"text":"a","link":null,"attachments":null,"silent":true}`,
				`{"text":"a","link":null,"attachments":null,"format":"markup"}`, `{"text":"a","link":null,"attachments":[{"type":"image","payload":{"tokens":"t"}}]}`,
				`{"text":"a","link":null,"attachments":[{"type":"inline_keyboard","payload":{"buttons":[[{"type":"link","text":"a","href":"x"}]]}}]}`,
				`{"text":"` + strings.Repeat("a", 4001) + `","link":null,"attachments":null}`, `{"text":"a","link":null,"attachments":null,"notify":1}`,
			},
		},
	} {
		check := func(target, body string) error {
			r := httptest.NewRequest(http.MethodPost, target, nil)
			r.Header.Set("Content-Type", "application/json")
			return c.schema(r, []byte(body))
		}
		require.NoError(t, check(c.target, c.good))
		for _, body := range c.bad {
			require.Error(t, check(c.target, body), body)
		}
		require.Error(t, check("/bot1:a/nothing", c.good))
	}
	require.Error(t, maxBot(httptest.NewRequest(http.MethodPost, "/messages?chat_id=-1&access_token=t", nil), []byte(`{"text":"a","link":null,"attachments":null}`)))
	require.Error(t, telegram(httptest.NewRequest(http.MethodGet, "/bot1:a/getChat?chat=1", nil), nil))
}

func TestXRejectsUndocumentedRequests(t *testing.T) {
	var described map[string]any
	if !Data(t, "x-api.openapi.json", &described) {
		return
	}
	check := func(schema Schema, method, target, body string) error {
		r := httptest.NewRequest(method, target, nil)
		r.Header.Set("Content-Type", "application/json")
		return schema(r, []byte(body))
	}
	const timeline = "/2/users/42/tweets?max_results=100&start_time=2026-11-23T00:00:00Z&post.fields=created_at,note_post&expansions=referenced_posts"
	for _, good := range [][3]string{
		{"POST", "/2/tweets", `{"text":"a","media":{"media_ids":["1"]},"reply":{"in_reply_to_tweet_id":"1"},"reply_settings":"following","made_with_ai":true}`},
		{"GET", timeline, ""}, {"GET", "/2/users/me", ""}, {"DELETE", "/2/tweets/42", ""},
		{"POST", "/2/media/upload/initialize", `{"media_type":"image/png","total_bytes":7,"media_category":"tweet_image"}`},
		{"POST", "/2/media/upload/42/finalize", ""}, {"GET", "/2/media/upload?command=STATUS&media_id=42", ""},
		{"POST", "/2/media/metadata", `{"id":"42","metadata":{"alt_text":{"text":"a"}}}`},
	} {
		require.NoError(t, check(X(t), good[0], good[1], good[2]))
	}
	for _, bad := range [][3]string{
		{"POST", "/2/tweets", `{"text":1}`}, {"POST", "/2/tweets", `{"text":"a","parse_mode":"HTML"}`}, {"POST", "/2/tweets", `{"media":{"media_ids":[]}}`},
		{"POST", "/2/tweets", `{"media":{"media_ids":["a"]}}`}, {"POST", "/2/tweets", `{"media":{}}`}, {"POST", "/2/tweets", `{"text":null}`},
		{"POST", "/2/tweets", `{"reply":{"in_reply_to_tweet_id":"1","note":"a"}}`}, {"POST", "/2/tweets", `{"reply_settings":"everyone"}`},
		{"POST", "/2/tweets?access_token=a", `{"text":"a"}`}, {"PUT", "/2/tweets", `{"text":"a"}`}, {"GET", "/2/nothing", ""},
		{"GET", timeline + "&tweet.fields=created_at", ""}, {"GET", strings.Replace(timeline, "note_post", "note_tweet", 1), ""},
		{"GET", strings.Replace(timeline, "note_post", "created_at", 1), ""}, {"GET", strings.Replace(timeline, "=100", "=101", 1), ""},
		{"GET", strings.Replace(timeline, "T00:00:00Z", "", 1), ""}, {"GET", strings.Replace(timeline, "/42/", "/nyx/", 1), ""},
		{"GET", "/2/media/upload?command=STATUS", ""}, {"GET", "/2/media/upload?command=INIT&media_id=42", ""}, {"POST", "/2/media/upload/42/finalize", "{}"},
		{"POST", "/2/media/metadata", `{"id":"42","metadata":{"alt_text":{"text":"` + strings.Repeat("a", 1001) + `"}}}`},
	} {
		require.Error(t, check(X(t), bad[0], bad[1], bad[2]), "%v", bad)
	}
	require.NoError(t, check(XWithOldFields(t), "GET", "/2/users/42/tweets?tweet.fields=created_at", ""))
}

func TestYouTubeRejectsUndocumentedRequests(t *testing.T) {
	var described map[string]any
	if !Data(t, "youtube-data-api.discovery.json", &described) {
		return
	}
	check := func(method, target, body string) error {
		r := httptest.NewRequest(method, target, nil)
		r.Header.Set("Content-Type", "application/json; charset=UTF-8")
		r.Header.Set("X-Upload-Content-Type", "video/mp4")
		return YouTube(t)(r, []byte(body))
	}
	const insert = "/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status"
	for _, good := range [][3]string{
		{"POST", insert, `{"snippet":{"title":"a","tags":["b"]},"status":{"privacyStatus":"private","publishAt":"2026-12-01T10:00:00Z"}}`},
		{"GET", "/youtube/v3/channels?part=id,snippet&mine=true", ""}, {"GET", "/youtube/v3/playlistItems?part=snippet&part=contentDetails&playlistId=a&maxResults=50", ""},
		{"PUT", "/youtube/v3/videos?part=snippet", `{"id":"a","snippet":{"title":"a","categoryId":"22"}}`}, {"DELETE", "/youtube/v3/videos?id=a", ""},
		{"POST", "/youtube/v3/playlistItems?part=snippet", `{"snippet":{"playlistId":"a","resourceId":{"kind":"youtube#video","videoId":"b"}}}`},
		{"POST", "/youtube/v3/commentThreads?part=snippet", `{"snippet":{"channelId":"a","videoId":"b","topLevelComment":{"snippet":{"textOriginal":"c"}}}}`},
		{"GET", "/youtube/v3/commentThreads?part=snippet&videoId=b&order=time&textFormat=plainText&maxResults=50", ""},
	} {
		require.NoError(t, check(good[0], good[1], good[2]))
	}
	for _, bad := range [][3]string{
		{"POST", insert, `{"snippet":{"title":"a","colour":"b"}}`}, {"POST", insert, `{"status":{"privacyStatus":"hidden"}}`}, {"POST", insert, `{"recordingDetails":{}}`},
		{"POST", insert, `{"status":{"embeddable":"yes"}}`}, {"POST", "/upload/youtube/v3/videos?part=snippet", `{"snippet":{"title":"a"}}`},
		{"POST", insert + "&notifySubscribers=perhaps", `{"snippet":{"title":"a"}}`}, {"POST", insert + "&colour=red", `{"snippet":{"title":"a"}}`},
		{"GET", "/youtube/v3/channels?mine=true", ""}, {"GET", "/youtube/v3/channels?part=id&mine=true&key=a", ""}, {"GET", "/youtube/v3/playlistItems?part=id&maxResults=51", ""},
		{"POST", "/youtube/v3/commentThreads?part=snippet", `{"snippet":{"text":"c"}}`}, {"GET", "/youtube/v3/commentThreads?part=snippet&order=newest", ""},
		{"DELETE", "/youtube/v3/videos?id=a&id=b", ""}, {"DELETE", "/youtube/v3/videos", ""}, {"GET", "/youtube/v3/nothing", ""}, {"PATCH", "/youtube/v3/videos?part=id", "{}"},
	} {
		require.Error(t, check(bad[0], bad[1], bad[2]), "%v", bad)
	}
}
