package youtube_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/youtube"
)

const block = 256 << 10

func TestResumableUpload(t *testing.T) {
	f := newFixture(t)
	content := clip("a", 3*block+100)
	total := "/786532"
	session := f.session("Cat", `{"privacyStatus":"unlisted","containsSyntheticMedia":true}`, len(content))
	require.Regexp(t, `^http://example\.com/upload/youtube/v3/videos\?.*upload_id=\w+`, session)
	r := f.put(session, "", "bytes */786532")
	require.Equal(t, 308, r.status)
	require.Empty(t, r.header.Get("Range"), "nothing is stored")

	r = f.put(session, content[:2*block], "bytes 0-524287"+total)
	require.Equal(t, 308, r.status)
	require.Equal(t, "bytes=0-524287", r.header.Get("Range"))
	require.Empty(t, r.header.Get("Location"), "308 is not a redirect here")
	r = f.serve("POST", session, "", "Content-Range", "bytes */786532", "X-GUploader-No-308", "yes")
	require.Equal(t, 200, r.status)
	require.Equal(t, "308", r.header.Get("X-HTTP-Status-Code-Override"))
	require.Equal(t, "bytes=0-524287", r.header.Get("Range"))
	require.Empty(t, f.Videos(channelID))

	var v, again shownVideo
	f.into(f.serve("POST", session, content[2*block:], "Content-Range", "bytes 524288-786531"+total), &v)
	require.Equal(t, "Cat", v.Snippet.Title)
	require.Equal(t, "unlisted", v.Status.PrivacyStatus)
	require.True(t, v.Status.ContainsSyntheticMedia)
	f.into(f.put(session, "", "bytes */786532"), &again)
	require.Equal(t, v.ID, again.ID, "a status request after a crash returns the video")
	videos := f.Videos(channelID)
	require.Len(t, videos, 1)
	require.Equal(t, sim.Digest([]byte(content)), videos[0].Media.Digest)
	require.Equal(t, sim.Totals{Requests: 7, Accepted: 7, Messages: 1}, f.core.Log.Totals(), "one video for repeated answers")
	made := f.core.Log.Entries()[5]
	require.Equal(t, channelID, made.Chat)
	require.Equal(t, "Cat", made.Title)
	require.Equal(t, []string{"unlisted", "altered or synthetic"}, made.Badges)
}

func TestChunkRules(t *testing.T) {
	f := newFixture(t)
	content := clip("a", 2*block+1)
	session := f.session("Cat", `{}`, len(content))
	f.refused(f.put(session, content[:1000], "bytes 0-999/524289"), 400, "badRequest")
	f.refused(f.put(session, content[:block], "bytes 0-262143/600000"), 400, "invalidContentRange")
	f.refused(f.put(session, content[:block], "bytes 0-262142/524289"), 400, "invalidContentRange")
	f.refused(f.put(session, content[:block], "bytes 262144-524287/524289"), 400, "invalidContentRange")
	f.refused(f.put(session, content[:block], "octets 0-1/2"), 400, "invalidContentRange")
	f.refused(f.put(session, content[:block], "bytes 5-1/524289"), 400, "invalidContentRange")
	f.refused(f.put(session, "", "bytes 0-262143/524289"), 400, "mediaBodyRequired")
	f.refused(f.serve("PATCH", session, ""), 405, "httpMethodNotAllowed")
	require.Empty(t, f.put(session, "", "bytes */524289").header.Get("Range"), "nothing of a refused request stays")
	require.Equal(t, 308, f.put(session, content[:block], "bytes 0-262143/*").status, "the total may come late")
	f.refused(f.put(session, content, ""), 400, "invalidContentRange")
	f.SetTakeAtMost(block)
	r := f.put(session, content[block:], "bytes 262144-524288/524289")
	require.Equal(t, 308, r.status, "the platform may take less than it is offered")
	require.Equal(t, "bytes=0-524287", r.header.Get("Range"))
	var v shownVideo
	f.into(f.put(session, content[2*block:], "bytes 524288-524288/524289"), &v)
	require.Equal(t, sim.Digest([]byte(content)), f.Videos(channelID)[0].Media.Digest)
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		content := clip("a", 100)
		f.refused(f.put(start+"&upload_id=unknown", content, ""), 404, "notFound")
		session := f.session("Cat", `{}`, len(content))
		<-time.After(7*24*time.Hour - time.Second)
		f.access = f.renewed(f.refresh)
		require.Equal(t, 308, f.put(session, "", "bytes */100").status)
		<-time.After(time.Second)
		f.refused(f.put(session, content, ""), 404, "notFound")
		session = f.session("Cat", `{}`, len(content))
		f.ExpireSessions(true)
		f.refused(f.put(session, content, ""), 410, "uploadSessionGone")

		session = f.session("Cat", `{}`, len(content))
		good := f.access
		f.access = "expired"
		f.refused(f.put(session, content, ""), 401, "authError")
		require.NoError(t, f.AddChannel(youtube.Channel{ID: "UCother"}))
		f.access = f.renewed(f.grant("p", "UCother"))
		f.refused(f.put(session, content, ""), 403, "forbidden")
		f.access = good
		require.Equal(t, 200, f.put(session, content, "").status)
	})
}

