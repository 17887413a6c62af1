package youtube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // quotas end at midnight in California, also on hosts without a zone database
	"unicode"

	"autopost"
	"autopost/internal/adapter"
)

const (
	// codeUsageCapped: a daily quota of the Google project is exhausted. By this name the database knows
	// that the platform works.
	codeUsageCapped    = "yt_usage_capped"
	codeRateLimited    = "yt_rate_limited"
	codeServingLimited = "yt_serving_rate_limited"
	codeAborted        = "yt_aborted"
	codeUnauthorized   = "yt_unauthorized"
	codeForbidden      = "yt_forbidden"
	codeCaptionExists  = "yt_caption_exists"
	codeAlreadyListed  = "yt_video_already_in_playlist"
	codeNoScope        = "yt_insufficient_permissions"
	// codeInterrupted: a call was interrupted. The next attempt asks for its result first.
	codeInterrupted = "yt_interrupted"
	codeSessionLost = "yt_session_lost"
	// codeVideoNotFound: YouTube does not show the video yet, or it was deleted.
	codeVideoNotFound = "yt_video_not_found"
	// codeDegraded: the video is uploaded and less public than requested.
	codeDegraded = "degraded_private"
)

// severity orders the reasons of one answer: the most severe one decides.
type severity int

const (
	aboutDelivery severity = iota
	aboutLimit
	aboutChannel
	aboutProject
)

// rule is one row of YouTube's table of reasons.
type rule struct {
	adapter.Rule
	severity severity
	// wait is the least pause before the next attempt; 0 leaves it to the retry policy.
	wait time.Duration
}

// rules classify YouTube's reasons. The statuses do not: one reason has several, and a quota has the
// status of missing rights.
var rules = func() map[string]rule {
	table := map[string]rule{}
	class := func(of severity, category autopost.Category, scope autopost.Scope, code string) rule {
		return rule{Rule: adapter.Rule{Category: category, Scope: scope, Code: code}, severity: of}
	}
	// add enters the reasons of a class. A class without a code gets the code of the reason.
	add := func(of rule, reasons ...string) {
		for _, reason := range reasons {
			row := of
			row.Code = cmp.Or(of.Code, codeOf(reason))
			table[reason] = row
		}
	}
	after := func(wait time.Duration, of rule) rule {
		of.wait = wait
		return of
	}
	const permanent, transient = autopost.Permanent, autopost.Transient
	const platform, channel, delivery = autopost.ScopePlatform, autopost.ScopeChannel, autopost.ScopeDelivery
	add(class(aboutProject, permanent, platform, ""), "accessNotConfigured", "SERVICE_DISABLED", "API_KEY_SERVICE_BLOCKED", "CONSUMER_SUSPENDED")
	add(class(aboutChannel, permanent, channel, codeUnauthorized), "authError", "unauthorized", "required", "invalidCredentials")
	add(class(aboutChannel, permanent, channel, ""), "youtubeSignupRequired",
		"insufficientPermissions", "forbidden", "channelClosed", "channelSuspended", "accountDelegationForbidden",
		"authenticatedUserAccountSuspended", "authenticatedUserAccountClosed", "authenticatedUserNotChannel")
	add(class(aboutLimit, transient, platform, codeUsageCapped), "quotaExceeded", "dailyLimitExceeded")
	add(after(24*time.Hour, class(aboutLimit, transient, channel, "")), "uploadLimitExceeded")
	add(after(time.Hour, class(aboutLimit, transient, channel, "")), "uploadRateLimitExceeded")
	add(class(aboutLimit, transient, platform, codeRateLimited), "rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED")
	add(class(aboutLimit, transient, platform, codeServingLimited), "servingLimitExceeded", "concurrentLimitExceeded")
	add(class(aboutLimit, transient, platform, "yt_5xx"), "backendError", "internalError")
	add(class(aboutDelivery, transient, delivery, codeAborted), "aborted", "SERVICE_UNAVAILABLE")
	add(class(aboutDelivery, transient, delivery, ""), "videoNotFound")
	add(class(aboutDelivery, permanent, delivery, autopost.CodeValidationFailed),
		"invalidTitle", "invalidDescription", "invalidTags", "invalidCategoryId", "invalidPublishAt", "invalidVideoMetadata", "invalidRecordingDetails",
		"invalidFilename", "defaultLanguageNotSet", "invalidVideoGameRating",
		"commentTextRequired", "channelOrVideoIdMissing", "invalidCommentThreadMetadata")
	add(class(aboutDelivery, permanent, delivery, autopost.CodeMessageTooLong), "commentTextTooLong")
	add(class(aboutDelivery, permanent, delivery, ""), "commentsDisabled", "ineligibleAccount")
	add(class(aboutDelivery, permanent, delivery, autopost.CodeMediaRejected), "mediaBodyRequired")
	add(class(aboutDelivery, permanent, delivery, ""),
		"forbiddenPrivacySetting", "forbiddenLicenseSetting", "forbiddenEmbedSetting", "failedPrecondition", "processingFailure",
		"invalidImage", "imageFormatUnsupported", "imageTooTall", "imageTooWide", "captionExists",
		"playlistNotFound", "playlistItemsNotAccessible", "playlistContainsMaximumNumberOfVideos", "playlistOperationUnsupported", "videoAlreadyInPlaylist")
	return table
}()

