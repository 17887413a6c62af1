package youtube_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/youtube"
)

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		with := func(name, value string) url.Values {
			changed := form(f.refresh)
			changed.Set(name, value)
			return changed
		}
		for _, c := range []struct {
			form   url.Values
			status int
			part   string
		}{
			{with("refresh_token", "1//nobody"), 400, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`},
			{with("refresh_token", ""), 400, "Missing required parameter: refresh_token"},
			{with("client_id", "else"), 401, `"error":"invalid_client"`},
			{with("client_secret", "wrong"), 401, `"error":"invalid_client"`},
			{with("grant_type", "password"), 400, "unsupported_grant_type"},
		} {
			r := f.renew(c.form)
			require.Equal(t, c.status, r.status, "%s", r.body)
			require.Contains(t, string(r.body), c.part)
		}
		health := "/youtube/v3/channels?part=id,snippet,contentDetails,status&mine=true"
		require.Equal(t, 200, f.json("GET", health, "").status)
		<-time.After(3599 * time.Second)
		f.refused(f.json("GET", health, ""), 401, "authError")
		f.access = f.renewed(f.refresh)
		f.renewed(f.refresh) // the refresh token stays valid
		f.ExpireTokens()
		f.refused(f.json("GET", health, ""), 401, "authError")
		f.access = f.renewed(f.refresh)
		f.Disconnect(channelID)
		f.refused(f.json("GET", health, ""), 401, "authError")
		require.Contains(t, string(f.renew(form(f.refresh)).body), "invalid_grant")

		half, err := f.Grant("p", channelID, youtube.ScopeUpload)
		require.NoError(t, err)
		f.access = f.renewed(half)
		f.refused(f.json("GET", health, ""), 403, "insufficientPermissions")
		require.NoError(t, f.AddChannel(youtube.Channel{ID: channelID, Refusal: "channelSuspended"}))
		f.refused(f.begin(start, metadata("a", `{}`), 9), 403, "channelSuspended")
		for _, e := range f.core.Log.Entries() {
			require.NotContains(t, e.Credential, "1//")
		}
	})
}

func TestProcessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.SetLags(youtube.Lags{Processing: time.Minute})
		good := f.upload("Cat", `{}`, clip("a", 100))
		same := f.upload("Cat again", `{}`, clip("a", 100))
		noise := f.upload("Noise", `{}`, "this is not a video at all")
		require.Equal(t, "public", good.Status.PrivacyStatus)
		require.Equal(t, "uploaded", f.state(good.ID).Status.UploadStatus)
		require.Equal(t, "processing", f.state(good.ID).ProcessingDetails.ProcessingStatus)
		<-time.After(time.Minute)
		require.Equal(t, "processed", f.state(good.ID).Status.UploadStatus)
		require.Equal(t, "succeeded", f.state(good.ID).ProcessingDetails.ProcessingStatus)
		require.Equal(t, "rejected", f.state(same.ID).Status.UploadStatus)
		require.Equal(t, "duplicate", f.state(same.ID).Status.RejectionReason)
		require.Equal(t, "invalidFile", f.state(noise.ID).Status.FailureReason)
	})
}

func TestPrivacyAndSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		at := time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)
		scheduled := f.upload("Later", `{"privacyStatus":"private","publishAt":"`+at+`"}`, clip("a", 100))
		require.Equal(t, "private", scheduled.Status.PrivacyStatus)
		require.Equal(t, at, scheduled.Status.PublishAt)
		past := f.upload("Now", `{"privacyStatus":"private","publishAt":"1999-01-01T00:00:00Z"}`, clip("b", 100))
		require.Equal(t, "public", past.Status.PrivacyStatus, "a time that has passed publishes at once")
		<-time.After(10 * time.Minute)
		require.Equal(t, "public", f.state(scheduled.ID).Status.PrivacyStatus)

		require.NoError(t, f.AddProject(youtube.Project{ID: "new", ClientID: "client", ClientSecret: "hush", Unaudited: true}))
		require.NoError(t, f.AddProject(youtube.Project{ID: "p", ClientID: "client-of-old", ClientSecret: "hush"}))
		f.access = f.renewed(f.grant("new", channelID))
		locked := f.upload("Locked", `{"privacyStatus":"public"}`, clip("c", 100))
		require.Equal(t, "private", locked.Status.PrivacyStatus)
		require.Equal(t, 200, f.json("PUT", "/youtube/v3/videos?part=status", `{"id":"`+locked.ID+`","status":{"privacyStatus":"public"}}`).status)
		require.Equal(t, "private", f.state(locked.ID).Status.PrivacyStatus)
	})
}

func TestUpdateAndDelete(t *testing.T) {
	f := newFixture(t)
	v := f.upload("Cat", `{}`, clip("a", 100))
	update := "/youtube/v3/videos?part=snippet,status"
	f.refused(f.json("PUT", update, `{"id":"unknown","snippet":{"title":"a","categoryId":"22"}}`), 404, "videoNotFound")
	f.refused(f.json("PUT", update, `{"id":"`+v.ID+`","snippet":{"title":"a"}}`), 400, "invalidCategoryId")
	require.Equal(t, 200, f.json("PUT", update, `{"id":"`+v.ID+`","snippet":{"title":"Dog","categoryId":"15"},"status":{"privacyStatus":"unlisted"}}`).status)
	require.Equal(t, "Dog", f.state(v.ID).Snippet.Title)
	require.Equal(t, "unlisted", f.state(v.ID).Status.PrivacyStatus)

	require.NoError(t, f.AddChannel(youtube.Channel{ID: "UCother"}))
	mine := f.access
	f.access = f.renewed(f.grant("p", "UCother"))
	require.Len(t, f.videos("/youtube/v3/videos?part=status&id="+v.ID), 1, "everyone with the link sees an unlisted video")
	f.refused(f.json("DELETE", "/youtube/v3/videos?id="+v.ID, ""), 403, "forbidden")
	f.access = mine
	require.Equal(t, 204, f.json("DELETE", "/youtube/v3/videos?id="+v.ID, "").status)
	require.Empty(t, f.videos("/youtube/v3/videos?part=status&id="+v.ID))
	f.refused(f.json("GET", "/youtube/v3/videos?part=status", ""), 400, "missingRequiredParameter")
	a, b := f.upload("A", `{}`, clip("b", 100)).ID, f.upload("B", `{}`, clip("c", 100)).ID
	found := f.videos("/youtube/v3/videos?part=snippet&part=status&id=" + a + "&id=" + b)
	require.Len(t, found, 2, "a parameter may be repeated")
	require.NotEmpty(t, found[1].Status.PrivacyStatus)
}

func TestListsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.SetLags(youtube.Lags{Listed: time.Minute})
		require.NoError(t, f.core.Pace.Set(0.5))
		var ids []string
		for i := range 3 {
			ids = append([]string{f.upload(fmt.Sprint("Cat ", i), `{"privacyStatus":"private"}`, clip(fmt.Sprint(i), 100)).ID}, ids...)
		}
		uploads := "/youtube/v3/playlistItems?part=snippet,contentDetails&playlistId=UU" + channelID[2:]
		require.Empty(t, f.videos(uploads))
		require.Empty(t, f.videos("/youtube/v3/search?part=snippet&forMine=true&type=video"))
		<-time.After(30 * time.Second)
		var page struct {
			Items []struct {
				Snippet        struct{ Title, PublishedAt string }
				ContentDetails struct{ VideoID string }
			}
			NextPageToken string
			PageInfo      struct{ TotalResults int }
		}
		f.into(f.json("GET", uploads+"&maxResults=2", ""), &page)
		require.Equal(t, ids[0], page.Items[0].ContentDetails.VideoID, "newest first, private ones too")
		require.Equal(t, "Cat 2", page.Items[0].Snippet.Title)
		require.Equal(t, 3, page.PageInfo.TotalResults)
		f.into(f.json("GET", uploads+"&maxResults=2&pageToken="+page.NextPageToken, ""), &page)
		require.Len(t, page.Items, 1)
		require.Equal(t, ids[2], page.Items[0].ContentDetails.VideoID)
		var found struct {
			Items []struct{ ID struct{ VideoID string } }
		}
		f.into(f.json("GET", "/youtube/v3/search?part=snippet&forMine=true&type=video&q=cat+1", ""), &found)
		require.Equal(t, ids[1], found.Items[0].ID.VideoID)
		f.refused(f.json("GET", uploads+"&maxResults=51", ""), 400, "invalidParameter")
		f.refused(f.json("GET", uploads+"&pageToken=x", ""), 400, "invalidPageToken")
		f.refused(f.json("GET", "/youtube/v3/playlistItems?part=snippet&playlistId=PLelse", ""), 404, "playlistNotFound")

		add := func(list, video string) reply {
			return f.json("POST", "/youtube/v3/playlistItems?part=snippet",
				fmt.Sprintf(`{"snippet":{"playlistId":%q,"resourceId":{"kind":"youtube#video","videoId":%q}}}`, list, video))
		}
		require.Equal(t, 200, add("PLown", ids[1]).status)
		f.refused(add("PLelse", ids[1]), 404, "playlistNotFound")
		f.refused(add("PLown", "nobody"), 404, "videoNotFound")
		require.Len(t, f.videos("/youtube/v3/playlistItems?part=snippet&playlistId=PLown"), 1)
	})
}

func TestThumbnails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.SetLags(youtube.Lags{Found: 5 * time.Second})
		var picture bytes.Buffer
		require.NoError(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 16, 9))))
		id := f.upload("Cat", `{}`, clip("a", 100)).ID
		set := func(id, kind, body string) reply {
			return f.serve("POST", "/upload/youtube/v3/thumbnails/set?uploadType=media&videoId="+id, body, "Content-Type", kind)
		}
		f.refused(set(id, "image/png", picture.String()), 404, "videoNotFound")
		<-time.After(5 * time.Second)
		r := set(id, "image/png", picture.String())
		require.Equal(t, 200, r.status, "%s", r.body)
		require.Contains(t, string(r.body), "youtube#thumbnailSetResponse")
		require.Equal(t, sim.Digest(picture.Bytes()), f.Videos(channelID)[0].Thumbnail.Digest)
		f.refused(set("nobody", "image/png", "x"), 404, "videoNotFound")
		f.refused(set("", "image/png", "x"), 400, "missingRequiredParameter")
		f.refused(set(id, "image/gif", "x"), 400, "badRequest")
		f.refused(set(id, "image/png", ""), 400, "mediaBodyRequired")
		f.refused(set(id, "image/png", "x"), 400, "invalidImage")
		f.refused(set(id, "image/jpeg", picture.String()), 400, "imageFormatUnsupported")
		f.refused(set(id, "image/png", strings.Repeat("x", 50<<20+1)), 413, "uploadTooLarge")
		require.NoError(t, f.AddChannel(youtube.Channel{ID: channelID, Unverified: true}))
		f.refused(set(id, "image/png", picture.String()), 403, "forbidden")
	})
}

func TestCaptions(t *testing.T) {
	f := newFixture(t)
	id := f.upload("Cat", `{}`, clip("a", 100)).ID
	insert := func(snippet, content string) reply {
		body := "--B\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{\"snippet\":" + snippet + "}\r\n--B\r\nContent-Type: application/octet-stream\r\n\r\n" + content + "\r\n--B--\r\n"
		return f.serve("POST", "/upload/youtube/v3/captions?uploadType=multipart&part=snippet", body, "Content-Type", "multipart/related; boundary=B")
	}
	snippet := func(id, language, name string) string {
		return fmt.Sprintf(`{"videoId":%q,"language":%q,"name":%q,"isDraft":false}`, id, language, name)
	}
	r := insert(snippet(id, "en", "English"), "1\n00:00:00,000 --> 00:00:02,000\nHello\n")
	require.Equal(t, 200, r.status, "%s", r.body)
	require.Contains(t, string(r.body), `"status":"serving"`)
	f.refused(insert(snippet(id, "en", "English"), "x"), 409, "captionExists")
	f.refused(insert(snippet(id, "?", "English"), "x"), 400, "invalidMetadata")
	f.refused(insert(snippet(id, "de", strings.Repeat("n", 151)), "x"), 400, "nameTooLong")
	f.refused(insert(snippet(id, "de", ""), ""), 400, "contentRequired")
	f.refused(insert(snippet("nobody", "de", ""), "x"), 404, "videoNotFound")
	f.refused(insert(`{"colour":"red"}`, "x"), 400, "badRequest")
	f.refused(f.json("POST", "/upload/youtube/v3/captions?uploadType=multipart&part=snippet", "{}"), 400, "badRequest")
	require.Len(t, f.videos("/youtube/v3/captions?part=snippet&videoId="+id), 1)
	require.Equal(t, []string{"en English"}, f.Videos(channelID)[0].Captions)
}

func TestBothQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		// The simulated clock starts at midnight UTC, 16:00 in California.
		f.SetQuotas(youtube.Quotas{Units: 52, Uploads: 2})
		f.session("1", `{}`, 9)
		f.refused(f.begin(start, metadata("", `{}`), 9), 400, "invalidTitle")
		r := f.begin(start, metadata("3", `{}`), 9)
		f.refused(r, 429, "rateLimitExceeded")
		require.JSONEq(t, `{"error":{"code":429,"message":"Quota exceeded for quota metric 'Video Uploads' and limit 'Video Uploads per day' of service 'youtube.googleapis.com' for consumer 'project_number:p'.",
			"errors":[{"message":"Quota exceeded for quota metric 'Video Uploads' and limit 'Video Uploads per day' of service 'youtube.googleapis.com' for consumer 'project_number:p'.","domain":"global","reason":"rateLimitExceeded"}]}}`, string(r.body))
		f.refused(f.json("DELETE", "/youtube/v3/videos?id=x", ""), 404, "videoNotFound")
		f.videos("/youtube/v3/videos?part=status&id=x")
		r = f.json("DELETE", "/youtube/v3/videos?id=x", "")
		f.refused(r, 403, "quotaExceeded")
		message := `The request cannot be completed because you have exceeded your <a href=\"/youtube/v3/getting-started#quota\">quota</a>.`
		require.JSONEq(t, `{"error":{"code":403,"message":"`+message+`","errors":[{"message":"`+message+`","domain":"youtube.quota","reason":"quotaExceeded"}]}}`, string(r.body))
		f.videos("/youtube/v3/videos?part=status&id=x")
		f.refused(f.json("GET", "/youtube/v3/videos?part=status&id=x", ""), 403, "quotaExceeded")
		units := 0
		for _, line := range f.Charges() {
			if line.Bucket == "units" {
				units += line.Cost
			}
		}
		require.Equal(t, 52, units)
		<-time.After(8*time.Hour - time.Second)
		f.access = f.renewed(f.refresh)
		f.refused(f.begin(start, metadata("3", `{}`), 9), 429, "rateLimitExceeded")
		<-time.After(time.Second)
		f.session("3", `{}`, 9)

		f.SetQuotas(youtube.Quotas{})
		require.NoError(t, f.AddChannel(youtube.Channel{ID: channelID, Uploads: 1}))
		f.refresh = f.grant("p", channelID)
		f.session("4", `{}`, 9)
		f.refused(f.begin(start, metadata("5", `{}`), 9), 400, "uploadLimitExceeded")
		require.NoError(t, f.core.Pace.Set(1.0/24/60)) // a day is a minute
		f.session("5", `{}`, 9)
		f.refused(f.begin(start, metadata("6", `{}`), 9), 400, "uploadLimitExceeded")
		<-time.After(time.Minute)
		f.session("6", `{}`, 9)
	})
}