func TestHalfAnUpload(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	content := clip("a", 3*block)
	session := strings.Replace(f.session("Cat", `{}`, len(content)), "http://example.com", server.URL, 1)
	require.NoError(t, f.core.Faults.Add(sim.Fault{Method: "PUT /upload/youtube/v3/videos", Chat: channelID, To: 1, Effect: sim.EffectResetMidBody}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, session, strings.NewReader(content))
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	require.Error(t, err)
	r := f.put(session, "", "bytes */786432")
	require.Equal(t, 308, r.status)
	require.Equal(t, "bytes=0-262143", r.header.Get("Range"))
	require.Equal(t, 200, f.put(session, content[block:], "bytes 262144-786431/786432").status)
	require.Equal(t, sim.Digest([]byte(content)), f.Videos(channelID)[0].Media.Digest)
}

func TestOneRequestAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		content := clip("a", 2*block)
		session := f.session("Cat", `{}`, len(content))
		require.NoError(t, f.core.Faults.Add(sim.Fault{Method: "PUT /upload/youtube/v3/videos", To: 1, Effect: sim.EffectSlow, DelayMS: 60_000}))
		began, done := time.Now(), make(chan reply)
		go func() { done <- f.put(session, content[:block], "bytes 0-262143/524288") }()
		synctest.Wait()
		r := f.put(session, "", "bytes */524288")
		require.Equal(t, "bytes=0-262143", r.header.Get("Range"))
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, 308, (<-done).status)
	})
}

func TestAcceptedThenDropped(t *testing.T) {
	f := newFixture(t)
	content := clip("a", 100)
	session := f.session("Cat", `{}`, len(content))
	require.NoError(t, f.core.Faults.Add(sim.Fault{Method: "PUT /upload/youtube/v3/videos", To: 1, Effect: sim.EffectAcceptThenDrop}))
	require.Panics(t, func() { f.put(session, content, "") }, "the connection is given up")
	require.Len(t, f.Videos(channelID), 1)
	require.Equal(t, 200, f.put(session, "", "bytes */100").status, "a status request returns the video")
	require.Len(t, f.Videos(channelID), 1)
	require.EqualValues(t, 1, f.core.Log.Totals().Messages)
}

func TestMetadataAreCheckedBeforeBytes(t *testing.T) {
	f := newFixture(t)
	snippet := func(fields string) string { return `{"snippet":{` + fields + `}}` }
	long := strings.Repeat
	for _, c := range []struct{ name, body, reason string }{
		{"no title", `{}`, "invalidTitle"},
		{"blank title", snippet(`"title":" "`), "invalidTitle"},
		{"long title", snippet(`"title":"` + long("ä", 101) + `"`), "invalidTitle"},
		{"angle in title", snippet(`"title":"a<b"`), "invalidTitle"},
		{"long description", snippet(`"title":"a","description":"` + long("ä", 2501) + `"`), "invalidDescription"},
		{"long tags", snippet(`"title":"a","tags":["` + long("a", 497) + ` b","c"]`), "invalidTags"},
		{"category", snippet(`"title":"a","categoryId":"999"`), "invalidCategoryId"},
		{"language", snippet(`"title":"a","defaultLanguage":"???"`), "invalidVideoMetadata"},
		{"localizations", `{"snippet":{"title":"a"},"localizations":{"de":{"title":"b"}}}`, "defaultLanguageNotSet"},
		{"recording", `{"snippet":{"title":"a"},"recordingDetails":{"recordingDate":"once"}}`, "invalidRecordingDetails"},
		{"no date", `{"snippet":{"title":"a"},"status":{"privacyStatus":"private","publishAt":"soon"}}`, "invalidPublishAt"},
		{"scheduled in public", `{"snippet":{"title":"a"},"status":{"privacyStatus":"public","publishAt":"2030-01-01T00:00:00Z"}}`, "invalidPublishAt"},
		{"privacy", `{"snippet":{"title":"a"},"status":{"privacyStatus":"secret"}}`, "badRequest"},
		{"licence", `{"snippet":{"title":"a"},"status":{"license":"mine"}}`, "badRequest"},
		{"unknown field", snippet(`"title":"a","colour":"red"`), "badRequest"},
		{"wrong type", snippet(`"title":7`), "badRequest"},
		{"no JSON", `title=a`, "parseError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.t = t
			f.refused(f.begin(start+",recordingDetails,localizations", c.body, 100), 400, c.reason)
		})
	}
	f.t = t
	fine := metadata("Cat", `{"privacyStatus":"private"}`)
	f.refused(f.begin("/upload/youtube/v3/videos?uploadType=resumable", fine, 100), 400, "missingRequiredParameter")
	f.refused(f.begin("/upload/youtube/v3/videos?uploadType=resumable&part=snippet", fine, 100), 400, "unexpectedPart")
	f.refused(f.begin("/upload/youtube/v3/videos?uploadType=resumable&part=snippet,colour", fine, 100), 400, "unknownPart")
	f.refused(f.begin("/upload/youtube/v3/videos?uploadType=media&part=snippet,status", fine, 100), 400, "badRequest")
	f.refused(f.begin(start+"&colour=red", fine, 100), 400, "badRequest")
	f.refused(f.begin(start, fine, 0), 400, "mediaBodyRequired")
	f.refused(f.begin(start, fine, 256<<30+1), 413, "uploadTooLarge")
	f.refused(f.serve("POST", start, fine, "Content-Type", "application/json", "X-Upload-Content-Type", "image/png"), 400, "badRequest")
	f.refused(f.serve("POST", start, fine, "Content-Type", "text/plain", "X-Upload-Content-Type", "video/mp4"), 400, "badRequest")
	f.refused(f.json("GET", "/youtube/v3/comments", ""), 404, "notFound")
	f.refused(f.json("PATCH", "/youtube/v3/videos", ""), 405, "httpMethodNotAllowed")
	require.Equal(t, 200, f.begin("/resumable"+start, fine, 100).status)
	require.Empty(t, f.Videos(channelID))
}
