// Package media stores the media of posts. It downloads a medium, checks its content, and stores it in the media store
// under the digest of its bytes. It also gives adapters the ids that platforms gave to stored media.
//
// Content is streamed through fixed buffers; no medium is held in memory. The database records which workspace has which
// medium (WorkspaceStore). The bucket does not know workspaces.
package media
