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
	"autopost/internal/adapter/youtube"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
)

const (
	start   = "POST /upload/youtube/v3/videos"
	bytesTo = "PUT /upload/youtube/v3/videos"

	// anyToken is a grant that the simulator takes for a channel's of its own.
	anyToken = `{"client_id":"client","client_secret":"hush-hush","refresh_token":"1//canary-refresh-token","access_token":"ya29.canary-access-token"}`
)

func TestConformance(t *testing.T) {
	adaptertest.Run(t, adaptertest.Harness{
		Secret: anyToken, Target: channelOf(t, "ya29.canary-access-token"), World: anyWorld,
		New: func(baseURL string, client adapter.Doer) (autopost.Adapter, error) {
			return youtube.New(youtube.Config{BaseURL: baseURL, Client: client, PartBytes: 256 << 10, Watch: time.Nanosecond})
		},
		Refresher: func(baseURL string, client adapter.Doer) autopost.Refresher {
			return youtube.NewRefresher(baseURL+"/google/token", client)
		},
		Plain: plain, Asks: true,
		TextMethod:  start,
		Definite5xx: row(503, "backendError", autopost.Transient, autopost.ScopePlatform, "yt_5xx"),
		Rows:        rows(),
		Acts:        map[autopost.ActKind]string{autopost.ActEdit: "PUT /youtube/v3/videos", autopost.ActDelete: "DELETE /youtube/v3/videos"},
		ActRows: map[autopost.ActKind][]adaptertest.Row{
			autopost.ActEdit: {
				row(400, "invalidTitle", autopost.Permanent, autopost.ScopeDelivery, "validation_failed"),
				row(404, "videoNotFound", autopost.Transient, autopost.ScopeDelivery, "yt_video_not_found"),
				row(401, "authError", autopost.Permanent, autopost.ScopeChannel, "yt_unauthorized"),
			},
			autopost.ActDelete: {
				{Status: 404, Code: "videoNotFound", Description: "in other words"},
				row(403, "forbidden", autopost.Permanent, autopost.ScopeChannel, "yt_forbidden"),
				row(503, "backendError", autopost.Transient, autopost.ScopePlatform, "yt_5xx"),
			},
		},
	})
}

// anyWorld takes every token.
func anyWorld(*testing.T) (*sim.Core, http.Handler) {
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

// channelOf is the channel that the simulator takes a token for.
func channelOf(t *testing.T, token string) string {
	t.Helper()
	_, world := anyWorld(t)
	request := httptest.NewRequest(http.MethodGet, "/youtube/v3/channels?part=id&mine=true", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	world.ServeHTTP(answer, request)
	var list struct{ Items []struct{ ID string } }
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	return list.Items[0].ID
}

// plain is a video without anything else.
func plain(m *adaptertest.Materials) autopost.Delivery {
	return autopost.Delivery{
		RenderedText: "A news show", Payload: autopost.Payload{Media: []autopost.Media{{Type: autopost.MediaVideo, BlobRef: m.Add(autopost.MediaVideo)}}},
		RenderMeta: autopost.RenderMeta{
			Title: "News", Video: &autopost.Video{Privacy: "public"},
			Steps: []autopost.Step{{Name: "session", Aside: true}, {Name: "video", Text: true, Items: []int{0}}},
		},
	}
}

func row(status int, reason string, category autopost.Category, scope autopost.Scope, code string) adaptertest.Row {
	return adaptertest.Row{
		Status: status, Code: reason, Description: "in other words",
		Want: adaptertest.Class{Category: category, Scope: scope, Code: code},
	}
}

func rows() []adaptertest.Row {
	const permanent, transient = autopost.Permanent, autopost.Transient
	const delivery, channel, platform = autopost.ScopeDelivery, autopost.ScopeChannel, autopost.ScopePlatform
	limited := row(429, "rateLimitExceeded", transient, platform, "yt_rate_limited")
	limited.Want.RetryAfterMS = 1000
	told := limited
	told.RetryAfter, told.Want.RetryAfterMS = 7, 7000
	user := row(403, "userRateLimitExceeded", transient, platform, "yt_rate_limited")
	user.Want.RetryAfterMS = 1000
	uploads := row(400, "uploadLimitExceeded", transient, channel, "yt_upload_limit_exceeded")
	uploads.Want.RetryAfterMS = 86_400_000
	otherStatus := uploads
	otherStatus.Status = 403
	list := []adaptertest.Row{
		limited, told, user, uploads, otherStatus,
		row(403, "forbidden", permanent, channel, "yt_forbidden"),
		row(403, "insufficientPermissions", permanent, channel, "yt_insufficient_permissions"),
		row(403, "channelClosed", permanent, channel, "yt_channel_closed"),
		row(403, "channelSuspended", permanent, channel, "yt_channel_suspended"),
		row(403, "authenticatedUserAccountSuspended", permanent, channel, "yt_authenticated_user_account_suspended"),
		row(403, "authenticatedUserAccountClosed", permanent, channel, "yt_authenticated_user_account_closed"),
		row(403, "authenticatedUserNotChannel", permanent, channel, "yt_authenticated_user_not_channel"),
		row(403, "accountDelegationForbidden", permanent, channel, "yt_account_delegation_forbidden"),
		row(401, "youtubeSignupRequired", permanent, channel, "yt_youtube_signup_required"),
		row(403, "youtubeSignupRequired", permanent, channel, "yt_youtube_signup_required"),
		row(403, "accessNotConfigured", permanent, platform, "yt_access_not_configured"),
		row(403, "SERVICE_DISABLED", permanent, platform, "yt_service_disabled"),
		row(403, "API_KEY_SERVICE_BLOCKED", permanent, platform, "yt_api_key_service_blocked"),
		row(400, "mediaBodyRequired", permanent, delivery, "media_rejected"),
		row(403, "forbiddenPrivacySetting", permanent, delivery, "yt_forbidden_privacy_setting"),
		row(403, "forbiddenLicenseSetting", permanent, delivery, "yt_forbidden_license_setting"),
		row(403, "forbiddenEmbedSetting", permanent, delivery, "yt_forbidden_embed_setting"),
		row(400, "failedPrecondition", permanent, delivery, "yt_failed_precondition"),
		row(400, "processingFailure", permanent, delivery, "yt_processing_failure"),
		row(413, "uploadTooLarge", permanent, delivery, "media_too_large"),
		row(400, "somethingNew", permanent, delivery, "validation_failed"),
		row(403, "somethingNew", permanent, channel, "yt_403"),
		row(418, "somethingNew", permanent, delivery, "yt_418"),
		row(429, "somethingNew", transient, channel, "yt_429"),
		row(500, "internalError", transient, platform, "yt_5xx"),
		row(503, "backendError", transient, platform, "yt_5xx"),
		row(502, "somethingNew", transient, platform, "yt_5xx"),
	}
	for _, reason := range []string{
		"invalidTitle", "invalidDescription", "invalidTags", "invalidCategoryId", "invalidPublishAt", "invalidVideoMetadata", "invalidRecordingDetails",
		"invalidFilename", "defaultLanguageNotSet", "invalidVideoGameRating",
	} {
		list = append(list, row(400, reason, permanent, delivery, "validation_failed"))
	}
	return list
}
