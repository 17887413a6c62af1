package youtube

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
)

func TestUntilQuotaDay(t *testing.T) {
	for now, want := range map[string]time.Duration{
		"2026-11-21T07:59:59Z": time.Second + time.Minute, // 23:59:59 there, in winter
		"2026-11-21T08:00:00Z": 24*time.Hour + time.Minute,
		"2026-07-01T06:30:00Z": 30*time.Minute + time.Minute, // in summer
		"2026-03-08T08:00:00Z": 23*time.Hour + time.Minute,   // the day that loses an hour
		"2026-11-01T07:00:00Z": 25*time.Hour + time.Minute,   // and the one that has it twice
	} {
		at, err := time.Parse(time.RFC3339, now)
		require.NoError(t, err)
		require.Equal(t, want, untilQuotaDay(at), now)
	}
}

func classified(t *testing.T, status int, body string) *autopost.Error {
	t.Helper()
	now := http.Header{"Date": {"Sat, 21 Nov 2026 07:00:00 GMT"}} // an hour before midnight in California
	failure := refused(adapter.Answer{Status: status, Header: now, Body: []byte(body)}, adapter.Redactor{})
	require.NotNil(t, failure)
	return failure
}

func TestALimitPerDayWaitsForMidnightInCalifornia(t *testing.T) {
	for name, body := range map[string]string{
		"message":             `{"error":{"message":"limit 'Video Uploads per day' of service","errors":[{"reason":"rateLimitExceeded"}]}}`,
		"message of an error": `{"error":{"message":"Too many","errors":[{"reason":"rateLimitExceeded","message":"'Video Uploads per day'"}]}}`,
		"detail":              `{"error":{"message":"Too many","errors":[{"reason":"rateLimitExceeded"}],"details":[{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"VideoUploadsPerDayPerProject"}}]}}`,
		"detail alone":        `{"error":{"message":"Too many","details":[{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"VideoUploadsPerDayPerProject"}}]}}`,
	} {
		for _, status := range []int{403, 429} {
			failure := classified(t, status, body)
			require.Equal(t, "TRANSIENT/platform yt_usage_capped", fmt.Sprintf("%s/%s %s", failure.Category, failure.Scope, failure.Code), name)
			require.Equal(t, (time.Hour + time.Minute).Milliseconds(), failure.RetryAfterMS, name)
		}
	}
	failure := classified(t, 429, `{"error":{"message":"limit 'Queries per minute'","errors":[{"reason":"rateLimitExceeded"}]}}`)
	require.Equal(t, "yt_rate_limited", failure.Code)
	require.Zero(t, failure.RetryAfterMS, "the retry policy backs off from a second")
	for _, reason := range []string{"servingLimitExceeded", "concurrentLimitExceeded"} {
		failure := classified(t, 403, `{"error":{"errors":[{"reason":"`+reason+`"}]}}`)
		require.Equal(t, "yt_serving_rate_limited", failure.Code)
	}
}

func TestTheMostSevereReasonDecides(t *testing.T) {
	for reasons, want := range map[string]string{
		"invalidTitle quotaExceeded":                      "TRANSIENT/platform yt_usage_capped",
		"quotaExceeded invalidTitle":                      "TRANSIENT/platform yt_usage_capped",
		"invalidTitle channelClosed":                      "PERMANENT/channel yt_channel_closed",
		"rateLimitExceeded channelSuspended":              "PERMANENT/channel yt_channel_suspended",
		"forbidden SERVICE_DISABLED":                      "PERMANENT/platform yt_service_disabled",
		"forbidden CONSUMER_SUSPENDED invalidTitle":       "PERMANENT/platform yt_consumer_suspended",
		"somethingNew invalidTags":                        "PERMANENT/delivery validation_failed",
		"quotaExceeded forbidden API_KEY_SERVICE_BLOCKED": "PERMANENT/platform yt_api_key_service_blocked",
	} {
		var errors, details []string
		for i, reason := range strings.Fields(reasons) {
			if i == 0 {
				errors = append(errors, `{"reason":"`+reason+`"}`)
			} else {
				details = append(details, `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"`+reason+`"}`)
			}
		}
		for _, body := range []string{
			`{"error":{"errors":[` + strings.Join(append(errors, details...), ",") + `]}}`,
			`{"error":{"errors":[` + errors[0] + `],"details":[` + strings.Join(details, ",") + `]}}`,
		} {
			failure := classified(t, 403, body)
			require.Equal(t, want, fmt.Sprintf("%s/%s %s", failure.Category, failure.Scope, failure.Code), body)
		}
	}
}

func TestAMissingParameterIsNotALostCredential(t *testing.T) {
	const body = `{"error":{"message":"Required parameter: part","errors":[{"reason":"required"}]}}`
	failure := classified(t, 400, body)
	require.Equal(t, "PERMANENT/delivery validation_failed", fmt.Sprintf("%s/%s %s", failure.Category, failure.Scope, failure.Code))
	failure = classified(t, 401, body)
	require.Equal(t, "PERMANENT/channel yt_unauthorized", fmt.Sprintf("%s/%s %s", failure.Category, failure.Scope, failure.Code))
}
