// Package media keeps the content of posts: it fetches what a payload points
// at, checks what really came, and stores it in the media origin under the
// digest of its bytes. It also remembers, for one delivery, what a platform
// calls content that it was already given.
//
// Content is streamed through fixed buffers; no medium is held in memory. Who holds what
// is in rows of the database (Depository); the bucket knows nothing of workspaces.
package media
