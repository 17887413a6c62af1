// Package maxmessenger speaks the bot API of the MAX messenger
// (https://dev.max.ru/docs-api). The platform is called max; the package is not, for that is a builtin.
//
// A post is one POST /messages. Media are uploaded before it, each in two calls (a
// slot, then the bytes to another host), and named in it by tokens, which are reused. There is no
// finalising call: MAX processes an upload while the post is tried, and says
// attachment.not.ready until it is done. A failed upload is always definite, since nothing was posted.
//
// What became of a lost call is read back from the chat.
package maxmessenger