func TestScriptedRefusals(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		status int
		code   string
	}{
		{403, "quotaExceeded"}, {403, "dailyLimitExceeded"}, {429, "rateLimitExceeded"}, {403, "rateLimitExceeded"}, {403, "userRateLimitExceeded"},
		{400, "uploadLimitExceeded"}, {403, "uploadLimitExceeded"}, {429, "uploadRateLimitExceeded"}, {401, "authError"}, {401, "unauthorized"},
		{403, "insufficientPermissions"}, {403, "forbidden"}, {403, "channelClosed"}, {403, "channelSuspended"}, {403, "authenticatedUserAccountSuspended"},
		{403, "authenticatedUserAccountClosed"}, {403, "authenticatedUserNotChannel"}, {403, "accountDelegationForbidden"}, {401, "youtubeSignupRequired"},
		{403, "youtubeSignupRequired"}, {403, "accessNotConfigured"}, {403, "SERVICE_DISABLED"}, {403, "API_KEY_SERVICE_BLOCKED"}, {400, "invalidTitle"},
		{400, "invalidFilename"}, {400, "invalidVideoGameRating"}, {400, "mediaBodyRequired"}, {403, "forbiddenPrivacySetting"}, {403, "forbiddenLicenseSetting"},
		{403, "forbiddenEmbedSetting"}, {400, "failedPrecondition"}, {400, "processingFailure"}, {400, "invalidImage"}, {400, "imageTooTall"}, {400, "imageTooWide"},
		{409, "captionExists"}, {404, "videoNotFound"}, {500, "internalError"}, {503, "backendError"}, {400, "somethingNew"},
	} {
		require.NoError(t, f.core.Faults.Add(sim.Fault{Effect: sim.EffectStatus, Status: c.status, Code: c.code, To: 1}))
		f.refused(f.begin(start, metadata("a", `{}`), 9), c.status, c.code)
		f.core.Faults.Clear()
	}
	require.NoError(t, f.core.Faults.Add(sim.Fault{Method: "POST /token", Effect: sim.EffectStatus, Status: 400}))
	require.JSONEq(t, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`, string(f.renew(form(f.refresh)).body))
	require.NoError(t, f.core.Faults.Add(sim.Fault{Method: "POST " + start[:25], Effect: sim.EffectStatus, Status: 502}))
	f.refused(f.begin(start, metadata("a", `{}`), 9), 502, "backendError")
}

func TestAnyAccount(t *testing.T) {
	core := sim.NewCore(0)
	f := &fixture{Server: youtube.New(core, youtube.Options{AnyAccount: true}), t: t, core: core}
	f.access = f.renewed("1//whatever-refresh")
	f.upload("Cat", `{}`, clip("a", 100))
	entries := core.Log.Entries()
	require.Len(t, f.Videos(entries[0].Chat), 1, "the channel is that of the refresh token")
	require.Equal(t, entries[0].Chat, entries[2].Chat)
}
