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
	// Status is the HTTP status that the row is about; 0 = any.
	Status int
	// Contains are lower-case substrings of which the platform's own words must hold one; none = any words.
	Contains []string
	Category autopost.Category
	Scope    autopost.Scope
	Code     string
}

// Classify returns the first row for the status and the platform's words, else the
// row of [Baseline]. Case does not matter: platforms change it.
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

// Baseline is the row for an HTTP status about which a platform's table says
// nothing. prefix begins the code: "tg" gives "tg_429" and "tg_5xx".
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
		// Whether the credential is meant, SQL finds out: two of its chats limited at once.
		rule.Category, rule.Scope = autopost.Transient, autopost.ScopeChannel
	case status >= 500:
		rule.Category, rule.Scope, rule.Code = autopost.Transient, autopost.ScopePlatform, prefix+"_5xx"
	}
	return rule
}

// Error makes the failure of a row, definite, with the answer's own wait and a snippet of it.
func (r Rule) Error(answer Answer, message string, hide Redactor) *autopost.Error {
	e := Refusal(r.Category, r.Scope, r.Code, hide.Text(message))
	e.RetryAfterMS = answer.RetryAfterMS()
	e.Raw = hide.Raw(answer.Body)
	return e
}
