// Package outbound is the only factory of HTTP clients: [Operator] for addresses that the operator
// configured, and [Guarded] for addresses from payloads and feeds.
//
// Both return a [Client]. Its errors state which host failed, why, and whether a byte of the request
// was sent. They never contain the URL: its path may contain a bot token, its user information a
// password, its query a signature.
package outbound
