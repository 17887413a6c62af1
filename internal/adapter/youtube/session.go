package youtube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// session is a resumable upload. Its address permits writes to the channel, so the record is sealed.
type session struct {
	// step is the step name of its record: session, session-2, …
	step string
	// uri is "" if another credential sealed the record.
	uri string
	// began is the platform's time of its start. The video of the session is not older.
	began time.Time
	// recalled reports that the session is from an earlier attempt; its state is unknown.
	recalled bool
	// whole reports that the last byte was sent, so that the video may exist.
	whole bool
}

func sessionStep(n int) string {
	if n == 1 {
		return "session"
	}
	return "session-" + strconv.Itoa(n)
}

// recall reads the recorded sessions of the delivery.
func (s *sender) recall() {
	recorded := s.call.Delivery.RenderMeta.Progress.Steps
	for n := 1; len(recorded[sessionStep(n)]) > 0; n++ {
		ids := recorded[sessionStep(n)]
		u := &session{step: sessionStep(n), recalled: true}
		u.uri, _ = s.open(ids[0]) // a session that cannot be opened is lost
		if len(ids) > 1 {
			u.began, _ = time.Parse(time.RFC3339, ids[1]) // the zero time searches all uploads
		}
		s.sessions = append(s.sessions, u)
	}
}

// session is the newest session; nil if there is none.
func (s *sender) session() *session {
	if len(s.sessions) == 0 {
		return nil
	}
	return s.sessions[len(s.sessions)-1]
}

// begin starts the first session. The caller records it before the first byte is sent.
func (s *sender) begin(ctx context.Context) (adapter.Receipt, *autopost.Error) {
	u, failure := s.start(ctx)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	ids, failure := s.record(u)
	return adapter.Receipt{IDs: ids}, failure
}

// start requests a session. It never creates a video.
func (s *sender) start(ctx context.Context) (*session, *autopost.Error) {
	medium, failure := s.medium(s.planned("video"))
	if failure != nil {
		return nil, failure
	}
	if medium.Type != autopost.MediaVideo {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, "the medium must be a video")
	}
	content, failure := adapter.Open(ctx, s.call.Media, medium, s.hide)
	if failure != nil {
		return nil, failure
	}
	_ = content.Close()
	// A credential without the scope or the quota for this question may still upload.
	if _, failure := s.own(ctx); failure != nil && failure.Code != codeNoScope && failure.Code != codeUsageCapped {
		return nil, failure
	}
	body, err := json.Marshal(s.metadata())
	if err != nil {
		panic("youtube: encode a video: " + err.Error()) // impossible for this type
	}
	query := url.Values{"uploadType": {"resumable"}, "part": {"snippet,status"}}
	if notify := s.wanted().NotifySubscribers; notify != nil {
		query.Set("notifySubscribers", strconv.FormatBool(*notify))
	}
	req, failure := newRequest(ctx, http.MethodPost, s.at(query, "upload/youtube/v3/videos"))
	if failure != nil {
		return nil, failure
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	req.Header.Set("X-Upload-Content-Type", videoType(content))
	req.Header.Set("X-Upload-Content-Length", strconv.FormatInt(content.Size, 10))
	answer, failure := s.do(req)
	if failure != nil {
		return nil, definite(failure)
	}
	uri := answer.Header.Get("Location")
	if answer.Status != http.StatusOK || uri == "" {
		return nil, refused(answer, s.hide)
	}
	if to, err := adapter.Base(uri); err != nil || (to.Scheme != "https" && to.Scheme != s.base.Scheme) {
		return nil, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeInterrupted, "the address of the session is not valid")
	}
	began, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		began = time.Now()
	}
	u := &session{step: sessionStep(len(s.sessions) + 1), uri: uri, began: began}
	s.sessions = append(s.sessions, u)
	return u, nil
}

