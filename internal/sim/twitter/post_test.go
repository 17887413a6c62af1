package twitter_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/twitter"
)

func TestAPost(t *testing.T) {
	f := newFixture(t)
	image := f.upload("tweet_image", "image/png", picture(t, 0))
	r := f.post(fmt.Sprintf(`{"text":"Nyx & co: https://e.org/a, won","media":{"media_ids":[%q]},"made_with_ai":true}`, image))
	require.Equal(t, 201, r.status, "%s", r.body)
	data := f.data(r)
	require.Regexp(t, `^[0-9]{18,19}$`, data["id"])
	require.Regexp(t, `^Nyx &amp; co: https://t\.co/\w{10}, won https://t\.co/\w{10}$`, data["text"])

	got := f.data(f.do("GET", "/2/tweets/"+data["id"].(string)+"?tweet.fields=created_at,entities,attachments,made_with_ai", ""))
	require.Equal(t, data["text"], got["text"])
	require.Equal(t, true, got["made_with_ai"])
	require.Equal(t, []any{"3_" + image}, got["attachments"].(map[string]any)["media_keys"])
	urls := got["entities"].(map[string]any)["urls"].([]any)
	require.Len(t, urls, 2)
	require.Equal(t, "https://e.org/a", urls[0].(map[string]any)["expanded_url"])
	require.EqualValues(t, len("Nyx &amp; co: "), urls[0].(map[string]any)["start"])
	require.Equal(t, "https://x.com/nyx/status/"+data["id"].(string)+"/photo/1", urls[1].(map[string]any)["expanded_url"])

	posts := f.Posts("42")
	require.Len(t, posts, 1)
	require.True(t, posts[0].MadeByAI)
	require.Equal(t, sim.Digest([]byte(picture(t, 0))), posts[0].Media[0].Digest)
	entries := f.core.Log.Entries(sim.Filter{Method: "POST /2/tweets"})
	require.Equal(t, "42", entries[0].Chat)
	require.Equal(t, "Nyx @nyx", entries[0].ChatTitle)
	require.Equal(t, []string{"made with AI"}, entries[0].Badges)
	require.Equal(t, []sim.Mark{{Type: "url", From: 10, Length: 15, URL: "https://e.org/a"}}, entries[0].Marks)
	require.Equal(t, 1, entries[0].Items)
}

func TestWrongPosts(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, f.AddUser(twitter.User{ID: "44", Username: "long", MaxLength: 4000}))
	roomy, _, err := f.GrantOAuth2("app", "44", twitter.AllScopes)
	require.NoError(t, err)
	require.Equal(t, 201, f.as(roomy, "POST", "/2/tweets", `{"text":"`+strings.Repeat("漢", 141)+`"}`).status)
	for _, c := range []struct {
		name, body string
		status     int
		part       string
	}{
		{"nothing", `{}`, 400, "required: text, media"},
		{"blank", `{"text":" \n"}`, 400, "required: text, media"},
		{"unknown field", `{"text":"a","parse_mode":"HTML"}`, 400, "$.parse_mode: is not defined"},
		{"wrong type", `{"text":"a","made_with_ai":"yes"}`, 400, "made_with_ai"},
		{"no JSON", `text=a`, 400, "Invalid JSON"},
		{"two values", `{"text":"a"}{}`, 400, "Invalid JSON"},
		{"281 by weight", `{"text":"` + strings.Repeat("漢", 140) + `a"}`, 400, "too long"},
		{"forbidden character", `{"text":"a\ufffeb"}`, 400, "invalid characters"},
		{"no such media", `{"text":"a","media":{"media_ids":["1"]}}`, 400, "Your media IDs are invalid."},
		{"no media ids", `{"text":"a","media":{"media_ids":[]}}`, 400, "from 1 to 4 items"},
		{"five media", `{"text":"a","media":{"media_ids":["1","2","3","4","5"]}}`, 400, "from 1 to 4 items"},
		{"media and poll", `{"text":"a","media":{"media_ids":["1"]},"poll":{"options":["a","b"],"duration_minutes":5}}`, 400, "Only one of"},
		{"short poll", `{"text":"a","poll":{"options":["a"],"duration_minutes":5}}`, 400, "poll.options"},
		{"long option", `{"text":"a","poll":{"options":["a","` + strings.Repeat("b", 26) + `"],"duration_minutes":5}}`, 400, "25 characters"},
		{"brief poll", `{"text":"a","poll":{"options":["a","b"],"duration_minutes":4}}`, 400, "duration_minutes"},
		{"reply settings", `{"text":"a","reply_settings":"nobody"}`, 400, "reply_settings"},
		{"reply to no id", `{"text":"a","reply":{"in_reply_to_tweet_id":"x"}}`, 400, "in_reply_to_tweet_id"},
		{"reply to nothing", `{"text":"a","reply":{"in_reply_to_tweet_id":"1"}}`, 403, "deleted or not visible"},
		{"quote", `{"text":"a","quote_tweet_id":"1"}`, 403, "not permitted"},
		{"two cashtags", `{"text":"buy $ABC and $XYZ"}`, 403, "maximum of one cashtag"},
		{"edit of nothing", `{"text":"a","edit_options":{"previous_post_id":"1"}}`, 403, "not permitted to edit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.t = t
			f.refused(f.post(c.body), c.status, c.part)
		})
	}
	f.t = t
	f.refused(f.serve("Bearer "+f.token, "POST", "/2/tweets", "text/plain", `{"text":"a"}`), 400, "content-type of application/json")
	f.refused(f.do("GET", "/2/tweets/1?tweet.fields=id&post.fields=id", ""), 400, "cannot be used together")
	f.refused(f.do("PUT", "/2/tweets", ""), 405, "Method Not Allowed")
	f.refused(f.do("GET", "/1.1/statuses", ""), 404, "Not Found")
	f.refused(f.post(`{"text":"`+strings.Repeat("a", 9<<20)+`"}`), 413, "Payload Too Large")
	require.Empty(t, f.Posts("42"))
	require.Empty(t, f.Charges()[1:], "a refusal costs nothing")
}

func TestARepeatedTextIsADuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		renewed := func() { f.token, _, _ = f.GrantOAuth2("app", "42", twitter.AllScopes) }
		id := f.postID(`{"text":"once"}`)
		f.refused(f.post(`{"text":"once"}`), 403, `"detail":"You are not allowed to create a Tweet with duplicate content."`)
		f.refused(f.post(`{"text":"once "}`), 403, "duplicate content")
		require.Equal(t, 201, f.as(f.other, "POST", "/2/tweets", `{"text":"once"}`).status, "another account may")
		require.Equal(t, 200, f.do("DELETE", "/2/tweets/"+id, "").status)
		f.postID(`{"text":"once"}`)
		<-time.After(23 * time.Hour)
		renewed()
		f.refused(f.post(`{"text":"once"}`), 403, "duplicate content")
		<-time.After(time.Hour)
		renewed()
		f.postID(`{"text":"once"}`)
	})
}

func TestThreadsAndEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		reply := func(text, to string) string {
			return fmt.Sprintf(`{"text":%q,"reply":{"in_reply_to_tweet_id":%q}}`, text, to)
		}
		first := f.postID(`{"text":"1/2 for @helion"}`)
		second := f.postID(reply("2/2", first))
		require.Equal(t, first, f.Posts("42")[1].ReplyTo)
		require.Equal(t, first, f.core.Log.Entries()[1].ReplyTo)
		require.Equal(t, 201, f.as(f.other, "POST", "/2/tweets", reply("thanks", first)).status, "summoned")
		f.refused(f.as(f.other, "POST", "/2/tweets", reply("and this?", second)), 403, "have not been mentioned")
		f.refused(f.as(f.other, "DELETE", "/2/tweets/"+first, ""), 403, "not authorized")
		f.refused(f.do("DELETE", "/2/tweets/99", ""), 404, "Not Found")

		edit := func(text, of string) string {
			return fmt.Sprintf(`{"text":%q,"edit_options":{"previous_post_id":%q}}`, text, of)
		}
		latest := f.postID(edit("2/2.", second))
		require.NotEqual(t, second, latest)
		f.refused(f.as(f.other, "POST", "/2/tweets", edit("x", latest)), 403, "not permitted to edit")
		got := f.data(f.do("GET", "/2/tweets/"+latest+"?tweet.fields=edit_history_tweet_ids", ""))
		require.Equal(t, []any{second, latest}, got["edit_history_tweet_ids"])
		r := f.do("GET", "/2/tweets/"+second, "")
		require.Equal(t, 200, r.status)
		require.Contains(t, string(r.body), "resource-not-found")
		<-time.After(31 * time.Minute)
		f.refused(f.post(edit("late", latest)), 403, "not permitted to edit")
	})
}

func TestTimelinesLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.SetSettle(15 * time.Second)
		var ids []string
		for i := range 7 {
			ids = append([]string{f.postID(`{"text":"post ` + strconv.Itoa(i) + `"}`)}, ids...)
			<-time.After(time.Second)
		}
		got, meta := f.list("/2/users/42/tweets")
		require.Empty(t, got)
		require.EqualValues(t, 0, meta["result_count"])
		<-time.After(10 * time.Second)
		got, _ = f.list("/2/users/42/tweets")
		require.Equal(t, ids[4:], got, "the oldest are there")
		require.NoError(t, f.core.Pace.Set(0.01))
		got, _ = f.list("/2/users/42/tweets")
		require.Equal(t, ids, got)

		got, meta = f.list("/2/users/42/tweets?max_results=5")
		require.Equal(t, ids[:5], got)
		got, meta = f.list("/2/users/42/tweets?max_results=5&pagination_token=" + meta["next_token"].(string))
		require.Equal(t, ids[5:], got)
		require.NotContains(t, meta, "next_token")
		got, _ = f.list("/2/users/42/tweets?since_id=" + ids[2])
		require.Equal(t, ids[:2], got)
		got, _ = f.list("/2/users/42/tweets?start_time=2000-01-01T00:00:05Z&end_time=2000-01-01T00:00:06Z")
		require.Equal(t, ids[1:2], got)
		for _, wrong := range []string{"max_results=4", "start_time=yesterday", "since_id=x"} {
			f.refused(f.do("GET", "/2/users/42/tweets?"+wrong, ""), 400, "Invalid Request")
		}
		f.refused(f.do("GET", "/2/users/99/tweets", ""), 404, "Could not find user")
	})
}

func TestScriptedRefusals(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		part   string
	}{
		{429, "", `{"detail":"Too Many Requests","status":429,"title":"Too Many Requests","type":"about:blank"}`},
		{429, "rate-limited-app", `"status":429`},
		{429, "code-88", `{"errors":[{"code":88,"message":"Rate limit exceeded"}]}`},
		{429, "rate-limit-exceeded", "/2/problems/rate-limit-exceeded"},
		{429, "usage-capped", "/2/problems/usage-capped"},
		{402, "", `"title":"CreditsDepleted"`},
		{402, "credits-depleted", "/2/problems/credits-depleted"},
		{403, "duplicate", "duplicate content"},
		{403, "code-187", "Status is a duplicate."},
		{403, "user-suspended", "/2/problems/user-suspended"},
		{403, "code-64", `"code":64`},
		{403, "daily-limit", `"code":185`},
		{403, "automated", `"code":226`},
		{403, "spend-cap", `"title":"SpendCapReached"`},
		{403, "code-326", `"code":326`},
		{403, "client-forbidden", "client-not-enrolled"},
		{403, "unsupported-authentication", "Unsupported Authentication"},
		{403, "oauth1-permissions", "/2/problems/oauth1-permissions"},
		{403, "cashtags", "one cashtag"},
		{403, "reply-forbidden", "not allowed"},
		{403, "invalid-url", "invalid URL"},
		{403, "", "not permitted to perform this action"},
		{403, "video-too-long", "longer than"},
		{401, "", `"title":"Unauthorized"`},
		{401, "code-89", "Invalid or expired token."},
		{400, "token-invalid", `{"error":"invalid_request","error_description":"Value passed for the token was invalid."}`},
		{400, "invalid-grant", `"error":"invalid_grant"`},
		{400, "", "/2/problems/invalid-request"},
		{400, "too-long", "too long"},
		{400, "media-invalid", "Your media IDs are invalid."},
		{404, "", `"status":404`},
		{409, "", `"status":409`},
		{413, "", `"status":413`},
		{500, "", `"status":500`},
		{500, "code-131", `"code":131`},
		{502, "", `"title":"Bad Gateway"`},
		{503, "code-130", "Over capacity"},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			f := newFixture(t)
			require.NoError(t, f.core.Faults.Add(sim.Fault{Effect: sim.EffectStatus, Status: c.status, Code: c.code, RetryAfter: 30}))
			before := time.Now()
			r := f.post(`{"text":"x"}`)
			f.refused(r, c.status, c.part)
			require.True(t, json.Valid(r.body))
			require.Empty(t, r.header.Get("Retry-After"))
			limit := "X-Rate-Limit"
			if c.code == "rate-limited-app" {
				limit = "X-App-Limit-24hour"
			}
			require.Equal(t, "0", r.header.Get(limit+"-Remaining"))
			reset, err := strconv.ParseInt(r.header.Get(limit+"-Reset"), 10, 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, reset, before.Add(30*time.Second).Unix())
			require.Empty(t, f.Posts("42"))
		})
	}
}

func TestAcceptedThenDropped(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, f.core.Faults.Add(sim.Fault{Chat: "42", Method: "post /2/tweets", To: 1, Effect: sim.EffectAcceptThenDrop}))
	require.Panics(t, func() { f.post(`{"text":"x"}`) }, "the connection is given up")
	require.Len(t, f.Posts("42"), 1)
	f.refused(f.post(`{"text":"x"}`), 403, "duplicate content")
}
