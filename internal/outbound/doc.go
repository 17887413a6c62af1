// Package outbound is the only place that makes HTTP clients. There are two: one
// for the addresses an operator configured ([Operator]) and one for whatever
// payloads and feeds make us fetch ([Guarded]).
//
// Both return a [Client], whose errors say which host failed, why, and whether any
// byte of the request had left, and never hold the URL: a bot token may be in its
// path, a password in its user information, a signature in its query.
package outbound