// codeOf returns our code for a reason: yt_channel_closed for "channelClosed".
func codeOf(reason string) string {
	var code strings.Builder
	code.WriteString("yt_")
	after := 'A' // no underscore before the first letter and between capitals
	for _, r := range reason {
		if unicode.IsUpper(r) && unicode.IsLower(after) {
			code.WriteByte('_')
		}
		code.WriteRune(unicode.ToLower(r))
		after = r
	}
	return code.String()
}

// reply is the body of a refusal.
type reply struct {
	Error struct {
		Message string   `json:"message"`
		Errors  []reason `json:"errors"`
		Details []reason `json:"details"`
	} `json:"error"`
}

// reason is one reason of a refusal. Of the details, only those of type google.rpc.ErrorInfo have one.
type reason struct {
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	Metadata struct {
		QuotaLimit string `json:"quota_limit"`
	} `json:"metadata"`
}

// reasons are those of the answer's errors, then those of its details.
func (r reply) reasons() []reason { return slices.Concat(r.Error.Errors, r.Error.Details) }

// isDaily reports whether a limit is the bucket of a day and not that of a minute.
func (r reply) isDaily() bool {
	for _, given := range r.reasons() {
		if strings.Contains(strings.ToLower(given.Message), "per day") || strings.Contains(given.Metadata.QuotaLimit, "PerDay") {
			return true
		}
	}
	return strings.Contains(strings.ToLower(r.Error.Message), "per day")
}

// refused classifies an answer after which no video was created or changed.
func refused(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	var r reply
	if json.Unmarshal(answer.Body, &r) != nil {
		r = reply{}
	}
	decisive := rule{Rule: adapter.Baseline("yt", answer.Status), severity: -1}
	if answer.Status >= 200 && answer.Status < 300 {
		decisive.Rule = adapter.Rule{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeInterrupted}
	}
	words := fmt.Sprintf("status %d without a reason", answer.Status)
	if !isFromGoogle(answer) {
		decisive.Rule = adapter.Gateway("yt", answer.Status)
	}
	for i, given := range r.reasons() {
		if i == 0 {
			words = given.Reason + ": " + r.Error.Message
		}
		known, ok := rules[given.Reason]
		if given.Reason == "required" && answer.Status == http.StatusBadRequest {
			// A parameter is missing; with 401 it is the credential.
			known = rule{Rule: adapter.Rule{Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeValidationFailed}}
		}
		if ok && known.severity > decisive.severity {
			decisive, words = known, given.Reason+": "+r.Error.Message
		}
	}
	if decisive.Code == codeRateLimited && r.isDaily() {
		decisive.Code = codeUsageCapped
	}
	failure := decisive.Error(answer, words, hide)
	failure.RetryAfterMS = max(failure.RetryAfterMS, decisive.wait.Milliseconds())
	if failure.Code == codeUsageCapped {
		failure.RetryAfterMS = max(failure.RetryAfterMS, untilQuotaDay(clock(answer.Header)).Milliseconds())
	}
	return failure
}

// isFromGoogle reports whether a refusal is Google's own: a JSON object with an error. A rate limit, a
// refused size and a server error count by their status alone, and so does a success.
func isFromGoogle(answer adapter.Answer) bool {
	switch {
	case answer.Status < 300, answer.Status >= 500, answer.Status == http.StatusTooManyRequests, answer.Status == http.StatusRequestEntityTooLarge:
		return true
	}
	var object struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(answer.Body, &object) == nil && object.Error != nil
}

// definite changes an unknown outcome to a transient failure: the next attempt asks for the result first.
func definite(failure *autopost.Error) *autopost.Error {
	if !failure.Known {
		failure.Known, failure.Code, failure.Scope = true, codeInterrupted, autopost.ScopeDelivery
	}
	return failure
}

// clock is Google's time as the answer states it, else ours.
func clock(header http.Header) time.Time {
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return time.Now()
	}
	return now
}

var california = func() *time.Location {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		panic("youtube: " + err.Error()) // impossible: the zone is embedded
	}
	return zone
}()

// untilQuotaDay is the time until one minute after the next midnight in California.
func untilQuotaDay(now time.Time) time.Duration {
	local := now.In(california)
	midnight := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, california)
	return midnight.Sub(now) + time.Minute
}
