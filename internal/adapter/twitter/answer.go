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
	// codeCallFailed: a call that posts nothing brought no answer of use. An upload begins anew in the next attempt.
	codeCallFailed    = "x_call_failed"
	codeUploadLost    = "x_upload_session_lost"
	codeMediaNotReady = "x_media_not_ready"
)

// The waits for failures to which X states none: a quarter of an hour is its usual
// window, a used-up month or an empty purse is for people.
const (
	quarter      = 15 * time.Minute
	wait402      = time.Hour
	waitCapped   = 6 * time.Hour
	waitNotReady = 5 * time.Second
	leastWait    = time.Second
	stranger     = "something that is not X"
)

// rules are X's refusals for the calls that this adapter makes. The words are those of
// all its three forms of an error; the first row that fits counts.
var rules = []adapter.Rule{
	{Status: 429, Contains: []string{"usage-capped", "usagecapexceeded"},
		Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: codeCapped},
	{Status: 429, Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: codeLimited},
	{Status: 402, Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: codeNoCredits},
	{Status: 403, Contains: []string{"duplicate content", "is a duplicate", "code 187."},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeDuplicate},
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

// problem is any of X's forms of an error.
type problem struct {
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Errors []struct {
		Code       int                        `json:"code"`
		Message    string                     `json:"message"`
		Detail     string                     `json:"detail"`
		Parameters map[string]json.RawMessage `json:"parameters"`
	} `json:"errors"`
}

// message is what a person reads: the most particular of X's words.
func (p problem) message() string {
	for _, e := range p.Errors {
		if said := cmp.Or(e.Message, e.Detail); said != "" {
			return said
		}
	}
	return cmp.Or(p.Detail, p.Title)
}

// words are all by which an error may be told.
func (p problem) words() string {
	words := []string{p.Title, p.Detail, path.Base(p.Type), p.Reason}
	for _, e := range p.Errors {
		words = append(words, e.Message, e.Detail, fmt.Sprintf("code %d.", e.Code))
		for name := range e.Parameters {
			words = append(words, name)
		}
	}
	return strings.Join(words, "\n")
}

// refused classifies an answer that made nothing.
func refused(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	var p problem
	if json.Unmarshal(answer.Body, &p) != nil {
		p = problem{}
	}
	message := cmp.Or(p.message(), fmt.Sprintf("status %d from %s", answer.Status, stranger))
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
		failure.RetryAfterMS = wait402.Milliseconds()
	case codeMediaNotReady:
		failure.RetryAfterMS = waitNotReady.Milliseconds()
	}
	return failure
}

// untilReset is how long the latest of the used-up windows lasts, by X's own clock
// where it tells; app says that the day of the whole app is among them.
func untilReset(header http.Header) (wait time.Duration, app bool) {
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	for _, window := range []string{"x-rate-limit", "x-user-limit-24hour", "x-app-limit-24hour"} {
		reset, err := strconv.ParseInt(header.Get(window+"-reset"), 10, 64)
		if err != nil || header.Get(window+"-remaining") != "0" {
			continue
		}
		wait = max(wait, time.Unix(reset, 0).Sub(now), leastWait)
		app = app || window == "x-app-limit-24hour"
	}
	return cmp.Or(wait, quarter), app
}

// created reads the answer to POST /2/tweets. What a server error made of the post
// nobody knows, whatever it says.
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
		// The answer says nothing of the time; when it was given is within a second of it.
		at, err := http.ParseTime(answer.Header.Get("Date"))
		if err != nil {
			at = time.Time{}
		}
		return adapter.Receipt{IDs: []string{made.Data.ID}, SentAt: at}, nil
	}
	failure := adapter.Unknown(fmt.Sprintf("status %d does not say whether there is a post", answer.Status))
	failure.Raw = hide.Raw(answer.Body)
	return adapter.Receipt{}, failure
}

// unreadable is a success, of a call that posts nothing, whose answer cannot be read.
func unreadable(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	rule := adapter.Rule{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeCallFailed}
	return rule.Error(answer, fmt.Sprintf("status %d from %s", answer.Status, stranger), hide)
}

// definite turns what would be an unknown outcome of a post into a failure of a call that posts nothing.
func definite(failure *autopost.Error) *autopost.Error {
	if !failure.Known {
		failure.Known, failure.Code = true, codeCallFailed
	}
	return failure
}
