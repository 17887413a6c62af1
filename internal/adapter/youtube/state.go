package youtube

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	watchURL = "https://www.youtube.com/watch?v="
	// firstPause is the pause before the second poll of a new video's state. Each further pause doubles.
	firstPause = time.Second
)

// video has the fields of a Video resource that the adapter reads.
type video struct {
	ID      string `json:"id"`
	Snippet struct {
		PublishedAt time.Time `json:"publishedAt"`
	} `json:"snippet"`
	Status struct {
		UploadStatus    string `json:"uploadStatus"`
		FailureReason   string `json:"failureReason"`
		RejectionReason string `json:"rejectionReason"`
		PrivacyStatus   string `json:"privacyStatus"`
		PublishAt       string `json:"publishAt"`
	} `json:"status"`
	ProcessingDetails struct {
		ProcessingStatus string `json:"processingStatus"`
	} `json:"processingDetails"`
}

// done reports that the upload status is final.
func (v *video) done() bool {
	return v.Status.UploadStatus != "" && v.Status.UploadStatus != "uploaded"
}

// raw is the stored outcome of a post.
type raw struct {
	IDs   []string            `json:"ids"`
	Steps map[string][]string `json:"steps"`
	URL   string              `json:"url"`
	// UploadStatus and Processing are the state at the last poll. It may change for hours.
	UploadStatus string `json:"upload_status,omitempty"`
	Processing   string `json:"processing,omitempty"`
	// Reason is the reason of a failure or a rejection.
	Reason    string `json:"reason,omitempty"`
	Privacy   string `json:"privacy,omitempty"`
	PublishAt string `json:"publish_at,omitempty"`
	// Unread is the code of the error that prevented a poll.
	Unread string `json:"unread,omitempty"`
	// Refused has the error code of each refused step.
	Refused map[string]string `json:"refused,omitempty"`
}

// lacksOnlyComment reports that the video is complete and its first comment failed for good.
func (s *sender) lacksOnlyComment(outcome autopost.Outcome) bool {
	return s.uncommented && outcome.Error.Known && outcome.Error.Category == autopost.Permanent
}

// conclude adds the state of an uploaded video to the outcome. A video that is private against the
// request makes the outcome a failure; nothing is uploaded again.
func (s *sender) conclude(ctx context.Context, outcome autopost.Outcome) autopost.Outcome {
	var result raw
	if err := json.Unmarshal(outcome.Raw, &result); err != nil {
		panic("youtube: decode an outcome: " + err.Error()) // adapter.Run encoded it
	}
	maps.DeleteFunc(result.Steps, func(step string, _ []string) bool { return strings.HasPrefix(step, "session") })
	id, _ := s.videoID() // known: the video is uploaded
	result.URL = watchURL + id
	result.Refused = refusals(result.Steps)
	seen, failure := s.watch(ctx, id)
	if failure != nil {
		result.Unread = failure.Code
	}
	if seen == nil {
		seen = s.uploaded
	}
	if seen != nil {
		result.UploadStatus, result.Processing = seen.Status.UploadStatus, seen.ProcessingDetails.ProcessingStatus
		result.Reason = seen.Status.FailureReason + seen.Status.RejectionReason
		result.Privacy, result.PublishAt = seen.Status.PrivacyStatus, seen.Status.PublishAt
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		panic("youtube: encode an outcome: " + err.Error()) // impossible for this type
	}
	outcome.Raw = encoded
	if seen == nil || !s.degraded(seen) {
		return outcome
	}
	failed := autopost.Failed(*adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, codeDegraded,
		"YouTube keeps "+result.URL+" private because the Google project is not verified: make the video public at YouTube, or verify the project and requeue the post"))
	failed.Raw = encoded
	return failed
}

// refusals are the error codes of the refused steps.
func refusals(steps map[string][]string) map[string]string {
	out := map[string]string{}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		for _, id := range steps[step] {
			if why, ok := strings.CutPrefix(id, refusedExtra); ok {
				out[step] = why
			}
		}
	}
	return out
}

// degraded reports that a video is private although the request made it visible, now or later.
func (s *sender) degraded(seen *video) bool {
	want := s.wanted()
	if seen.Status.PrivacyStatus != "private" {
		return false
	}
	return want.Privacy != "private" || want.PublishAt != "" && seen.Status.PublishAt == ""
}

// watch polls the state of a video until it is final or the time ends. It takes at most half of the rest of
// the call: the outcome must still be recorded.
func (s *sender) watch(ctx context.Context, id string) (*video, *autopost.Error) {
	patience := s.cfg.Watch
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	end := time.Now().Add(patience)
	for pause := firstPause; ; pause *= 2 {
		var got struct {
			Items []video `json:"items"`
		}
		failure := s.list(ctx, "videos", url.Values{"part": {"status,processingDetails"}, "id": {id}}, &got)
		if failure != nil {
			return nil, failure
		}
		if len(got.Items) == 0 {
			return nil, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, "yt_video_not_found", "the list of videos does not show the video yet")
		}
		if got.Items[0].done() || time.Now().Add(pause).After(end) || !sleep(ctx, pause) {
			return &got.Items[0], nil
		}
	}
}

// sleep waits and reports false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
