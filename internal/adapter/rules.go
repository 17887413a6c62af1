package adapter

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"autopost"
)

// Rule is one row of a platform's table of error classes.
type Rule struct {
	// Status is the HTTP status; 0 matches any.
	Status int
	// Contains are lower-case substrings, one of which must occur in the platform's words; empty
	// matches any words.
	Contains []string
	Category autopost.Category
	Scope    autopost.Scope
	Code     string
}

// Classify returns the first row that matches the status and the platform's words, else the row of
// [Baseline]. It ignores case, which platforms change.
func Classify(rules []Rule, prefix string, status int, words string) Rule {
	words = strings.ToLower(words)
	for _, rule := range rules {
		if rule.Status != 0 && rule.Status != status {
			continue
		}
		if len(rule.Contains) == 0 || slices.ContainsFunc(rule.Contains, func(s string) bool { return strings.Contains(words, s) }) {
			return rule
		}
	}
	return Baseline(prefix, status)
}

// Baseline returns the class of an HTTP status without a row in the platform's table. prefix is the
// start of the code: "tg" gives "tg_429" and "tg_5xx".
func Baseline(prefix string, status int) Rule {
	rule := Rule{
		Status: status, Category: autopost.Permanent, Scope: autopost.ScopeDelivery,
		Code: prefix + "_" + strconv.Itoa(status),
	}
	switch {
	case status == http.StatusBadRequest:
		rule.Code = autopost.CodeValidationFailed
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		rule.Scope = autopost.ScopeChannel
	case status == http.StatusMethodNotAllowed, status >= 300 && status < 400:
		rule.Scope = autopost.ScopePlatform
	case status == http.StatusRequestTimeout:
		rule.Category, rule.Scope = autopost.Transient, autopost.ScopePlatform
	case status == http.StatusRequestEntityTooLarge:
		rule.Code = autopost.CodeMediaTooLarge
	case status == http.StatusTooManyRequests:
		// The database extends it to the credential if two of its chats are limited at once.
		rule.Category, rule.Scope = autopost.Transient, autopost.ScopeChannel
	case status >= 500:
		rule.Category, rule.Scope, rule.Code = autopost.Transient, autopost.ScopePlatform, prefix+"_5xx"
	}
	return rule
}

// Gateway returns the class of an error answer that is not in the platform's own form. A proxy sent
// it, so it says nothing about the credential, the channel or the post. A size limit, a rate limit and
// a server error keep the class of [Baseline].
func Gateway(prefix string, status int) Rule {
	if status >= 500 || status == http.StatusRequestEntityTooLarge || status == http.StatusTooManyRequests {
		return Baseline(prefix, status)
	}
	return Rule{Status: status, Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: prefix + "_gateway"}
}

// Error returns the definite failure of a row, with the wait and a snippet of the answer.
func (r Rule) Error(answer Answer, message string, hide Redactor) *autopost.Error {
	e := Refusal(r.Category, r.Scope, r.Code, hide.Text(message))
	e.RetryAfterMS = answer.RetryAfterMS()
	e.Raw = hide.Raw(answer.Body)
	return e
}
