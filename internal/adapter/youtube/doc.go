// Package youtube is the adapter for the YouTube Data API, version 3.
//
// A post is a video, made in steps. The first step starts an upload session, which is recorded before
// the first byte is sent. The next step sends the video in parts. Thumbnail, captions and playlist
// follow. After an interruption the adapter asks the session for its state, so the outcome of an upload
// is known unless the session is lost and the list of uploads does not show the video.
//
// The address of a session permits writes to the channel. It is recorded only sealed with the channel's
// credential.
package youtube
