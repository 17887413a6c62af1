package youtube

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxComment     = 10_000 // characters
	maxThreads     = 100
	defaultThreads = 20
)

// comment is a top-level comment on a video.
type comment struct {
	id     string
	author *channel
	text   string
	date   time.Time
}

// commentBody has the writable fields of a CommentThread resource.
type commentBody struct {
	Kind    string `json:"kind"`
	Snippet struct {
		ChannelID string `json:"channelId"`
		VideoID   string `json:"videoId"`
		Top       struct {
			Kind    string `json:"kind"`
			Snippet struct {
				Text string `json:"textOriginal"`
			} `json:"snippet"`
		} `json:"topLevelComment"`
	} `json:"snippet"`
}

// insertComment adds a top-level comment. Private videos and videos for children have no comments.
func (s *Server) insertComment(c *call) (outcome, *refusal) {
	if _, refused := c.parts(); refused != nil {
		return outcome{}, refused
	}
	var body commentBody
	if refused := c.decode(&body); refused != nil {
		return outcome{}, refused
	}
	sn := body.Snippet
	c.log.Text, c.log.ReplyTo = sn.Top.Snippet.Text, sn.VideoID
	v := s.videos[sn.VideoID]
	switch {
	case sn.ChannelID == "" || sn.VideoID == "":
		return outcome{}, because("channelOrVideoIdMissing")
	case strings.TrimSpace(sn.Top.Snippet.Text) == "":
		return outcome{}, because("commentTextRequired")
	case utf8.RuneCountInString(sn.Top.Snippet.Text) > maxComment:
		return outcome{}, because("commentTextTooLong")
	case v == nil || v.channel != c.token.channel && v.privacy() == "private":
		return outcome{}, because("videoNotFound")
	case v.channel.ID != sn.ChannelID:
		return outcome{}, because("invalidCommentThreadMetadata")
	case v.channel.CommentsOff, v.privacy() == "private", v.meta.Status.SelfDeclaredMadeForKids:
		return outcome{}, because("commentsDisabled")
	}
	made := comment{id: "Ugz" + s.newName("comment", 22) + "AaABAg", author: c.token.channel, text: sn.Top.Snippet.Text, date: time.Now()}
	v.comments = append(v.comments, made)
	c.log.MessageIDs = []string{made.id}
	return outcome{body: made.show(v, c.token.channel)}, nil
}

// show returns a comment in the form of the API. Only its author sees the text as it was sent.
func (m comment) show(v *video, caller *channel) map[string]any {
	snippet := map[string]any{
		"channelId": v.channel.ID, "videoId": v.id, "textDisplay": m.text, "authorDisplayName": m.author.Title,
		"authorChannelId": map[string]any{"value": m.author.ID}, "canRate": true, "viewerRating": "none", "likeCount": 0,
		"publishedAt": m.date.UTC().Format(time.RFC3339), "updatedAt": m.date.UTC().Format(time.RFC3339),
	}
	if m.author == caller {
		snippet["textOriginal"] = m.text
	}
	return map[string]any{"kind": "youtube#commentThread", "etag": etag(m.id), "id": m.id, "snippet": map[string]any{
		"channelId": v.channel.ID, "videoId": v.id, "canReply": true, "totalReplyCount": 0, "isPublic": true,
		"topLevelComment": map[string]any{"kind": "youtube#comment", "etag": etag(m.id + "top"), "id": m.id, "snippet": snippet},
	}}
}

// listComments lists the comments on a video, newest first.
func (s *Server) listComments(c *call) (outcome, *refusal) {
	if _, refused := c.parts(); refused != nil {
		return outcome{}, refused
	}
	id := c.query.Get("videoId")
	v := s.videos[id]
	switch {
	case id == "":
		return outcome{}, wrong("missingRequiredParameter", "No filter selected. Expected one of: videoId", "videoId")
	case v == nil || v.channel != c.token.channel && v.privacy() == "private":
		return outcome{}, because("videoNotFound")
	case v.channel.CommentsOff:
		return outcome{}, because("commentsDisabled")
	}
	size := defaultThreads
	if given := c.query.Get("maxResults"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 || n > maxThreads {
			return outcome{}, wrong("invalidParameter", "Invalid value '"+given+"'. Values must be within the range: [1, 100]", "maxResults")
		}
		size = n
	}
	from := 0
	if token := c.query.Get("pageToken"); token != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(token, "page"))
		if err != nil || n < 0 || n > len(v.comments) {
			return outcome{}, because("invalidPageToken")
		}
		from = n
	}
	items := []any{}
	for _, m := range slices.Backward(v.comments) {
		items = append(items, m.show(v, c.token.channel))
	}
	to := min(len(items), from+size)
	page := listed("commentThread", items[from:to], len(items), size)
	if to < len(items) {
		page["nextPageToken"] = "page" + strconv.Itoa(to)
	}
	return outcome{body: page}, nil
}
