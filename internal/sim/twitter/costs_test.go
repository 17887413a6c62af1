package twitter_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/twitter"
)

func TestRateWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.SetLimits(twitter.DefaultLimits())
		var r reply
		for i := range 75 {
			r = f.do("GET", "/2/users/me", "")
			require.Equal(t, 200, r.status)
			require.Equal(t, "75", r.header.Get("X-Rate-Limit-Limit"))
			require.Equal(t, strconv.Itoa(74-i), r.header.Get("X-Rate-Limit-Remaining"))
		}
		<-time.After(5 * time.Minute)
		r = f.do("GET", "/2/users/me", "")
		f.refused(r, 429, "Too Many Requests")
		require.Equal(t, strconv.FormatInt(time.Now().Add(10*time.Minute).Unix(), 10), r.header.Get("X-Rate-Limit-Reset"))
		entries := f.core.Log.Entries()
		require.Equal(t, 600, entries[len(entries)-1].RetryAfter)
		require.Equal(t, 200, f.as(f.other, "GET", "/2/users/me", "").status, "the window is a user's")
		<-time.After(10 * time.Minute)
		require.Equal(t, 200, f.do("GET", "/2/users/me", "").status)
	})
}

func TestDailyLimitOfAnApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.SetLimits(map[string]twitter.Limit{"POST /2/tweets": {User: 100, AppDay: 2}})
		require.NoError(t, f.core.Pace.Set(1.0/24/60)) // a day is a minute
		f.postID(`{"text":"1"}`)
		require.Equal(t, 201, f.as(f.other, "POST", "/2/tweets", `{"text":"2"}`).status)
		r := f.post(`{"text":"3"}`)
		f.refused(r, 429, "Too Many Requests")
		require.Equal(t, "0", r.header.Get("X-App-Limit-24hour-Remaining"))
		require.Equal(t, strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10), r.header.Get("X-App-Limit-24hour-Reset"))
		require.Equal(t, "99", r.header.Get("X-Rate-Limit-Remaining"))
		<-time.After(time.Minute)
		f.token, _, _ = f.GrantOAuth2("app", "42", twitter.AllScopes)
		f.postID(`{"text":"3"}`)
	})
}

func TestPricesCreditsAndCaps(t *testing.T) {
	f := newFixture(t)
	id := f.postID(`{"text":"plain for @helion"}`)
	f.postID(`{"text":"see e.org"}`)
	require.Equal(t, 201, f.as(f.other, "POST", "/2/tweets", `{"text":"yes","reply":{"in_reply_to_tweet_id":"`+id+`"}}`).status)
	f.list("/2/users/42/tweets")
	f.as(f.other, "GET", "/2/tweets/"+id, "")
	require.Equal(t, 200, f.do("DELETE", "/2/tweets/"+id, "").status)
	var bill []string
	for _, line := range f.Charges() {
		bill = append(bill, fmt.Sprint(line.For, " ", line.MicroDollars))
	}
	require.Equal(t, []string{
		"post 15000", "post with a URL 200000", "summoned reply 10000", "post read 1000", "post read 1000", "post read 5000", "deletion 10000",
	}, bill)

	f.SetCredits("app", 15_000)
	f.postID(`{"text":"the last one"}`)
	f.refused(f.post(`{"text":"too poor"}`), 402, `"title":"CreditsDepleted"`)
	f.SetCredits("app", 1_000_000)
	f.SetMonthlyCap("app", 5)
	f.postID(`{"text":"the fifth"}`)
	f.refused(f.post(`{"text":"the sixth"}`), 429, "/2/problems/usage-capped")
	f.Reset()
	require.Empty(t, f.Charges())
	require.Empty(t, f.Posts("42"))
	f.postID(`{"text":"the fifth"}`)
}
