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
	"strings"

	"autopost"
	"autopost/internal/adapter"
)

// refusedExtra begins the id under which an extra is recorded that YouTube will not have.
const refusedExtra = "refused: "

// extra sets the thumbnail or adds captions to the video, which is there whatever
// becomes of them: what is refused for good is recorded as refused, and told in the end.
func (s *sender) extra(ctx context.Context, step autopost.Step) (adapter.Receipt, *autopost.Error) {
	id, failure := s.videoID()
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	medium, failure := s.medium(step)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	set := s.thumbnail
	if step.Name != "thumbnail" {
		set = s.captions
	}
	ids, failure := set(ctx, step, medium, id)
	switch {
	case failure == nil:
		return adapter.Receipt{IDs: ids}, nil
	case failure.Code == codeCaptionExists:
		return adapter.Receipt{IDs: []string{}}, nil
	case failure.Category == autopost.Permanent && (failure.Scope == autopost.ScopeDelivery || failure.Code == codeForbidden || failure.Code == codeNoScope):
		return adapter.Receipt{IDs: []string{refusedExtra + failure.Code}}, nil
	}
	return adapter.Receipt{}, definite(failure)
}

// videoID is the id of the delivery's video, as it is recorded or was just given.
func (s *sender) videoID() (string, *autopost.Error) {
	if s.uploaded != nil {
		return s.uploaded.ID, nil
	}
	if ids := s.call.Delivery.RenderMeta.Progress.Steps["video"]; len(ids) > 0 {
		return ids[0], nil
	}
	return "", adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, "the step comes before its video")
}

func (s *sender) thumbnail(ctx context.Context, _ autopost.Step, medium autopost.Media, video string) ([]string, *autopost.Error) {
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

func (s *sender) captions(ctx context.Context, step autopost.Step, medium autopost.Media, video string) ([]string, *autopost.Error) {
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

// related makes a body of two parts, what is said of a content and the content, that
// streams and knows its length.
func related(req *http.Request, content *autopost.Content, about any) {
	var head bytes.Buffer
	parts := multipart.NewWriter(&head)
	// Writing to a buffer does not fail, nor does a map of strings to be encoded.
	first, _ := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json; charset=UTF-8"}})
	_ = json.NewEncoder(first).Encode(about)
	_, _ = parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/octet-stream"}})
	end := fmt.Sprintf("\r\n--%s--\r\n", parts.Boundary())
	length := int64(head.Len()) + content.Size + int64(len(end))
	attach(req, content, io.MultiReader(&head, adapter.Exactly(content, content.Size), strings.NewReader(end)), length)
	req.Header.Set("Content-Type", "multipart/related; boundary="+parts.Boundary())
}

// attach makes r, which ends with content, the body of req, which closes the content.
func attach(req *http.Request, content io.Closer, r io.Reader, length int64) {
	req.Body = struct {
		io.Reader
		io.Closer
	}{r, content}
	req.ContentLength = length
}
