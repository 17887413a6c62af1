package twitter

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"autopost/internal/sim"
)

// problem is the answer of a failed call, in one of X's three forms: a problem with a type, a list of
// numbered errors, or an OAuth 2.0 error.
type problem struct {
	status        int
	title, detail string
	// kind is the last segment of the type; "" is about:blank.
	kind string
	// fields are the errors of an invalid request.
	fields []fieldError
	// code makes it a numbered error with detail for its message.
	code int
	// oauth makes it an OAuth 2.0 error with detail for its description.
	oauth string
	// extra has further members of the body.
	extra map[string]any
}

type fieldError struct {
	Message    string              `json:"message"`
	Parameters map[string][]string `json:"parameters,omitempty"`
}

const problemTypes = "https://api.x.com/2/problems/"

// invalid is the refusal of an invalid request. field may be "".
func invalid(message, field string, values ...string) *problem {
	e := fieldError{Message: message}
	if field != "" {
		e.Parameters = map[string][]string{field: values}
	}
	return &problem{
		status: http.StatusBadRequest, title: "Invalid Request", kind: "invalid-request",
		detail: "One or more parameters to your request was invalid.", fields: []fieldError{e},
	}
}

func forbids(detail string) problem {
	return problem{status: http.StatusForbidden, title: "Forbidden", detail: detail}
}

// appDay is the refusal with headers of the app's daily window.
const appDay = "rate-limited-app"

// problems are the refusals by name. Fault rules name them in Code.
var problems = map[string]problem{
	"unauthorized":  {status: http.StatusUnauthorized, title: "Unauthorized", detail: "Unauthorized"},
	"code-32":       {status: http.StatusUnauthorized, code: 32, detail: "Could not authenticate you."},
	"code-89":       {status: http.StatusUnauthorized, code: 89, detail: "Invalid or expired token."},
	"code-135":      {status: http.StatusUnauthorized, code: 135, detail: "Timestamp out of bounds."},
	"token-invalid": {status: http.StatusBadRequest, oauth: "invalid_request", detail: "Value passed for the token was invalid."},
	"invalid-grant": {status: http.StatusBadRequest, oauth: "invalid_grant", detail: "Value passed for the authorization code was invalid."},

	"credits": {
		status: http.StatusPaymentRequired, title: "CreditsDepleted", kind: "credits",
		detail: "Your enrolled account [1000000000000000001] does not have any credits to fulfill this request.",
		extra:  map[string]any{"account_id": 1000000000000000001},
	},
	"credits-depleted": {status: http.StatusPaymentRequired, title: "Payment Required", detail: "credits depleted", kind: "credits-depleted"},

	"spend-cap": {
		status: http.StatusForbidden, title: "SpendCapReached", kind: "credits",
		detail: "Your enrolled account [1] has reached its billing cycle spend cap. API requests will be blocked until the next cycle begins.",
	},
	"daily-limit": {status: http.StatusForbidden, code: 185, detail: "User is over daily status update limit."},
	"automated":   {status: http.StatusForbidden, code: 226, detail: "This request looks like it might be automated. To protect our users from spam and other malicious activity, we can't complete this action right now."},

	"duplicate":       forbids("You are not allowed to create a Tweet with duplicate content."),
	"code-187":        {status: http.StatusForbidden, code: 187, detail: "Status is a duplicate."},
	"user-suspended":  {status: http.StatusForbidden, title: "Forbidden", kind: "user-suspended", detail: "User has been suspended."},
	"code-64":         {status: http.StatusForbidden, code: 64, detail: "Your account is suspended and is not permitted to access this feature."},
	"code-326":        {status: http.StatusForbidden, code: 326, detail: "To protect our users from spam and other malicious activity, this account is temporarily locked."},
	"not-permitted":   forbids("You are not permitted to perform this action."),
	"cashtags":        forbids("Posts may contain a maximum of one cashtag."),
	"reply-forbidden": forbids("Reply to this conversation is not allowed because you have not been mentioned or otherwise engaged by the author of the post you are replying to."),
	"reply-gone":      forbids("You attempted to reply to a Tweet that is deleted or not visible to you."),
	"invalid-url":     forbids("The Tweet contains an invalid URL."),
	"video-too-long":  forbids("This user is not allowed to post a video longer than 2 minutes."),
	"edit-forbidden":  forbids("You are not permitted to edit this Tweet."),
	"not-the-author":  forbids("You are not authorized to delete this Tweet."),
	"scope":           forbids("Your token does not have the scope that this endpoint needs."),
	"client-forbidden": {
		status: http.StatusForbidden, title: "Client Forbidden", kind: "client-forbidden",
		detail: "When authenticating requests to the X API v2 endpoints, you must use keys and tokens from a developer App that is attached to a Project.",
		extra:  map[string]any{"reason": "client-not-enrolled", "required_enrollment": "Appropriate Level of API Access"},
	},
	"unsupported-authentication": {
		status: http.StatusForbidden, title: "Unsupported Authentication", kind: "unsupported-authentication",
		detail: "Authenticating with OAuth 2.0 Application-Only is forbidden for this endpoint.  Supported authentication types are [OAuth 1.0a User Context, OAuth 2.0 User Context].",
	},
	"oauth1-permissions": {
		status: http.StatusForbidden, title: "Forbidden", kind: "oauth1-permissions",
		detail: "Your client app is not configured with the appropriate oauth1 app permissions for this endpoint.",
	},

	"invalid-request": *invalid("The request is invalid.", ""),
	"too-long":        *invalid("Your Tweet text is too long.", "text"),
	"media-invalid":   *invalid("Your media IDs are invalid.", "media.media_ids"),
	"not-found":       {status: http.StatusNotFound, title: "Not Found", detail: "Not Found"},
	"method":          {status: http.StatusMethodNotAllowed, title: "Method Not Allowed", detail: "Method Not Allowed"},
	"conflict":        {status: http.StatusConflict, title: "Conflict", detail: "Conflict"},
	"too-large":       {status: http.StatusRequestEntityTooLarge, title: "Payload Too Large", detail: "Payload Too Large"},
	"rate-limited":    {status: http.StatusTooManyRequests, title: "Too Many Requests", detail: "Too Many Requests"},
	appDay:            {status: http.StatusTooManyRequests, title: "Too Many Requests", detail: "Too Many Requests"},
	"code-88":         {status: http.StatusTooManyRequests, code: 88, detail: "Rate limit exceeded"},
	"rate-limit-exceeded": {
		status: http.StatusTooManyRequests, title: "Too Many Requests", kind: "rate-limit-exceeded", detail: "Too Many Requests",
	},
	"usage-capped": {
		status: http.StatusTooManyRequests, title: "UsageCapExceeded", kind: "usage-capped", detail: "Usage cap exceeded: Monthly product cap",
		extra: map[string]any{"account_id": 1000000000000000001, "period": "Monthly", "scope": "Product"},
	},
	"code-131":    {status: http.StatusInternalServerError, code: 131, detail: "Internal error"},
	"internal":    {status: http.StatusInternalServerError, title: "Internal Server Error", detail: "Internal Server Error"},
	"code-130":    {status: http.StatusServiceUnavailable, code: 130, detail: "Over capacity"},
	"unavailable": {status: http.StatusServiceUnavailable, title: "Service Unavailable", detail: "Service Unavailable"},
}

