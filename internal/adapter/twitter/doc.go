// Package twitter speaks the API of X, version 2 (https://docs.x.com). The platform
// is called x; a package of that name would say nothing.
//
// A post is one POST /2/tweets; a thread is steps of which each answers the one
// before. Media are uploaded before it in chunks, finalized, and waited for where X
// works on them; their ids are reused for a day. A failed upload is always definite,
// since nothing was posted. X has no key against repetition, and what a server error
// made of a post nobody knows: then the account's timeline is asked.
package twitter
