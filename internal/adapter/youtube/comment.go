package youtube

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"autopost"
	"autopost/internal/adapter"
)

// commentThread is a top-level comment and its replies.
type commentThread struct {
	ID      string        `json:"id,omitempty"`
	Snippet threadSnippet `json:"snippet"`
}

type threadSnippet struct {
	ChannelID string `json:"channelId"`
	VideoID   string `json:"videoId"`
	Top       struct {
		Snippet struct {
			// Text is returned unchanged only to the author of the comment.
			Text string `json:"textOriginal"`
		} `json:"snippet"`
	} `json:"topLevelComment"`
}

// comment adds the first comment to the video, for 50 units of the daily quota. YouTube accepts repeated
// comments, so later attempts first check for it.
func (s *sender) comment(ctx context.Context, step autopost.Step) (adapter.Receipt, *autopost.Error) {
	video, failure := s.videoID()
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	text := s.call.Delivery.StepText(step)
	if s.call.Delivery.Attempt > 1 {
		if id, failure := s.commented(ctx, video, text); failure != nil || id != "" {
			return adapter.Receipt{IDs: []string{id}}, failure
		}
	}
	thread := commentThread{Snippet: threadSnippet{ChannelID: s.call.Delivery.TargetID, VideoID: video}}
	thread.Snippet.Top.Snippet.Text = text
	body, err := json.Marshal(thread)
	if err != nil {
		panic("youtube: encode a comment: " + err.Error()) // impossible for this type
	}
	req, failure := newRequest(ctx, http.MethodPost, s.at(url.Values{"part": {"snippet"}}, "youtube/v3/commentThreads"))
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	answer, failure := s.do(req)
	if failure != nil {
		return adapter.Receipt{}, definite(failure)
	}
	var made commentThread
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &made) != nil || made.ID == "" {
		return adapter.Receipt{}, refused(answer, s.hide)
	}
	return adapter.Receipt{IDs: []string{made.ID}}, nil
}

// commented is the id of the channel's own comment with this text; "" if the newest pages have none. Only the
// author sees the text as it was sent.
func (s *sender) commented(ctx context.Context, video, text string) (string, *autopost.Error) {
	want := adapter.NormalizeText(text)
	query := url.Values{"part": {"snippet"}, "videoId": {video}, "order": {"time"}, "textFormat": {"plainText"}, "maxResults": {strconv.Itoa(perPage)}}
	for range maxPages {
		var page struct {
			Items         []commentThread `json:"items"`
			NextPageToken string          `json:"nextPageToken"`
		}
		if failure := s.list(ctx, "commentThreads", query, &page); failure != nil {
			return "", failure
		}
		for _, item := range page.Items {
			if adapter.NormalizeText(item.Snippet.Top.Snippet.Text) == want {
				return item.ID, nil
			}
		}
		if page.NextPageToken == "" {
			break
		}
		query.Set("pageToken", page.NextPageToken)
	}
	return "", nil
}
