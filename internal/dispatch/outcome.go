package dispatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"autopost"
)

// Codes of attempts that ended before the platform was called.
const (
	codeNoAdapter = "no_adapter"
	codeNotCalled = "not_called"
)

// credentialPauseMS keeps a rate group from using up its attempts while its credential is not available.
const credentialPauseMS = 30_000

func noAdapter(platform autopost.Platform) autopost.Error {
	return autopost.Error{
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeNoAdapter, Known: true,
		Message: fmt.Sprintf("this daemon has no adapter for platform %q", platform),
	}
}

func noCredential(authRef string) autopost.Error {
	return autopost.Error{
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: autopost.CodeCredentialMissing, Known: true,
		Message: fmt.Sprintf("credential %q is not bound", authRef),
	}
}

func credentialUnavailable(authRef string) autopost.Error {
	return autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: autopost.CodeCredentialUnavailable, Known: true,
		RetryAfterMS: credentialPauseMS,
		Message:      fmt.Sprintf("credential %q is not available at the moment", authRef),
	}
}

func notCalled() autopost.Error {
	return autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeNotCalled, Known: true,
		Message: "the database did not answer whether the call may start; the platform was not called",
	}
}

func tooLate() autopost.Error {
	return autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeNotCalled, Known: true,
		Message: "the lease ended before the call started; the platform was not called",
	}
}

func unknown(message string) autopost.Error {
	return autopost.Error{
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: autopost.CodeUnknownOutcome,
		Message: message,
	}
}

// checked makes an adapter's answer storable. An inconsistent answer says nothing about the platform, so its
// outcome is unknown.
func checked(o autopost.Outcome) autopost.Outcome {
	posted := o.OK && o.Error == nil && o.ProviderMessageID != ""
	failed := !o.OK && o.Error != nil
	if !posted && !failed {
		return autopost.Failed(unknown("the adapter reported neither a post's id nor an error"))
	}
	o.ProviderMessageID = storableText(o.ProviderMessageID)
	o.Raw = storableJSON(o.Raw)
	if failed {
		e := *o.Error
		e.Code, e.Message, e.Raw = storableText(e.Code), storableText(e.Message), storableJSON(e.Raw)
		o.Error = &e
	}
	return o
}

// storableText replaces what PostgreSQL's text refuses. If a byte in a platform's answer made the commit fail, the
// outcome would become unknown and the post would be sent twice.
func storableText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// storableJSON does the same for jsonb, which also refuses half surrogate pairs. Text that is not JSON becomes a
// JSON string.
func storableJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var value any
	if json.Valid(raw) {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			value = string(raw)
		}
	} else {
		value = string(raw)
	}
	out, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return bytes.ReplaceAll(out, []byte(`\u0000`), []byte(`\ufffd`))
}
