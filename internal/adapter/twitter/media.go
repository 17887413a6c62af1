package twitter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	categoryImage = "tweet_image"
	categoryGIF   = "tweet_gif"
	categoryVideo = "tweet_video"
	// processing marks, behind a category, the cached id of a medium that X still processes.
	processing = " processing"
)

// categories are the possible categories of each kind of medium. The content type of an animation
// decides between its two.
var categories = map[autopost.MediaKind][]string{
	autopost.MediaImage:     {categoryImage},
	autopost.MediaVideo:     {categoryVideo},
	autopost.MediaAnimation: {categoryGIF, categoryVideo},
}

// item is one medium of a step.
type item struct {
	medium   autopost.Media
	category string
	// id is X's id of the content; empty before the upload.
	id string
	// known reports that the id is from an earlier attempt.
	known bool
}

// kind is the cache key of an id. X attaches the alternative text to the id, so the key depends on it.
func (it item) kind() string {
	if it.medium.Alt == "" || it.category == categoryVideo {
		return it.category
	}
	sum := sha256.Sum256([]byte(it.medium.Alt))
	return it.category + " " + hex.EncodeToString(sum[:8])
}

// Upload implements autopost.Uploader. It waits until X has processed the content or the time of the
// call ends. The next call continues the wait.
func (a *Adapter) Upload(ctx context.Context, upload autopost.Upload) (autopost.Uploaded, *autopost.Error) {
	s, failure := a.authorised(autopost.Call{Secret: upload.Secret, Media: upload.Media})
	if failure == nil {
		failure = checkMedium("the medium", upload.Medium)
	}
	if failure != nil {
		return autopost.Uploaded{}, failure
	}
	it, failure := s.findMedium(ctx, upload.Medium)
	if failure == nil && !it.known {
		failure = s.prepare(ctx, &it)
	}
	if failure != nil {
		return autopost.Uploaded{Used: s.used}, failure
	}
	return autopost.Uploaded{FileID: it.id, Kind: it.kind(), Used: s.used}, nil
}

// findMedium looks up the cached id of a medium.
func (s *sender) findMedium(ctx context.Context, medium autopost.Media) (item, *autopost.Error) {
	it := item{medium: medium, id: medium.FileID}
	for _, category := range categories[medium.Type] {
		if it.id != "" {
			break
		}
		it.category = category
		id, failure := adapter.Cached(ctx, s.call.Media, medium, it.kind())
		if failure != nil {
			return item{}, failure
		}
		it.id = id
	}
	it.known = it.id != ""
	return it, nil
}

// forget removes a refused id, so that the medium is uploaded again. An error of the cache is ignored:
// the new upload replaces the id.
func (s *sender) forget(ctx context.Context, it *item) {
	if !it.known {
		return
	}
	if it.medium.FileID == "" {
		_ = s.call.Media.Forget(ctx, it.medium.BlobRef, it.kind())
	}
	it.id, it.known = "", false
}

// prepare gives an item an id: that of an upload in processing, else of a new upload.
func (s *sender) prepare(ctx context.Context, it *item) *autopost.Error {
	for _, category := range categories[it.medium.Type] {
		if category == categoryImage {
			break
		}
		it.category = category
		id, failure := adapter.Cached(ctx, s.call.Media, it.medium, it.kind()+processing)
		if failure != nil {
			return failure
		}
		if id != "" {
			return s.resume(ctx, it, id)
		}
	}
	up, failure := s.upload(ctx, it)
	if failure != nil {
		return failure
	}
	return s.finish(ctx, it, up)
}

// resume continues to wait for an earlier upload. It forgets an upload that X no longer has.
func (s *sender) resume(ctx context.Context, it *item, id string) *autopost.Error {
	up, failure := s.status(ctx, id)
	if failure != nil {
		if failure.Code == codeUploadLost {
			_ = s.call.Media.Forget(ctx, it.medium.BlobRef, it.kind()+processing)
		}
		return failure
	}
	failure = s.finish(ctx, it, up)
	if failure == nil || failure.Code != codeMediaNotReady {
		_ = s.call.Media.Forget(ctx, it.medium.BlobRef, it.kind()+processing)
	}
	return failure
}

