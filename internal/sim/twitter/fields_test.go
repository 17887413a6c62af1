package twitter_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/twitter"
)

const (
	byNewNames = "?expansions=referenced_posts,author_id&post.fields=created_at,entities,attachments,conversation_id,note_post"
	byOldNames = "?tweet.fields=created_at,entities,attachments,conversation_id,note_tweet,referenced_tweets,author_id"
)

func TestAnswersUseTheRequestedNames(t *testing.T) {
	f := newFixture(t)
	first := f.postID(`{"text":"first"}`)
	second := f.postID(`{"text":"second","reply":{"in_reply_to_tweet_id":"` + first + `"}}`)
	shown := f.data(f.do("GET", "/2/tweets/"+second+byNewNames, ""))
	require.Equal(t, []any{map[string]any{"type": "replied_to", "id": first}}, shown["referenced_posts"])
	require.NotContains(t, shown, "referenced_tweets")
	require.Equal(t, first, shown["conversation_id"])
	require.Equal(t, "42", shown["author_id"])
	shown = f.data(f.do("GET", "/2/tweets/"+second+byOldNames, ""))
	require.Equal(t, []any{map[string]any{"type": "replied_to", "id": first}}, shown["referenced_tweets"])
	require.NotContains(t, shown, "referenced_posts")
	require.Equal(t, first, f.data(f.do("GET", "/2/tweets/"+first+byOldNames, ""))["conversation_id"])
	r := f.do("GET", "/2/users/42/tweets"+byNewNames, "")
	require.Contains(t, string(r.body), `"includes":{"posts":[{"id":"`+first+`","text":"first"}]}`)
}

func TestUnknownNamesAreIgnoredAndBilled(t *testing.T) {
	f := newFixture(t)
	id := f.postID(`{"text":"a"}`)
	before := len(f.Charges())
	shown := f.data(f.do("GET", "/2/tweets/"+id+"?post.fields=created_at,author_id,colour&colour=red", ""))
	require.Contains(t, shown, "created_at")
	require.NotContains(t, shown, "author_id", "it is an expansion in the new vocabulary")
	require.Len(t, f.Charges(), before+1)
	entries := f.core.Log.Entries()
	require.Equal(t, []string{"X ignores the query parameter colour", "X ignores post.fields=author_id", "X ignores post.fields=colour"}, entries[len(entries)-1].Notes)
}

func TestTheVocabulariesCanBeWithdrawn(t *testing.T) {
	f := newFixture(t)
	id := f.postID(`{"text":"a"}`)
	f.SetVocabularies(twitter.Understood, twitter.Refused)
	f.refused(f.do("GET", "/2/tweets/"+id+byOldNames, ""), 400, "The query parameter [tweet.fields] is not one of [post.fields]")
	require.Contains(t, f.data(f.do("GET", "/2/tweets/"+id+byNewNames, "")), "created_at")
	f.SetVocabularies(twitter.Ignored, twitter.Understood)
	require.Len(t, f.data(f.do("GET", "/2/tweets/"+id+byNewNames, "")), 2)
	require.Contains(t, f.data(f.do("GET", "/2/tweets/"+id+byOldNames, "")), "created_at")
}

func TestTheTextOfALongPostIsCut(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, f.AddUser(twitter.User{ID: "42", Username: "nyx", MaxLength: 4000}))
	long := strings.Repeat("word ", 80) + "https://e.org/a end"
	id := f.postID(`{"text":"` + long + `"}`)
	for note, query := range map[string]string{"note_post": byNewNames, "note_tweet": byOldNames} {
		shown := f.data(f.do("GET", "/2/tweets/"+id+query, ""))
		require.Equal(t, long[:275]+"…", shown["text"])
		require.NotContains(t, shown, "entities")
		require.Regexp(t, `^(word ){80}https://t\.co/\w{10} end$`, shown[note].(map[string]any)["text"])
		urls := shown[note].(map[string]any)["entities"].(map[string]any)["urls"].([]any)
		require.Equal(t, "https://e.org/a", urls[0].(map[string]any)["expanded_url"])
	}
	short := f.postID(`{"text":"short"}`)
	require.NotContains(t, f.data(f.do("GET", "/2/tweets/"+short+byNewNames, "")), "note_post")
}

func TestASpendingLimitStopsEveryCallUntilItsDay(t *testing.T) {
	f := newFixture(t)
	until := time.Now().UTC().Add(72 * time.Hour).Truncate(24 * time.Hour)
	f.SetSpendCap("app", until)
	day := until.Format(time.DateOnly)
	for _, r := range []reply{
		f.post(`{"text":"a"}`), f.do("GET", "/2/users/me", ""),
		f.serve("Basic Y2xpZW50Omh1c2g=", "POST", "/2/oauth2/token", "application/x-www-form-urlencoded", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {f.refresh}}.Encode()),
	} {
		f.refused(r, 403, `"reset_date":"`+day+`"`)
		require.Contains(t, string(r.body), `"title":"SpendCapReached"`)
		require.Contains(t, string(r.body), "problems/credits")
	}
	f.SetSpendCap("app", time.Time{})
	f.postID(`{"text":"a"}`)
}
