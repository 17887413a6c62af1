package twitter_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
)

func TestChunkedUploads(t *testing.T) {
	f := newFixture(t)
	content := video + strings.Repeat("x", 100)
	id := f.initialize("tweet_video", "video/mp4", len(content))
	require.Equal(t, 200, f.append(id, 1, content[50:]).status, "segments may come in any order")
	f.refused(f.finalize(id), 400, "a segment is missing")
	r := f.do("POST", "/2/media/upload/"+id+"/append", fmt.Sprintf(`{"segment_index":0,"media":%q}`, base64.StdEncoding.EncodeToString([]byte(content[:50]))))
	require.Equal(t, 200, r.status, "%s", r.body)
	require.Contains(t, f.data(r), "expires_at")
	data := f.data(f.finalize(id))
	require.Equal(t, "13_"+id, data["media_key"])
	require.EqualValues(t, len(content), data["size"])
	require.EqualValues(t, 86399, data["expires_after_secs"])
	require.NotContains(t, data, "processing_info", "ready at once")
	f.postID(`{"media":{"media_ids":["` + id + `"]}}`)
	require.Equal(t, sim.Digest([]byte(content)), f.Posts("42")[0].Media[0].Digest)

	twice := f.initialize("tweet_video", "video/mp4", 2*len(video))
	f.append(twice, 0, video)
	f.append(twice, 0, video)
	f.append(twice, 1, video)
	f.refused(f.finalize(twice), 400, "more than once")
	short := f.initialize("tweet_video", "video/mp4", len(video)+1)
	f.append(short, 0, video)
	f.refused(f.finalize(short), 400, "do not add up")
}

func TestWrongUploads(t *testing.T) {
	f := newFixture(t)
	for body, part := range map[string]string{
		`{"media_type":"image/png","total_bytes":5242881,"media_category":"tweet_image"}`:   "exceeds 5242880",
		`{"media_type":"image/png","total_bytes":0,"media_category":"tweet_image"}`:         "at least 1",
		`{"media_type":"image/png","total_bytes":1,"media_category":"tweet_video"}`:         "is not one of",
		`{"media_type":"image/png","total_bytes":1,"media_category":"avatar"}`:              "media_category",
		`{"media_type":"image/png","total_bytes":1,"media_category":"tweet_gif","x":1}`:     "$.x: is not defined",
		`{"media_type":"video/mp4","total_bytes":536870913,"media_category":"tweet_video"}`: "exceeds",
	} {
		f.refused(f.do("POST", "/2/media/upload/initialize", body), 400, part)
	}
	f.refused(f.append("1", 0, "x"), 404, "Not Found")
	f.refused(f.finalize("1"), 404, "Not Found")
	f.refused(f.do("GET", "/2/media/upload?command=STATUS&media_id=1", ""), 404, "Not Found")
	f.refused(f.do("GET", "/2/media/upload?command=LIST&media_id=1", ""), 400, "command")
	id := f.initialize("tweet_image", "image/png", 3)
	f.refused(f.append(id, 1000, "x"), 400, "segment_index")
	f.refused(f.append(id, 0, ""), 400, "$.media")
	f.refused(f.append(id, 0, strings.Repeat("x", 5<<20+1)), 413, "Payload Too Large")
	f.append(id, 0, "not")
	f.refused(f.finalize(id), 400, "not of the type image/png")
	f.refused(f.do("GET", "/2/media/upload?command=STATUS&media_id="+id, ""), 400, "not finalized")
	f.refused(f.as(f.other, "POST", "/2/media/upload/"+id+"/finalize", ""), 404, "Not Found")
}

func TestMediaOfAPost(t *testing.T) {
	f := newFixture(t)
	var photos []string
	for i := range 4 {
		photos = append(photos, f.upload("tweet_image", "image/png", picture(t, i)))
	}
	clip := f.upload("tweet_video", "video/mp4", video)
	post := func(ids ...string) string {
		return `{"text":"with ` + ids[0] + `","media":{"media_ids":["` + strings.Join(ids, `","`) + `"]}}`
	}
	f.postID(post(photos...))
	f.postID(post(clip))
	f.refused(f.post(post(clip, photos[0])), 400, "Up to 4 photos")
	f.refused(f.post(post(photos[0], photos[0])), 400, "not unique")
	f.refused(f.as(f.other, "POST", "/2/tweets", post(clip)), 400, "Your media IDs are invalid.")
	f.ExpireMedia()
	f.refused(f.post(post(clip)), 400, "Your media IDs are invalid.")
}

func TestProcessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.SetProcessing(20 * time.Second)
		id := f.upload("tweet_video", "video/mp4", video)
		status := func(id string) map[string]any {
			info, _ := f.data(f.do("GET", "/2/media/upload?command=STATUS&media_id="+id, ""))["processing_info"].(map[string]any)
			return info
		}
		require.Equal(t, "pending", status(id)["state"])
		require.EqualValues(t, 10, status(id)["check_after_secs"])
		f.refused(f.post(`{"media":{"media_ids":["`+id+`"]}}`), 400, "not ready")
		<-time.After(10 * time.Second)
		require.Equal(t, "in_progress", status(id)["state"])
		require.EqualValues(t, 50, status(id)["progress_percent"])
		<-time.After(10 * time.Second)
		require.Equal(t, "succeeded", status(id)["state"])
		f.postID(`{"media":{"media_ids":["` + id + `"]}}`)

		broken := f.upload("tweet_video", "video/mp4", "this is not a video")
		<-time.After(20 * time.Second)
		require.Equal(t, "failed", status(broken)["state"])
		require.Equal(t, "InvalidMedia", status(broken)["error"].(map[string]any)["name"])
		f.refused(f.post(`{"media":{"media_ids":["`+broken+`"]}}`), 400, "not ready")
		require.Nil(t, status(f.upload("tweet_image", "image/png", picture(t, 0))))
	})
}

func TestSimpleUploadsAndAltTexts(t *testing.T) {
	f := newFixture(t)
	contentType, body := form(t, "media_category", "tweet_image", "media", picture(t, 0))
	r := f.serve("Bearer "+f.token, "POST", "/2/media/upload", contentType, body)
	require.Equal(t, 200, r.status, "%s", r.body)
	id := f.data(r)["id"].(string)
	contentType, body = form(t, "media_category", "tweet_video", "media", video)
	f.refused(f.serve("Bearer "+f.token, "POST", "/2/media/upload", contentType, body), 400, "only images")
	contentType, body = form(t, "media_category", "tweet_image", "media", "GIF? no")
	f.refused(f.serve("Bearer "+f.token, "POST", "/2/media/upload", contentType, body), 400, "media_type")
	contentType, body = form(t, "colour", "red", "media", "x")
	f.refused(f.serve("Bearer "+f.token, "POST", "/2/media/upload", contentType, body), 400, "$.colour")

	alt := func(id, text string) reply {
		return f.do("POST", "/2/media/metadata", fmt.Sprintf(`{"id":%q,"metadata":{"alt_text":{"text":%q}}}`, id, text))
	}
	require.Equal(t, 200, alt(id, "a grey square").status)
	f.refused(alt(id, ""), 400, "alt_text")
	f.refused(alt(id, strings.Repeat("ä", 1001)), 400, "1000 characters")
	f.refused(alt("1", "x"), 404, "Not Found")
	f.postID(`{"media":{"media_ids":["` + id + `"]}}`)
	require.Equal(t, []string{"a grey square"}, f.Posts("42")[0].AltTexts)
}
