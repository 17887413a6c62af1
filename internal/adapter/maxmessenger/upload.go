package maxmessenger

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// codeUploadFailed: an upload host failed in a way that may pass. The scope is the
// delivery: the API itself and posts without media are not concerned.
const codeUploadFailed = "max_upload_failed"

// kinds are MAX's types of a medium, as they may be. Only an animation has two: a
// GIF is an image there, a silent clip a video, which the content tells.
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
	// token names the uploaded content; it is uploaded when empty.
	token string
	// known says that the token was there before this attempt.
	known bool
}

func (s *sender) find(ctx context.Context, medium autopost.Media) (item, *autopost.Error) {
	possible := kinds[medium.Type]
	if len(possible) == 0 {
		return item{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, "the medium is of no kind that MAX has")
	}
	it := item{medium: medium, kind: possible[0], token: medium.FileID}
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
	return it, nil
}

// forget makes an item whose token was there before be uploaded. A failing cache does
// not matter here: the token of the upload will overwrite the refused one.
func (s *sender) forget(ctx context.Context, it *item) {
	if !it.known {
		return
	}
	if it.medium.FileID == "" {
		_ = s.call.Media.Forget(ctx, it.medium.BlobRef, it.kind)
	}
	it.token, it.known = "", false
}

// upload gets a slot and fills it. Whatever happens, nothing has been posted.
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
	// The slot's address is used unchanged, and the token stays at home: it is another host.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, slot.URL, nil)
	if err != nil || req.URL.Host == "" || (req.URL.Scheme != "https" && req.URL.Scheme != s.adapter.base.Scheme) {
		_ = form.Close()
		return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeUploadFailed, "the slot has no usable address")
	}
	form.Attach(req)
	answer, failure := adapter.Exchange(s.adapter.client, req, s.hide)
	if failure != nil {
		if failure.Scope == autopost.ScopePlatform {
			// It is a host of its own: posts without media, and other kinds of them, go on.
			failure.Scope = autopost.ScopeDelivery
		}
		return definite(failure)
	}
	if it.token, failure = stored(answer, slot.Token, s.hide); failure != nil {
		return failure
	}
	// MAX states no lifetime. A failing cache costs one more upload some day.
	_ = s.call.Media.Keep(ctx, it.medium.BlobRef, it.kind, it.token, time.Time{})
	return nil
}

// slot is the answer of POST /uploads; the token is there for video and audio only.
type slot struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

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
	return slot{}, uploadError(answer, "the slot cannot be read", s.hide)
}

// stored takes the token out of an upload's answer: a map of photos, a token, or XML
// (video and audio, whose token came with the slot).
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
			return "", uploadError(answer, "the upload host did not take the content", hide)
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
	return "", uploadError(answer, "the upload's answer names no token", hide)
}

func uploadError(answer adapter.Answer, message string, hide adapter.Redactor) *autopost.Error {
	rule := adapter.Rule{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeUploadFailed}
	return rule.Error(answer, message, hide)
}

// definite turns what would be an unknown outcome of a post into a failed upload.
func definite(failure *autopost.Error) *autopost.Error {
	if !failure.Known {
		failure.Known, failure.Code = true, codeUploadFailed
	}
	return failure
}
