package youtube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"autopost"
	"autopost/internal/adapter"
)

// refusedExtra is the prefix of the recorded id of a refused extra.
const refusedExtra = "refused: "

// extra makes a step after the video: thumbnail, captions or playlist. A permanent refusal is recorded
// and reported in the outcome; it does not fail the delivery.
func (s *sender) extra(ctx context.Context, step autopost.Step) (adapter.Receipt, *autopost.Error) {
	id, failure := s.videoID()
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	var ids []string
	switch step.Name {
	case "thumbnail":
		ids, failure = s.thumbnail(ctx, step, id)
	case "playlist":
		ids, failure = s.enlist(ctx, id)
	default:
		ids, failure = s.captions(ctx, step, id)
	}
	switch {
	case failure == nil:
		return adapter.Receipt{IDs: ids}, nil
	case failure.Code == codeCaptionExists, failure.Code == codeAlreadyListed:
		return adapter.Receipt{IDs: []string{}}, nil
	case failure.Category == autopost.Permanent && (failure.Scope == autopost.ScopeDelivery || failure.Code == codeForbidden || failure.Code == codeNoScope):
		return adapter.Receipt{IDs: []string{refusedExtra + failure.Code}}, nil
	}
	return adapter.Receipt{}, definite(failure)
}

// videoID is the id of the delivery's video.
func (s *sender) videoID() (string, *autopost.Error) {
	if s.uploaded != nil {
		return s.uploaded.ID, nil
	}
	if ids := s.call.Delivery.RenderMeta.Progress.Steps["video"]; len(ids) > 0 {
		return ids[0], nil
	}
	return "", adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, "the step must follow its video")
}

func (s *sender) thumbnail(ctx context.Context, step autopost.Step, video string) ([]string, *autopost.Error) {
	medium, failure := s.medium(step)
	if failure != nil {
		return nil, failure
	}
	target := s.at(url.Values{"videoId": {video}, "uploadType": {"media"}}, "upload/youtube/v3/thumbnails/set")
	content, failure := adapter.Open(ctx, s.call.Media, medium, s.hide)
	if failure != nil {
		return nil, failure
	}
	req, failure := newRequest(ctx, http.MethodPost, target)
	if failure != nil {
		_ = content.Close()
		return nil, failure
	}
	attach(req, content, adapter.Exactly(content, content.Size), content.Size)
	req.Header.Set("Content-Type", content.ContentType)
	answer, failure := s.do(req)
	if failure == nil && answer.Status != http.StatusOK {
		failure = refused(answer, s.hide)
	}
	return []string{}, failure
}

func (s *sender) captions(ctx context.Context, step autopost.Step, video string) ([]string, *autopost.Error) {
	medium, failure := s.medium(step)
	if failure != nil {
		return nil, failure
	}
	track := s.wanted().Captions[step.Name]
	target := s.at(url.Values{"uploadType": {"multipart"}, "part": {"snippet"}}, "upload/youtube/v3/captions")
	content, failure := adapter.Open(ctx, s.call.Media, medium, s.hide)
	if failure != nil {
		return nil, failure
	}
	req, failure := newRequest(ctx, http.MethodPost, target)
	if failure != nil {
		_ = content.Close()
		return nil, failure
	}
	related(req, content, map[string]any{"snippet": map[string]any{
		"videoId": video, "language": track.Language, "name": track.Name, "isDraft": false,
	}})
	answer, failure := s.do(req)
	if failure != nil {
		return nil, failure
	}
	var made struct {
		ID string `json:"id"`
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &made) != nil || made.ID == "" {
		return nil, refused(answer, s.hide)
	}
	return []string{made.ID}, nil
}

// enlist adds the video to its playlist. YouTube accepts repeated additions, so later attempts first
// check for the entry.
func (s *sender) enlist(ctx context.Context, video string) ([]string, *autopost.Error) {
	list := s.wanted().PlaylistID
	if s.call.Delivery.Attempt > 1 {
		id, failure := s.listedAs(ctx, list, video)
		if failure != nil || id != "" {
			return []string{id}, failure
		}
	}
	body, err := json.Marshal(map[string]any{"snippet": map[string]any{
		"playlistId": list, "resourceId": map[string]string{"kind": "youtube#video", "videoId": video},
	}})
	if err != nil {
		panic("youtube: encode a playlist item: " + err.Error()) // impossible for this type
	}
	req, failure := newRequest(ctx, http.MethodPost, s.at(url.Values{"part": {"snippet"}}, "youtube/v3/playlistItems"))
	if failure != nil {
		return nil, failure
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	answer, failure := s.do(req)
	if failure != nil {
		return nil, failure
	}
	var made struct {
		ID string `json:"id"`
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &made) != nil || made.ID == "" {
		return nil, refused(answer, s.hide)
	}
	return []string{made.ID}, nil
}

// listedAs is the id of the video's entry in a playlist; "" if the newest pages have none. A second
// entry in a longer playlist is harmless.
func (s *sender) listedAs(ctx context.Context, list, video string) (string, *autopost.Error) {
	query := url.Values{"part": {"snippet"}, "playlistId": {list}, "maxResults": {strconv.Itoa(perPage)}}
	for range maxPages {
		var page uploadsPage
		if failure := s.list(ctx, "playlistItems", query, &page); failure != nil {
			return "", failure
		}
		for _, item := range page.Items {
			if item.Snippet.ResourceID.VideoID == video {
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

// related attaches a body of two parts, a description and the content. The body streams and has an exact
// length.
func related(req *http.Request, content *autopost.Content, about any) {
	var head bytes.Buffer
	parts := multipart.NewWriter(&head)
	// Writing to a buffer never fails, and the description always encodes.
	first, _ := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json; charset=UTF-8"}})
	_ = json.NewEncoder(first).Encode(about)
	_, _ = parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/octet-stream"}})
	end := fmt.Sprintf("\r\n--%s--\r\n", parts.Boundary())
	length := int64(head.Len()) + content.Size + int64(len(end))
	attach(req, content, io.MultiReader(&head, adapter.Exactly(content, content.Size), strings.NewReader(end)), length)
	req.Header.Set("Content-Type", "multipart/related; boundary="+parts.Boundary())
}

// attach sets r as the body of req. The transport closes the content.
func attach(req *http.Request, content io.Closer, r io.Reader, length int64) {
	req.Body = struct {
		io.Reader
		io.Closer
	}{r, content}
	req.ContentLength = length
}
