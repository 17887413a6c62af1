// Package youtube speaks the YouTube Data API, version 3, as far as publishing needs it.
//
// A post is a video, made in steps: an upload session is started, and recorded before
// the first byte; the bytes go into it in parts; then thumbnail and captions. Whatever is
// cut off goes on by asking: the session says how much it has, or which video it became. So
// no outcome of an upload is unknown, unless the session is lost and the list of uploads
// cannot tell either.
//
// The address of a session allows whoever has it to write to the channel. It is
// recorded sealed under the channel's credential, and appears nowhere in the open.
package youtube
