package youtube_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/youtube"
)

const threads = "/youtube/v3/commentThreads"

// comment adds a comment as the owner of the channel.
func (f *fixture) comment(video, text string) reply {
	body := fmt.Sprintf(`{"snippet":{"channelId":%q,"videoId":%q,"topLevelComment":{"snippet":{"textOriginal":%q}}}}`, channelID, video, text)
	return f.json("POST", threads+"?part=snippet", body)
}

// said returns the comments of a list, and its next page.
func (f *fixture) said(query string) (texts []string, next string) {
	f.t.Helper()
	var list struct {
		Items []struct {
			Snippet struct {
				TopLevelComment struct{ Snippet struct{ TextOriginal string } }
			}
		}
		NextPageToken string
	}
	f.into(f.json("GET", threads+"?part=snippet&"+query, ""), &list)
	for _, item := range list.Items {
		texts = append(texts, item.Snippet.TopLevelComment.Snippet.TextOriginal)
	}
	return texts, list.NextPageToken
}

func TestComments(t *testing.T) {
	f := newFixture(t)
	id := f.upload("Public", `{"privacyStatus":"public"}`, clip("a", 100)).ID
	require.Equal(t, 200, f.comment(id, "One").status)
	require.Equal(t, 200, f.comment(id, "Two").status)
	texts, next := f.said("maxResults=1&videoId=" + id)
	require.Equal(t, []string{"Two"}, texts, "newest first")
	texts, next = f.said("maxResults=1&videoId=" + id + "&pageToken=" + next)
	require.Equal(t, []string{"One"}, texts)
	require.Empty(t, next)
	require.Equal(t, []string{"One", "Two"}, f.Videos(channelID)[0].Comments)
	charges := f.Charges()
	require.Equal(t, 1, charges[len(charges)-1].Cost, "a list")
	require.Equal(t, 50, charges[len(charges)-3].Cost, "a comment")
}

func TestCommentRefusals(t *testing.T) {
	f := newFixture(t)
	id := f.upload("Public", `{"privacyStatus":"public"}`, clip("a", 100)).ID
	f.refused(f.comment(f.upload("Private", `{"privacyStatus":"private"}`, clip("b", 100)).ID, "x"), 403, "commentsDisabled")
	f.refused(f.comment(f.upload("Kids", `{"privacyStatus":"public","selfDeclaredMadeForKids":true}`, clip("c", 100)).ID, "x"), 403, "commentsDisabled")
	f.refused(f.comment("unknown", "x"), 404, "videoNotFound")
	f.refused(f.comment(id, " "), 400, "commentTextRequired")
	f.refused(f.comment(id, strings.Repeat("x", 10_001)), 400, "commentTextTooLong")
	f.refused(f.json("POST", threads+"?part=snippet", `{"snippet":{"videoId":"a"}}`), 400, "channelOrVideoIdMissing")
	f.refused(f.json("POST", threads+"?part=snippet", `{"snippet":{"text":"a"}}`), 400, "badRequest")
	f.refused(f.json("POST", threads, `{}`), 400, "missingRequiredParameter")
	f.refused(f.json("GET", threads+"?part=snippet", ""), 400, "missingRequiredParameter")
	f.refused(f.json("GET", threads+"?part=snippet&maxResults=101&videoId="+id, ""), 400, "invalidParameter")
	half, err := f.Grant("p", channelID, youtube.ScopeUpload)
	require.NoError(t, err)
	whole := f.access
	f.access = f.renewed(half)
	f.refused(f.comment(id, "x"), 403, "insufficientPermissions")
	f.access = whole
	require.NoError(t, f.AddChannel(youtube.Channel{ID: channelID, CommentsOff: true}))
	f.refused(f.comment(id, "x"), 403, "commentsDisabled")
}
