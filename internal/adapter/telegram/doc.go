// Package telegram speaks the Telegram Bot API (https://core.telegram.org/bots/api).
//
// A step without media is a sendMessage, with one medium the method of its kind, with
// two to ten a sendMediaGroup. Known file ids are reused; an id that Telegram refuses is
// forgotten and the content uploaded in a second call of the same attempt, which
// doubles nothing: the refusal is definite.
//
// Bots cannot read a chat. What became of a lost call is found out by copies in a service
// chat, where the channel has one.
//
// The token is part of the path. It appears in no error: outbound hides URLs, and
// whatever an answer quotes is redacted.
package telegram
