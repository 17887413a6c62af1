package youtube_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/youtube"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
)

const (
	start   = "POST /upload/youtube/v3/videos"
	bytesTo = "PUT /upload/youtube/v3/videos"

	// anyToken is a grant that the simulator accepts for a channel.
	anyToken = `{"client_id":"client","client_secret":"hush-hush","refresh_token":"1//canary-refresh-token","access_token":"ya29.canary-access-token"}`
)

func TestConformance(t *testing.T) {
	adaptertest.Run(t, adaptertest.Harness{
		Secret: anyToken, Target: channelOf(t, "ya29.canary-access-token"), Simulator: anyPlatform,
		Schema: published.YouTube(t),
		New: func(baseURL string, client adapter.Doer) (autopost.Adapter, error) {
			return youtube.New(youtube.Config{BaseURL: baseURL, Client: client, PartBytes: 256 << 10, Watch: time.Nanosecond})
		},
		Refresher: func(baseURL string, client adapter.Doer) autopost.Refresher {
			return youtube.NewRefresher(baseURL+"/google/token", client)
		},
		Plain: plain, Asks: true,
		TextMethod:  start,
		Definite5xx: row(503, "backendError", adaptertest.Group(autopost.Transient, "yt_5xx")),
		Rows:        rows(),
		Changes:     map[autopost.ChangeKind]string{autopost.ChangeEdit: "PUT /youtube/v3/videos", autopost.ChangeDelete: "DELETE /youtube/v3/videos"},
		ChangeRows: map[autopost.ChangeKind][]adaptertest.Row{
			autopost.ChangeEdit: {
				row(400, "invalidTitle", adaptertest.Delivery(autopost.Permanent, "validation_failed")),
				row(404, "videoNotFound", adaptertest.Delivery(autopost.Transient, "yt_video_not_found")),
				row(401, "authError", adaptertest.Channel(autopost.Permanent, "yt_unauthorized")),
			},
			autopost.ChangeDelete: {
				{Status: 404, Code: "videoNotFound", Description: "in other words"},
				row(403, "forbidden", adaptertest.Channel(autopost.Permanent, "yt_forbidden")),
				row(503, "backendError", adaptertest.Group(autopost.Transient, "yt_5xx")),
			},
		},
	})
}

// anyPlatform is a simulator that accepts every token.
func anyPlatform(*testing.T) (*sim.Core, http.Handler) {
	core := sim.NewCore(0)
	server := simyoutube.New(core, simyoutube.Options{AnyAccount: true})
	return core, mounted(server)
}

func mounted(server *simyoutube.Server) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", server)
	mux.Handle("/google/token", server.Tokens())
	return mux
}

