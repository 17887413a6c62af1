package autopost

import "encoding/json"

// Notice is a message to an operator about an alert, with a lease.
type Notice struct {
	// MessageID is the same in each retry.
	MessageID string `json:"message_id"`
	Token     string `json:"token"`
	TargetID  string `json:"target_id"`
	// Kind is telegram, max, email or webhook.
	Kind string `json:"kind"`
	// Address is a chat, a mail address or an https address.
	Address string `json:"address"`
	// AuthRef is the credential; "" if none is needed.
	AuthRef string `json:"auth_ref"`
	Subject string `json:"subject"`
	// Text is plain, at most 4000 characters.
	Text string `json:"text"`
	// Body has the same content for programs, as a JSON object.
	Body    json.RawMessage `json:"body"`
	Attempt int             `json:"attempt"`
}
