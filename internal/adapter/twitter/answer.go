package twitter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	codeUnauthorized = "x_unauthorized"
	codeDuplicate    = "x_duplicate"
	codeLimited      = "x_429"
	codeCapped       = "x_usage_capped"
	codeNoCredits    = "x_no_credits"
	codeDailyLimit   = "x_daily_limit"
	codeAutomated    = "x_automated"
	// codeCallFailed: a call that creates no post got no usable answer. The next attempt repeats an upload.
	codeCallFailed = "x_call_failed"
	// codeUnclear: the timeline does not show whether the post exists.
	codeUnclear       = "x_unclear"
	codeUploadLost    = "x_upload_session_lost"
	codeMediaNotReady = "x_media_not_ready"
)

// The waits for failures for which X states none. rateWindow is its usual window.
const (
	rateWindow     = 15 * time.Minute
	waitNoCredits  = time.Hour
	waitCapped     = 6 * time.Hour
	waitDailyLimit = 3 * time.Hour
	waitAutomated  = 2 * time.Hour
	waitNotReady   = 5 * time.Second
	leastWait      = time.Second
)

// noCredits are the words of refusals about money. Some have only the type.
var noCredits = []string{"spendcapreached", "creditsdepleted", "type credits."}

// rules classify X's refusals by the words of all three forms of its errors. The first matching row
// applies.
var rules = []adapter.Rule{
	{Status: 402, Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: codeNoCredits},
	{Status: 403, Contains: noCredits, Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: codeNoCredits},
	{Status: 429, Contains: noCredits, Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: codeNoCredits},
	{Status: 429, Contains: []string{"usage-capped", "usagecapexceeded"},
		Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: codeCapped},
	{Status: 429, Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: codeLimited},
	{Status: 403, Contains: []string{"duplicate content", "is a duplicate", "code 187."},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeDuplicate},
	{Status: 403, Contains: []string{"over daily status update limit", "code 185."},
		Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: codeDailyLimit},
	{Status: 403, Contains: []string{"might be automated", "code 226."},
		Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: codeAutomated},
	{Status: 403, Contains: []string{"suspended", "temporarily locked", "code 64.", "code 326."},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "x_suspended"},
	{Status: 403, Contains: []string{"client-forbidden", "client-not-enrolled", "unsupported authentication", "unsupported-authentication", "oauth1-permissions", "oauth1 app permissions", "scope"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "x_app_forbidden"},
	{Status: 403, Contains: []string{"cashtag", "reply", "invalid url", "not permitted to", "not allowed to post a video"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "x_rejected"},
	{Status: 401, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeUnauthorized},
	{Status: 400, Contains: []string{"media ids are not ready"},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeMediaNotReady},
	{Status: 400, Contains: []string{"media ids are invalid", "media.media_ids"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaExpired},
	{Status: 409, Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: "x_conflict"},
}

// problem is an error in any of X's three forms.
type problem struct {
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
	// ResetDate is the UTC day from which X takes calls again, of a spending limit.
	ResetDate string `json:"reset_date"`
	Errors    []struct {
		Code       int                        `json:"code"`
		Message    string                     `json:"message"`
		Detail     string                     `json:"detail"`
		Parameters map[string]json.RawMessage `json:"parameters"`
	} `json:"errors"`
}

// message is the most specific text of the error.
func (p problem) message() string {
	for _, e := range p.Errors {
		if text := cmp.Or(e.Message, e.Detail); text != "" {
			return text
		}
	}
	return cmp.Or(p.Detail, p.Title)
}

// words are all texts, codes and names by which rules recognise the error.
func (p problem) words() string {
	words := []string{p.Title, p.Detail, path.Base(p.Type), "type " + path.Base(p.Type) + ".", p.Reason}
	for _, e := range p.Errors {
		words = append(words, e.Message, e.Detail, fmt.Sprintf("code %d.", e.Code))
		for name := range e.Parameters {
			words = append(words, name)
		}
	}
	return strings.Join(words, "\n")
}

// refused classifies an answer after which no post exists.
func refused(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	var p problem
	if json.Unmarshal(answer.Body, &p) != nil {
		p = problem{}
	}
	message := cmp.Or(p.message(), fmt.Sprintf("status %d with an unknown body", answer.Status))
	if !isFromX(answer) {
		return adapter.Gateway("x", answer.Status).Error(answer, message, hide)
	}
	failure := adapter.Classify(rules, "x", answer.Status, p.words()).Error(answer, message, hide)
	switch failure.Code {
	case codeLimited:
		wait, app := untilReset(answer.Header)
		if app {
			failure.Scope = autopost.ScopePlatform
		}
		failure.RetryAfterMS = wait.Milliseconds()
	case codeCapped:
		failure.RetryAfterMS = waitCapped.Milliseconds()
	case codeNoCredits:
		failure.RetryAfterMS = p.untilCredits(clock(answer.Header)).Milliseconds()
	case codeDailyLimit:
		failure.RetryAfterMS = waitDailyLimit.Milliseconds()
	case codeAutomated:
		failure.RetryAfterMS = waitAutomated.Milliseconds()
	case codeMediaNotReady:
		failure.RetryAfterMS = waitNotReady.Milliseconds()
	}
	return failure
}

// isFromX reports whether a refusal is X's own: a JSON object with one of the members of X's errors.
// A rate limit, a refused size and a server error count by their status alone.
func isFromX(answer adapter.Answer) bool {
	if answer.Status >= 500 || answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusRequestEntityTooLarge {
		return true
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(answer.Body, &object) != nil {
		return false
	}
	for _, member := range []string{"title", "detail", "errors", "error", "data"} {
		if _, ok := object[member]; ok {
			return true
		}
	}
	return false
}

// untilCredits is the time from now until the spending limit's reset date begins in UTC; an hour where
// X states no date, or one that is past or more than a year away.
func (p problem) untilCredits(now time.Time) time.Duration {
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		reset, err := time.Parse(form, p.ResetDate)
		if wait := reset.Sub(now); err == nil && wait > 0 && wait < 366*24*time.Hour {
			return wait
		}
	}
	return waitNoCredits
}

// clock is X's time as the answer states it, else ours.
func clock(header http.Header) time.Time {
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return time.Now()
	}
	return now
}

// untilReset is the time until the latest reset of all exhausted windows, by X's clock if it states
// one. app reports that the daily window of the whole app is exhausted.
func untilReset(header http.Header) (wait time.Duration, app bool) {
	now := clock(header)
	for _, window := range []string{"x-rate-limit", "x-user-limit-24hour", "x-app-limit-24hour"} {
		reset, err := strconv.ParseInt(header.Get(window+"-reset"), 10, 64)
		if err != nil || header.Get(window+"-remaining") != "0" {
			continue
		}
		wait = max(wait, time.Unix(reset, 0).Sub(now), leastWait)
		app = app || window == "x-app-limit-24hour"
	}
	return cmp.Or(wait, rateWindow), app
}

// created reads the answer to POST /2/tweets. A server error leaves the outcome unknown.
func created(answer adapter.Answer, hide adapter.Redactor) (adapter.Receipt, *autopost.Error) {
	var made struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	switch {
	case answer.Status >= 300 && answer.Status < 500:
		return adapter.Receipt{}, refused(answer, hide)
	case answer.Status < 300 && json.Unmarshal(answer.Body, &made) == nil && made.Data.ID != "":
		// The answer has no time; its Date header differs by less than a second.
		at, err := http.ParseTime(answer.Header.Get("Date"))
		if err != nil {
			at = time.Time{}
		}
		return adapter.Receipt{IDs: []string{made.Data.ID}, SentAt: at}, nil
	}
	failure := adapter.Unknown(fmt.Sprintf("status %d does not show whether the post exists", answer.Status))
	failure.Raw = hide.Raw(answer.Body)
	return adapter.Receipt{}, failure
}

// unreadable is the failure of a call that creates no post, with a successful status and an unknown body.
func unreadable(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	rule := adapter.Rule{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeCallFailed}
	return rule.Error(answer, fmt.Sprintf("status %d with an unknown body", answer.Status), hide)
}

// definite changes an unknown outcome to a failure. It is for calls that create no post.
func definite(failure *autopost.Error) *autopost.Error {
	if !failure.Known {
		failure.Known, failure.Code = true, codeCallFailed
	}
	return failure
}
