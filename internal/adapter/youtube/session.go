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

// session is a resumable upload. Its address alone lets whoever has it write to the
// channel: it is recorded sealed.
type session struct {
	// step is the name under which it is recorded: session, session-2, …
	step string
	// uri is "" when the record cannot be opened: another credential sealed it.
	uri string
	// began is the platform's time; a video that came of the session is no older.
	began time.Time
	// recalled says that it is from an earlier attempt, so that nobody knows how far it got.
	recalled bool
	// whole says that the last byte was sent, so that there may be a video.
	whole bool
}

func sessionStep(n int) string {
	if n == 1 {
		return "session"
	}
	return "session-" + strconv.Itoa(n)
}

// recall reads the sessions that were recorded for the delivery.
func (s *sender) recall() {
	recorded := s.call.Delivery.RenderMeta.Progress.Steps
	for n := 1; len(recorded[sessionStep(n)]) > 0; n++ {
		ids := recorded[sessionStep(n)]
		u := &session{step: sessionStep(n), recalled: true}
		u.uri, _ = s.open(ids[0]) // one that cannot be opened is lost
		if len(ids) > 1 {
			u.began, _ = time.Parse(time.RFC3339, ids[1]) // zero looks through all that there is
		}
		s.sessions = append(s.sessions, u)
	}
}

// session is the newest one, nil when there is none.
func (s *sender) session() *session {
	if len(s.sessions) == 0 {
		return nil
	}
	return s.sessions[len(s.sessions)-1]
}

// begin starts the first session. No byte is sent before the caller has recorded it.
func (s *sender) begin(ctx context.Context) (adapter.Receipt, *autopost.Error) {
	u, failure := s.start(ctx)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	ids, failure := s.record(u)
	return adapter.Receipt{IDs: ids}, failure
}

// start asks for a session. Whatever happens, there is no video yet.
func (s *sender) start(ctx context.Context) (*session, *autopost.Error) {
	medium, failure := s.medium(s.planned("video"))
	if failure != nil {
		return nil, failure
	}
	if medium.Type != autopost.MediaVideo {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, "the medium is no video")
	}
	content, failure := adapter.Open(ctx, s.call.Media, medium, s.hide)
	if failure != nil {
		return nil, failure
	}
	_ = content.Close()
	// Without the right or the quota to ask nobody can say whose the credential is; it may upload all the same.
	if _, failure := s.own(ctx); failure != nil && failure.Code != codeNoScope && failure.Code != codeUsageCapped {
		return nil, failure
	}
	body, err := json.Marshal(s.metadata())
	if err != nil {
		panic("youtube: encode a video: " + err.Error()) // the type has no value that JSON lacks
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
		return nil, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeInterrupted, "the session has no usable address")
	}
	began, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		began = time.Now()
	}
	u := &session{step: sessionStep(len(s.sessions) + 1), uri: uri, began: began}
	s.sessions = append(s.sessions, u)
	return u, nil
}

// metadata is the video as videos.insert takes it.
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
	m.Snippet.Description = s.call.Delivery.Said(s.planned("video"))
	m.Snippet.Tags, m.Snippet.CategoryID, m.Snippet.Language = v.Tags, v.CategoryID, v.Language
	m.Status.PrivacyStatus, m.Status.PublishAt = v.Privacy, v.PublishAt
	m.Status.License, m.Status.Embeddable = v.License, v.Embeddable
	m.Status.SelfDeclaredMadeForKids, m.Status.ContainsSyntheticMedia = v.MadeForKids, v.SyntheticMedia
	return m
}

// wanted is what is said of the video.
func (s *sender) wanted() autopost.Video {
	if v := s.call.Delivery.RenderMeta.Video; v != nil {
		return *v
	}
	return autopost.Video{Privacy: "private"}
}

// videoType is the content's type as YouTube takes it.
func videoType(content *autopost.Content) string {
	if strings.HasPrefix(content.ContentType, "video/") {
		return content.ContentType
	}
	return "application/octet-stream"
}

// standing is what a session says of itself.
type standing struct {
	// next is the place from which it wants bytes.
	next int64
	// video is there when the upload is complete.
	video *video
	// gone says that nobody knows the session any more.
	gone bool
}

// hear reads the answer to a request of a session.
func (s *sender) hear(answer adapter.Answer) (standing, *autopost.Error) {
	switch answer.Status {
	case http.StatusPermanentRedirect:
		next, ok := after(answer.Header.Get("Range"))
		if !ok {
			return standing{}, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeInterrupted, "the session's Range cannot be read")
		}
		return standing{next: next}, nil
	case http.StatusOK, http.StatusCreated:
		var made video
		if json.Unmarshal(answer.Body, &made) == nil && made.ID != "" {
			return standing{video: &made}, nil
		}
	case http.StatusNotFound, http.StatusGone:
		return standing{gone: true}, nil
	}
	return standing{}, refused(answer, s.hide)
}

// after is the place behind "bytes=0-524287"; no header is the beginning.
func after(header string) (int64, bool) {
	if header == "" {
		return 0, true
	}
	last, ok := strings.CutPrefix(header, "bytes=0-")
	n, err := strconv.ParseInt(last, 10, 64)
	return n + 1, ok && err == nil && n >= 0
}

// ask asks a session how far it is. total is the size of the video.
func (s *sender) ask(ctx context.Context, u *session, total int64) (standing, *autopost.Error) {
	if u.uri == "" {
		return standing{gone: true}, nil
	}
	req, failure := newRequest(ctx, http.MethodPut, u.uri)
	if failure != nil {
		return standing{}, failure
	}
	req.Header.Set("Content-Range", fmt.Sprintf("bytes */%d", total))
	answer, failure := s.do(req)
	if failure != nil {
		return standing{}, definite(failure)
	}
	return s.hear(answer)
}
