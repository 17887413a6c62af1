package youtube

import (
	"encoding/json"
	"net/http"
	"strconv"

	"autopost/internal/sim"
)

// refusal is the answer of a failed call.
type refusal struct {
	status          int
	domain, reason  string
	message         string
	location        string // the invalid parameter, if any
	locationType    string
	canonicalStatus string // such as "PERMISSION_DENIED"; "" omits it
}

// reasons are the refusals by reason. Fault rules name the reason in Code.
var reasons = func() map[string]refusal {
	const quota = `The request cannot be completed because you have exceeded your <a href="/youtube/v3/getting-started#quota">quota</a>.`
	table := map[string]refusal{}
	add := func(status int, domain, canonical, message string, names ...string) {
		for _, name := range names {
			table[name] = refusal{status: status, domain: domain, reason: name, message: message, canonicalStatus: canonical}
		}
	}
	add(http.StatusForbidden, "youtube.quota", "", quota, "quotaExceeded")
	add(http.StatusForbidden, "usageLimits", "", "Daily Limit Exceeded.", "dailyLimitExceeded")
	add(http.StatusForbidden, "usageLimits", "", "User Rate Limit Exceeded.", "userRateLimitExceeded")
	add(http.StatusForbidden, "usageLimits", "", "The request could not be served at this rate.", "servingLimitExceeded", "concurrentLimitExceeded")
	add(http.StatusConflict, "youtube.playlistItem", "ABORTED", "The operation was aborted.", "aborted", "SERVICE_UNAVAILABLE")
	add(http.StatusConflict, "youtube.playlistItem", "", "The video is already in the playlist.", "videoAlreadyInPlaylist")
	add(http.StatusTooManyRequests, "usageLimits", "RESOURCE_EXHAUSTED", "Rate Limit Exceeded.", "rateLimitExceeded")
	add(http.StatusBadRequest, "youtube.video", "", "The user has exceeded the number of videos they may upload.", "uploadLimitExceeded")
	add(http.StatusTooManyRequests, "youtube.thumbnail", "", "The channel has uploaded too many thumbnails recently. Please try the request again later.", "uploadRateLimitExceeded")

	const credentials = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."
	add(http.StatusUnauthorized, "global", "UNAUTHENTICATED", credentials, "authError")
	add(http.StatusUnauthorized, "global", "UNAUTHENTICATED", "Login Required.", "required")
	add(http.StatusUnauthorized, "youtube.header", "UNAUTHENTICATED", "The API user has not authorized the request properly.", "unauthorized")
	add(http.StatusUnauthorized, "youtube.header", "", "Unauthorized", "youtubeSignupRequired")

	add(http.StatusForbidden, "global", "PERMISSION_DENIED", "Request had insufficient authentication scopes.", "insufficientPermissions")
	add(http.StatusForbidden, "youtube.common", "", "Forbidden", "forbidden", "accountDelegationForbidden")
	add(http.StatusForbidden, "youtube.common", "", "The channel is closed or suspended.", "channelClosed", "channelSuspended")
	add(http.StatusForbidden, "youtube.common", "", "The account of the authenticated user is closed, suspended or owns no such channel.",
		"authenticatedUserAccountSuspended", "authenticatedUserAccountClosed", "authenticatedUserNotChannel")
	add(http.StatusForbidden, "usageLimits", "PERMISSION_DENIED", "YouTube Data API v3 has not been used in this project before or it is disabled.",
		"accessNotConfigured", "SERVICE_DISABLED", "API_KEY_SERVICE_BLOCKED", "CONSUMER_SUSPENDED")

	add(http.StatusBadRequest, "youtube.video", "", "The request metadata specifies an invalid video field.",
		"invalidTitle", "invalidDescription", "invalidTags", "invalidCategoryId", "invalidPublishAt", "invalidVideoMetadata", "invalidRecordingDetails",
		"invalidFilename", "defaultLanguageNotSet", "invalidVideoGameRating")
	add(http.StatusBadRequest, "youtube.video", "", "The request does not include the video content.", "mediaBodyRequired")
	add(http.StatusForbidden, "youtube.video", "", "The request attempts to set an invalid setting for the video.",
		"forbiddenPrivacySetting", "forbiddenLicenseSetting", "forbiddenEmbedSetting")
	add(http.StatusBadRequest, "youtube.common", "FAILED_PRECONDITION", "Precondition check failed.", "failedPrecondition")
	add(http.StatusBadRequest, "youtube.common", "", "The API server failed to successfully process the request.", "processingFailure")
	add(http.StatusBadRequest, "youtube.thumbnail", "", "The provided image content is invalid.", "invalidImage", "imageFormatUnsupported", "imageTooTall", "imageTooWide")
	add(http.StatusConflict, "youtube.caption", "", "The specified video already has a caption track with this language and name.", "captionExists")
	add(http.StatusNotFound, "youtube.video", "", "The video that you are trying to use cannot be found.", "videoNotFound")
	add(http.StatusNotFound, "youtube.playlistItem", "", "The playlist identified with the request's playlistId parameter cannot be found.", "playlistNotFound")
	add(http.StatusBadRequest, "youtube.caption", "", "The caption metadata is invalid.", "invalidMetadata", "nameTooLong")
	add(http.StatusBadRequest, "youtube.caption", "", "The caption content is missing.", "contentRequired")

	add(http.StatusBadRequest, "youtube.commentThread", "", "The comment thread is invalid.",
		"channelOrVideoIdMissing", "commentTextRequired", "commentTextTooLong", "invalidCommentThreadMetadata")
	add(http.StatusForbidden, "youtube.commentThread", "", "The video identified by the <code><a href=\"/youtube/v3/docs/commentThreads/list#videoId\">videoId</a></code> parameter has disabled comments.",
		"commentsDisabled", "ineligibleAccount")

	add(http.StatusBadRequest, "global", "INVALID_ARGUMENT", "Bad Request", "badRequest", "invalidContentRange", "unexpectedPart", "incompatibleParameters",
		"invalidFilters", "invalidPageToken", "missingRequiredParameter", "unexpectedParameter", "unknownPart", "invalidParameter", "parseError")
	add(http.StatusNotFound, "global", "NOT_FOUND", "Not Found", "notFound")
	add(http.StatusMethodNotAllowed, "global", "", "The HTTP method is not allowed here.", "httpMethodNotAllowed")
	add(http.StatusGone, "global", "", "The upload session is gone.", "uploadSessionGone")
	add(http.StatusRequestEntityTooLarge, "global", "", "The content is too large.", "uploadTooLarge")
	add(http.StatusInternalServerError, "global", "INTERNAL", "Internal error encountered.", "internalError")
	add(http.StatusServiceUnavailable, "global", "UNAVAILABLE", "Backend Error", "backendError")
	return table
}()