// metadata is the body of videos.insert.
type metadata struct {
	Snippet struct {
		Title       string   `json:"title"`
		Description string   `json:"description"`
		Tags        []string `json:"tags,omitempty"`
		CategoryID  string   `json:"categoryId,omitempty"`
		Language    string   `json:"defaultLanguage,omitempty"`
	} `json:"snippet"`
	Status struct {
		PrivacyStatus           string `json:"privacyStatus"`
		PublishAt               string `json:"publishAt,omitempty"`
		License                 string `json:"license,omitempty"`
		Embeddable              *bool  `json:"embeddable,omitempty"`
		SelfDeclaredMadeForKids bool   `json:"selfDeclaredMadeForKids"`
		ContainsSyntheticMedia  bool   `json:"containsSyntheticMedia,omitempty"`
	} `json:"status"`
}

func (s *sender) metadata() metadata {
	v := s.wanted()
	var m metadata
	m.Snippet.Title = s.call.Delivery.RenderMeta.Title
	m.Snippet.Description = s.call.Delivery.StepText(s.planned("video"))
	m.Snippet.Tags, m.Snippet.CategoryID, m.Snippet.Language = v.Tags, v.CategoryID, v.Language
	m.Status.PrivacyStatus, m.Status.PublishAt = v.Privacy, v.PublishAt
	m.Status.License, m.Status.Embeddable = v.License, v.Embeddable
	m.Status.SelfDeclaredMadeForKids, m.Status.ContainsSyntheticMedia = v.MadeForKids, v.SyntheticMedia
	return m
}

// wanted is the description of the video in the delivery.
func (s *sender) wanted() autopost.Video {
	if v := s.call.Delivery.RenderMeta.Video; v != nil {
		return *v
	}
	return autopost.Video{Privacy: "private"}
}

// videoType is the content type for YouTube, which accepts video types and octet streams.
func videoType(content *autopost.Content) string {
	if strings.HasPrefix(content.ContentType, "video/") {
		return content.ContentType
	}
	return "application/octet-stream"
}

// progress is the state of a session.
type progress struct {
	// next is the offset of the next byte.
	next int64
	// video is the video of a complete upload; nil before.
	video *video
	// gone reports that YouTube no longer has the session.
	gone bool
}

// readProgress reads the answer to a request of a session.
func (s *sender) readProgress(answer adapter.Answer) (progress, *autopost.Error) {
	switch answer.Status {
	case http.StatusPermanentRedirect:
		next, ok := after(answer.Header.Get("Range"))
		if !ok {
			return progress{}, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeInterrupted, "the Range header of the session is not valid")
		}
		return progress{next: next}, nil
	case http.StatusOK, http.StatusCreated:
		var made video
		if json.Unmarshal(answer.Body, &made) == nil && made.ID != "" {
			return progress{video: &made}, nil
		}
	case http.StatusNotFound, http.StatusGone:
		return progress{gone: true}, nil
	}
	return progress{}, refused(answer, s.hide)
}

// after is the offset after a range such as "bytes=0-524287"; 0 without a header.
func after(header string) (int64, bool) {
	if header == "" {
		return 0, true
	}
	last, ok := strings.CutPrefix(header, "bytes=0-")
	n, err := strconv.ParseInt(last, 10, 64)
	return n + 1, ok && err == nil && n >= 0
}

// requestProgress requests the progress of a session. total is the size of the video in bytes.
func (s *sender) requestProgress(ctx context.Context, u *session, total int64) (progress, *autopost.Error) {
	if u.uri == "" {
		return progress{gone: true}, nil
	}
	req, failure := newRequest(ctx, http.MethodPut, u.uri)
	if failure != nil {
		return progress{}, failure
	}
	req.Header.Set("Content-Range", fmt.Sprintf("bytes */%d", total))
	answer, failure := s.do(req)
	if failure != nil {
		return progress{}, definite(failure)
	}
	return s.readProgress(answer)
}
