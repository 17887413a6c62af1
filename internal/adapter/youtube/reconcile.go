package youtube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	// maxPages bounds the pages of the list of uploads that are read, with perPage videos each.
	maxPages = 10
	perPage  = 50
	// clockSlack is the tolerated difference between the platform's clocks.
	clockSlack = time.Minute
)

// Reconcile implements autopost.Reconciler. It asks the session first, then the list of uploads. If steps
// follow the video, it leaves the question to Send.
func (a *Adapter) Reconcile(ctx context.Context, call autopost.Call) autopost.Verdict {
	s, failure := a.sender(call)
	if failure != nil {
		return autopost.Verdict{Error: failure}
	}
	steps := call.Delivery.RenderMeta.Steps
	if len(steps) == 0 || steps[len(steps)-1].Name != "video" {
		return autopost.Verdict{}
	}
	u := s.session()
	if u == nil {
		return autopost.Verdict{Absent: true} // no byte is sent before a session is recorded
	}
	made, absent, failure := s.result(ctx, u)
	if failure != nil {
		return autopost.Verdict{Error: failure}
	}
	if made == nil {
		return autopost.Verdict{Absent: absent}
	}
	return autopost.Verdict{Found: true, ProviderMessageID: made.ID, Raw: urlOf(made)}
}

// Search implements autopost.Searcher: it compares titles and descriptions of the newest uploads.
func (a *Adapter) Search(ctx context.Context, call autopost.Call) (autopost.Verdict, time.Time) {
	s, failure := a.sender(call)
	if failure != nil {
		return autopost.Verdict{Error: failure}, time.Time{}
	}
	made, failure := s.findUpload(ctx, time.Time{})
	if failure != nil {
		return autopost.Verdict{Error: failure}, time.Time{}
	}
	if made == nil {
		return autopost.Verdict{Absent: true}, time.Time{}
	}
	return autopost.Verdict{Found: true, ProviderMessageID: made.ID, Raw: urlOf(made)}, made.Snippet.PublishedAt
}

// urlOf is the answer of a verdict about a video.
func urlOf(made *video) json.RawMessage {
	raw, err := json.Marshal(map[string]string{"url": watchURL + made.ID})
	if err != nil {
		panic("youtube: encode a verdict: " + err.Error()) // impossible for this type
	}
	return raw
}

// result is the video of a session. Without a video, absent reports that this is certain.
func (s *sender) result(ctx context.Context, u *session) (made *video, absent bool, failure *autopost.Error) {
	medium, failure := s.medium(s.planned("video"))
	if failure != nil {
		return nil, false, failure
	}
	content, failure := adapter.Open(ctx, s.call.Media, medium, s.hide)
	if failure != nil {
		return nil, false, failure
	}
	_ = content.Close()
	at, failure := s.requestProgress(ctx, u, content.Size)
	if failure != nil || !at.gone {
		return at.video, at.video == nil, failure
	}
	made, failure = s.findUpload(ctx, u.began)
	return made, made == nil, failure
}

// uploadsPage is a page of a playlist.
type uploadsPage struct {
	NextPageToken string `json:"nextPageToken"`
	Items         []struct {
		ID      string `json:"id"`
		Snippet struct {
			Title       string    `json:"title"`
			Description string    `json:"description"`
			PublishedAt time.Time `json:"publishedAt"`
			ResourceID  struct {
				VideoID string `json:"videoId"`
			} `json:"resourceId"`
		} `json:"snippet"`
	} `json:"items"`
}

// findUpload searches the channel's uploads since a time for a video with the title and the description
// of the delivery. It returns nil if there is none, and an unknown outcome if there are several.
func (s *sender) findUpload(ctx context.Context, since time.Time) (*video, *autopost.Error) {
	list, failure := s.own(ctx)
	if failure != nil {
		return nil, failure
	}
	query := url.Values{"part": {"snippet,contentDetails"}, "playlistId": {list}, "maxResults": {strconv.Itoa(perPage)}}
	want := s.metadata().Snippet
	var found []*video
	for pages := 1; ; pages++ {
		var page uploadsPage
		if failure := s.list(ctx, "playlistItems", query, &page); failure != nil {
			return nil, failure
		}
		end := page.NextPageToken == ""
		for _, item := range page.Items {
			if item.Snippet.PublishedAt.Before(since.Add(-clockSlack)) {
				end = true
				continue
			}
			if adapter.NormalizeText(item.Snippet.Title) == adapter.NormalizeText(want.Title) && adapter.NormalizeText(item.Snippet.Description) == adapter.NormalizeText(want.Description) {
				v := &video{ID: item.Snippet.ResourceID.VideoID}
				v.Snippet.PublishedAt = item.Snippet.PublishedAt
				found = append(found, v)
			}
		}
		if end {
			break
		}
		if pages == maxPages {
			return nil, adapter.Unknown(fmt.Sprintf("the video may be among the channel's uploads beyond the newest %d", pages*perPage))
		}
		query.Set("pageToken", page.NextPageToken)
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	return nil, adapter.Unknown(fmt.Sprintf("the channel has %d videos that may be this one", len(found)))
}
