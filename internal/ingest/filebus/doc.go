// Package filebus takes jobs from folders: it reads payload, state and approval files, copies artifacts into the media
// store, and writes the result of each job.
//
// SQL decides about jobs. This package never changes a file of somebody else. Its own files are written under a
// temporary name, synced and renamed, so a reader never sees half a file. The database is the authority: a state file
// is derived from it, and the file can be made again at any time.
//
//	payload ──► waiting ──► approved ──► publishing ──► published: PLATFORM.state.json
//	                └─ approval file          └─ failed, unknown, rejected: PLATFORM.status.json
package filebus