// finish waits until X has processed an upload. An upload that is not ready in time is kept for the next
// attempt. An error of the cache costs one more upload.
func (s *sender) finish(ctx context.Context, it *item, up upload) *autopost.Error {
	up, failure := s.await(ctx, up)
	if failure != nil {
		if failure.Code == codeMediaNotReady {
			_ = s.call.Media.Keep(ctx, it.medium.BlobRef, it.kind()+processing, up.ID, up.expires())
		}
		return failure
	}
	if it.medium.Alt != "" && it.category != categoryVideo {
		if failure := s.describe(ctx, up.ID, it.medium.Alt); failure != nil {
			return failure
		}
	}
	it.id = up.ID
	_ = s.call.Media.Keep(ctx, it.medium.BlobRef, it.kind(), it.id, up.expires())
	return nil
}

// upload is an upload in X's answers.
type upload struct {
	ID               string `json:"id"`
	ExpiresAfterSecs int64  `json:"expires_after_secs"`
	ProcessingInfo   *struct {
		State          string `json:"state"`
		CheckAfterSecs int64  `json:"check_after_secs"`
		Error          struct {
			Name    string `json:"name"`
			Message string `json:"message"`
		} `json:"error"`
	} `json:"processing_info"`
}

// expires is the end of the use of the id, a little before X forgets it.
func (u upload) expires() time.Time {
	life := time.Duration(u.ExpiresAfterSecs) * time.Second
	return time.Now().Add(life - min(life/10, 5*time.Minute))
}

func (u upload) working() bool {
	return u.ProcessingInfo != nil && (u.ProcessingInfo.State == "pending" || u.ProcessingInfo.State == "in_progress")
}

// callReserve is the time of a call that is kept for the post itself.
const callReserve = 5 * time.Second

// await polls the state of an upload at X's interval while the time of the call lasts.
func (s *sender) await(ctx context.Context, up upload) (upload, *autopost.Error) {
	for up.working() {
		pause := max(leastWait, time.Duration(up.ProcessingInfo.CheckAfterSecs)*time.Second)
		notReady := adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeMediaNotReady, "X still processes the medium")
		notReady.RetryAfterMS = pause.Milliseconds()
		if end, ok := ctx.Deadline(); ok && time.Until(end) < pause+callReserve {
			return up, notReady
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return up, notReady
		case <-timer.C:
		}
		next, failure := s.status(ctx, up.ID)
		if failure != nil {
			return up, failure
		}
		up = next
	}
	if up.ProcessingInfo != nil && up.ProcessingInfo.State == "failed" {
		problem := up.ProcessingInfo.Error
		failure := adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeMediaRejected, s.hide.Text("X could not process the medium: "+problem.Name+" "+problem.Message))
		if strings.Contains(problem.Name, "Internal") {
			failure.Category, failure.Code = autopost.Transient, codeCallFailed
		}
		return up, failure
	}
	return up, nil
}

func (s *sender) status(ctx context.Context, id string) (upload, *autopost.Error) {
	var got struct {
		Data upload `json:"data"`
	}
	failure := s.get(ctx, "2/media/upload", url.Values{"command": {"STATUS"}, "media_id": {id}}, &got)
	got.Data.ID = id
	return got.Data, uploadFailure(failure)
}

// describe attaches an alternative text.
func (s *sender) describe(ctx context.Context, id, alt string) *autopost.Error {
	var body struct {
		ID       string `json:"id"`
		Metadata struct {
			AltText struct {
				Text string `json:"text"`
			} `json:"alt_text"`
		} `json:"metadata"`
	}
	body.ID, body.Metadata.AltText.Text = id, alt
	req, failure := s.request(ctx, http.MethodPost, "2/media/metadata", nil, bytes.NewReader(encode(body)))
	if failure != nil {
		return failure
	}
	s.used = s.used.Add(useMetadata, 1)
	return uploadFailure(s.exchange(req, nil))
}

// uploadFailure classifies a 404 of an upload: X no longer has it, and the next attempt repeats it.
func uploadFailure(failure *autopost.Error) *autopost.Error {
	if failure != nil && failure.Code == "x_404" {
		failure.Category, failure.Scope, failure.Code = autopost.Transient, autopost.ScopeDelivery, codeUploadLost
	}
	return failure
}
