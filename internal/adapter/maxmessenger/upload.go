package maxmessenger

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"autopost"
	"autopost/internal/adapter"
)

// codeUploadFailed: an upload host failed temporarily. The scope is the delivery, for posts without
// media do not need that host.
const codeUploadFailed = "max_upload_failed"

// kinds maps a medium to its possible types in MAX. An animation is an image if it is a GIF, else a
// video; its content decides.
var kinds = map[autopost.MediaKind][]string{
	autopost.MediaImage:     {"image"},
	autopost.MediaVideo:     {"video"},
	autopost.MediaAnimation: {"image", "video"},
	autopost.MediaAudio:     {"audio"},
	autopost.MediaFile:      {"file"},
}

// item is one medium of a step.
type item struct {
	medium autopost.Media
	kind   string
	// token identifies the uploaded content; if it is empty, the content is uploaded.
	token string
	// known says that the token is from before this attempt.
	known bool
	// url is the address that MAX may fetch instead, for an image without a token.
	url string
}

// Upload implements autopost.Uploader. MAX does not state when the content is ready; a post that comes
// too early fails with attachment.not.ready.
func (a *Adapter) Upload(ctx context.Context, upload autopost.Upload) (autopost.Uploaded, *autopost.Error) {
	s := sender{adapter: a, call: autopost.Call{Secret: upload.Secret, Media: upload.Media}, hide: adapter.Hide(upload.Secret)}
	if failure := s.usable(); failure != nil {
		return autopost.Uploaded{}, failure
	}
	it, failure := s.find(ctx, upload.Medium)
	if failure == nil && !it.known {
		it.url = ""
		failure = s.upload(ctx, &it)
	}
	if failure != nil {
		return autopost.Uploaded{}, failure
	}
	return autopost.Uploaded{FileID: it.token, Kind: it.kind}, nil
}

// find looks up the token of a medium, else its source URL.
func (s *sender) find(ctx context.Context, medium autopost.Media) (item, *autopost.Error) {
	possible := kinds[medium.Type]
	if len(possible) == 0 {
		return item{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, fmt.Sprintf("media type must be image, video, animation, audio or file, got %q", medium.Type))
	}
	it := item{medium: medium, kind: possible[0], token: cmp.Or(medium.AttachmentToken, medium.FileID)}
	for _, kind := range possible {
		if it.token != "" {
			break
		}
		token, failure := adapter.Cached(ctx, s.call.Media, medium, kind)
		if failure != nil {
			return item{}, failure
		}
		if token != "" {
			it.kind, it.token = kind, token
		}
	}
	it.known = it.token != ""
	if it.known || medium.Type != autopost.MediaImage { // MAX fetches images only
		return it, nil
	}
	var failure *autopost.Error
	it.url, failure = adapter.SourceURL(ctx, s.call.Media, medium, it.kind)
	return it, failure
}

// forget drops a token or source URL, so that the content is uploaded.
func (s *sender) forget(ctx context.Context, it *item) {
	if it.medium.FileID+it.medium.AttachmentToken == "" {
		adapter.Forget(ctx, s.call.Media, it.medium, it.kind)
	}
	it.token, it.url, it.known = "", "", false
}

// upload gets a slot and sends the content to it. All its errors are definite: nothing was posted.
func (s *sender) upload(ctx context.Context, it *item) *autopost.Error {
	content, failure := adapter.Open(ctx, s.call.Media, it.medium, s.hide)
	if failure != nil {
		return failure
	}
	if it.medium.Type == autopost.MediaAnimation {
		it.kind = "video"
		if strings.HasPrefix(content.ContentType, "image/") {
			it.kind = "image"
		}
	}
	form := adapter.NewForm()
	form.File("data", content)
	slot, failure := s.slot(ctx, it.kind)
	if failure != nil {
		_ = form.Close()
		return definite(failure)
	}
	// The slot's URL is used unchanged. It is another host, which does not get the bot token.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, slot.URL, nil)
	if err != nil || req.URL.Host == "" || (req.URL.Scheme != "https" && req.URL.Scheme != s.adapter.base.Scheme) {
		_ = form.Close()
		return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeUploadFailed, "the slot must have an http or https URL")
	}
	form.Attach(req)
	answer, failure := adapter.Exchange(s.adapter.client, req, s.hide)
	if failure != nil {
		if failure.Scope == autopost.ScopePlatform {
			// Each kind of media has another host; other posts do not need this one.
			failure.Scope = autopost.ScopeDelivery
		}
		return definite(failure)
	}
	if it.token, failure = stored(answer, slot.Token, s.hide); failure != nil {
		return failure
	}
	adapter.Keep(ctx, s.call.Media, it.medium, it.kind, it.token) // MAX states no expiry
	return nil
}

// slot is the answer of POST /uploads. It has a token for video and audio only.
type slot struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// slot asks for a slot.
func (s *sender) slot(ctx context.Context, kind string) (slot, *autopost.Error) {
	req, failure := s.request(ctx, http.MethodPost, "uploads", url.Values{"type": {kind}}, nil)
	if failure != nil {
		return slot{}, failure
	}
	answer, failure := adapter.Exchange(s.adapter.client, req, s.hide)
	if failure != nil {
		return slot{}, failure
	}
	var got slot
	if answer.Status == http.StatusOK && json.Unmarshal(answer.Body, &got) == nil && got.URL != "" {
		return got, nil
	}
	if r, ok := parse(answer); answer.Status >= 300 || (ok && r.refusal()) {
		return slot{}, refused(answer, s.hide)
	}
	return slot{}, uploadError(answer, "the answer of POST /uploads is not of MAX's form", s.hide)
}

// stored returns the token from the answer of an upload host: a map of photos, a token, or XML for video
// and audio, whose token is that of the slot.
func stored(answer adapter.Answer, token string, hide adapter.Redactor) (string, *autopost.Error) {
	switch {
	case answer.Status == http.StatusRequestEntityTooLarge, answer.Status == http.StatusUnsupportedMediaType:
		rule := adapter.Rule{Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaRejected}
		return "", rule.Error(answer, fmt.Sprintf("the upload host answers %d", answer.Status), hide)
	case answer.Status >= 300:
		return "", uploadError(answer, fmt.Sprintf("the upload host answers %d", answer.Status), hide)
	}
	if token != "" {
		if text := string(answer.Body); strings.Contains(text, "<retval>") && !strings.Contains(text, "<retval>1</retval>") {
			return "", uploadError(answer, "the upload host rejects the content", hide)
		}
		return token, nil
	}
	var uploaded struct {
		Token  string                  `json:"token"`
		Photos map[string]tokenPayload `json:"photos"`
	}
	if json.Unmarshal(answer.Body, &uploaded) == nil {
		if uploaded.Token != "" {
			return uploaded.Token, nil
		}
		for _, key := range slices.Sorted(maps.Keys(uploaded.Photos)) {
			if photo := uploaded.Photos[key]; photo.Token != "" {
				return photo.Token, nil
			}
		}
	}
	return "", uploadError(answer, "the answer of the upload host has no token", hide)
}

func uploadError(answer adapter.Answer, message string, hide adapter.Redactor) *autopost.Error {
	rule := adapter.Rule{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeUploadFailed}
	return rule.Error(answer, message, hide)
}

// definite turns an unknown outcome into a failed upload: nothing was posted.
func definite(failure *autopost.Error) *autopost.Error {
	if !failure.Known {
		failure.Known, failure.Code = true, codeUploadFailed
	}
	return failure
}