// usual is the default refusal of each status.
var usual = map[int]string{
	http.StatusBadRequest: "invalid-request", http.StatusUnauthorized: "unauthorized", http.StatusPaymentRequired: "credits",
	http.StatusForbidden: "not-permitted", http.StatusNotFound: "not-found", http.StatusMethodNotAllowed: "method",
	http.StatusConflict: "conflict", http.StatusRequestEntityTooLarge: "too-large", http.StatusTooManyRequests: "rate-limited",
	http.StatusInternalServerError: "internal", http.StatusServiceUnavailable: "unavailable",
}

// named returns the refusal of a name.
func named(name string) *problem {
	p := problems[name]
	return &p
}

func (p *problem) body() map[string]any {
	switch {
	case p.oauth != "":
		return map[string]any{"error": p.oauth, "error_description": p.detail}
	case p.code != 0:
		return map[string]any{"errors": []any{map[string]any{"code": p.code, "message": p.detail}}}
	}
	body := map[string]any{"title": p.title, "detail": p.detail, "type": "about:blank"}
	if p.kind != "" {
		body["type"] = problemTypes + p.kind
	}
	if p.fields != nil {
		body["errors"] = p.fields
	} else {
		body["status"] = p.status
	}
	for name, value := range p.extra {
		body[name] = value
	}
	return body
}

func (p *problem) reason() string {
	if len(p.fields) > 0 {
		return p.title + ": " + p.fields[0].Message
	}
	if p.title == "" || p.title == p.detail {
		return p.detail
	}
	return p.title + ": " + p.detail
}

func refuse(p *problem, header http.Header) sim.Reply {
	contentType := "application/json; charset=utf-8"
	if p.title != "" {
		contentType = "application/problem+json"
	}
	return sim.Reply{Status: p.status, ContentType: contentType, Header: header, Body: encode(p.body()), Reason: p.reason()}
}

// refuseFault returns the refusal of a fault rule. Code is its name; without one, the default of the
// status applies. X states waits only in the reset headers.
func refuseFault(f sim.Fault) sim.Reply {
	name := f.Code
	if _, known := problems[name]; !known {
		name = usual[f.Status]
	}
	p := named(name)
	if p.title == "" && p.code == 0 && p.oauth == "" {
		p.title, p.detail = http.StatusText(f.Status), http.StatusText(f.Status)
	}
	p.status = f.Status
	if f.Description != "" {
		p.detail = f.Description
	}
	header, prefix := http.Header{}, userLimit
	if name == appDay {
		prefix = appLimit
	}
	if f.RetryAfter > 0 {
		writeLimit(header, prefix, 1, 0, time.Now().Add(time.Duration(f.RetryAfter)*time.Second))
	}
	reply := refuse(p, header)
	reply.RetryAfter = f.RetryAfter
	return reply
}

// untilReset is the wait that the headers state, in seconds.
func untilReset(header http.Header) int {
	wait := 0
	for _, prefix := range []string{userLimit, appLimit} {
		if header.Get(prefix+"-remaining") != "0" {
			continue
		}
		if at, err := strconv.ParseInt(header.Get(prefix+"-reset"), 10, 64); err == nil {
			wait = max(wait, int(at-time.Now().Unix()))
		}
	}
	return wait
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		// Impossible: all values are maps, slices, strings and numbers.
		panic("x simulator: " + err.Error())
	}
	return b
}