// channelOf is the channel that the simulator assigns to a token.
func channelOf(t *testing.T, token string) string {
	t.Helper()
	_, handler := anyPlatform(t)
	request := httptest.NewRequest(http.MethodGet, "/youtube/v3/channels?part=id&mine=true", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	var list struct{ Items []struct{ ID string } }
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	return list.Items[0].ID
}

// plain is a video without extras.
func plain(m *adaptertest.MediaAccess) autopost.Delivery {
	return autopost.Delivery{
		RenderedText: "A news show", Payload: autopost.Payload{Media: []autopost.Media{{Type: autopost.MediaVideo, BlobRef: m.Add(autopost.MediaVideo)}}},
		RenderMeta: autopost.RenderMeta{
			Title: "News", Video: &autopost.Video{Privacy: "public"},
			Steps: []autopost.Step{{Name: "session", Aside: true}, {Name: "video", Text: true, Items: []int{0}}},
		},
	}
}

func row(status int, reason string, want adaptertest.Class) adaptertest.Row {
	return adaptertest.Row{
		Status: status, Code: reason, Description: "in other words",
		Want: want,
	}
}

func rows() []adaptertest.Row {
	const permanent, transient = autopost.Permanent, autopost.Transient
	limited := row(429, "rateLimitExceeded", adaptertest.Group(transient, "yt_rate_limited"))
	stated := limited
	stated.RetryAfter, stated.Want.RetryAfterMS = 7, 7000
	user := row(403, "userRateLimitExceeded", adaptertest.Group(transient, "yt_rate_limited"))
	uploads := row(400, "uploadLimitExceeded", adaptertest.Channel(transient, "yt_upload_limit_exceeded"))
	uploads.Want.RetryAfterMS = 86_400_000
	otherStatus := uploads
	otherStatus.Status = 403
	list := []adaptertest.Row{
		limited, stated, user, uploads, otherStatus,
		row(403, "forbidden", adaptertest.Channel(permanent, "yt_forbidden")),
		row(403, "insufficientPermissions", adaptertest.Channel(permanent, "yt_insufficient_permissions")),
		row(403, "channelClosed", adaptertest.Channel(permanent, "yt_channel_closed")),
		row(403, "channelSuspended", adaptertest.Channel(permanent, "yt_channel_suspended")),
		row(403, "authenticatedUserAccountSuspended", adaptertest.Channel(permanent, "yt_authenticated_user_account_suspended")),
		row(403, "authenticatedUserAccountClosed", adaptertest.Channel(permanent, "yt_authenticated_user_account_closed")),
		row(403, "authenticatedUserNotChannel", adaptertest.Channel(permanent, "yt_authenticated_user_not_channel")),
		row(403, "accountDelegationForbidden", adaptertest.Channel(permanent, "yt_account_delegation_forbidden")),
		row(401, "youtubeSignupRequired", adaptertest.Channel(permanent, "yt_youtube_signup_required")),
		row(403, "youtubeSignupRequired", adaptertest.Channel(permanent, "yt_youtube_signup_required")),
		row(403, "servingLimitExceeded", adaptertest.Group(transient, "yt_serving_rate_limited")),
		row(403, "concurrentLimitExceeded", adaptertest.Group(transient, "yt_serving_rate_limited")),
		row(409, "aborted", adaptertest.Delivery(transient, "yt_aborted")),
		row(403, "CONSUMER_SUSPENDED", adaptertest.Group(permanent, "yt_consumer_suspended")),
		row(401, "required", adaptertest.Channel(permanent, "yt_unauthorized")),
		row(400, "required", adaptertest.Delivery(permanent, "validation_failed")),
		row(403, "accessNotConfigured", adaptertest.Group(permanent, "yt_access_not_configured")),
		row(403, "SERVICE_DISABLED", adaptertest.Group(permanent, "yt_service_disabled")),
		row(403, "API_KEY_SERVICE_BLOCKED", adaptertest.Group(permanent, "yt_api_key_service_blocked")),
		row(400, "mediaBodyRequired", adaptertest.Delivery(permanent, "media_rejected")),
		row(403, "forbiddenPrivacySetting", adaptertest.Delivery(permanent, "yt_forbidden_privacy_setting")),
		row(403, "forbiddenLicenseSetting", adaptertest.Delivery(permanent, "yt_forbidden_license_setting")),
		row(403, "forbiddenEmbedSetting", adaptertest.Delivery(permanent, "yt_forbidden_embed_setting")),
		row(400, "failedPrecondition", adaptertest.Delivery(permanent, "yt_failed_precondition")),
		row(400, "processingFailure", adaptertest.Delivery(permanent, "yt_processing_failure")),
		row(413, "uploadTooLarge", adaptertest.Delivery(permanent, "media_too_large")),
		row(400, "somethingNew", adaptertest.Delivery(permanent, "validation_failed")),
		row(403, "somethingNew", adaptertest.Channel(permanent, "yt_403")),
		row(418, "somethingNew", adaptertest.Delivery(permanent, "yt_418")),
		row(429, "somethingNew", adaptertest.Channel(transient, "yt_429")),
		row(500, "internalError", adaptertest.Group(transient, "yt_5xx")),
		row(503, "backendError", adaptertest.Group(transient, "yt_5xx")),
		row(502, "somethingNew", adaptertest.Group(transient, "yt_5xx")),
	}
	for _, reason := range []string{
		"invalidTitle", "invalidDescription", "invalidTags", "invalidCategoryId", "invalidPublishAt", "invalidVideoMetadata", "invalidRecordingDetails",
		"invalidFilename", "defaultLanguageNotSet", "invalidVideoGameRating",
	} {
		list = append(list, row(400, reason, adaptertest.Delivery(permanent, "validation_failed")))
	}
	return list
}