// usual is the default refusal of each status.
var usual = map[int]string{
	http.StatusBadRequest: "badRequest", http.StatusUnauthorized: "authError", http.StatusForbidden: "forbidden", http.StatusNotFound: "notFound",
	http.StatusConflict: "captionExists", http.StatusGone: "uploadSessionGone", http.StatusRequestEntityTooLarge: "uploadTooLarge",
	http.StatusTooManyRequests: "rateLimitExceeded", http.StatusInternalServerError: "internalError", http.StatusServiceUnavailable: "backendError",
}

// because returns the refusal of a reason.
func because(reason string) *refusal {
	r := reasons[reason]
	return &r
}

// wrong returns the refusal of a reason with another message, about a query parameter.
func wrong(reason, message, parameter string) *refusal {
	r := because(reason)
	r.message = message
	if parameter != "" {
		r.location, r.locationType = parameter, "parameter"
	}
	return r
}

func (r *refusal) body() map[string]any {
	inner := map[string]any{"message": r.message, "domain": r.domain, "reason": r.reason}
	if r.location != "" {
		inner["location"], inner["locationType"] = r.location, r.locationType
	}
	outer := map[string]any{"code": r.status, "message": r.message, "errors": []any{inner}}
	if r.canonicalStatus != "" {
		outer["status"] = r.canonicalStatus
	}
	return map[string]any{"error": outer}
}

func refuse(r *refusal) sim.Reply {
	return sim.Reply{
		Status: r.status, ContentType: "application/json; charset=UTF-8", Body: encode(r.body()), Reason: r.reason + ": " + r.message,
	}
}

// refuseFault returns the refusal of a fault rule. Code is its reason; without one, the default of the
// status applies.
func refuseFault(f sim.Fault) sim.Reply {
	r, known := reasons[f.Code]
	if !known {
		r = reasons[usual[f.Status]]
	}
	if f.Code != "" {
		r.reason = f.Code
	}
	if r.reason == "" {
		r.domain, r.reason, r.message = "global", "backendError", http.StatusText(f.Status)
	}
	r.status = f.Status
	if f.Description != "" {
		r.message = f.Description
	}
	reply := refuse(&r)
	if f.RetryAfter > 0 {
		reply.RetryAfter = f.RetryAfter
		reply.Header = http.Header{"Retry-After": {strconv.Itoa(f.RetryAfter)}}
	}
	return reply
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		// Impossible: all values are maps, slices, strings and numbers.
		panic("youtube simulator: " + err.Error())
	}
	return b
}
