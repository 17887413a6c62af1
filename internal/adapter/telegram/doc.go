// Package telegram is the adapter for the Telegram Bot API (https://core.telegram.org/bots/api).
//
// A step without media is a sendMessage, a step with one medium the method of its kind, a step with two
// to ten media a sendMediaGroup. Known file ids are reused. If Telegram rejects an id, the adapter
// forgets it and uploads the content in a second call of the same attempt. The rejection is definite, so
// that nothing is posted twice.
//
// A bot cannot read a chat. After an unknown outcome, Reconcile forwards messages to the channel's
// service chat and compares them.
//
// The token is part of each URL. No error contains it: outbound hides URLs, and quoted answers are
// redacted.
package telegram
