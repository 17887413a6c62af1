package youtube

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // quotas end at midnight in California, wherever this runs
	"unicode"

	"autopost"
	"autopost/internal/adapter"
)

const (
	// codeUsageCapped: a daily quota of the Google project is used up. The name tells the
	// database that the platform is up.
	codeUsageCapped    = "yt_usage_capped"
	codeRateLimited    = "yt_rate_limited"
	codeUploadLimit    = "yt_upload_limit_exceeded"
	codeThumbnailLimit = "yt_upload_rate_limit_exceeded"
	codeUnauthorized   = "yt_unauthorized"
	codeForbidden      = "yt_forbidden"
	codeCaptionExists  = "yt_caption_exists"
	codeNoScope        = "yt_insufficient_permissions"
	// codeInterrupted: a call was cut off. What it did is asked for before anything is done again.
	codeInterrupted = "yt_interrupted"
	codeSessionLost = "yt_session_lost"
	// codeVideoNotFound: not there yet, or not any more.
	codeVideoNotFound = "yt_video_not_found"
	// codeDegraded: the video is there, and is not as public as was asked for.
	codeDegraded = "degraded_private"
)

// waits are the least pauses for limits to which YouTube states none.
var waits = map[string]time.Duration{
	codeRateLimited:    time.Second,
	codeUploadLimit:    24 * time.Hour,
	codeThumbnailLimit: time.Hour,
}

// rules are YouTube's reasons. Its statuses do not tell: one reason comes with
// several, and a quota with that of missing rights.
var rules = func() map[string]adapter.Rule {
	table := map[string]adapter.Rule{}
	add := func(category autopost.Category, scope autopost.Scope, code string, reasons ...string) {
		for _, reason := range reasons {
			rule := adapter.Rule{Category: category, Scope: scope, Code: code}
			if code == "" {
				rule.Code = codeOf(reason)
			}
			table[reason] = rule
		}
	}
	const permanent, transient = autopost.Permanent, autopost.Transient
	add(transient, autopost.ScopePlatform, codeUsageCapped, "quotaExceeded", "dailyLimitExceeded")
	add(transient, autopost.ScopePlatform, codeRateLimited, "rateLimitExceeded", "userRateLimitExceeded")
	add(transient, autopost.ScopePlatform, "yt_5xx", "backendError", "internalError")
	add(transient, autopost.ScopeChannel, "", "uploadLimitExceeded", "uploadRateLimitExceeded")
	add(transient, autopost.ScopeDelivery, "", "videoNotFound")
	add(permanent, autopost.ScopeChannel, codeUnauthorized, "authError", "unauthorized", "required", "invalidCredentials")
	add(permanent, autopost.ScopeChannel, "", "youtubeSignupRequired",
		"insufficientPermissions", "forbidden", "channelClosed", "channelSuspended", "accountDelegationForbidden",
		"authenticatedUserAccountSuspended", "authenticatedUserAccountClosed", "authenticatedUserNotChannel")
	add(permanent, autopost.ScopePlatform, "", "accessNotConfigured", "SERVICE_DISABLED", "API_KEY_SERVICE_BLOCKED")
	add(permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed,
		"invalidTitle", "invalidDescription", "invalidTags", "invalidCategoryId", "invalidPublishAt", "invalidVideoMetadata", "invalidRecordingDetails",
		"invalidFilename", "defaultLanguageNotSet", "invalidVideoGameRating")
	add(permanent, autopost.ScopeDelivery, autopost.CodeMediaRejected, "mediaBodyRequired")
	add(permanent, autopost.ScopeDelivery, "",
		"forbiddenPrivacySetting", "forbiddenLicenseSetting", "forbiddenEmbedSetting", "failedPrecondition", "processingFailure",
		"invalidImage", "imageFormatUnsupported", "imageTooTall", "imageTooWide", "captionExists")
	return table
}()

// codeOf makes our code of a reason: "channelClosed" is yt_channel_closed.
func codeOf(reason string) string {
	var code strings.Builder
	code.WriteString("yt_")
	after := 'A' // no dash before the first letter, nor between capitals
	for _, r := range reason {
		if unicode.IsUpper(r) && unicode.IsLower(after) {
			code.WriteByte('_')
		}
		code.WriteRune(unicode.ToLower(r))
		after = r
	}
	return code.String()
}

// reply is any refusal of the API.
type reply struct {
	Error struct {
		Message string `json:"message"`
		Errors  []struct {
			Reason string `json:"reason"`
		} `json:"errors"`
		Details []struct {
			Reason string `json:"reason"`
		} `json:"details"`
	} `json:"error"`
}

// reasons are what an answer gives, the first first.
func (r reply) reasons() []string {
	var out []string
	for _, e := range r.Error.Errors {
		out = append(out, e.Reason)
	}
	for _, d := range r.Error.Details {
		out = append(out, d.Reason)
	}
	return out
}

// refused classifies an answer that made nothing.
func refused(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	var r reply
	if json.Unmarshal(answer.Body, &r) != nil {
		r = reply{}
	}
	rule := adapter.Baseline("yt", answer.Status)
	if answer.Status >= 200 && answer.Status < 300 {
		rule = adapter.Rule{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeInterrupted}
	}
	words := fmt.Sprintf("status %d without a reason", answer.Status)
	for i, reason := range r.reasons() {
		if i == 0 {
			words = reason + ": " + r.Error.Message
		}
		if known, ok := rules[reason]; ok {
			rule = known
			break
		}
	}
	failure := rule.Error(answer, words, hide)
	failure.RetryAfterMS = max(failure.RetryAfterMS, waits[failure.Code].Milliseconds())
	if failure.Code == codeUsageCapped {
		failure.RetryAfterMS = max(failure.RetryAfterMS, untilQuotaDay(time.Now()).Milliseconds())
	}
	return failure
}

// definite turns what would be an unknown outcome of a message into a failure that may
// pass: nothing was made, or what was made is asked for.
func definite(failure *autopost.Error) *autopost.Error {
	if !failure.Known {
		failure.Known, failure.Code, failure.Scope = true, codeInterrupted, autopost.ScopeDelivery
	}
	return failure
}

var california = func() *time.Location {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		panic("youtube: " + err.Error()) // the zone is in the program
	}
	return zone
}()

// untilQuotaDay is how long it is to the next midnight in California and a minute.
func untilQuotaDay(now time.Time) time.Duration {
	local := now.In(california)
	midnight := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, california)
	return midnight.Sub(now) + time.Minute
}
