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
	// firstLook is the pause before the state of a new video is asked for the second
	// time; each further one is twice as long.
	firstLook = time.Second
)

// video is a Video resource, as far as it is read.
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

// done says that YouTube will change its mind no more.
func (v *video) done() bool {
	return v.Status.UploadStatus != "" && v.Status.UploadStatus != "uploaded"
}

// raw is what is kept of a post.
type raw struct {
	IDs   []string            `json:"ids"`
	Steps map[string][]string `json:"steps"`
	URL   string              `json:"url"`
	// UploadStatus and Processing are the state when it was last looked at; it may change for hours.
	UploadStatus string `json:"upload_status,omitempty"`
	Processing   string `json:"processing,omitempty"`
	// Reason is why the video failed or was rejected.
	Reason    string `json:"reason,omitempty"`
	Privacy   string `json:"privacy,omitempty"`
	PublishAt string `json:"publish_at,omitempty"`
	// Unread says why the state could not be read.
	Unread string `json:"unread,omitempty"`
	// Refused are the steps that YouTube would not have, and why.
	Refused map[string]string `json:"refused,omitempty"`
}

// conclude looks at what became of a video that is uploaded, and says so. Whatever is
// seen here, nothing is uploaded again.
func (s *sender) conclude(ctx context.Context, outcome autopost.Outcome) autopost.Outcome {
	var told raw
	if err := json.Unmarshal(outcome.Raw, &told); err != nil {
		panic("youtube: decode an outcome: " + err.Error()) // adapter.Run encoded it
	}
	maps.DeleteFunc(told.Steps, func(step string, _ []string) bool { return strings.HasPrefix(step, "session") })
	told.URL = watchURL + outcome.ProviderMessageID
	told.Refused = refusals(told.Steps)
	seen, failure := s.watch(ctx, outcome.ProviderMessageID)
	if failure != nil {
		told.Unread = failure.Code
	}
	if seen == nil {
		seen = s.uploaded
	}
	if seen != nil {
		told.UploadStatus, told.Processing = seen.Status.UploadStatus, seen.ProcessingDetails.ProcessingStatus
		told.Reason = seen.Status.FailureReason + seen.Status.RejectionReason
		told.Privacy, told.PublishAt = seen.Status.PrivacyStatus, seen.Status.PublishAt
	}
	encoded, err := json.Marshal(told)
	if err != nil {
		panic("youtube: encode an outcome: " + err.Error()) // the type has no value that JSON lacks
	}
	outcome.Raw = encoded
	if seen == nil || !s.degraded(seen) {
		return outcome
	}
	failed := autopost.Failed(*adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, codeDegraded,
		"YouTube keeps "+told.URL+" private: the Google project is not verified. It is not uploaded again; make it public by hand, or verify the project and requeue"))
	failed.Raw = encoded
	return failed
}

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

// degraded says that a video is private that was to be seen, now or later.
func (s *sender) degraded(seen *video) bool {
	want := s.wanted()
	if seen.Status.PrivacyStatus != "private" {
		return false
	}
	return want.Privacy != "private" || want.PublishAt != "" && seen.Status.PublishAt == ""
}

// watch asks for the state of a video until its processing is over or the time is: half
// of what the call has left, since the outcome has yet to be recorded.
func (s *sender) watch(ctx context.Context, id string) (*video, *autopost.Error) {
	patience := s.cfg.Watch
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	end := time.Now().Add(patience)
	for pause := firstLook; ; pause *= 2 {
		var got struct {
			Items []video `json:"items"`
		}
		failure := s.list(ctx, "videos", url.Values{"part": {"status,processingDetails"}, "id": {id}}, &got)
		if failure != nil {
			return nil, failure
		}
		if len(got.Items) == 0 {
			return nil, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, "yt_video_not_found", "the list of videos does not have it yet")
		}
		if got.Items[0].done() || time.Now().Add(pause).After(end) || !rest(ctx, pause) {
			return &got.Items[0], nil
		}
	}
}

// rest waits and reports whether ctx outlived it.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
