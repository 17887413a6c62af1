package problem

import (
	"net/http"
	"slices"
)

// Kind is a type of problem. A published Slug never changes: callers branch on it.
type Kind struct {
	// Slug is the last part of the URN.
	Slug   string
	Status int
	Title  string
	// Where names the routes that answer it: endpoints (/hooks/), API (/api/), both, or a path.
	Where string
	// Meaning and Remedy are sentences for people.
	Meaning, Remedy string
}

// URN returns the type of the problem.
func (k Kind) URN() string { return "urn:autopost:problem:" + k.Slug }

// The places that answer a kind.
const (
	endpoints = "endpoints"
	api       = "API"
	both      = "endpoints and API"
)

// The kinds of problems. docs/reference/problems.md shows them.
var (
	NotJSON = Kind{"not-json", http.StatusBadRequest, "Body is not JSON", both,
		"The body is not JSON in UTF-8. The detail has the reason.", "Correct the body."}
	BodyCut = Kind{"body-cut", http.StatusBadRequest, "Body incomplete", both,
		"The body ended before it was complete.", "Send the request again."}

	UnknownSecret = Kind{"unknown-secret", http.StatusUnauthorized, "No endpoint has this secret", endpoints,
		"The secret is missing or wrong, or its endpoint or workspace is disabled.",
		"Check `Authorization: Bearer SECRET` and `autopost endpoint list`."}
	SignatureMissing = Kind{"signature-missing", http.StatusUnauthorized, "Signature header missing", endpoints,
		"A header of the signature is missing. The detail names it.", "Sign by the Standard Webhooks specification."}
	SignatureMalformed = Kind{"signature-malformed", http.StatusUnauthorized, "Signature header malformed", endpoints,
		"A header of the signature cannot be read. The detail names the rule.", "Send seconds, and `v1,` before the base64 of 32 bytes."}
	SignatureMismatch = Kind{"signature-mismatch", http.StatusUnauthorized, "No signature matches", endpoints,
		"No signature matches, or the endpoint does not exist, is disabled, or lacks its key.",
		"Check key and path, and that the body is sent as it was signed: `autopost endpoint test ID --request FILE`. The log has push.not_verifiable if the key is missing."}
	ClockSkew = Kind{"clock-skew", http.StatusUnauthorized, "Timestamp too far from this clock", endpoints,
		"The request was signed too long ago, or in the future. The detail has the difference.", "Set the clock of the sender. Sign each attempt again."}
	UnknownKey = Kind{"unknown-key", http.StatusUnauthorized, "No valid API key", api,
		"The request has no valid API key.", "Send `Authorization: Bearer KEY`. `autopost apikey list` shows the keys."}

	NotAllowed = Kind{"not-allowed", http.StatusForbidden, "Not allowed", api,
		"The role or the scopes of the key do not allow the operation.", "Use a key with the role and the scope that the detail names."}

	StepUp = Kind{"step-up", http.StatusForbidden, "Password needed again", api,
		"The person of the session proved the password too long ago (`step_up_minutes`).", "Confirm the password on a page, then repeat the request."}
	NoToken = Kind{"no-token", http.StatusForbidden, "Form token missing", api,
		"A request with a session that changes something has no valid `X-Autopost-CSRF`, or comes from another site.",
		"Send the token of the forms of the session as `X-Autopost-CSRF`."}

	UnknownPath = Kind{"unknown-path", http.StatusNotFound, "Unknown path", api,
		"The path does not exist.", "Look it up at `/docs`."}
	NotFound = Kind{"not-found", http.StatusNotFound, "Not found", api,
		"The object does not exist in the workspace of the key.", "List the objects of the resource with GET."}
	WrongMethod = Kind{"wrong-method", http.StatusMethodNotAllowed, "Wrong method", both,
		"The path does not accept this method.", "Use a method of the header `Allow`."}
	NotAcceptable = Kind{"not-acceptable", http.StatusNotAcceptable, "Answer not acceptable", api,
		"The header `Accept` does not allow JSON.", "Send `Accept: application/json`, or no `Accept`."}

	Refused = Kind{"refused", http.StatusConflict, "Not possible now", api,
		"The state of the object does not allow the change. `reason` is its code.", "Read the object, and decide again."}
	RequestRunning = Kind{"request-running", http.StatusConflict, "Request is still running", api,
		"The request with this `Idempotency-Key` is still running.", "Repeat it after `Retry-After` to get its answer."}

	Gone = Kind{"gone", http.StatusGone, "No longer stored", "/raw/",
		"The payload was deleted: its retention is over, or it could not be stored after the call.", "Nothing brings it back. The event keeps the redacted error."}
	TooLarge = Kind{"too-large", http.StatusRequestEntityTooLarge, "Body too large", both,
		"The body is larger than the limit in the detail.", "Send media by URL or upload, and posts in several requests."}
	WrongEncoding = Kind{"wrong-encoding", http.StatusUnsupportedMediaType, "Compressed body", both,
		"The body is compressed.", "Send it without `Content-Encoding`."}
	WrongContentType = Kind{"wrong-content-type", http.StatusUnsupportedMediaType, "Not JSON by its content type", both,
		"The header `Content-Type` names another format or charset.", "Send `Content-Type: application/json` and UTF-8."}

	WrongBody = Kind{"wrong-body", http.StatusUnprocessableEntity, "Neither a post nor an array of posts", endpoints,
		"The body is neither an object nor an array of 1 to 100 posts.", "Send one post as an object, or an array of posts."}
	WrongEvent = Kind{"wrong-event", http.StatusUnprocessableEntity, "Invalid event", both,
		"The domain event is unknown, or its payload is invalid. `errors` names each field with its remedy.", "Correct the fields and send the event again."}
	WrongPost = Kind{"wrong-post", http.StatusUnprocessableEntity, "Invalid post", both,
		"A post breaks a rule. `errors` names the fields; for an array `results` has one entry per post.",
		"Correct the fields. docs/posts.md lists them; `autopost endpoint test ID FILE` checks a body."}
	WrongRequest = Kind{"wrong-request", http.StatusUnprocessableEntity, "Invalid request", api,
		"A parameter or a field of the body breaks a rule. `errors` names each with its remedy.", "Correct them. `/docs` lists parameters and fields."}
	OtherRequest = Kind{"other-request", http.StatusUnprocessableEntity, "Idempotency-Key used before", api,
		"The `Idempotency-Key` belongs to another request.", "Send a new key with each write."}
	PlatformRefused = Kind{"platform-refused", http.StatusUnprocessableEntity, "Platform refused", api,
		"The platform does not accept the medium. `reason` is its code.", "Follow the detail."}
	SecretRefused = Kind{"secret-refused", http.StatusUnprocessableEntity, "Secret refused", api,
		"The platform does not accept the secret, or does not answer. `reason` is its code. Nothing was stored.", "Send another secret, or `unchecked` to store it anyway."}

	WrongSecrets = Kind{"wrong-secrets", http.StatusTooManyRequests, "Too many wrong secrets", both,
		"This address sent too many wrong secrets, keys or signatures. The request was not checked.", "Correct the secret. Wait for `Retry-After`."}
	OverRate = Kind{"over-rate", http.StatusTooManyRequests, "Over the rate of the endpoint", endpoints,
		"The endpoint got more posts than its `ingress_rps` allows.", "Wait for `Retry-After`. An operator may raise `ingress_rps`."}
	TooManyRunning = Kind{"too-many-running", http.StatusTooManyRequests, "Too many running requests", api,
		"The key has too many requests that run at once.", "Wait for their answers."}

	Defect = Kind{"defect", http.StatusInternalServerError, "Defect of autopost", api,
		"The request met a defect of autopost.", "See the log of the daemon, and report the defect."}
	Unavailable = Kind{"unavailable", http.StatusServiceUnavailable, "Unavailable", both,
		"The database, the media store, or the key of a signed endpoint cannot be reached.",
		"Send the request again after `Retry-After`. An operator runs `autopost doctor`."}
	PlatformUnavailable = Kind{"platform-unavailable", http.StatusServiceUnavailable, "Platform unavailable", api,
		"The platform cannot take the medium now. `reason` is its code.", "Send the request again after `Retry-After`."}
	NotReady = Kind{"not-ready", http.StatusServiceUnavailable, "Not ready", "/readyz",
		"A part of the daemon does not work. `checks` names each part with its remedy.", "Follow the remedies."}
	NoRoom = Kind{"no-room", http.StatusInsufficientStorage, "Disk full", both,
		"A disk is full, and nothing was stored.", "Send the request again after `Retry-After`. An operator frees disk space."}
)

// kinds lists the catalogue by status.
var kinds = []Kind{
	NotJSON, BodyCut, UnknownSecret, SignatureMissing, SignatureMalformed, SignatureMismatch, ClockSkew, UnknownKey, NotAllowed, StepUp, NoToken,
	NotFound, UnknownPath, WrongMethod, NotAcceptable, Refused, RequestRunning, Gone, TooLarge, WrongEncoding, WrongContentType,
	WrongRequest, WrongEvent, WrongPost, WrongBody, OtherRequest, PlatformRefused, SecretRefused, TooManyRunning, WrongSecrets, OverRate,
	Defect, Unavailable, PlatformUnavailable, NotReady, NoRoom,
}

// Catalogue returns all kinds by status.
func Catalogue() []Kind { return slices.Clone(kinds) }

// Of returns the kind with this URN; ok is false for an unknown one.
func Of(urn string) (k Kind, ok bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.URN() == urn })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// OfAPI returns the kinds that the API answers with a status.
func OfAPI(status int) []Kind {
	return slices.DeleteFunc(Catalogue(), func(k Kind) bool { return k.Status != status || k.Where != api && k.Where != both })
}
